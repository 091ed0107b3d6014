from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import platformdirs
import pytest

from rank1.errors import FileError
from rank1.paths import cache_directory


def test_the_environment_names_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RANK1_CACHE_DIR", str(tmp_path))
    assert cache_directory() == tmp_path


def test_otherwise_it_is_where_the_platform_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANK1_CACHE_DIR", raising=False)
    assert cache_directory() == platformdirs.user_cache_path("rank1", appauthor=False)


def test_without_a_home_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """It must not create a folder named ~ in the current directory."""
    monkeypatch.delenv("RANK1_CACHE_DIR", raising=False)
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda *_, **__: Path("~/.cache/rank1"))
    with pytest.raises(FileError, match="RANK1_CACHE_DIR"):
        cache_directory()


@pytest.mark.compiled
def test_asking_for_a_folder_loads_nothing_heavy() -> None:
    code = (
        "import sys, rank1.paths, rank1.paper.movielens.download\n"
        "rank1.paths.cache_directory()\n"
        "assert 'numba' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
