"""Seeds, checkpoints, results and files."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import rank1
from rank1.simulation import Series

PROBLEM = rank1.spike(4, 3, 0.5, 0.4, 0.4, 0.5)
BOTH = [rank1.Rank1Elim(), rank1.Uniform()]


def frame(**changes: Any) -> pl.DataFrame:
    arguments: dict[str, Any] = {
        "policies": BOTH, "problem": PROBLEM, "n": 3000, "runs": 6, "seed": 5, "checkpoints": 7
    }  # fmt: skip
    return rank1.simulate(**(arguments | changes)).to_frame()


def test_same_seed_same_numbers_whatever_the_jobs() -> None:
    assert frame().equals(frame(jobs=2))
    assert frame().equals(frame(jobs=5))
    assert not frame().equals(frame(seed=6))


def test_same_numbers_in_other_processes() -> None:
    assert frame().equals(frame(jobs=2, backend="processes"))


def test_same_numbers_whatever_is_beside() -> None:
    alone = frame(policies=rank1.Rank1Elim())
    assert frame().filter(pl.col("policy") == "rank1elim").equals(alone)
    assert frame(policies=BOTH[::-1]).filter(pl.col("policy") == "rank1elim").equals(alone)
    more = frame(policies=rank1.Rank1Elim(), runs=9).filter(pl.col("run") < 6)
    assert more.equals(alone)


def test_runs_differ_from_each_other() -> None:
    ends = frame().filter(pl.col("step") == 3000)["realised_regret"]
    assert ends.n_unique() > 6


def test_names_and_labels_are_not_part_of_the_seed() -> None:
    plain = rank1.Bernoulli(PROBLEM.u, PROBLEM.v)
    assert frame(problem=plain).equals(frame())
    assert frame(problem=rank1.PositionBased(PROBLEM.u, PROBLEM.v)).equals(frame())
    assert not frame(problem=rank1.Bernoulli(PROBLEM.u, PROBLEM.v[::-1])).equals(frame())


@pytest.mark.usefixtures("uncompiled")
def test_equal_settings_are_one_policy() -> None:
    whole, fraction = rank1.Rank1Elim(1), rank1.Rank1Elim(np.float32(1.0))  # type: ignore[arg-type]
    assert whole.label == fraction.label == "rank1elim"
    alone = frame(policies=rank1.Rank1Elim())
    assert frame(policies=whole).equals(alone)
    assert frame(policies=fraction).equals(alone)


def test_seeds_come_from_what_was_given() -> None:
    """A mean is computed, and its last bit may depend on the machine; it must not matter."""
    grid = np.random.default_rng(1).dirichlet([1, 1, 1], (2, 3))
    one, other = (rank1.Categorical([0, 0.5, 1], grid) for _ in range(2))
    other.means = one.means * (1 + 2e-16)
    assert one.digest == other.digest
    assert one.digest != rank1.Categorical([0, 0.6, 1], grid).digest
    given = rank1.Factors([rank1.Discrete([0, 1], [0.5, 0.5])], [1])
    assert given.digest == rank1.Factors([["discrete", [0.0, 1.0], [0.5, 0.5]]], [1.0]).digest


def test_a_seed_may_be_any_whole_number() -> None:
    assert frame(seed=10**40).height > 0


def test_steps_are_what_auto_means_for_uniform() -> None:
    assert frame(policies=rank1.Uniform(), method="steps").equals(frame(policies=rank1.Uniform()))


def test_summary_is_what_the_runs_say() -> None:
    result = rank1.simulate(BOTH, PROBLEM, 3000, 6, seed=5)
    row = result.summary().row(1, named=True)
    ends = result["uniform"].expected[:, -1]
    assert row["policy"] == "uniform"
    assert row["expected_mean"] == pytest.approx(ends.mean())
    assert row["expected_std"] == pytest.approx(ends.std(ddof=1))
    assert row["expected_se"] == pytest.approx(ends.std(ddof=1) / math.sqrt(6))
    # Uniform play loses the average gap at every step, up to chance.
    gap = PROBLEM.best_mean - PROBLEM.means.mean()
    assert ends.mean() == pytest.approx(3000 * gap, rel=0.05)
    single = rank1.simulate(rank1.Uniform(), PROBLEM, 10, 1).summary().row(0, named=True)
    assert single["expected_std"] is None


def test_document_is_json_of_the_agreed_shape() -> None:
    import json

    document = rank1.simulate(BOTH, PROBLEM, 1000, 2, seed=5, checkpoints=4).document()
    json.dumps(document, allow_nan=False)
    assert list(document) == ["problem", "n", "runs", "seed", "shuffle", "policies"]
    assert document["shuffle"] is False
    assert [each["method"] for each in document["policies"]] == ["stages", "steps"]
    assert document["problem"]["name"] == "spike"
    assert document["problem"]["settings"]["delta_v"] == 0.5
    first = document["policies"][0]
    assert first["steps"] == [250, 500, 750, 1000]
    assert first["best_arm"] == first["best_pair"] == [[0, 0], [0, 0]]
    assert [document["problem"][name] for name in ("K", "L", "sides")] == [4, 3, [4, 3]]
    assert set(first["expected_regret"]) == {"mean", "std", "se"}
    assert first["realised_curve"]["mean"][-1] == first["realised_regret"]["mean"]


def test_save_and_load(tmp_path: Path) -> None:
    result = rank1.simulate([*BOTH, rank1.Rank1Elim(0.5)], PROBLEM, 1000, 3, seed=5)
    path = tmp_path / "runs.parquet"
    result.save(path)
    again = rank1.load(path)
    assert again.to_frame().equals(result.to_frame())
    assert again.document() == result.document()
    assert again.summary().equals(result.summary())
    assert again.trace(1).rows == result.trace(1).rows
    assert (again.method, again.shuffle) == (result.method, result.shuffle)
    for outcome in result.outcomes:
        assert again.best_pairs(outcome.label) == outcome.best_pairs
    assert [p.name for p in tmp_path.iterdir()] == ["runs.parquet"]
    assert pl.read_parquet(path).columns == [
        "problem", "K", "L", "p_u", "p_v", "delta_u", "delta_v", "sides", "policy",
        "confidence_scale", "n", "run", "step", "expected_regret", "realised_regret", "best_arm",
    ]  # fmt: skip


def test_a_failed_save_keeps_what_was_there(tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / "runs.parquet"
    result = rank1.simulate(BOTH, PROBLEM, 1000, 3, seed=5)
    result.save(path)
    before = path.read_bytes()

    def full(*_: Any, **__: Any) -> None:
        raise pl.exceptions.ComputeError("No space left on device (os error 28)")

    monkeypatch.setattr(pl.LazyFrame, "sink_parquet", full)
    with pytest.raises(OSError, match=r"can't write .*No space left on device"):
        result.save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["runs.parquet"]
    with pytest.raises(OSError, match=r"can't write .*existing, writable folder"):
        result.save(tmp_path / "no" / "runs.parquet")


def test_a_full_disk_is_told(tmp_path: Path) -> None:
    """A limit on the size of files stands in for the disk."""
    code = (
        "import resource, signal, rank1\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "result = rank1.simulate(rank1.Rank1Elim(), rank1.spike(2, 2, .4, .4, .5, .5), 1000, 3)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))\n"
        "result.save('runs.parquet')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True
    )  # fmt: skip
    assert "FileError: can't write 'runs.parquet': File too large" in done.stderr
    assert os.listdir(tmp_path) == []


def test_a_saved_file_keeps_links_and_permissions(tmp_path: Path) -> None:
    result = rank1.simulate(rank1.Uniform(), PROBLEM, 10, 1)
    place, link = tmp_path / "place.parquet", tmp_path / "link.parquet"
    place.touch()
    place.chmod(0o640)
    link.symlink_to(place)
    result.save(link)
    assert link.is_symlink()
    assert place.stat().st_mode & 0o777 == 0o640
    assert rank1.load(link).document() == result.document()
    with pytest.raises(
        OSError, match=r"can't write '.*': it isn't a regular file; choose another name"
    ):
        result.save(tmp_path)


@pytest.mark.uncompiled
def test_a_loaded_sampler_can_not_be_traced(tmp_path: Path) -> None:
    sampler = rank1.Sampler(lambda size, rng: rng.random((size, 2)), mean=[0.5, 0.5])
    problem = rank1.Factors(sampler, [0.5])
    rank1.simulate(rank1.Rank1Elim(), problem, 500, 1).save(tmp_path / "a.parquet")
    loaded = rank1.load(tmp_path / "a.parquet")
    assert loaded.summary()["found"][0] is None
    with pytest.raises(ValueError, match="the file, got one of factors: simulate it again"):
        loaded.trace()


def test_ones_own_elimination_policy_can_be_traced(tmp_path: Path) -> None:
    class Hasty(rank1.Rank1Elim):
        name = "hasty"

    result = rank1.simulate(Hasty(0.5), PROBLEM, 5000, 2, seed=5)
    assert result.trace(1).policy == "hasty:confidence_scale=0.5"
    assert result.trace(1).stages
    result.save(tmp_path / "a.parquet")
    with pytest.raises(
        ValueError, match=r"policy and problem can be rebuilt from the file, got one of hasty: sim"
    ):
        rank1.load(tmp_path / "a.parquet").trace()


def test_interrupted_with_what_was_finished(monkeypatch: Any) -> None:
    played: list[int] = []
    original = Series.play_run

    def some(self: Series, *rest: Any) -> Any:
        if self.policy.name == "uniform" and len(played) >= 2:
            raise KeyboardInterrupt
        if self.policy.name == "uniform":
            played.append(1)
        return original(self, *rest)

    monkeypatch.setattr(Series, "play_run", some)
    monkeypatch.setattr("rank1.simulation.plan.MAX_TASK", 1)
    monkeypatch.setattr(
        "rank1.simulation.plan.cut", lambda runs, *_: [range(k, k + 1) for k in runs]
    )
    with pytest.raises(rank1.Interrupted) as stop:
        rank1.simulate(BOTH[::-1], PROBLEM, 1000, 50, seed=5)
    result = stop.value.result
    assert result is not None
    assert result.runs == 2  # not the 50 that were asked for
    assert "mean of 2 runs" in result.plot().get_title("left")
    assert [outcome.runs for outcome in result.outcomes] == [[0, 1], [0, 1]]
    monkeypatch.undo()
    assert result.to_frame().equals(frame(policies=BOTH[::-1], n=1000, runs=2, checkpoints=100))


def test_interrupted_before_anything_was_finished(monkeypatch: Any) -> None:
    def stopped(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(Series, "play_run", stopped)
    with pytest.raises(rank1.Interrupted) as stop:
        frame()
    assert stop.value.result is None


def test_a_store_keeps_what_is_finished(tmp_path: Path, monkeypatch: Any) -> None:
    arguments: dict[str, Any] = {"runs": 7, "store": tmp_path / "cells"}
    original = Series.play
    played: list[tuple[str, int]] = []
    monkeypatch.setattr("rank1.simulation.plan.MAX_TASK", 1)
    monkeypatch.setattr(
        "rank1.simulation.plan.cut", lambda runs, *_: [range(k, k + 1) for k in runs]
    )

    def counted(self: Series, runs: range, *rest: Any) -> Any:
        if len(played) == 5 and not resumed:
            raise KeyboardInterrupt
        played.extend((self.policy.name, run) for run in runs)
        return original(self, runs, *rest)

    monkeypatch.setattr(Series, "play", counted)
    resumed = False
    with pytest.raises(rank1.Interrupted):
        frame(**arguments)
    resumed = True
    whole = frame(**arguments)
    # Nothing was played twice.
    assert sorted(played) == [(name, run) for name in ("rank1elim", "uniform") for run in range(7)]
    assert whole.equals(frame(runs=7))
    played.clear()
    assert frame(**arguments).equals(whole)
    assert frame(**arguments, jobs=2).equals(whole)
    assert frame(**(arguments | {"runs": 5})).equals(whole.filter(pl.col("run") < 5))
    assert not played
    # A damaged cell is played again; anything else that matters has a cell of its own.
    cells = sorted((tmp_path / "cells").rglob("*.cell"))
    cells[0].write_bytes(cells[0].read_bytes()[:-1])
    assert frame(**arguments).equals(whole)
    assert len(played) == 1
    frame(**(arguments | {"seed": 6}))
    assert len(played) == 1 + 14


def test_checkpoints_may_be_steps() -> None:
    result = rank1.simulate(rank1.Uniform(), PROBLEM, 100, 1, checkpoints=[50, 3, 3])
    assert result.checkpoints.tolist() == [3, 50, 100]
    result = rank1.simulate(rank1.Uniform(), PROBLEM, 5, 1, checkpoints=100)
    assert result.checkpoints.tolist() == [1, 2, 3, 4, 5]


def test_checkpoints_may_be_a_number_of_any_type() -> None:
    for count in (np.int64(2), 2.0):
        assert frame(checkpoints=count).equals(frame(checkpoints=2))


@pytest.mark.usefixtures("uncompiled")
def test_the_document_says_how_runs_were_played(tmp_path: Path) -> None:
    policies = [rank1.Rank1Elim(), rank1.UTS()]

    def methods(result: Any) -> list[Any]:
        return [each["method"] for each in result.document()["policies"]]

    late = rank1.simulate(policies, PROBLEM, 100, 1, delay=5)
    assert methods(late) == ["steps", "steps"]
    result = rank1.simulate(policies, PROBLEM, 100, 1, shuffle=True)
    assert result.document()["shuffle"] is True
    assert methods(result) == ["stages", "steps"]
    result.save(tmp_path / "a.parquet")
    assert methods(rank1.load(tmp_path / "a.parquet")) == ["stages", "steps"]
    assert methods(replace(result, problem=None)) == [None, None]  # a file of someone's own problem


def test_memory_does_not_grow_with_n() -> None:
    """A thousand times the steps add a few stages of K + L numbers, and nothing else."""
    import tracemalloc

    peaks = []
    for n in (10**6, 10**9):
        frame(policies=rank1.Rank1Elim(), n=n, runs=1)  # whatever is loaded once
        tracemalloc.start()
        frame(policies=rank1.Rank1Elim(), n=n, runs=1)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 50_000


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"policies": rank1.UCB1}, "such as UCB1.., got the class UCB1"),
        ({"n": 0}, "n must be a whole number of at least 1, got 0"),
        ({"n": 2.5}, "n must be a whole number of at least 1, got 2.5"),
        ({"n": math.nan}, "n must be a whole number of at least 1, got nan"),
        ({"n": math.inf}, "n must be a whole number of at least 1, got inf"),
        ({"n": "many"}, "n must be a whole number of at least 1, got 'many'"),
        ({"runs": 0}, "runs must be a whole number of at least 1, got 0"),
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
        ({"jobs": 0}, "jobs must be a whole number of at least 1 and at most 1024, got 0"),
        ({"checkpoints": 0}, "checkpoints must be a whole number of at least 1"),
        ({"checkpoints": [5, 5000]}, "checkpoints must be .* at most 3000, got 5000"),
        ({"checkpoints": 2.5}, "checkpoints must be a whole number of at least 1"),
        ({"checkpoints": None}, "checkpoints must be a whole number of at least 1"),
        ({"store": 5}, "store must be the path of a folder, got 5"),
        ({"shuffle": "no"}, "shuffle must be true or false, got 'no'"),
        ({"method": "fast"}, "method must be one of auto, steps, stages, got 'fast'"),
        ({"method": "stages"}, "method must be auto or steps for uniform"),
        ({"backend": "cloud"}, "backend must be one of threads, processes, .*got 'cloud'"),
        ({"runs": 1e12}, "runs must be .* at most 10000000, got 1000000000000"),
        ({"jobs": 100_000}, "jobs must be .* at most 1024, got 100000: -1 means one per core"),
        ({"policies": []}, "policies must be at least one policy"),
        ({"policies": ["ucb"]}, "policy must be one of .* got 'ucb'"),
        ({"policies": [1]}, "policies must be policies, .* got 1"),
        ({"policies": None}, "policies must be policies, .* got None"),
        ({"policies": [rank1.Uniform(), rank1.Uniform()]}, "got uniform twice"),
        ({"problem": "spike"}, "problem must be a Problem"),
    ],
)
def test_bad_arguments(changes: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        frame(**changes)


def test_policies_may_be_named() -> None:
    problem = rank1.spike(2, 2, 0.4, 0.4, 0.5, 0.5)
    named = rank1.simulate(["ucb1:confidence=2", "uniform"], problem, 50, 2, seed=1)
    given = rank1.simulate([rank1.UCB1(confidence=2), rank1.Uniform()], problem, 50, 2, seed=1)
    assert named.to_frame().equals(given.to_frame())
    alone = rank1.simulate("uniform", problem, 50, 2, seed=1)
    assert [each.label for each in alone.outcomes] == ["uniform"]
