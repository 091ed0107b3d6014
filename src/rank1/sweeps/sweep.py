"""Sweeps: what is left to play, cut into cells of similar cost, and playing it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field

from rank1.progress import Progress, short
from rank1.simulation.runs import checkpoints_of, has_stages, play_block
from rank1.simulation.store import Block, Store, gaps
from rank1.sweeps.engine import ENGINES, Cell, Failure, Played, Setup, Task
from rank1.sweeps.grid import Grid, Series

__all__ = ["Plan", "cut", "plan", "play"]

#: A cell should take about so long: little is lost with it, and handing it out costs nothing.
CELL_SECONDS = 1.0
#: Time for probing beyond one look at each policy on each kind of problem.
PROBE_SECONDS = 5.0
#: One look takes at least so long, or a whole run.
PROBE_LEAST = 0.03
#: Cells of no cost that are sent together at most.
MAX_TASK = 500


@dataclass(frozen=True)
class Plan:
    """A grid, the runs of it that are finished, and the tasks that are left."""

    grid: Grid
    series: list[Series]
    #: Finished runs of each series, by its key and the number of the block's first run.
    blocks: dict[str, dict[int, Block]] = field(repr=False)
    tasks: list[Task] = field(repr=False)
    #: How many cells the store had.
    found: int

    @property
    def cells(self) -> list[Cell]:
        """All that are left."""
        return [cell for task in self.tasks for cell in task]

    @property
    def seconds(self) -> float:
        """What is left to play, as seconds on one core."""
        return sum(cell.seconds for cell in self.cells)


def plan(
    grid: Grid,
    store: Store | None,
    cell_seconds: float = CELL_SECONDS,
    *,
    progress: bool = False,
) -> Plan:
    """Look up what the store has, and cut the rest into cells.

    >>> from rank1.sweeps.grid import EXAMPLE, grid_of
    >>> import tomllib
    >>> some = plan(grid_of(tomllib.loads(EXAMPLE)), None)
    >>> len(some.series), len(some.cells), sum(len(cell.runs) for cell in some.cells)
    (18, 18, 180)
    """
    series = grid.series()
    runs = range(grid.runs)
    single = {one.key: one for one in series}
    blocks: dict[str, dict[int, Block]] = {key: {} for key in single}
    if store is not None:
        kept = store.finished(single)
        blocks = {key: store.load(key, runs, kept[key]) for key in single}
    left = {key: gaps(runs, blocks[key]) for key in single}
    cost = probe([one for key, one in single.items() if left[key]], progress)
    cells = [
        Cell(one, part, cost(one) * len(part))
        for key, one in single.items()
        for gap in left[key]
        for part in cut(gap, cost(one), cell_seconds)
    ]
    # The longest first, so that workers end together.
    cells.sort(key=lambda cell: -cell.seconds)
    tasks = list(_packed(cells, cell_seconds))
    return Plan(grid, series, blocks, tasks, sum(map(len, blocks.values())))


def cut(runs: range, seconds: float, target: float) -> Iterator[range]:
    """Cells of about `target` seconds, where one run takes `seconds`.

    Sizes are powers of two and cells begin at multiples of them, so that sweeps which share a
    store nearly always cut alike.

    >>> list(cut(range(3, 20), 0.1, 1.0))
    [range(3, 8), range(8, 16), range(16, 20)]
    """
    size = 2 ** int(math.log2(max(1.0, min(target / max(seconds, 1e-9), 2.0**20))))
    at = runs.start
    while at < runs.stop:
        stop = min(runs.stop, at - at % size + size)
        yield range(at, stop)
        at = stop


def _packed(cells: list[Cell], target: float) -> Iterator[Task]:
    task: Task = []
    total = 0.0
    for cell in cells:
        if task and (total + cell.seconds > target or len(task) == MAX_TASK):
            yield task
            task, total = [], 0.0
        task.append(cell)
        total += cell.seconds
    if task:
        yield task


def probe(series: list[Series], progress: bool = False) -> Callable[[Series], float]:
    """Play a little of each kind of series; gives a function that tells what a run takes.

    Only the cutting and the time left depend on it, never a result.
    """
    # Seconds a step: of a kind, and of whatever shares its policy and law.
    known: dict[tuple[object, ...], float] = {}
    budget = PROBE_SECONDS
    kinds = {_kind(one): one for one in series}
    with Progress(progress, "probing", len(kinds)) as bar:
        for kind, one in kinds.items():
            if kind[:2] not in known or budget > 0:
                known[kind], spent = _seconds_a_step(one)
                known[kind[:2]] = known[kind]
                budget -= spent
            bar.advance(1, f"probing {one.policy.name}")
    return lambda one: one.n * known.get(_kind(one), known[_kind(one)[:2]])


def _kind(one: Series) -> tuple[object, ...]:
    problem = one.problem
    # A step costs the same whatever n is, but a whole stage doesn't cost by the step.
    n = one.n if has_stages(one.policy, problem) else 0
    return one.policy.name, type(problem.law), problem.K, problem.L, n


def _seconds_a_step(one: Series) -> tuple[float, float]:
    """Also, how long it took to find out: without compiling, which has to be done anyway."""

    def seconds(n: int) -> float:
        steps = checkpoints_of(n, len(one.steps))
        begin = time.thread_time()  # whatever else the machine does
        play_block(one.policy, one.problem, n, steps, 0, range(1))
        return time.thread_time() - begin

    n = one.n
    if not has_stages(one.policy, one.problem):
        n = min(n, 1000 + 4 * one.problem.K * one.problem.L)
    try:
        seconds(min(n, 16))  # compiles
        spent = took = seconds(n)
        while took < PROBE_LEAST and n < one.n:
            n = min(4 * n, one.n)
            took = seconds(n)
            spent += took
    except Exception:  # its cells will say why
        return 0.0, 0.0
    return took / n, spent


def play(
    todo: Plan, store: Store, engine: str, setup: Setup, progress: bool = False
) -> list[tuple[Cell, Failure]]:
    """Play what is left. A finished cell is in the store and among the plan's blocks at once.

    Returns the cells that failed.
    """
    failed: list[tuple[Cell, Failure]] = []
    cells, steps, done = len(todo.cells), 0, 0
    left = dict.fromkeys(range(len(todo.tasks)))
    lost = Failure("nothing came back")

    def returned(results: Iterator[Played]) -> Iterator[Played]:
        nonlocal lost
        try:
            yield from results
        except ValueError:  # the engine can't begin, and says why
            raise
        except Exception as error:  # such as a scheduler that is gone
            lost = Failure(f"the engine failed: {type(error).__name__}: {error}")

    begin = time.perf_counter()
    # Time left goes by the probe's estimates: cells differ in cost.
    with (
        closing(ENGINES[engine](todo.tasks, setup)) as results,
        Progress(progress, "cells", todo.seconds, lines=True) as bar,
    ):
        for k, played in returned(results):
            del left[k]
            for cell, outcome in zip(todo.tasks[k], played, strict=True):
                done += 1
                if isinstance(outcome, Failure):
                    failed.append((cell, outcome))
                else:
                    store.put(cell.series.key, cell.runs, outcome)
                    todo.blocks[cell.series.key][cell.runs.start] = outcome
                    steps += cell.steps
            rate = steps / (time.perf_counter() - begin)
            bar.advance(
                sum(cell.seconds for cell in todo.tasks[k]),
                f"{done:,} of {cells:,} cells, {short(rate)} steps/s",
            )
    return failed + [(cell, lost) for k in left for cell in todo.tasks[k]]
