"""Helpers for tests of studies and their storages."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rank1 import Study
from rank1.policies import POLICIES
from rank1.studies.state import StudyState
from rank1.testing.storages import SPEC as SPEC
from rank1.testing.storages import append as append
from rank1.testing.storages import reported as reported
from rank1.testing.storages import suggested as suggested

NAMES = [name for name in POLICIES if name not in ("oracle", "glm_ucb")]
#: The policies of most studies, and one that works in stages; `make validate` runs all policies.
USUAL = ("uts", "top_two", "rank1elim")
#: Each takes seconds to compile, so tests of one policy run the others as plain Python.
COMPILED = ("uts",)
LIVE = [pytest.param(name, marks=() if name in USUAL else pytest.mark.validate) for name in NAMES]


def from_log(study: Study) -> StudyState:
    """Fold a study's whole log into a new state."""
    state = StudyState(study.spec)
    state.fold(*study.look(lambda _, log: study.access.read(log)))
    return state


def python(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run Python in a separate process, which must succeed."""
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True, text=True, timeout=1800, check=False, **options,
    )  # fmt: skip


@contextlib.contextmanager
def small_disk(place: Path, megabytes: int) -> Iterator[Path]:
    """Mount a small disk that is soon full."""
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(place)],
        capture_output=True, check=False,
    )  # fmt: skip
    if mounted.returncode:
        pytest.skip("only root can make a small disk; a limit on the size of files is tested")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)
