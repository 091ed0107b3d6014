"""Detect delays that depend on the reward, and rewards and visitors that never come."""

from __future__ import annotations

import math

import numpy as np

from rank1.design import uneven
from rank1.studies.fold import GONE
from rank1.studies.live_design import LiveDesign
from rank1.studies.state import StudyState

__all__ = ["absence_warnings", "delay_warnings", "needs_equal_delays", "silence_warnings"]

#: Rewards of each kind, and standard errors, required to warn about a difference in delays.
LEAST, CLEAR = 30, 4.0
NO_RULE = "no stopping rule applies, because delays depend on the reward"


def needs_equal_delays(state: StudyState) -> bool:
    """Return whether the bets of a study that draws by shares don't allow unequal delays.

    They do if rewards are 0 or 1, or if they wait for windows that end with a default.
    """
    at, spec = state.book.at[0], state.spec
    two_valued = at.squares >= at.gained * (1 - 1e-12)
    return not two_valued and not (spec.by_window and spec.on_expiry == "default")


def delay_warnings(state: StudyState) -> list[str]:
    """Warn if delays depend on the reward, and the stopping rule doesn't allow that."""
    n, total, squares = state.book.delays.T
    drawn = state.design is not None
    if n.min() < LEAST or (drawn and not needs_equal_delays(state)):
        return []
    means = total / n
    spread = np.sqrt(np.maximum(squares / n - means**2, 0.0))
    apart, error = abs(means[1] - means[0]), math.hypot(*(spread / np.sqrt(n)))
    if apart <= CLEAR * error or apart <= spread.min() / 2:
        return []
    slow, fast = ("High", "low") if means[1] > means[0] else ("Low", "high")
    remedy = (
        "a reward_window, on_expiry='default' and a reward_range other than (0, 1), such as "
        "percent: its bets then wait until windows close."
        if drawn
        else "a reward_window and on_expiry='default', or, if rewards are 0 or 1, with goal='find' "
        "and no policy: its bets allow such delays."
    )
    return [
        f"{slow} rewards come {apart:.0f} exposures later than {fast} ones, on average, so the "
        "stopping rule isn't valid: arms that were shown recently look "
        f"{'worse' if slow == 'High' else 'better'} than they are. Create the study with {remedy}"
    ]


def silence_warnings(state: StudyState) -> list[str]:
    """Warn if only successes seem to be reported: all rewards are the largest, most are missing."""
    at, totals, high = state.book.at[0], state.counts(), state.spec.reward_range[1]
    missing = totals["pending"] + totals["expired"]
    if state.spec.on_expiry == "default" or at.evidence < LEAST or missing <= totals["reports"]:
        return []
    if at.gained < at.evidence * (1 - 1e-12):
        return []
    return [
        f"All {int(at.evidence):,} rewards so far are {high:g}, the largest possible, and "
        f"{missing:,} suggestions have none. If failures are never reported, averages and lifts "
        "are wrong, and the best can't be found: create the study with a reward_window and "
        "on_expiry='default', which counts a missing reward as the lowest."
    ]


def absence_warnings(state: StudyState, live: LiveDesign) -> list[str]:
    """Warn if levels were recorded more or less often than their shares say.

    This needs all exposures, and independent ones: what has expired without a default is no longer
    known, and visits of one visitor show the same levels.
    """
    book, spec = state.book, state.spec
    if spec.repeat == "each" or (spec.on_expiry != "default" and book.at[0].expired):
        return []
    rows, table = live.evidence.counts(), book.table[: book.at[0].used]
    waiting = table[(table["status"] != GONE) & (table["tag"] >= 0)]
    found = uneven(
        live.design,
        live.versions,
        np.concatenate([rows.version, waiting["tag"]]),
        np.concatenate([rows.arm, waiting["arm"]]),
        np.concatenate([rows.pulls, np.ones(len(waiting))]),
    )
    if found is None:
        return []
    side, labels = list(state.labels.items())[found.side]
    return [found.warning(side, labels[found.level])]
