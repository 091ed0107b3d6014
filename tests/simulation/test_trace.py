"""A trace is of the run that was asked for, as it was played."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rank1
from rank1.simulation import Series

PROBLEM = rank1.spike(6, 5, 0.3, 0.3, 0.5, 0.5)


def told(trace: rank1.Trace) -> list[Any]:
    """Steps and bounds of every stage: no two runs share them."""
    return [(stage.step, stage.rows.lower.tolist()) for stage in trace.stages]


@pytest.mark.parametrize("method", ["steps", "stages"])
@pytest.mark.parametrize("checkpoints", [1, 50])
def test_it_is_of_that_run_with_those_checkpoints(method: str, checkpoints: int) -> None:
    result = rank1.simulate(
        rank1.Rank1Elim(), PROBLEM, 20_000, 4, seed=3, checkpoints=checkpoints, method=method
    )
    series = Series.of(rank1.Rank1Elim(), PROBLEM, 20_000, checkpoints, 3, method)
    seen = []
    for run in range(4):
        played = series.play_run(run)
        assert (played.curve[:, 0] == result.outcomes[0].expected[run]).all()
        trace = result.trace(run)
        stages = played.state.at[0].stage
        assert len(trace.stages) == stages >= 2
        assert [stage.step for stage in trace.stages] == played.state.ended[:stages].tolist()
        lower = [stage.rows.lower[0] for stage in trace.stages]
        assert lower == [
            played.state.row_intervals[k, stage.rows.lines[0], 0]
            for k, stage in enumerate(trace.stages)
        ]
        assert trace.run == run
        seen.append(told(trace))
    assert all(seen[a] != seen[b] for a in range(4) for b in range(a))


def test_it_is_the_same_after_reading_the_file(tmp_path: Path) -> None:
    """The method, the seed and the checkpoints are in the file."""
    for method in ("steps", "stages"):
        result = rank1.simulate(
            [rank1.Uniform(), rank1.Rank1Elim(0.5)][1:], PROBLEM, 20_000, 3, seed=4,
            checkpoints=[123, 4567], method=method,
        )  # fmt: skip
        result.save(tmp_path / "a.parquet")
        loaded = rank1.load(tmp_path / "a.parquet")
        for run in range(3):
            assert told(loaded.trace(run)) == told(result.trace(run))
            assert (loaded.trace(run).rows, loaded.trace(run).columns) == ([0], [0])
