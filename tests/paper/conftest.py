"""Documents of a few steps, made once for all tests of pages and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rank1.paper import Options, artefact, figure3
from rank1.policies import POLICIES


@pytest.fixture(scope="session")
def options(tmp_path_factory: pytest.TempPathFactory) -> Options:
    """A quick run of even fewer steps."""
    return Options(
        2, 20_000, out=tmp_path_factory.mktemp("report"), quick=True, command="rank1 <quick>"
    )


@pytest.fixture(scope="session")
def documents(options: Options) -> dict[str, dict[str, Any]]:
    """What is quick to make; of the policies of Figure 3 those of the paper."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figure3, "NAMES", [n for n in ("rank1elim", "ucb1") if n in POLICIES])
        return {name: artefact.make(name, options) for name in ("table1", "scaling", "figure3")}


@pytest.fixture
def real_data(tmp_path: Path) -> Path:
    """A folder of ratings whose titles don't say that they are generated."""
    from rank1.paper.movielens import stand_in

    movies = stand_in(tmp_path) / "movies.dat"
    movies.write_text(movies.read_text("latin-1").replace("Stand-in", "Film"), "latin-1")
    return tmp_path
