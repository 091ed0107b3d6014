"""Play the series that an artefact needs, on the chosen backend."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rank1.errors import BackendError
from rank1.paper import Options
from rank1.progress import Progress
from rank1.simulation.plan import make_plan
from rank1.simulation.result import Outcome
from rank1.simulation.series import Series
from rank1.simulation.store import Store

__all__ = ["played"]


def played(options: Options, title: str, wanted: Sequence[tuple[Series, int]]) -> list[Outcome]:
    """The runs of each series, read from the store if it has them.

    Parameters
    ----------
    options
        Where to play, and the store.
    title
        Shown before the progress bar.
    wanted
        Series, each with its number of runs.
    """
    plan = make_plan(wanted, Store(options.store), progress=options.progress)

    def note(line: str) -> None:
        if options.backend not in ("threads", "processes", "local"):
            print(line, file=sys.stderr)

    with Progress(options.progress, title, plan.seconds) as bar:
        bar.title = title
        failed = plan.play(options.backend, options.jobs, options.address, note=note, progress=bar)
    if failed:
        cell, why = failed[0]
        raise BackendError(
            f"{len(failed)} cells could not be played; the first was {cell.series}: {why.error}"
        )
    return [Outcome.of(one, plan.finished(k)) for k, (one, _) in enumerate(wanted)]
