"""The report: everything that was made, on one page that needs no network."""

from __future__ import annotations

import importlib.metadata
import platform
import subprocess
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rank1 import __version__
from rank1.atomic import whole_file
from rank1.paper import PAPERS, Options, Paper, artefact
from rank1.paper.claims import VERDICTS, combined, figures_of, headline, verdict
from rank1.paper.introduction import introduction
from rank1.plots.html import svg_element, svg_file

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["page", "write"]

#: What to look for, for readers who don't know the paper.
ABOUT = {
    "table1": "Regret at the end of a run, beside the paper's figures. z is their difference in "
    "standard errors, a rough number: few runs of a skewed law say little about its spread. A * "
    "marks differences beyond 3.",
    "theorems": "Theorem 1 bounds Rank1Elim's regret from above, Theorems 2 and 3 that of any "
    "reasonable policy from below. The bounds have the same order in K, L, the gaps and log n, but "
    "their constants are far apart: the regret lies in between.",
    "bets": "Rank1Elim compares rows over random columns, and columns over random rows. The same "
    "idea gives evidence at any time: each side's level is drawn by known shares, and a bet is "
    "placed against every level. No horizon has to be known, and the conclusion stays valid "
    "however often you look.",
    "figure2": "Every step that doesn't play the best pair costs regret; once a curve is flat, the "
    "policy has found it. UCB1 tries every pair, so it needs more steps on a larger grid; "
    "Rank1Elim only needs them for rows and columns.",
    "figure3": "Groups of users and movies: which group likes which movie best? Ratings don't have "
    "rank one, so the theory promises nothing here.",
    "discussion": "If almost all pairs are worth nothing, a random row says nothing about a "
    "column, and Rank1Elim learns slowly. The slope of a line is the exponent of K.",
    "scaling": "Table 1 over a wider range. Each setting has an exponent: 1 means that doubling it "
    "doubles the regret.",
    "trinh2020": "UTS looks only at the leader's row and column. The lower bound is a statement "
    "about the slope at the right end of a curve, so a curve may lie below its line. The paper "
    "draws lower bounds with the lines' parameters instead of the pairs' means, which makes them "
    "too low: both are shown. Rank1ElimKL as printed is far above the paper's curve of that name, "
    "which comes from a program with other constants.",
}
#: Descriptions for readers who can't see a figure; the tables beside them have the numbers.
ALT = {
    "figure2": "Regret over two million steps for grids of 16, 32 and 64 rows and columns, one "
    "curve per policy. The upper row has the paper's policies, the lower row also later ones and "
    "the slope of the lower bound, on a logarithmic axis. The table gives the regret at the end.",
    "figure3": "Three panels. The average ratings of groups of users for movies as a grey grid, "
    "yellow if there are none; the completed grid without gaps; regret over the steps, one curve "
    "per policy. The tables give the figures.",
    "discussion": "Regret over the number of rows and columns on logarithmic axes, one line per "
    "policy. The table gives the figures and the slopes.",
    "scaling": "Regret over K + L, over one over the gap and over one over the mean, on "
    "logarithmic axes with fitted lines. The table gives the slopes.",
    "scaling-bounds": "The same regret between the upper bound of Theorem 1 and the lower bound of "
    "Theorem 2, on logarithmic axes.",
    "trinh2020-sizes": "Regret over the steps, both on logarithmic axes, for grids of 4, 8 and 16 "
    "rows and columns, one curve per policy, with the lower bound as it is and as drawn in the "
    "paper. Rings show the paper's values at the end, which are in the table.",
    "trinh2020-gammas": "Regret of UTS over the steps on a logarithmic axis, one curve for each γ; "
    "the curves hardly differ. The table gives the values at the end.",
    "trinh2020-large": "Regret over two million steps for grids of 32, 64 and 128 rows and "
    "columns, one curve per policy, on logarithmic axes. The table gives the values at the end.",
    "trinh2020-close": "Regret over two million steps if all means are close, for grids of 8, 16 "
    "and 32 rows and columns: UTS and OSUB. The table gives the values at the end.",
}
#: Figures as SVG files, by their names.
Drawn = Mapping[str, str]
SYMBOLS = dict(zip(VERDICTS, "✓◑◐✗–", strict=True))
PACKAGES = ("numpy", "scipy", "numba", "joblib", "polars", "matplotlib")


def write(options: Options, drawn: Mapping[str, Drawn] = MappingProxyType({})) -> Path:
    """Write the page of all documents in `options.out` that were made with these options."""
    path = options.out / "index.html"
    with whole_file(path) as temporary:
        temporary.write_text(page(artefact.read_all(options), options, drawn), encoding="utf-8")
    return path


def page(
    documents: dict[str, dict[str, Any]],
    options: Options,
    drawn: Mapping[str, Drawn] = MappingProxyType({}),
) -> str:
    """The page of documents by artefact, as HTML, with each artefact's figures if they are drawn.

    >>> "No experiment that tests a claim was run yet" in page({}, Options())
    True
    """
    import jinja2

    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    claims = _claims(documents, options.label)
    reasons = [
        claim["why"]
        for document in documents.values()
        for claim in document["claims"]
        if claim.get("why")
    ]
    return templates.get_template("report.html").render(
        label=options.label,
        stand_in=any(_stand_in(document) for document in documents.values()),
        intro=introduction(),
        claims=claims,
        headline=headline([each["verdict"] for each in claims], reasons),
        evidence=sum(len(each["lines"]) for each in claims),
        parts=_parts(
            [_section(name, document, drawn.get(name)) for name, document in documents.items()]
        ),
        made=_made(documents, options),
    )


def _parts(sections: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The papers that have sections; sections of no paper go to the first."""
    first = PAPERS[0]
    paper_of = {name: paper for paper in PAPERS for name in paper.artefacts}
    parts: dict[Paper, list[dict[str, Any]]] = {first: []}
    for section in sections:
        parts.setdefault(paper_of.get(section["name"], first), []).append(section)
    return [{"paper": paper, "sections": own} for paper, own in parts.items()]


def _stand_in(document: dict[str, Any]) -> bool:
    return bool(document.get("data", {}).get("stand_in"))


def _claims(documents: dict[str, dict[str, Any]], label: str) -> list[dict[str, Any]]:
    """Every claim once, with a line for each experiment that tests it."""
    lines: dict[str, list[dict[str, Any]]] = {}
    for name, document in documents.items():
        for claim in document["claims"]:
            found = verdict(claim)
            marks = (f"on {claim['data']}" if "data" in claim else "", "quick run" if label else "")
            line = {
                "verdict": found,
                "symbol": SYMBOLS[found],
                "marks": list(filter(None, marks)),
                "figures": figures_of(claim),
                "name": name,
                "where": _short(name),
            }
            lines.setdefault(claim["claim"], []).append(line)
    return [
        {"claim": claim, "lines": own, "verdict": combined([line["verdict"] for line in own])}
        for claim, own in lines.items()
    ]


def _short(name: str) -> str:
    """The start of the heading, such as Table 1, or the artefact's name if it has no number."""
    start, colon, _ = artefact.heading(name).partition(":")
    return start if colon and len(start) < 20 else name.capitalize()


def _section(name: str, document: dict[str, Any], drawn: Drawn | None) -> dict[str, Any]:
    """An artefact: its description, figures, tables and text."""
    from rich.table import Table

    if drawn is None:
        drawn = {t: svg_file(figure, t) for t, figure in artefact.draw(name, document).items()}
    parts: list[dict[str, Any]] = []
    for is_table, shown in groupby(
        artefact.show(name, document), lambda part: isinstance(part, Table)
    ):
        if is_table:
            parts.append({"tables": [table_of(table) for table in shown]})
        else:
            parts += [{"tables": [], "text": text} for text in shown]
    marks = document["made"]["label"], "stand-in data" if _stand_in(document) else ""
    return {
        "name": name,
        "heading": artefact.heading(name),
        "short": _short(name),
        "marks": list(filter(None, marks)),
        "about": ABOUT.get(name, ""),
        "figures": [svg_element(file, title, ALT.get(title, "")) for title, file in drawn.items()],
        "parts": parts,
    }


def table_of(table: Table) -> dict[str, Any]:
    """A rich table as plain values for the page's template; cells with a style are marked.

    >>> from rich.table import Table
    >>> table = Table("K", "regret", title="Regret < 10")
    >>> table.add_row("8", "3")
    >>> facts = table_of(table)
    >>> facts["caption"], facts["rows"][0][1]
    ('Regret < 10', {'text': '3', 'marked': False})
    """
    rows = zip(*(column.cells for column in table.columns), strict=True)
    return {
        "caption": ". ".join(str(text) for text in (table.title, table.caption) if text),
        "columns": [
            {"name": str(column.header), "side": column.justify} for column in table.columns
        ],
        "rows": [
            [{"text": str(cell), "marked": bool(getattr(cell, "style", ""))} for cell in row]
            for row in rows
        ],
    }


def _made(documents: dict[str, dict[str, Any]], options: Options) -> dict[str, dict[str, str]]:
    """What is needed to make the page again."""
    versions = [f"rank1 {__version__}", f"Python {platform.python_version()}"]
    versions += [f"{name} {importlib.metadata.version(name)}" for name in PACKAGES]
    facts = {
        "Setting": f"{options.runs} runs of {options.n:,} steps, seed {options.seed}",
        "Versions": ", ".join(versions),
        "Machine": _machine(),
    }
    return {name: {"command": "", "text": text} for name, text in facts.items()} | {
        _short(name): {
            "command": document["made"]["command"],
            "text": f"{document['made']['date']}, {document['seconds']:.1f} s",
        }
        for name, document in documents.items()
    }


def _machine() -> str:
    import joblib

    cores = joblib.cpu_count()
    return f"{_processor()}, {cores} core{'s' if cores > 1 else ''}, {platform.system()}"


def _processor() -> str:
    """The processor's name, if the system provides it."""
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
