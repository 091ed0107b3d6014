"""Plans: what is left is cut into cells, and every cell is played once or told of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rank1
from rank1.errors import NoDigest
from rank1.simulation import Series
from rank1.simulation import plan as plan_module
from rank1.simulation.backends import Failure, Setup, threads
from rank1.simulation.plan import MAX_RUNS, cut, make_plan
from rank1.simulation.store import Store
from tests.simulation.support import BROKEN, PROBLEMS, Broken, cells

UNIFORM, ELIM = rank1.Uniform(), rank1.Rank1Elim()


def series(policy: rank1.Policy = UNIFORM, n: int = 2000, problem: int = 0) -> Series:
    return Series.of(policy, PROBLEMS[problem], n, 4, seed=5)


@given(
    start=st.integers(0, 1000),
    size=st.integers(1, 500),
    seconds=st.floats(0, 20),
    target=st.floats(0.01, 10),
)
def test_cells_are_aligned_powers_of_two(
    start: int, size: int, seconds: float, target: float
) -> None:
    runs = range(start, start + size)
    parts = list(cut(runs, seconds, target))
    assert [run for part in parts for run in part] == [*runs]
    whole = [part for part in parts if part.start > start and part.stop < runs.stop]
    for part in whole:
        assert len(part).bit_count() == 1
        assert part.start % len(part) == 0
    # About the target: never more than it, unless one run takes longer.
    assert all(len(part) == 1 or len(part) * seconds <= target for part in parts)
    assert all(2 * len(part) * seconds >= target * 0.999 for part in whole if len(part) < 2**20)


def test_cheap_cells_travel_together() -> None:
    cheap = make_plan(
        [(series(policy, problem=k), 6) for policy in (UNIFORM, ELIM) for k in (0, 1)]
    )
    assert len(cheap.cells) == 4
    assert len(cheap.tasks) == 1
    # Long cells go alone, and before the others.
    long = make_plan([(series(policy, 10**9, k), 6) for policy in (UNIFORM, ELIM) for k in (0, 1)])
    assert [len(task) for task in long.tasks] == [1] * 12 + [2]
    costs = [sum(cell.seconds for cell in task) for task in long.tasks]
    assert costs[-1] < 1 < costs[-2]
    assert long.seconds == pytest.approx(sum(costs))


def test_first_runs_of_all_come_first_in_turns() -> None:
    wanted = [(series(), 3), (series(ELIM), 3)]
    plan = make_plan(wanted, cell_seconds=1e-9, in_turns=True)
    order = [(cell.runs.start, cell.series) for cell in plan.cells]
    assert [start for start, _ in order] == [0, 0, 1, 1, 2, 2]
    assert {one for _, one in order[:2]} == {one for one, _ in wanted}


def test_equal_series_are_played_once(tmp_path: Path) -> None:
    """Each has as many runs as it was asked for."""
    plan = make_plan([(series(), 2), (series(), 6), (series(ELIM), 1)], Store(tmp_path))
    assert sorted(len(cell.runs) for cell in plan.cells) == [1, 6]
    assert plan.play() == []
    assert [plan.whole(k).runs for k in range(3)] == [2, 6, 1]
    assert plan.missing(0) == plan.missing(1) == []
    assert (plan.whole(0)["curves"] == plan.whole(1)["curves"][:2]).all()
    assert cells(tmp_path) == 2


def test_what_is_missing_is_known_before_and_after(tmp_path: Path) -> None:
    store = Store(tmp_path)
    one = series()
    store.put(one.key, range(2, 4), one.play(range(2, 4)))
    plan = make_plan([(one, 6)], store)
    assert (plan.found, plan.missing(0)) == (1, [range(2), range(4, 6)])
    assert [cell.runs for cell in plan.cells] == plan.missing(0)
    assert plan.play() == []
    assert plan.missing(0) == []
    assert np.array_equal(plan.whole(0)["curves"], one.play(range(6))["curves"])


def test_progress_never_changes_a_result(capsys: pytest.CaptureFixture[str]) -> None:
    plan = make_plan([(series(), 3)], cell_seconds=1e-9, progress=True)
    assert plan.play(progress=True, lines=True) == []
    out, err = capsys.readouterr()
    assert out == ""
    assert "3 of 3 cells" in err
    assert np.array_equal(plan.whole(0)["curves"], series().play(range(3))["curves"])


def test_a_cell_that_raises_does_not_stop_the_others() -> None:
    plan = make_plan([(series(Broken()), 6), (series(), 6)])
    ((cell, why),) = plan.play()
    assert (cell.series, cell.runs) == (plan.series[0], range(6))
    assert why.error == BROKEN
    assert "in start" in why.trace
    assert plan.missing(0) == [range(6)]
    assert plan.missing(1) == []
    # Unless the first error should be raised, as it was.
    with pytest.raises(rank1.PolicyError, match="no luck with 4 rows"):
        make_plan([(series(Broken()), 6), (series(), 6)]).play(strict=True)


def test_an_error_from_elsewhere_is_told_with_its_series(monkeypatch: pytest.MonkeyPatch) -> None:
    """In another process there is no exception to raise again."""
    plan = make_plan([(series(Broken()), 6)])

    def elsewhere(tasks: Any, setup: Setup) -> Any:
        yield 0, [Failure("ArithmeticError: no luck")]

    monkeypatch.setattr(threads, "run_tasks", elsewhere)
    message = r"^broken on spike \(K=4, .*\), n=2,000: ArithmeticError: no luck$"
    with pytest.raises(rank1.BackendError, match=message):
        plan.play(strict=True)


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (None, "nothing came back"),
        (OSError("no scheduler"), "the backend failed: OSError: no scheduler"),
        (ValueError("no such thing"), "the backend failed: ValueError: no such thing"),
        (rank1.BackendError("no such cluster"), ""),
    ],
)
def test_cells_that_a_backend_loses_are_told(
    monkeypatch: pytest.MonkeyPatch, error: Exception | None, why: str
) -> None:
    original = threads.run_tasks

    def lossy(tasks: Any, setup: Setup) -> Any:
        yield next(original(tasks, setup))
        if error is not None:
            raise error

    monkeypatch.setattr(threads, "run_tasks", lossy)
    plan = make_plan([(series(), 6)], cell_seconds=1e-9)
    plan.tasks[:] = [[cell] for cell in plan.cells]
    if not why:  # it can't begin
        with pytest.raises(rank1.BackendError, match="no such cluster"):
            plan.play()
        return
    failed = plan.play()
    assert [cell.runs.start for cell, _ in failed] == [1, 2, 3, 4, 5]
    assert {failure.error for _, failure in failed} == {why}
    assert plan.missing(0) == [range(1, 6)]


def test_what_is_played_is_kept_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the user stops the rest."""
    original = threads.run_tasks

    def stopped(tasks: Any, setup: Setup) -> Any:
        yield next(original(tasks, setup))
        raise KeyboardInterrupt

    monkeypatch.setattr(threads, "run_tasks", stopped)
    plan = make_plan([(series(), 4)], Store(tmp_path), cell_seconds=1e-9)
    plan.tasks[:] = [[cell] for cell in plan.cells]
    with pytest.raises(KeyboardInterrupt):
        plan.play()
    assert cells(tmp_path) == 1
    assert plan.missing(0) == [range(1, 4)]


def test_nothing_is_asked_of_a_store_that_has_all(tmp_path: Path) -> None:
    make_plan([(series(), 4)], Store(tmp_path)).play()
    before = sorted(tmp_path.rglob("*"))
    plan = make_plan([(series(), 4)], Store(tmp_path))
    assert plan.tasks == []
    assert plan.play("processes", 2) == []
    assert sorted(tmp_path.rglob("*")) == before
    with pytest.raises(rank1.InputError, match="backend must be one of"):
        plan.play("cloud")


def test_too_many_runs_are_refused_at_once() -> None:
    with pytest.raises(rank1.InputError, match=r"runs must be .* at most 10000000, got 10000000"):
        make_plan([(series(), 10**12)])
    assert make_plan([(series(n=1), MAX_RUNS)]).missing(0) == [range(MAX_RUNS)]


def test_what_has_no_digest_is_played_and_not_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(self: Series) -> tuple[Any, ...]:
        raise NoDigest("it is made of moonlight")

    monkeypatch.setattr(Series, "_depends_on", none)
    with pytest.warns(RuntimeWarning, match=r"runs of uniform on .* not stored.*made of moonlight"):
        plan = make_plan([(series(), 4)], Store(tmp_path))
    assert plan.play() == []
    assert plan.whole(0).runs == 4
    assert list(tmp_path.rglob("*.cell")) == []


def test_costs_are_found_by_playing_a_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for each kind: problems of one size and law share it, whatever n is."""
    probed: list[str] = []
    original = Series.probe

    def probe(self: Series) -> tuple[float, float]:
        probed.append(str(self))
        return original(self)

    monkeypatch.setattr(Series, "probe", probe)
    wanted = [(series(n=10**7, problem=k), 4) for k in (0, 1)] + [(series(n=10**8), 4)]
    plan = make_plan(wanted)
    assert len(probed) == 1
    by_n = {cell.series.n: cell.seconds / len(cell.runs) for cell in plan.cells}
    assert by_n[10**8] == pytest.approx(10 * by_n[10**7])
    probed.clear()
    make_plan([(series(), 4)])  # work of no time isn't probed
    assert probed == []
    # Nor does it go on forever where there are many kinds.
    monkeypatch.setattr(plan_module, "PROBE_SECONDS", 0.0)
    many = [
        Series.of(policy, rank1.spike(K, 2, 0.5, 0.5, 0.2, 0.2), 10**8, 1)
        for policy in (UNIFORM, rank1.UCB1())
        for K in range(2, 12)
    ]
    make_plan([(one, 1) for one in many])
    assert len(probed) == 2  # one look at each policy
