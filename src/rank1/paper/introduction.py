"""The report's picture of Rank1Elim at work: a real run, stage by stage."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator
from typing import Any

from rank1.policies import Rank1Elim
from rank1.problems import Campaign
from rank1.simulation import simulate
from rank1.simulation.trace import Side, Stage, Trace

__all__ = ["introduction"]

SEGMENTS = {"18–24": 0.35, "25–34": 0.9, "35–44": 0.75, "45–54": 0.55, "55–64": 0.4, "65+": 0.2}
CHANNELS = {"e-mail": 0.6, "post": 0.25, "search": 0.85, "social": 0.7, "radio": 0.4, "press": 0.5}
STEPS = 100_000

# The layout of the picture: a cell's size, the grid's corner, and the side panels.
WIDTH, HEIGHT = 46, 30
LEFT, TOP = 54, 26
GAP, PANEL = 16, 120


#: A pair: the stronger its shade the better; empty if it is eliminated.
Pair = namedtuple("Pair", "kind x y width height shade")
#: An axis, an interval, or the limit that an interval must reach to stay.
Line = namedtuple("Line", "kind x1 y1 x2 y2")
#: A word beside the grid, or a number at an axis.
Text = namedtuple("Text", "kind x y anchor text")


def introduction() -> dict[str, Any]:
    """The frames of the run and some of its numbers, as plain values for the page's template."""
    campaign = Campaign(SEGMENTS, CHANNELS)
    result = simulate(Rank1Elim(), campaign, STEPS, 1, seed=1)
    trace = result.trace()
    evenly = STEPS * (campaign.best_mean - campaign.means.mean())
    return {
        "frames": [_frame(campaign, trace, stage) for stage in [None, *_decisive(trace)]],
        "width": LEFT + WIDTH * trace.L + GAP + PANEL + 6,
        "height": TOP + HEIGHT * trace.K + GAP + PANEL + 6,
        "pairs": campaign.K * campaign.L,
        "steps": f"{STEPS:,}",
        "lost": f"{result.outcomes[0].expected[0, -1]:,.0f}",
        "lost_evenly": f"{evenly:,.0f}",
    }


def _decisive(trace: Trace) -> Iterator[Stage]:
    """The stages until a single pair remains."""
    for stage in trace.stages:
        yield stage
        if all(len(side.lines) - len(side.eliminated) == 1 for side in (stage.rows, stage.columns)):
            return


def _frame(campaign: Campaign, trace: Trace, stage: Stage | None) -> dict[str, Any]:
    """A picture of the grid after a stage, and a description of what happened."""
    rows, columns = campaign.labels or ([], [])
    if stage is None:
        kept = [list(range(trace.K)), list(range(trace.L))]
        title = "Start"
        words = f"All {trace.K * trace.L} pairs are in play, and nothing is known about them."
    else:
        kept = [
            [line for line in side.lines if line not in side.eliminated]
            for side in (stage.rows, stage.columns)
        ]
        title = f"Stage {stage.number} ends after {stage.step:,} steps"
        words = " ".join(_words(stage, kept, rows, columns, trace))
    return {
        "title": title,
        "words": words,
        "cells": list(_cells(campaign, kept)),
        "lines": list(_intervals(stage, trace)) if stage else [],
        "texts": [*_labels(rows, columns, kept), *(_scales(trace) if stage else [])],
    }


def _words(
    stage: Stage, kept: list[list[int]], rows: list[str], columns: list[str], trace: Trace
) -> Iterator[str]:
    yield f"Every group and channel in play was tried {stage.observations:,} times."
    eliminated = [
        *(rows[line] for line in stage.rows.eliminated),
        *(columns[line] for line in stage.columns.eliminated),
    ]
    yield (
        f"Eliminated: {', '.join(eliminated)}."
        if eliminated
        else "The intervals still overlap, so nothing is eliminated."
    )
    if [len(lines) for lines in kept] == [1, 1]:
        name = f"{rows[kept[0][0]]} by {columns[kept[1][0]]}"
        which = "the best pair" if (kept[0][0], kept[1][0]) == trace.best_pair else "a good pair"
        yield f"Left: {name}, {which}. It gets all of the remaining {STEPS - stage.step:,} steps."


def _cells(campaign: Campaign, kept: list[list[int]]) -> Iterator[Pair]:
    for i in range(campaign.K):
        for j in range(campaign.L):
            kind = "cell" if i in kept[0] and j in kept[1] else "gone"
            x, y = LEFT + j * WIDTH + 1, TOP + i * HEIGHT + 1
            shade = round(float(campaign.means[i, j] / campaign.best_mean), 2)
            yield Pair(kind, x, y, WIDTH - 2, HEIGHT - 2, shade)


def _labels(rows: list[str], columns: list[str], kept: list[list[int]]) -> Iterator[Text]:
    for i, label in enumerate(rows):
        kind = "name" if i in kept[0] else "name out"
        yield Text(kind, LEFT - 6, TOP + (i + 0.5) * HEIGHT + 4, "end", label)
    for j, label in enumerate(columns):
        kind = "name" if j in kept[1] else "name out"
        yield Text(kind, LEFT + (j + 0.5) * WIDTH, TOP - 8, "middle", label)


def _ends(trace: Trace) -> tuple[int, int, int, int]:
    """The grid's right and lower edge, the right panel's left edge, and the lower panel's foot."""
    right, bottom = LEFT + WIDTH * trace.L, TOP + HEIGHT * trace.K
    return right, bottom, right + GAP, bottom + GAP + PANEL


def _along(value: Any) -> float:
    """Map a mean reward in [0, 1] to a position in a panel; wider intervals are cut."""
    return round(PANEL * min(1.0, max(0.0, float(value))), 1)


def _scales(trace: Trace) -> Iterator[Text]:
    _, bottom, start, foot = _ends(trace)
    for value in (0, 1):
        yield Text("axis", start + _along(value), bottom + 14, "middle", str(value))
        yield Text("axis", LEFT - 6, foot - _along(value) + 4, "end", str(value))


def _intervals(stage: Stage, trace: Trace) -> Iterator[Line]:
    """Intervals on the mean reward: of rows beside the grid, of columns below it."""
    right, bottom, start, foot = _ends(trace)

    def intervals(side: Side) -> Iterator[tuple[int, str, float, float]]:
        for line, lower, upper in zip(side.lines, side.lower, side.upper, strict=True):
            yield line, "out" if line in side.eliminated else "kept", _along(lower), _along(upper)

    yield Line("axis", start, TOP, start, bottom)
    limit = start + _along(stage.rows.lower.max())
    yield Line("limit", limit, TOP, limit, bottom)
    for i, kind, lower, upper in intervals(stage.rows):
        y = TOP + (i + 0.5) * HEIGHT
        yield Line(kind, start + lower, y, start + upper, y)
    # Larger values are higher up, so the lower panel is flipped.
    yield Line("axis", LEFT, foot, right, foot)
    limit = foot - _along(stage.columns.lower.max())
    yield Line("limit", LEFT, limit, right, limit)
    for j, kind, lower, upper in intervals(stage.columns):
        x = LEFT + (j + 0.5) * WIDTH
        yield Line(kind, x, foot - lower, x, foot - upper)
