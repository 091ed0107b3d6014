"""Tests that live in a warehouse: verdict, lifts and the next version from a table of counts."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from rank1.design.absences import uneven
from rank1.design.count_tables import counts_of
from rank1.design.counts import Counts, checked_counts, gridded, tally
from rank1.design.flat import any_grid, flat_arms
from rank1.design.intervals import arm_lift, lifts
from rank1.design.share_document import SharesDocument
from rank1.design.values import Design, Version, Wealth
from rank1.design.versions import first_version, is_due, next_version
from rank1.design.wealth import Verdict, fold, start, totals, verdict
from rank1.documents import above, to_document
from rank1.errors import InputError

__all__ = ["Judgement", "judge"]

#: Rewards with more distinct values than this are moved to the grid of `gridded`.
MOST_REWARDS = 129
#: With more arms than this, arms aren't compared one by one.
MOST_ARMS = 2**16


@dataclasses.dataclass(frozen=True)
class Judgement:
    """The result of `judge`."""

    #: Whether the leader can be called best, assuming one order: the best level of a side is best
    #: whatever the other sides show.
    stop: bool
    #: The best level of each side so far; None until there are enough rewards for the first fit.
    leader: dict[str, str] | None
    #: For each side and level: whether it is living, its share in the newest version, the estimate
    #: and the interval of its lift, its reports and their mean, and its log evidence (log_e).
    sides: dict[str, dict[str, dict[str, Any]]]
    #: The newest version.
    version: int
    #: Whether `version` is new; False if the counts are the same as in the last update.
    new: bool
    reports: int
    #: The verdict in words.
    reason: str
    #: The verdict that assumes nothing about the grid: `stop` and `reason`.
    any_grid: dict[str, Any]
    #: The leader's lift over the control or, without a control, over the runner-up. Lifts compare
    #: rewards above the lowest possible reward (`above`).
    lift: dict[str, Any] | None
    #: The baseline of the levels' lifts: "control" or "leader".
    over: str
    confidence: float
    min_lift: float
    #: What speaks against the counts themselves: see `uneven`.
    warnings: list[str]
    #: The document with the newest version: clients draw from it, and the next `judge` takes it.
    shares: dict[str, Any] = dataclasses.field(repr=False)
    #: The same document as text, as `rank1 judge` writes it.
    text: str = dataclasses.field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return what `rank1 judge update --json` prints; unknown interval ends are None."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        del fields["shares"], fields["text"]
        return fields


def judge(versions: Mapping[str, Any], frame: Any) -> Judgement:
    """Judge a test from its counts by version, and make the next version of the shares.

    Parameters
    ----------
    versions
        The document that `first_shares` returned, or `Judgement.shares` of the previous call.
    frame
        All counts so far, not only those since the previous call: a Polars or pandas frame, columns
        by name, or rows. The columns are version, one per side, reward and count. Alternatively,
        single exposures: unit in place of count, and a time if the rows aren't in order.

    Notes
    -----
    Each report is bet on with the shares, the leaders and the fit of the version it was drawn
    under, so the document is the only state. A call with the same counts returns the same result
    and makes no new version; a call with more counts ends the current version. The verdict is valid
    no matter when or how often `judge` is called.

    Examples
    --------
    >>> from rank1.design import first_shares
    >>> shares = first_shares({"headline": ["A", "B"]}, salt="s")
    >>> rows = [("A", 1, 30), ("A", 0, 70), ("B", 1, 60), ("B", 0, 40)]
    >>> table = [{"version": 1, "headline": h, "reward": r, "count": n} for h, r, n in rows]
    >>> found = judge(shares, table)
    >>> found.stop, found.leader, found.version
    (False, {'headline': 'B'}, 2)
    >>> judge(found.shares, table).version
    2
    """
    shares = SharesDocument.of(versions)
    design = shares.design
    counts, before = _bounded(shares, counts_of(shares, frame))
    new = _has_grown(shares, counts, before)
    counts = counts if new else before
    wealth = fold(design, start(design), shares.versions, counts)
    if new:
        shares = shares.extended(_next(shares, wealth, counts), counts)
    said = verdict(design, shares.current, wealth)
    return _judgement(shares, counts, wealth, said, new)


def _bounded(shares: SharesDocument, told: Counts) -> tuple[Counts, Counts]:
    """Return the counts and those of the last update, both of bounded size."""
    both = [told, shares.counts]
    if len(np.unique(np.concatenate([each.reward for each in both]))) > MOST_REWARDS:
        both = [gridded(shares.design, each) for each in both]
        both = [each._replace(pulls=np.round(each.pulls, 6)) for each in both]
    now, before = (checked_counts(shares.design, shares.versions, each) for each in both)
    return now, before


def _has_grown(shares: SharesDocument, counts: Counts, before: Counts) -> bool:
    """Tell whether counts were added since the last update; raises an error if any shrank."""
    design = shares.design
    found = {key[:3]: key[3] for key in zip(*(c.tolist() for c in counts[:4]), strict=True)}
    for version, arm, reward, pulls in zip(*(c.tolist() for c in before[:4]), strict=True):
        now = found.get((version, arm, reward), 0.0)
        if now < pulls - 1e-6 * max(1.0, pulls):
            levels = design.grid.levels(arm)
            names = ", ".join(
                f"{side} {labels[k]}"
                for (side, labels), k in zip(shares.sides.items(), levels, strict=True)
            )
            raise InputError(
                "count", now, f"at least {pulls:g}, as in the last update",
                "pass all counts so far, and never change a reward that was counted",
                got=f"{now:g}",
            ).within(f"row of version {version}, {names}, reward {reward:g}")  # fmt: skip
    return float(counts.pulls.sum()) > float(before.pulls.sum()) + 0.5


def _next(shares: SharesDocument, wealth: Wealth, counts: Counts) -> Version:
    """Return the version after the current one; shares stay equal while rewards are few."""
    design, current = shares.design, shares.current
    gained = float((counts.pulls * design.scaled(counts.reward)).sum())
    first = first_version(design)
    if not current.bets and not is_due(design, first, 0, int(counts.pulls.sum()), gained):
        return dataclasses.replace(first, number=current.number + 1)
    return next_version(design, current, wealth, totals(design, shares.versions, counts))


def _judgement(
    shares: SharesDocument, counts: Counts, wealth: Wealth, said: Verdict, new: bool
) -> Judgement:
    design, current = shares.design, shares.current
    base = None if shares.control is None else shares.numbers(shares.control)
    stop = said.stop and current.bets
    lift = None
    if current.bets:
        led = [said.leaders[side] for side in design.chosen]
        is_control = base is not None and [base[side] for side in design.chosen] != led
        other = arm_lift(design, shares.versions, counts, wealth, base if is_control else None)
        lift = {
            "over": shares.named(other.over),
            "is_control": is_control,
            "above": design.low,
            **{name: to_document(getattr(other, name)) for name in ("estimate", "low", "high")},
        }
    reason = _reason(shares, said)
    return Judgement(
        stop=stop,
        leader=shares.named(said.leaders) if current.bets else None,
        sides=_levels(shares, counts, wealth, said, base),
        version=current.number,
        new=new,
        reports=round(float(counts.pulls.sum())),
        reason=reason,
        any_grid=_any_grid(shares, counts, stop, reason),
        lift=lift,
        over="leader" if base is None else "control",
        confidence=design.confidence,
        min_lift=design.min_lift,
        warnings=_warnings(shares, counts),
        shares=shares.to_dict(),
        text=shares.to_text(),
    )  # fmt: skip


def _warnings(shares: SharesDocument, counts: Counts) -> list[str]:
    found = uneven(shares.design, shares.versions, counts.version, counts.arm, counts.pulls)
    if found is None:
        return []
    side, labels = list(shares.sides.items())[found.side]
    return [found.warning(side, labels[found.level])]


def _levels(
    shares: SharesDocument,
    counts: Counts,
    wealth: Wealth,
    said: Verdict,
    base: tuple[int, ...] | None,
) -> dict[str, dict[str, dict[str, Any]]]:
    """Return what is known about each level."""
    design, current = shares.design, shares.current
    ends = lifts(design, shares.versions, counts, wealth, base) if current.bets else None
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for side, (name, labels) in enumerate(shares.sides.items()):
        level = counts.arm // design.grid.strides[side] % design.sizes[side]
        reports = tally(level, counts.pulls, len(labels))
        sums = tally(level, counts.pulls * counts.reward, len(labels))
        over = current.leaders[side] if base is None else base[side]
        fit, given = current.fit[side], name in shares.given
        found[name] = {}
        for k, label in enumerate(labels):
            low, high = (-1.0, math.inf) if ends is None or given else ends[side][k].tolist()
            known = ends is not None and not given
            found[name][label] = {
                "living": bool(said.living[side][k]),
                "share": None if given else float(current.shares[side][k]),
                "lift": [low if low > -1 or math.isfinite(high) else None, to_document(high)],
                "estimate": to_document(min(max(float(fit[k] / fit[over]) - 1, low), high))
                if known
                else None,
                "reports": round(float(reports[k])),
                "mean": float(sums[k] / reports[k]) if reports[k] else None,
                "log_e": float(said.log_e[side][k]),
            }
    return found


def _reason(shares: SharesDocument, said: Verdict) -> str:
    """Return the verdict in words."""
    design = shares.design
    if not shares.current.bets:
        until = f"{design.first:,} rewards, or 60 successes"
        return f"keep going: all levels have equal shares until there are {until}"
    best = " × ".join(shares.named(said.leaders).values())
    level = f"at confidence {100 * design.confidence:g}%"
    if said.stop and design.min_lift:
        least = f"{design.min_lift:.3g}{above(design.low)}"
        return f"stop: no level is better than those of {best} by {least} {level}"
    if said.stop:
        return f"stop: {best} is best {level}"
    rivals = []
    for side, (name, labels) in enumerate(shares.sides.items()):
        if name not in shares.given:
            living = np.flatnonzero(said.living[side]).tolist()
            left = [labels[k] for k in living if k != said.leaders[side]]
            if left:
                rivals.append(f"{name} {' or '.join(left)}")
    others = " and ".join(rivals) or "another level"
    return f"keep going: {best} leads, but {others} may still be better"


def _any_grid(shares: SharesDocument, counts: Counts, stop: bool, reason: str) -> dict[str, Any]:
    """Return the verdict that assumes nothing about the grid, from the same draws.

    Bets are on the leaders' arm, with the version's own fit, so the document needs nothing more.
    """
    design = shares.design
    if len(design.chosen) == 1 or not shares.current.bets:
        return {"stop": stop, "reason": reason}
    arms = math.prod(design.sizes[side] for side in design.chosen)
    best = " × ".join(shares.named(shares.current.leaders).values())
    if arms > MOST_ARMS:
        return {"stop": False, "reason": f"{arms:,} arms are too many to compare one by one"}
    flat = any_grid(design)
    versions = {number: _flat(design, each) for number, each in shares.versions.items()}
    moved = counts._replace(arm=flat_arms(design, counts.arm))
    said = verdict(flat, versions[shares.current.number], fold(flat, start(flat), versions, moved))
    if said.stop:
        return {
            "stop": True,
            "reason": f"stop: {best} beats every other arm in a direct comparison",
        }
    rivals = int(said.living[-1].sum()) - int(said.living[-1][said.leaders[-1]])
    others = "1 other arm" if rivals == 1 else f"{rivals:,} other arms"
    return {"stop": False, "reason": f"keep going: {others} may still be better than {best}"}


def _flat(design: Design, version: Version) -> Version:
    """Convert a version to `any_grid(design)`, with the factors of the version's own fit."""
    shares, fit, leader = np.ones(1), np.ones(1), 0
    for side in design.chosen:
        shares = np.multiply.outer(shares, version.shares[side]).ravel()
        fit = np.multiply.outer(fit, version.fit[side]).ravel()
        leader = leader * design.sizes[side] + version.leaders[side]
    given = [design.sizes[side] for side in design.given]
    return Version(
        version.number,
        (*(np.full(size, 1 / size) for size in given), shares / shares.sum()),
        (-1,) * len(given) + (leader if version.bets else -1,),
        (*(version.fit[side] for side in design.given), fit),
        tuple(np.ones(size, np.bool_) for size in (*given, len(fit))),
    )
