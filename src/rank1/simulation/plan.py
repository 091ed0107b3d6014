"""Plans: what is left to play of some series, cut into cells of similar cost; and playing it."""

from __future__ import annotations

import math
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from rank1 import checks
from rank1.errors import BackendError, NoDigest
from rank1.progress import Progress, short
from rank1.simulation.backends import Failure, Playable, Played, RunCell, Setup, Task, backend
from rank1.simulation.block import Block, joined, missing_runs
from rank1.simulation.store import Store

__all__ = ["MAX_RUNS", "Plan", "cut", "make_plan"]

#: The largest number of runs of a series; more are surely a mistake.
MAX_RUNS = 10_000_000
#: Target duration of a cell: losing one costs little, and the overhead is negligible.
CELL_SECONDS = 1.0
#: Probe only if the work takes at least this many seconds by a rough guess.
PROBE_WORTH = 2.0
#: Time for further probes, beyond one for each policy on each kind of problem.
PROBE_SECONDS = 5.0
#: The largest number of short cells sent together.
MAX_TASK = 500

P = TypeVar("P", bound=Playable)


@dataclass(frozen=True)
class Plan(Generic[P]):
    """Some series with a number of runs each: the finished runs, and the tasks left to play."""

    series: Sequence[P]
    runs: Sequence[int]
    store: Store | None
    #: For each series, the index of the series that holds its blocks: equal ones are played once.
    twin: list[int] = field(repr=False)
    #: Finished runs of each series, by the block's first run.
    blocks: list[dict[int, Block]] = field(repr=False)
    tasks: list[Task] = field(repr=False)
    #: The number of cells found in the store.
    found: int
    #: Keys of the series in the store; None for a series that isn't stored.
    keys: list[str | None] = field(repr=False)

    @property
    def cells(self) -> list[RunCell]:
        """All cells left to play."""
        return [cell for task in self.tasks for cell in task]

    @property
    def seconds(self) -> float:
        """The time left to play, in seconds on one core."""
        return sum(cell.seconds for cell in self.cells)

    def finished(self, number: int) -> dict[int, Block]:
        """The finished blocks of a series by their first run, up to the requested run."""
        most = self.runs[number]
        return {
            first: block if first + block.runs <= most else block.part(0, most - first)
            for first, block in sorted(self.blocks[self.twin[number]].items())
            if first < most
        }

    def missing(self, number: int) -> list[range]:
        """The runs of a series that have not been played."""
        return missing_runs(range(self.runs[number]), self.finished(number))

    def whole(self, number: int) -> Block:
        """All finished runs of a series as one block."""
        return joined(self.finished(number).values())

    def play(
        self,
        where: str = "threads",
        jobs: int = 1,
        address: str | None = None,
        *,
        note: Callable[[str], None] = lambda line: None,
        progress: bool | Progress = False,
        lines: bool = False,
        strict: bool = False,
    ) -> list[tuple[RunCell, Failure]]:
        """Play what is left. A finished cell is stored and added to the blocks at once.

        Parameters
        ----------
        where
            The backend.
        jobs, address
            Threads or processes on this machine, or the address of a cluster.
        note
            Called with lines that say where tasks are played.
        progress
            Whether to show a bar, or an existing bar to advance.
        lines
            Whether to print lines if there is no terminal for a bar.
        strict
            Raise the first error of a cell, instead of continuing with the others.

        Returns
        -------
        list
            The cells that failed, with the reasons.
        """
        play = backend(where)
        if not self.tasks:
            return []
        if self.store is not None:
            self.store.check_writable()
        at = {id(one): number for number, one in reversed(list(enumerate(self.series)))}
        setup = Setup(jobs, address, note, threading.Event())
        failed: list[tuple[RunCell, Failure]] = []
        left = dict.fromkeys(range(len(self.tasks)))
        reason = Failure("nothing came back")

        def returned(results: Iterator[Played]) -> Iterator[Played]:
            nonlocal reason
            try:
                yield from results
            except BackendError:  # it can't start, and says why
                raise
            except Exception as error:  # such as a lost scheduler
                reason = Failure(f"the backend failed: {type(error).__name__}: {error}")

        cells, steps, done = len(self.cells), 0, 0
        begin = time.perf_counter()
        # The remaining time is based on the estimates, because cells differ in cost.
        bar = progress
        if not isinstance(bar, Progress):
            bar = Progress(bar, "cells", self.seconds, lines=lines)
        with closing(play(self.tasks, setup)) as results, _entered(bar, progress):
            for k, played in returned(results):
                del left[k]
                for cell, outcome in zip(self.tasks[k], played, strict=True):
                    done += 1
                    number = at[id(cell.series)]
                    if isinstance(outcome, Failure):
                        if strict and outcome.exception is not None:
                            raise outcome.exception
                        failed.append((cell, outcome))
                        continue
                    if self.store is not None and (key := self.keys[number]) is not None:
                        self.store.put(key, cell.runs, outcome)
                    self.blocks[number][cell.runs.start] = outcome
                    pulls = outcome.arrays.get("pulls")  # a rule may end runs before n
                    steps += cell.steps if pulls is None else int(pulls.sum())
                rate = steps / (time.perf_counter() - begin)
                bar.advance(
                    sum(cell.seconds for cell in self.tasks[k]),
                    f"{done:,} of {cells:,} cells, {short(rate)} steps/s",
                )
        failed += [(cell, reason) for k in left for cell in self.tasks[k]]
        if strict and failed:
            cell, why = failed[0]
            raise BackendError(str(cell.series), why.error)
        return failed


def _entered(bar: Progress, given: bool | Progress) -> Any:
    return nullcontext() if bar is given else bar


def make_plan(
    wanted: Sequence[tuple[P, int]],
    store: Store | None = None,
    *,
    cell_seconds: float = CELL_SECONDS,
    in_turns: bool = False,
    progress: bool = False,
    jobs: int = 1,
) -> Plan[P]:
    """Look up finished cells in the store, and cut the rest into cells.

    Parameters
    ----------
    wanted
        Series, each with its number of runs.
    store
        Where finished cells are stored.
    cell_seconds
        Target duration of a cell.
    in_turns
        Play the first runs of all series before the second ones, so that an interrupted call has
        some runs of each. Otherwise the longest cells come first, so that workers end together.
    progress
        Whether to show a bar while probing.
    jobs
        How many threads probe.

    Examples
    --------
    >>> import rank1
    >>> from rank1.simulation.series import Series
    >>> problem = rank1.spike(K=4, L=4, p_u=0.5, p_v=0.5, delta_u=0.4, delta_v=0.4)
    >>> plan = make_plan([(Series.of(rank1.Uniform(), problem, n=1000), 5)])
    >>> [cell.runs for cell in plan.cells], plan.play(), plan.whole(0).runs
    ([range(0, 5)], [], 5)
    """
    series = [one for one, _ in wanted]
    runs = [checks.integer("runs", count, 1, MAX_RUNS) for _, count in wanted]
    keys: list[str | None] = [None] * len(series) if store is None else list(_keys_of(series))
    first: dict[str, int] = {}
    twin = [k if key is None else first.setdefault(key, k) for k, key in enumerate(keys)]
    most = list(runs)
    for k, other in enumerate(twin):
        most[other] = max(most[other], runs[k])
    blocks: list[dict[int, Block]] = [{} for _ in series]
    if store is not None:
        kept = store.finished(first)
        for key, k in first.items():
            blocks[k] = store.load(key, range(most[k]), kept[key])
    left = {
        k: missing_runs(range(most[k]), blocks[k]) for k, other in enumerate(twin) if k == other
    }
    left = {k: parts for k, parts in left.items() if parts}
    todo = [(series[k], sum(map(len, parts))) for k, parts in left.items()]
    cost = _costs(todo, progress, jobs)
    cells = [
        RunCell(series[k], part, cost(series[k]) * len(part))
        for k, parts in left.items()
        for gap in parts
        for part in cut(gap, cost(series[k]), cell_seconds)
    ]
    if in_turns:
        cells.sort(key=lambda cell: cell.runs.start)
    else:
        cells.sort(key=lambda cell: -cell.seconds)
    tasks = list(_packed(cells, cell_seconds))
    return Plan(series, runs, store, twin, blocks, tasks, sum(map(len, blocks)), keys)


def _keys_of(series: Sequence[Playable]) -> Iterator[str | None]:
    """The key of each series, or None with a warning if it has none."""
    for one in series:
        try:
            yield one.key
        except NoDigest as error:
            warnings.warn(
                f"runs of {one} are not stored, because their dependencies are unclear: {error}",
                RuntimeWarning,
                stacklevel=4,
            )
            yield None


def cut(runs: range, seconds: float, target: float) -> Iterator[range]:
    """Cells of about `target` seconds, if one run takes `seconds`.

    Sizes are powers of two and cells begin at multiples of them, so plans that share a store
    nearly always cut in the same places.

    >>> list(cut(range(3, 20), 0.1, 1.0))
    [range(3, 8), range(8, 16), range(16, 20)]
    """
    size = 2 ** int(math.log2(max(1.0, min(target / max(seconds, 1e-9), 2.0**20))))
    at = runs.start
    while at < runs.stop:
        stop = min(runs.stop, at - at % size + size)
        yield range(at, stop)
        at = stop


def _packed(cells: list[RunCell], target: float) -> Iterator[Task]:
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


def _costs(
    todo: Sequence[tuple[Playable, int]], progress: bool = False, jobs: int = 1
) -> Callable[[Playable], float]:
    """The cost of a run of each series: a guess or, for long work, measured for each kind.

    This affects only the cutting and the time estimates, never a result.
    """
    if sum(one.guess() * count for one, count in todo) < PROBE_WORTH:
        return lambda one: one.guess()
    # Seconds per step: of a kind, and of anything with the same policy and law.
    known: dict[tuple[Any, ...], float] = {}
    budget = PROBE_SECONDS

    def probe(one: Playable) -> str:
        nonlocal budget
        if one.kind[:2] not in known or budget > 0:
            a_run, spent = one.probe()
            known[one.kind] = known[one.kind[:2]] = a_run / one.n
            budget -= spent
        return str(one.kind[0])

    kinds = {one.kind: one for one, _ in todo}
    with Progress(progress, "probing", len(kinds)) as bar, ThreadPoolExecutor(jobs) as pool:
        for name in (pool.map if jobs > 1 else map)(probe, kinds.values()):
            bar.advance(1, f"probing {name}")
    return lambda one: one.n * known.get(one.kind, known[one.kind[:2]])
