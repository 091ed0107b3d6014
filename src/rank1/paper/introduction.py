"""The report's picture of Rank1Elim at work: a real run, drawn stage by stage."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

from rank1.policies import Rank1Elim
from rank1.problems import Campaign
from rank1.simulation import simulate
from rank1.simulation.trace import Side, Stage, Trace

__all__ = ["introduction"]

SEGMENTS = {"18–24": 0.35, "25–34": 0.9, "35–44": 0.75, "45–54": 0.55, "55–64": 0.4, "65+": 0.2}
CHANNELS = {"e-mail": 0.6, "post": 0.25, "search": 0.85, "social": 0.7, "radio": 0.4, "press": 0.5}
STEPS = 100_000

# Where things lie in the picture: a cell's size, the grid's corner, and the side panels.
WIDTH, HEIGHT = 46, 30
LEFT, TOP = 54, 26
GAP, PANEL = 16, 120


def introduction() -> dict[str, str]:
    """The frames of the run and some of its figures, ready for the page."""
    campaign = Campaign(SEGMENTS, CHANNELS)
    result = simulate(Rank1Elim(), campaign, STEPS, 1, seed=1)
    trace = result.trace()
    frames = [_frame(campaign, trace, stage) for stage in [None, *_decisive(trace)]]
    evenly = STEPS * (campaign.best_mean - campaign.means.mean())
    return {
        "frames": "\n".join(frames),
        "last_frame": str(len(frames) - 1),
        "pairs": str(campaign.K * campaign.L),
        "intro_steps": f"{STEPS:,}",
        "lost": f"{result.outcomes[0].expected[0, -1]:,.0f}",
        "lost_evenly": f"{evenly:,.0f}",
    }


def _decisive(trace: Trace) -> Iterator[Stage]:
    """The stages until a single pair remains."""
    for stage in trace.stages:
        yield stage
        if all(len(side.lines) - len(side.eliminated) == 1 for side in (stage.rows, stage.columns)):
            return


def _frame(campaign: Campaign, trace: Trace, stage: Stage | None) -> str:
    """A picture of the grid after a stage, and what happened in words."""
    rows, columns = campaign.row_labels or [], campaign.column_labels or []
    if stage is None:
        kept = [list(range(trace.K)), list(range(trace.L))]
        title = "Start"
        words = f"All {trace.K * trace.L} pairs are in play. Nothing is known."
    else:
        kept = [
            [line for line in side.lines if line not in side.eliminated]
            for side in (stage.rows, stage.columns)
        ]
        title = f"Stage {stage.number} ends after {stage.step:,} steps"
        words = " ".join(_words(stage, kept, rows, columns, trace))
    width = LEFT + WIDTH * trace.L + GAP + PANEL + 6
    height = TOP + HEIGHT * trace.K + GAP + PANEL + 6
    parts = [
        *_grid(campaign, kept),
        *(_labels(rows, columns, kept)),
        *(_intervals(stage, trace) if stage else []),
    ]
    picture = "".join(parts)
    return (
        f'<figure class="frame"><svg viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(f"{title}. {words}")}">{picture}</svg>'
        f"<figcaption><strong>{escape(title)}.</strong> {escape(words)}</figcaption></figure>"
    )


def _words(
    stage: Stage, kept: list[list[int]], rows: list[str], columns: list[str], trace: Trace
) -> Iterator[str]:
    yield f"Every group and channel in play was tried {stage.observations:,} times."
    out = [
        *(rows[line] for line in stage.rows.eliminated),
        *(columns[line] for line in stage.columns.eliminated),
    ]
    yield f"Out: {', '.join(out)}." if out else "The intervals still overlap: nothing is out."
    if [len(lines) for lines in kept] == [1, 1]:
        name = f"{rows[kept[0][0]]} by {columns[kept[1][0]]}"
        which = "the best pair" if (kept[0][0], kept[1][0]) == trace.best_pair else "a good pair"
        yield f"Left: {name}, {which}. The other {STEPS - stage.step:,} steps all go there."


def _grid(campaign: Campaign, kept: list[list[int]]) -> Iterator[str]:
    """Cells, the darker the better; those of eliminated lines are empty."""
    best = campaign.best_mean
    for i in range(campaign.K):
        for j in range(campaign.L):
            alive = i in kept[0] and j in kept[1]
            shade = f' fill-opacity="{campaign.means[i, j] / best:.2f}"' if alive else ""
            yield (
                f'<rect class="{"cell" if alive else "gone"}" x="{LEFT + j * WIDTH + 1}" '
                f'y="{TOP + i * HEIGHT + 1}" width="{WIDTH - 2}" height="{HEIGHT - 2}"{shade}/>'
            )


def _labels(rows: list[str], columns: list[str], kept: list[list[int]]) -> Iterator[str]:
    for i, label in enumerate(rows):
        at = f'x="{LEFT - 6}" y="{TOP + (i + 0.5) * HEIGHT + 4}" text-anchor="end"'
        yield f'<text class="{_name(i in kept[0])}" {at}>{escape(label)}</text>'
    for j, label in enumerate(columns):
        at = f'x="{LEFT + (j + 0.5) * WIDTH}" y="{TOP - 8}" text-anchor="middle"'
        yield f'<text class="{_name(j in kept[1])}" {at}>{escape(label)}</text>'


def _name(alive: bool) -> str:
    return "name" if alive else "name out"


def _intervals(stage: Stage, trace: Trace) -> Iterator[str]:
    """Intervals on the mean reward: of rows beside the grid, of columns below it."""
    right = LEFT + WIDTH * trace.L + GAP
    below = TOP + HEIGHT * trace.K + GAP

    def along(value: Any) -> float:
        """From a mean reward in [0, 1] to a place in a panel; wider intervals are cut."""
        return round(PANEL * min(1.0, max(0.0, float(value))), 1)

    def lines(side: Side) -> Iterator[tuple[int, str, float, float]]:
        for line, lower, upper in zip(side.lines, side.lower, side.upper, strict=True):
            yield line, "out" if line in side.eliminated else "kept", along(lower), along(upper)

    bottom, end = TOP + HEIGHT * trace.K, LEFT + WIDTH * trace.L
    foot = below + PANEL
    yield f'<line class="axis" x1="{right}" x2="{right}" y1="{TOP}" y2="{bottom}"/>'
    yield f'<line class="axis" x1="{LEFT}" x2="{end}" y1="{foot}" y2="{foot}"/>'
    for value in (0, 1):
        x, y = right + along(value), foot - along(value) + 4
        yield f'<text class="axis" x="{x}" y="{bottom + 14}" text-anchor="middle">{value}</text>'
        yield f'<text class="axis" x="{LEFT - 6}" y="{y}" text-anchor="end">{value}</text>'
    limit = right + along(stage.rows.lower.max())
    yield f'<line class="limit" x1="{limit}" x2="{limit}" y1="{TOP}" y2="{bottom}"/>'
    for i, kind, lower, upper in lines(stage.rows):
        y = TOP + (i + 0.5) * HEIGHT
        ends = f'x1="{right + lower}" x2="{right + upper}" y1="{y}" y2="{y}"'
        yield f'<line class="{kind}" {ends}/>'
    # Upwards is more, so that the panel is turned over.
    limit = foot - along(stage.columns.lower.max())
    yield f'<line class="limit" x1="{LEFT}" x2="{end}" y1="{limit}" y2="{limit}"/>'
    for j, kind, lower, upper in lines(stage.columns):
        x = LEFT + (j + 0.5) * WIDTH
        ends = f'x1="{x}" x2="{x}" y1="{foot - lower}" y2="{foot - upper}"'
        yield f'<line class="{kind}" {ends}/>'
