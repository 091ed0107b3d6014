"""Shared by all artefacts: play their series, say how a document was made, and label it."""

from __future__ import annotations

import datetime
import importlib
import json
import sys
import time
from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rank1 import __version__
from rank1.atomic import whole_file
from rank1.errors import BackendError
from rank1.paper import ARTEFACTS, Options
from rank1.paper.claims import judged
from rank1.progress import Progress
from rank1.simulation.ahead import compile_ahead
from rank1.simulation.plan import make_plan
from rank1.simulation.result import Outcome
from rank1.simulation.series import Series
from rank1.simulation.store import Store

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Computing", "draw", "heading", "make", "make_all", "played", "read_all", "show"]

#: Version of the documents' layout; increase it when the layout changes, so that an old document is
#: made again rather than misread.
FORMAT = 2
#: The options that a document depends on.
ASKED = ("n", "runs", "seed", "quick", "label", "scale", "sigma", "iterations", "block_seed")

#: Series, each with its number of runs.
Wanted = list[tuple[Series, int]]
#: What an artefact's `compute` is: it yields what it wants, gets the outcomes, and returns its
#: document.
Computing = Generator[Wanted, list[Outcome], dict[str, Any]]


def make(name: str, options: Options) -> dict[str, Any]:
    """Compute one artefact; see `make_all`."""
    return next(document for _, document in make_all([name], options))


def make_all(
    names: Sequence[str], options: Options
) -> Generator[tuple[str, dict[str, Any]], None, None]:
    """Play all that some artefacts need, then write their documents to `options.out`, one by one.

    A document's `seconds` are the time that its runs took, on one core each, and its own
    computations. Under "made" it records the options; "label" is empty unless it is a quick run,
    and appears on everything made from the document.
    """
    begun = {}
    for name in names:
        begin = time.perf_counter()
        computing: Computing = _module(name).compute(options)
        begun[name] = computing, next(computing), time.perf_counter() - begin
    title = names[0] if len(names) == 1 else f"{len(names)} artefacts"
    outcomes = played(options, title, [wanted for _, wanted, _ in begun.values()])
    for (name, (computing, _, seconds)), own in zip(begun.items(), outcomes, strict=True):
        begin = time.perf_counter()
        computed = _ended(computing, own)
        seconds += time.perf_counter() - begin + sum(outcome.seconds for outcome in own)
        about = {"n": options.n, "runs": options.runs, "seed": options.seed, "seconds": seconds}
        document = computed | about | computed
        document["claims"] = judged(document.get("claims", []), options.n)
        document["made"] = _asked(options) | {"command": options.command, "date": _now()}
        with whole_file(options.out / f"{name}.json") as temporary:
            temporary.write_text(json.dumps(document, indent=1, allow_nan=False))
        yield name, document


def _ended(computing: Computing, outcomes: list[Outcome]) -> dict[str, Any]:
    try:
        computing.send(outcomes)
    except StopIteration as ended:
        return dict(ended.value)
    raise RuntimeError("an artefact asks for its series once")


def played(options: Options, title: str, wanted: Sequence[Wanted]) -> Iterator[list[Outcome]]:
    """The runs that each artefact wants, one after another, read from the store if it has them.

    Everything is played before the first is returned, as one plan, so that no core waits for
    another between two artefacts. The title is shown before the progress bar.
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


def read_all(options: Options) -> dict[str, dict[str, Any]]:
    """The documents in `options.out` that were made with the same options, in the paper's order."""
    documents = {}
    for name in ARTEFACTS:
        try:
            document = json.loads((options.out / f"{name}.json").read_text())
            made = document["made"]
        except (OSError, ValueError, KeyError, TypeError):
            continue  # not made yet, or damaged
        if _asked(options).items() <= made.items():
            documents[name] = document
    return documents


def show(name: str, document: dict[str, Any]) -> list[Any]:
    """What the artefact prints besides its claims, with the label on every table."""
    from rich.table import Table

    parts: list[Any] = _module(name).show(document)
    if label := document["made"]["label"]:
        for part in parts:
            if isinstance(part, Table):
                part.title = f"{part.title} ({label})" if part.title else label.capitalize()
                part.title_justify = "left"
    return parts


def draw(name: str, document: dict[str, Any]) -> dict[str, Figure]:
    """The artefact's figures by name, with the label on each; none if it draws none."""
    module = _module(name)
    figures: dict[str, Figure] = module.draw(document) if hasattr(module, "draw") else {}
    if label := document["made"]["label"]:
        for figure in figures.values():
            # Titles are at the top left, and legends may be at the bottom.
            say = figure.supxlabel if figure.get_suptitle() else figure.suptitle
            say(label.capitalize(), fontsize=9, x=0.99, ha="right", weight="bold")
    return figures


def heading(name: str) -> str:
    """The artefact's heading in the report."""
    return (_module(name).__doc__ or name).splitlines()[0].rstrip(".")


def _module(name: str) -> Any:
    return importlib.import_module(f"rank1.paper.{name}")


def _asked(options: Options) -> dict[str, Any]:
    asked = {name: getattr(options, name) for name in ASKED}
    return {"format": FORMAT, "rank1": __version__, **asked}


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
