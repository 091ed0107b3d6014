"""All that was made, on one page that needs no network."""

from __future__ import annotations

import importlib.metadata
import platform
import subprocess
from collections import Counter
from html import escape
from itertools import groupby
from pathlib import Path
from string import Template
from typing import Any

from rank1 import __version__
from rank1.atomic import whole_file
from rank1.paper import Options, artefact
from rank1.paper.claims import VERDICTS, figures_of, verdict
from rank1.paper.inline import scrolling, svg_of, table_of
from rank1.paper.introduction import introduction

__all__ = ["page", "write"]

#: What to look for, for whoever hasn't read the paper.
ABOUT = {
    "table1": "Regret at the end of a run, beside the paper's own figures. z is their difference "
    "in standard errors, a rough figure: few runs of a skewed law say little about its spread.",
    "figure2": "Every step a policy doesn't play the best pair costs it; a curve that becomes flat "
    "has found it. UCB1 tries every pair, so it needs more steps the larger the grid; "
    "Rank1Elim needs them for rows and columns only.",
    "figure3": "Groups of users and movies: which group likes which movie best? Ratings aren't of "
    "rank one, so the theory promises nothing here.",
    "discussion": "Where almost all pairs are worth nothing, a random row says nothing about a "
    "column, and Rank1Elim learns slowly. The slope of a line is the exponent of K.",
    "scaling": "The same as in Table 1 over a wider range, each summed up by an exponent: 1 means "
    "that twice as much costs twice the regret.",
}
#: Descriptions for whoever doesn't see a figure; the tables beside have the numbers.
ALT = {
    "figure2": "Regret over two million steps for grids of 16, 32 and 64 rows and columns, one "
    "curve a policy. The upper row has the paper's policies, the lower row also later ones and "
    "the slope of the lower bound, on a logarithmic axis. The table gives the regret at the end.",
    "figure3": "Three panels. The average ratings of groups of users for movies as a grey grid, "
    "yellow where there are none; the completed grid without gaps; regret over the steps, one "
    "curve a policy. The tables give the figures.",
    "discussion": "Regret over the number of rows and columns on logarithmic axes, one line a "
    "policy. The table gives the figures and the slopes.",
    "scaling": "Regret over K + L, over one over the gap and over one over the mean, on "
    "logarithmic axes with fitted lines. The table gives the slopes.",
    "scaling-bounds": "The same regret between the upper bound of Theorem 1 and the lower bound of "
    "Theorem 2, on logarithmic axes.",
}
SYMBOLS = dict(zip(VERDICTS, "✓◑◐✗–", strict=True))
PACKAGES = ("numpy", "scipy", "numba", "joblib", "polars", "matplotlib")


def write(options: Options) -> Path:
    """Write the page of all documents in `options.out` that were made with these options."""
    path = options.out / "index.html"
    with whole_file(path) as temporary:
        temporary.write_text(page(artefact.read_all(options), options), encoding="utf-8")
    return path


def page(documents: dict[str, dict[str, Any]], options: Options) -> str:
    """The page as HTML.

    Parameters
    ----------
    documents
        What `artefact.make` gave, by the artefact's name.
    options
        What they were made with.

    Examples
    --------
    >>> "No experiment was run yet" in page({}, Options())
    True
    """
    template = Template(Path(__file__).with_name("report.html").read_text(encoding="utf-8"))
    contents = [(name, artefact.heading(name)) for name in documents]
    return template.substitute(
        introduction(),
        notes="".join(_notes(documents, options)),
        contents="".join(
            f'<li><a href="#{name}">{escape(title)}</a></li>' for name, title in contents
        ),
        claims=_claims(documents, options.label),
        sections="".join(_section(name, document) for name, document in documents.items()),
        made=_made(documents, options),
    )


def _notes(documents: dict[str, dict[str, Any]], options: Options) -> list[str]:
    """What everybody should know before reading any figure."""
    notes = []
    if options.label:
        notes.append(
            f"<strong>{options.label.capitalize()}.</strong> The paper has 20 runs of 2,000,000 "
            "steps: this page shows what there is to see. Its figures aren't the paper's, and "
            "sentences on two million steps aren't judged by it."
        )
    if any(_stand_in(document) for document in documents.values()):
        notes.append(
            "<strong>Figure 3 is made from stand-in data</strong>, generated ratings: what it "
            "shows says nothing about MovieLens. <code>rank1 paper --accept-licence</code> "
            "downloads the real ones."
        )
    return [f'<p class="note">{note}</p>' for note in notes]


def _stand_in(document: dict[str, Any]) -> bool:
    return bool(document.get("data", {}).get("stand_in"))


def _claims(documents: dict[str, dict[str, Any]], label: str) -> str:
    found = [(name, claim) for name, document in documents.items() for claim in document["claims"]]
    if not found:
        return "<p>No experiment was run yet that bears on one.</p>"
    counts = Counter(verdict(claim) for _, claim in found)
    summary = ", ".join(f"{name}: {counts[name]}" for name in VERDICTS if counts[name])
    rows = "".join(
        f"<tr><td>{_badge(claim, label)}</td><th scope='row'>{escape(claim['claim'])}</th>"
        f"<td>{escape(figures_of(claim))}</td>"
        f"<td class='where'><a href='#{name}'>{escape(_short(name))}</a></td></tr>"
        for name, claim in found
    )
    caption = f"{len(found)} sentences of the paper. {summary.capitalize()}."
    caption += f" {label.capitalize()}." if label else ""
    head = "".join(
        f"<th scope='col'>{name}</th>" for name in ("Here", "The paper says", "Measured", "Where")
    )
    return scrolling(
        f"<table class='claims'><caption>{escape(caption)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>",
        "The paper's claims",
    )


def _short(name: str) -> str:
    """Table 1 for "Table 1: how …", Scaling for what has no number."""
    start, colon, _ = artefact.heading(name).partition(":")
    return start if colon and len(start) < 20 else name.capitalize()


def _badge(claim: dict[str, Any], label: str) -> str:
    """A verdict, and what it was reached on where that isn't what the paper has."""
    name = verdict(claim)
    kind = name.replace(" ", "-").replace("'", "")
    marks = [f"on {claim['data']}"] if "data" in claim else []
    marks += ["quick run"] if label else []
    where = "".join(f" <span class='data'>{escape(mark)}</span>" for mark in marks)
    return f"<span class='verdict {kind}'>{SYMBOLS[name]} {name}</span>{where}"


def _section(name: str, document: dict[str, Any]) -> str:
    """An artefact: what it is, its figures, its tables and what it says of itself."""
    from rich.table import Table

    shown = ""
    for is_table, parts in groupby(
        artefact.show(name, document), lambda part: isinstance(part, Table)
    ):
        if is_table:
            shown += f"<div class='tables'>{''.join(map(table_of, parts))}</div>"
        else:
            shown += "".join(f"<p>{escape(str(part))}</p>" for part in parts)
    figures = [
        f"<figure>{scrolling(svg_of(figure, title, ALT.get(title, '')), _short(name))}</figure>"
        for title, figure in artefact.draw(name, document).items()
    ]
    marks = "".join(
        f" <span class='mark'>{escape(mark)}</span>"
        for mark in (document["made"]["label"], "stand-in data" if _stand_in(document) else "")
        if mark
    )
    return (
        f"<section id='{name}' aria-labelledby='{name}-heading'>"
        f"<h2 id='{name}-heading'>{escape(artefact.heading(name))}{marks}</h2>"
        f"<p>{escape(ABOUT.get(name, ''))}</p>{''.join(figures)}{shown}</section>"
    )


def _made(documents: dict[str, dict[str, Any]], options: Options) -> str:
    """What it takes to make the page again."""
    versions = [f"rank1 {__version__}", f"Python {platform.python_version()}"]
    versions += [f"{name} {importlib.metadata.version(name)}" for name in PACKAGES]
    facts = {
        "Setting": f"{options.runs} runs of {options.n:,} steps, seed {options.seed}",
        "Versions": escape(", ".join(versions)),
        "Machine": escape(_machine()),
    }
    for name, document in documents.items():
        made = document["made"]
        facts[_short(name)] = (
            f"<code>{escape(made['command'])}</code>, {made['date']}, {document['seconds']:.1f} s"
        )
    return "".join(f"<dt>{name}</dt><dd>{fact}</dd>" for name, fact in facts.items())


def _machine() -> str:
    import joblib

    cores = joblib.cpu_count()
    return f"{_processor()}, {cores} core{'s' if cores > 1 else ''}, {platform.system()}"


def _processor() -> str:
    """The processor's name, where the system tells it."""
    try:
        if platform.system() == "Linux":
            for line in Path("/proc/cpuinfo").read_text().splitlines():
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
        if platform.system() == "Darwin":
            asked = ["sysctl", "-n", "machdep.cpu.brand_string"]
            return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        pass
    return platform.processor() or platform.machine()
