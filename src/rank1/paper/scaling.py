"""How Rank1Elim's regret grows with K + L, 1/Δ and 1/μ, over a wider range than Table 1.

All cells have the same n, so the factor log n drops out of every comparison. It is so large that
elimination ends in every run, which is checked: regret then no longer grows in the second half of
the run. `Options.n` is used instead only if it is less than the paper's two million, for a quick
look; then elimination doesn't end everywhere, the document says in how many runs it did, and no
claim is judged.

An exponent is the slope of a line through log mean regret over log x, by ordinary least squares:
the cells' distance from the line is mostly not random, but a sawtooth (see the gallery in the
docs). So it has two standard errors: `se` from the scatter of the cells around the line, and
`se_runs` from chance alone, by propagating the standard errors of the cells.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from rank1.paper import Options, published
from rank1.paper.artefact import Computing
from rank1.paper.claims import DOUBLES, NOT_QUADRATIC, claim
from rank1.paper.curves import power_law
from rank1.plots import colour_of, new_figure
from rank1.policies import Rank1Elim
from rank1.problems import spike
from rank1.simulation import Outcome, Series
from rank1.statistics import mean_and_error, with_error
from rank1.tables import table
from rank1.theory import lower_bound, upper_bound

__all__ = ["VARIED", "N", "compute", "draw", "fit", "show"]

#: In the hardest cell elimination ends after less than a tenth of the steps.
N = 10**9
#: Cells from one doubling of 1/Δ or 1/p to the next.
OCTAVE = 8

_SIZES = (8, 16, 32, 64, 128, 256)
#: The varied settings, as (K, L, p, Δ) of the spike; each starts where Table 1 does.
VARIED: dict[str, list[tuple[int, int, float, float]]] = {
    "K+L": [(K, L, 0.7, 0.2) for K, L in itertools.product(_SIZES, _SIZES)],
    "1/delta": [(8, 8, 0.7, 0.2 * 2 ** (-k / OCTAVE)) for k in range(4 * OCTAVE + 1)],
    "1/mu": [(8, 8, 0.7 * 2 ** (-k / OCTAVE), 0.2) for k in range(4 * OCTAVE)],
}
#: A factor this close to 2 counts as doubling.
TOLERANCE = 0.1


def compute(options: Options) -> Computing:
    """Cells, fitted exponents, and whether the paper's sentences on Table 1 hold.

    Regret is the expected one, which has the same mean as the realised one and less noise.
    """
    n = options.n if options.n < published.N else N
    wanted = [(varied, *each) for varied, settings in VARIED.items() for each in settings]
    series = [
        Series.of(Rank1Elim(), spike(K, L, p, p, delta, delta), n, [(n + 1) // 2], options.seed)
        for _, K, L, p, delta in wanted
    ]
    outcomes = yield [(one, options.runs) for one in series]
    cells = [
        _cell(*settings, one, outcome)
        for settings, one, outcome in zip(wanted, series, outcomes, strict=True)
    ]
    fits = {varied: fit([cell for cell in cells if cell["varied"] == varied]) for varied in VARIED}
    return {
        "fits": fits,
        "claims": _claims(
            cells, fits, n == N and all(cell["ended"] == options.runs for cell in cells)
        ),
        "cells": cells,
        "n": n,
    }


def _cell(
    varied: str, K: int, L: int, p: float, delta: float, series: Series, outcome: Outcome
) -> dict[str, Any]:
    n, problem = series.n, spike(K, L, p, p, delta, delta)
    half, end = outcome.expected[:, 0], outcome.expected[:, -1]
    return {
        "varied": varied,
        "x": {"K+L": K + L, "1/delta": 1 / delta, "1/mu": 1 / problem.mu}[varied],
        "K": K,
        "L": L,
        "p": p,
        "delta": delta,
        "mu": problem.mu,
        "regret": mean_and_error(end),
        # Only the best pair costs nothing.
        "ended": int((half == end).sum()),
        "theorem1": upper_bound(problem, n),
        "theorem2": lower_bound(problem) * math.log(n),
    }


def fit(cells: list[dict[str, Any]]) -> dict[str, Any]:
    """The power of x that the mean regret follows, by least squares on logarithms.

    >>> exact = [{"x": x, "regret": {"mean": 3 * x**2, "se": 0.0}} for x in (1, 2, 4)]
    >>> {name: round(value, 6) for name, value in fit(exact).items()}
    {'exponent': 2.0, 'se': 0.0, 'se_runs': 0.0, 'scatter': 1.0, 'at_1': 3.0, 'cells': 3}
    """
    # With a handful of steps, a cell may have no regret by chance.
    cells = [cell for cell in cells if cell["regret"]["mean"] > 0]
    means = np.array([cell["regret"]["mean"] for cell in cells])
    law = power_law([cell["x"] for cell in cells], means)
    errors = [cell["regret"]["se"] for cell in cells]
    chance = None
    if None not in errors:
        chance = float(np.linalg.norm(law.weights * np.array(errors) / means))
    return {
        "exponent": law.exponent,
        "se": law.se,
        "se_runs": chance,
        #: Cells are off the line by about this factor.
        "scatter": math.exp(law.scatter),
        "at_1": math.exp(law.constant),
        "cells": len(cells),
    }


def _claims(cells: list[dict[str, Any]], fits: dict[str, Any], ended: bool) -> list[dict[str, Any]]:
    """The paper's sentences; none is judged if elimination didn't end in every run."""
    of = {
        varied: [cell["regret"]["mean"] for cell in cells if cell["varied"] == varied]
        for varied in VARIED
    }
    sizes = {(K, L): mean for (K, L, *_), mean in zip(VARIED["K+L"], of["K+L"], strict=True)}
    doubled = [(mean, sizes.get((2 * K, 2 * L), 0.0)) for (K, L), mean in sizes.items()]
    halved = list(zip(of["1/delta"], of["1/delta"][OCTAVE:], strict=False))
    quadratic = fits["1/mu"]
    claims = [
        _doubling("K and L doubled", doubled),
        _doubling("the gaps halved", halved),
        claim(NOT_QUADRATIC, [quadratic["exponent"] + 2 * quadratic["se"] < 2],
              [quadratic["exponent"]],
              "exponent of 1/μ; more than two standard errors below 2 counts", any_n=True),
    ]  # fmt: skip
    return claims if ended else [each | {"holds": None} for each in claims]


def _doubling(change: str, pairs: list[tuple[float, float]]) -> dict[str, Any]:
    """From each cell to the one with twice its size or half its gaps; the geometric mean."""
    factors = [after / before for before, after in pairs if before > 0 and after > 0]
    mean = math.exp(sum(map(math.log, factors)) / len(factors))
    return claim(
        DOUBLES,
        [abs(mean - 2) <= 2 * TOLERANCE],
        [mean, min(factors), max(factors)],
        f"geometric mean, smallest and largest ratio of {len(factors)} pairs of cells, one of "
        f"which has {change}; a mean within {TOLERANCE:.0%} of 2 counts",
        any_n=True,
    )


def show(document: dict[str, Any]) -> list[Any]:
    """The exponents, and how the figures were made."""
    columns = "cells", "from", "to", "exponent", "chance alone", "a cell is off by"
    rows = []
    for varied, fitted in document["fits"].items():
        x = [cell["x"] for cell in document["cells"] if cell["varied"] == varied]
        chance = fitted["se_runs"]
        rows.append((
            f"({varied.replace('delta', 'Δ').replace('mu', 'μ')})^exponent",
            fitted["cells"], f"{min(x):.3g}", f"{max(x):.3g}",
            with_error(fitted["exponent"], fitted["se"], 3),
            "?" if chance is None else f"± {chance:.3f}", f"× {fitted['scatter']:.2f}",
        ))  # fmt: skip
    shown = table("regret grows as", *(f"+{name}" for name in columns), rows=rows)
    return [shown, _summary(document)]


def _summary(document: dict[str, Any]) -> str:
    runs, cells = document["runs"], document["cells"]
    ended, played = sum(cell["ended"] for cell in cells), runs * len(cells)
    return (
        f"{runs} runs of {document['n']:,} steps per cell, {document['seconds']:.1f} s. "
        f"Elimination ended in {'all' if ended == played else f'{ended:,} of'} {played:,} runs. "
        "The exponent's ± is from the cells' scatter around the line, which is a sawtooth rather "
        "than chance: stages end at fixed lengths, each four times as long as the one before."
    )


def draw(document: dict[str, Any]) -> dict[str, Any]:
    """Regret with the fitted lines, and regret between the bounds; all on log axes."""
    return {"scaling": _draw(document, False), "scaling-bounds": _draw(document, True)}


def _draw(document: dict[str, Any], bounds: bool) -> Any:
    from matplotlib.ticker import EngFormatter, FixedLocator, LogLocator, NullLocator

    figure, axes = new_figure(10.0, 4.0, ncols=len(VARIED), sharey=True)
    for ax, (varied, fitted) in zip(axes, document["fits"].items(), strict=True):
        cells = [cell for cell in document["cells"] if cell["varied"] == varied]
        cells.sort(key=lambda cell: cell["x"])
        x = np.array([cell["x"] for cell in cells])
        y = np.array([cell["regret"]["mean"] for cell in cells])
        colour = colour_of("rank1elim")
        ax.plot(x, y, "o", ms=4, mew=0, color=colour, label="Rank1Elim, measured")
        name = varied.replace("+", " + ").replace("delta", "Δ").replace("mu", "μ")
        if bounds:
            above, below = ([cell[name] for cell in cells] for name in ("theorem1", "theorem2"))
            ax.plot(x, above, ":", color="0.2", lw=1.4, label="Theorem 1: at most")
            ax.plot(x, below, "--", color="0.2", lw=1.2, label="Theorem 2: slope · log n")
        else:
            line = fitted["at_1"] * x ** fitted["exponent"]
            ax.plot(x, line, color="0.2", lw=1, label="fit")
            known = [_in_table1(cell) for cell in cells]
            ring = {"ms": 8, "mfc": "none", "color": colour_of("ucb1"), "label": "in Table 1"}
            ax.plot(x[known], y[known], "o", **ring)
            power = f"{fitted['exponent']:.2f} ± {fitted['se']:.2f}"
            ax.set_title(f"exponent {power}", loc="left", fontsize=10)
        ax.set(xscale="log", yscale="log", xlabel=name)
        first = 1.25 if varied == "1/mu" else x[0]
        doublings = int(math.log2(1.01 * x[-1] / first))
        ax.xaxis.set_major_locator(FixedLocator([first * 2**k for k in range(doublings + 1)]))
        ax.xaxis.set_minor_locator(NullLocator())
        ax.yaxis.set_major_locator(LogLocator(subs=(1,) if bounds else (1, 2, 5)))
        ax.yaxis.set_minor_locator(NullLocator())
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter(EngFormatter(sep=""))
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel(f"Regret in {document['n']:,} steps")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower left", ncols=3, frameon=False, fontsize=9)
    return figure


def _in_table1(cell: dict[str, Any]) -> bool:
    settings = (cell["K"], cell["L"], cell["p"], cell["p"], cell["delta"], cell["delta"])
    return any(np.allclose(settings, known[1:7], atol=0) for known in published.TABLE_1)
