"""Kernels that several processes compile before anything is played."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import rank1
from rank1.simulation import Series, ahead
from rank1.simulation.ahead import compile_ahead
from tests.simulation.support import PROBLEMS, Broken

SCRIPT = """
import sys
import rank1
from rank1.simulation import Series
from rank1.simulation import ahead
from tests.simulation.support import PROBLEMS

ahead.WORTH = 2
policies = rank1.Uniform(), rank1.Oracle()
series = [Series.of(policy, PROBLEMS[0], 2000, 4, seed=5) for policy in policies]
assert all(one.uncompiled() for one in series)
ahead.compile_ahead(series, jobs=2)
assert not any(one.uncompiled() for one in series)
for one in series:
    assert one.play(range(2)).runs == 2
kernels = sys.modules["rank1.compiled.kernels"]._kernels
loaded = [sum(one.stats.cache_hits.values()) for one in kernels.values()]
assert loaded == [1, 1], loaded
"""


@pytest.mark.validate
def test_other_processes_compile_and_this_one_loads(tmp_path: Path) -> None:
    environment = os.environ | {"RANK1_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", SCRIPT], check=True, env=environment, timeout=300)


@pytest.mark.parametrize(
    ("jobs", "worth"), [(1, 1), (2, 2)], ids=["one job", "too few to start processes"]
)
def test_no_process_is_started_in_vain(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, jobs: int, worth: int
) -> None:
    monkeypatch.setenv("RANK1_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(ahead, "WORTH", worth)
    monkeypatch.setattr(ahead, "backend", lambda name: pytest.fail("a process was started"))
    series = [Series.of(rank1.UCB1(), problem, 2000, 4, seed=5) for problem in PROBLEMS[:1]]
    broken = Series.of(Broken(), PROBLEMS[0], 2000, 4, seed=5)
    compile_ahead([*series, *series, broken], jobs)
