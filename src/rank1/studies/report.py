"""A one-page report for readers outside the project: self-contained and printable."""

from __future__ import annotations

import datetime
import math
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rank1.documents import above
from rank1.studies.traffic import Day
from rank1.studies.words import percent

if TYPE_CHECKING:
    from rank1.documents import Best
    from rank1.studies.spec import Spec

__all__ = ["lift_text", "render", "report_page"]

#: The size of the traffic chart.
WIDTH, HEIGHT, WIDEST = 720, 150, 90
EACH = "Each visit counts, as if visits of one person were independent."


def render(counted: str = "Every visitor counts once.", **parts: Any) -> str:
    """Fill in the page's template."""
    import jinja2

    loader = jinja2.FileSystemLoader(Path(__file__).with_name("templates"))
    templates = jinja2.Environment(
        loader=loader, autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined
    )
    made = f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}"
    return templates.get_template("report.html").render(made=made, counted=counted, **parts)


def report_page(name: str, spec: Spec, best: Best, days: list[Day]) -> str:
    """Return the page as HTML."""
    rates = [day.rate for day in days if day.rate is not None]
    return render(
        name=name,
        check="The log is complete, and everything above can be computed again from it:",
        command=f"rank1 study verify {shlex.quote(name)}",
        best=best,
        sides={
            side: _levels(best, side, axis, side in spec.given)
            for axis, side in enumerate(best.sides)
        },
        period=f"{days[0].date} to {days[-1].date}" if days else "no traffic yet",
        shown=best.totals["suggestions"],
        reports=best.totals["reports"],
        days=days,
        rates=rates,
        highest=_number(max(rates)) if rates else "",
        most=max((day.shown for day in days), default=0),
        width=f"{min(1.0, WIDEST * len(days) / WIDTH):.0%}",
        traffic=_traffic(days),
        earned=_earned(best),
        over=("the control" if (best.lift or {}).get("is_control") else "the leader")
        + above(spec.reward_range[0]),
        confidence=f"{spec.confidence:.0%}",
        **({} if spec.repeat == "once" else {"counted": EACH}),
    )


def _levels(best: Best, side: str, axis: int, given: bool) -> list[dict[str, Any]]:
    """Return the rows of a side's table."""
    return [
        {
            "label": level["label"],
            "living": level["living"],
            "reports": f"{level['reports']:,.0f}",
            "rate": "–" if level["mean"] is None else _number(level["mean"]),
            "share": "–" if level["share"] is None else f"{level['share']:.0%}",
            "lift": "–" if given else lift_text(level),
            "state": "comes with the visitor"
            if given and level["living"]
            else _state(level, best, axis),
        }
        for level in best.levels[side]
    ]


def lift_text(level: dict[str, Any]) -> str:
    """Format the interval of a level's lift."""
    low, high = level.get("lift") or (None, None)
    least = None if low is None or low <= -1 else _signed(low)
    most = None if high is None or math.isinf(high) else _signed(high)
    if low == high == 0:
        return "–"
    if least and most:
        return f"{least} to {most}"
    return f"at least {least}" if least else f"at most {most}" if most else "not known yet"


def _signed(part: float) -> str:
    """Format a lift as on the other pages.

    >>> _signed(0.123), _signed(-0.004), _signed(0.0)
    ('+12%', '-0.4%', '0%')
    """
    return "+" * (part > 0) + percent(part)


def _state(level: dict[str, Any], best: Best, axis: int) -> str:
    """Describe a level's status, and why and when it was removed."""
    if best.stop and best.leader and best.leader[axis] == level["label"]:
        return "won"
    if level["living"]:
        return "in the running"
    why = "ruled out" if level.get("why") == "refuted" else level.get("why") or "dropped"
    at = (level.get("gone_at") or {}).get("at")
    day = datetime.datetime.fromtimestamp(at, datetime.UTC) if at else None
    return f"{why}, {day:%Y-%m-%d}" if day else why


def _number(value: float) -> str:
    return f"{value:.3g}" if math.isfinite(value) else "–"


def _earned(best: Best) -> str:
    """Describe what the study has earned, compared with the holdout if there is one."""
    held = best.holdout
    if held and held["units"]:
        who = "1 visitor was" if held["units"] == 1 else f"{held['units']:,} visitors were"
        if held["rate"] is None:
            return f"{who} held out and saw the control; nothing is reported for the others yet."
        return (
            f"{who} held out and saw the control: {held['rate']:.3g} on "
            f"average, against {held['rest_rate']:.3g} for the others. So the study has earned "
            f"{held['earned']:,.0f} ({held['low']:,.0f} to {held['high']:,.0f})."
        )
    if best.totals["reports"] and math.isfinite(best.rate) and math.isfinite(best.equal_split):
        return (
            f"{best.rate:.3g} on average so far; showing all combinations alike would have given "
            f"about {best.equal_split:.3g}."
        )
    return ""


def _traffic(days: list[Day]) -> Any:
    """Draw bars of the exposures each day, and a line of the average reward."""
    import markupsafe

    if not days:
        return ""
    most = max(day.shown for day in days) or 1
    top = max((day.rate for day in days if day.rate is not None), default=0.0)
    wide = min(WIDTH / len(days), WIDEST)
    parts = [
        f'<rect class="bar" x="{k * wide + 0.1 * wide:.1f}" width="{0.8 * wide:.1f}" '
        f'y="{HEIGHT * (1 - day.shown / most):.1f}" '
        f'height="{HEIGHT * day.shown / most:.1f}"/>'
        for k, day in enumerate(days)
    ]
    if top > 0:
        line = " ".join(
            f"{(k + 0.5) * wide:.1f},{HEIGHT * (1 - day.rate / top):.1f}"
            for k, day in enumerate(days)
            if day.rate is not None
        )
        parts.append(f'<polyline class="rate" points="{line}"/>')
    parts.append(f'<line class="axis" x1="0" x2="{WIDTH}" y1="{HEIGHT}" y2="{HEIGHT}"/>')
    picture = "".join(parts)
    label = f"Traffic of {len(days)} days, up to {most:,} a day"
    frame = f'viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}"'
    return markupsafe.Markup(f"<svg {frame}>{picture}</svg>")  # safe: numbers and dates only
