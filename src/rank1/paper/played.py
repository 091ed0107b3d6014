"""Play the series that artefacts need as one plan, on the chosen backend."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator, Sequence
from typing import Any

from rank1.errors import BackendError
from rank1.paper import Options
from rank1.progress import Progress
from rank1.simulation.ahead import compile_ahead
from rank1.simulation.plan import make_plan
from rank1.simulation.result import Outcome
from rank1.simulation.series import Series
from rank1.simulation.store import Store

__all__ = ["Computing", "played"]

#: Series, each with its number of runs.
Wanted = list[tuple[Series, int]]
#: What an artefact's `compute` is: it yields what it wants, gets the outcomes, and returns its
#: document.
Computing = Generator[Wanted, list[Outcome], dict[str, Any]]


def played(options: Options, title: str, wanted: Sequence[Wanted]) -> Iterator[list[Outcome]]:
    """The runs that each artefact wants, one after another, read from the store if it has them.

    Everything is played before the first is returned, as one plan, so that no core waits for
    another between two artefacts.

    Parameters
    ----------
    options
        Where to play, and the store.
    title
        Shown before the progress bar.
    wanted
        The series of each artefact.
    """
    flat = [each for own in wanted for each in own]
    compile_ahead((one for one, _ in flat), options.jobs, progress=options.progress)
    plan = make_plan(flat, Store(options.store), progress=options.progress, jobs=options.jobs)

    def note(line: str) -> None:
        if options.backend not in ("threads", "processes", "local"):
            print(line, file=sys.stderr)

    with Progress(options.progress, title, plan.seconds) as bar:
        bar.title = title
        failed = plan.play(options.backend, options.jobs, options.address, note=note, progress=bar)
    numbers = iter(range(len(flat)))
    for own in wanted:
        mine = [next(numbers) for _ in own]
        if any(map(plan.missing, mine)):
            cell, why = failed[0]
            raise BackendError(
                f"{len(failed)} cells could not be played; the first was {cell.series}: {why.error}"
            )
        yield [Outcome.of(flat[k][0], plan.finished(k)) for k in mine]
