from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.support import Served, served


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One service for the tests of a file; each takes studies of its own names."""
    folder: Path = tmp_path_factory.mktemp("service")
    with served(folder) as found:
        yield found
