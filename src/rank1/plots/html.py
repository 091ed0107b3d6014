"""Figures inside a page, and the notebook views of results."""

from __future__ import annotations

import base64
import io
import re
from typing import TYPE_CHECKING, Any
from zlib import crc32

from markupsafe import Markup, escape

from rank1 import notebook
from rank1.grid import product_text
from rank1.plots.figures import new_figure, plain_axes
from rank1.plots.identification import plot_identification
from rank1.plots.regret import plot_result
from rank1.plots.trace import plot_trace
from rank1.statistics import with_error

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rank1.simulation.identification import Identification
    from rank1.simulation.result import Result
    from rank1.simulation.trace import Trace

__all__ = ["identification_html", "result_html", "svg_element", "svg_file", "trace_html"]

#: A figure that would be longer than this as SVG becomes a PNG, on white.
MAX_SVG = 150_000


def svg_file(figure: Figure, name: str) -> str:
    """A figure as an SVG file, with text as text; `name` makes its ids the same every time."""
    from matplotlib import rc_context

    file = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(file, format="svg", dpi=160)
    return file.getvalue()


def svg_element(drawn: str, name: str, description: str, style: str | None = None) -> Markup:
    """An SVG file as an element: without its background, dark greys in the page's colour.

    The name distinguishes the ids of this figure from those of others on the same page; the
    description is the text alternative. The style sets the width; default: as wide as the page, but
    legible: if the page is too narrow, it scrolls.
    """
    drawn = drawn[drawn.index("<svg") :].strip()
    drawn = re.sub(r"<metadata>.*?</metadata>", "", drawn, flags=re.DOTALL)
    drawn = re.sub(r'\bid="', f'id="{name}-', drawn)
    drawn = re.sub(r'(url\(|href=")#', rf"\1#{name}-", drawn)
    drawn = re.sub(r"#([0-4][0-9a-f])\1\1\b", "currentColor", drawn)
    drawn = drawn.replace("<text ", '<text fill="currentColor" ')
    drawn = drawn.replace("fill: #ffffff", "fill: none")
    if style is None:
        width = float(re.findall(r' width="([0-9.]+)pt"', drawn)[0]) / 72
        style = f"min-width: {58 * width:.0f}px; max-width: {115 * width:.0f}px"
    start, rest = drawn.split(">", 1)
    start = re.sub(r' (width|height)="[^"]*"', "", start)
    start += f' style="{style}"'
    return Markup(f'{start} role="img" aria-label="{escape(description)}">{rest}')


def result_html(result: Result) -> str:
    """Regret at the end, one row per policy, and the curves."""
    rows = [
        [
            row["policy"],
            row["runs"],
            with_error(row["expected_mean"], row["expected_se"]),
            with_error(row["realised_mean"], row["realised_se"]),
            "" if row["found"] is None else f"{row['found']:.0%}",
        ]
        for row in result.summary().iter_rows(named=True)
    ]
    header = ["policy", "runs", "expected regret", "realised regret", "best arm found"]
    about = f"{result.about['name']} {product_text(result.about['sides'])}"
    caption = f"{about}, {result.n:,} steps, seed {result.seed}"
    _, ax = new_figure(5.4, 3.2)
    axes = plot_result(result, ax=ax)
    plain_axes(axes)
    return notebook.beside(notebook.table(header, rows, caption), _drawn(axes.figure, "Regret"))


def identification_html(found: Identification) -> str:
    """Pulls until the rule stopped, one row per policy, and the share of stopped runs over time."""
    rows = [
        [
            row["policy"],
            f"{row['stopped']} of {row['runs']}",
            row["wrong"],
            with_error(row["pulls_mean"], row["pulls_se"]),
            row["pulls_median"],
            row["pulls_p90"],
        ]
        for row in found.summary().iter_rows(named=True)
    ]
    header = ["policy", "stopped", "wrong", "pulls", "median", "90%"]
    about = f"{found.problem.description['name']} {found.problem.grid}"
    caption = f"{about}, confidence {found.confidence:g}, at most {found.n:,} pulls"
    axes = plot_identification(found, bound=False)
    axes.figure.set_size_inches(5.4, 3.2)  # type: ignore[union-attr]
    return notebook.beside(
        notebook.table(header, rows, caption), _drawn(axes.figure, "Runs that have stopped")
    )


def trace_html(trace: Trace) -> str:
    """The stages, and the plot of lines that disappear."""
    rows = [
        [
            str(stage.number),
            stage.step,
            stage.observations,
            len(stage.rows.lines) - len(stage.rows.eliminated),
            len(stage.columns.lines) - len(stage.columns.eliminated),
        ]
        for stage in trace.stages
    ]
    held = "every interval held" if trace.held else "an interval failed"
    caption = f"{trace.policy}, run {trace.run} of {trace.n:,} steps: {held}"
    header = ["stage", "ended at step", "observations of a line", "rows left", "columns left"]
    return notebook.beside(
        notebook.table(header, rows, caption), _drawn(plot_trace(trace), "Rows and columns left")
    )


def _drawn(figure: Any, description: str) -> str:
    """A figure inside a page; empty if it can't be drawn."""
    root: Figure = figure.get_figure(root=True) or figure
    style = f"width: {80 * root.get_size_inches()[0]:.0f}px; max-width: 100%"
    try:
        drawn = _short(svg_element(svg_file(root, "NAME"), "NAME", description, style))
        if len(drawn) <= MAX_SVG:
            # Ids must differ from those of other figures, and stay the same next time.
            return drawn.replace("NAME-", f"rank1-{crc32(drawn.encode()):08x}-")
        file = io.BytesIO()
        root.savefig(file, format="png", dpi=80, facecolor="white")
    except Exception:
        return ""
    data = base64.b64encode(file.getvalue()).decode()
    return f'<img alt="{escape(description)}" style="{style}" src="data:image/png;base64,{data}">'


def _short(drawn: str) -> str:
    """Halve the length of an SVG element: a notebook stores every figure that it shows.

    Changes only tags, and among numbers only coordinates; visible text stays the same.
    """
    drawn = re.sub(r'<g id="[^"]*">', "<g>", drawn)
    drawn = re.sub(r"<[a-z][^<>]*>", _short_tag, drawn)
    return re.sub(r"\n\s*", " ", drawn)


def _short_tag(tag: re.Match[str]) -> str:
    short = re.sub(r"font-family: [^;\"]*", "font-family: sans-serif", tag[0])
    return re.sub(
        r'(?<= )(d|x|y|width|height|points|transform)="[^"]*"',
        lambda it: re.sub(r"(\d\.\d\d)\d+", r"\1", it[0]),
        short,
    )
