"""All that the web page shows of a study, as one JSON document."""

from __future__ import annotations

import gzip
import json
import math
import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1.documents import Best, to_document
from rank1.studies import Study
from rank1.studies.chances import chances_of
from rank1.studies.export import event_lines
from rank1.studies.spec import Spec
from rank1.studies.state import StudyState
from rank1.studies.storage import Reader

__all__ = ["StudyView", "is_large", "summary"]


#: The most versions shown, the most levels of a side whose shares are shown, and the most notes
#: and revisions.
MAX_VERSIONS, MAX_LEVELS, MAX_NOTES = 200, 24, 200
#: The most arms for which the heat map includes intervals.
WITH_INTERVALS = 2500
#: The most arms whose tables fit into an answer; larger studies list theirs page by page.
MAX_ARMS = 100_000
#: What is shown as it is of a study's row, its settings and its results.
_ROW = ("name", "uid", "created", "retired", "archived")
_SPEC = ("goal", "reward_range", "reward_window", "confidence", "control")
_BEST = (
    "statement", "next_step", "assumes", "warnings", "reason", "any_grid_stop", "any_grid_reason",
    "totals", "out_arms",
)  # fmt: skip


def is_large(study: Study) -> bool:
    """Whether a study has too many arms for an answer that lists them all."""
    return math.prod(map(len, study.spec.sides.values())) > MAX_ARMS


class StudyView:
    """The document of one study, computed once and shared by all viewers."""

    def __init__(self, study: Study) -> None:
        self.study = study

        self._lock = threading.Lock()
        self._kept: tuple[str, bytes, bytes] | None = None
        self._next = 0.0

    def get(self) -> tuple[str, bytes, bytes]:
        """Return an ETag, the document as JSON, and the same compressed."""
        with self._lock:
            if self._kept is None or time.monotonic() >= self._next:
                began = time.monotonic()
                self._kept = self._made()
                # However large the study is, this takes at most a third of a thread's time.
                self._next = time.monotonic() + max(0.5, 2 * (time.monotonic() - began))
            return self._kept

    def _made(self) -> tuple[str, bytes, bytes]:
        access = self.study.access
        seq, row = access.look(lambda state, log: (state.seq, log.study(self.study.name)))
        tag = _tag(row.uid, seq, row.archived)
        if self.study.spec.reward_window is None and self._kept and self._kept[0] == tag:
            return self._kept  # nothing has happened, and nothing can become overdue
        best = self.study.best(tables=not is_large(self.study))
        document = access.look(lambda state, log: self._document(best, state, log))
        tag = _tag(*(document[name] for name in ("uid", "seq", "archived")))
        text = json.dumps(document, allow_nan=False, separators=(",", ":")).encode()
        return tag, text, gzip.compress(text, 1)

    def _document(self, best: Best, state: StudyState, log: Reader) -> dict[str, Any]:
        study, spec, traffic = self.study, self.study.spec, state.traffic
        row = log.study(study.name)
        chances = chances_of(best, *spec.reward_range)
        sides = [
            {
                "name": side,
                "given": side in spec.given,
                "levels": _levels(best, axis, side, chances[side], spec),
            }
            for axis, side in enumerate(state.labels)
        ]
        now, notes = time.time(), log.events(row.id, traffic.notes[-MAX_NOTES:])
        return {
            **summary(best, spec.given),
            **{name: getattr(row, name) for name in _ROW},
            **{name: getattr(spec, name) for name in _SPEC},
            **{name: getattr(best, name) for name in _BEST},
            "seq": state.seq,
            "revision": state.revision,
            "policy": study.policy.label,
            "sides": sides,
            "mean": _number(best.mean),
            "interval": _ends(best.interval),
            "holdout": to_document(best.holdout),
            "progress": _progress(state),
            "per_day": _per_day(state, now),
            "traffic": traffic.bins(now),
            "versions": self._versions(state),
            "notes": list(event_lines(row, state, log, notes)),
            "rate": _number(best.rate),
            "equal_split": _number(best.equal_split),
            "size": math.prod(map(len, best.sides.values())),
            "arms": [
                arm
                | {name: _number(arm[name]) for name in ("mean", "share")}
                | {"interval": _ends(arm["interval"])}
                for arm in best.arms
            ],
            **(self._grid(best, state, sides) if len(sides) == 2 and not is_large(study) else {}),
        }

    def _versions(self, state: StudyState) -> dict[str, Any] | None:
        """Return when versions began and the shares of each side; None if a policy chooses."""
        if state.design is None:
            return None
        known = state.design.versions
        begun = [(number, at) for number, at in state.traffic.versions if number in known]
        begun = begun[:: -(-len(begun) // MAX_VERSIONS) or 1]
        sides = {
            side: [[round(float(x), 4) for x in known[number].shares[axis]] for number, _ in begun]
            for axis, (side, labels) in enumerate(state.labels.items())
            if axis in state.design.design.chosen and len(labels) <= MAX_LEVELS
        }
        return {"at": [at for _, at in begun], "shares": sides}

    def _grid(self, best: Best, state: StudyState, sides: list[Any]) -> dict[str, Any]:
        """Return the heat map of two sides, including retired levels."""
        low, high = self.study.spec.reward_range
        shape = state.grid.sizes
        counts, sums = state.book.counts.reshape(shape), state.book.sums.reshape(shape)
        with np.errstate(invalid="ignore", divide="ignore"):
            means = low + (high - low) * (sums / counts)
        out, given = np.zeros(shape, np.int64), counts.copy()
        living = np.ix_(*state.living.values())
        if best.out.shape == state.shape:  # otherwise a revision came in between
            out[living] = best.out
            given[living] += best.pending
        ends = {}
        if best.out.size <= WITH_INTERVALS and best.out.shape == state.shape:
            for name, values in (("lower", best.mean_lower), ("upper", best.mean_upper)):
                whole = np.full(shape, np.nan)
                whole[living] = values
                ends[name] = _table(whole)
        return {
            **ends,
            "means": _table(means),
            "counts": counts.astype(np.int64).tolist(),
            "share": _table(given / max(given.sum(), 1)),
            "out": out.tolist(),
        }


def _tag(uid: str, seq: int, archived: float | None) -> str:
    return f'"{uid}-{seq}-{archived is not None:d}"'


def summary(best: Best, given: Sequence[str] = ()) -> dict[str, Any]:
    """Return the verdict in a few fields: "go", "stop", "only" (if one order holds) or "none" yet.

    The leader doesn't include the levels of given sides.
    """
    kind = "stop" if best.stop else "go"
    if best.leader is None:
        kind = "none"
    elif best.doubt:
        kind = "only"
    return {
        "verdict": kind,
        "leader": best.leader
        and [
            label for side, label in zip(best.sides, best.leader, strict=True) if side not in given
        ],
        "lift": to_document(best.lift),
        "doubt": to_document(best.doubt),
        "reports": best.totals["reports"],
    }


def _levels(
    best: Best, axis: int, side: str, chances: list[float | None], spec: Spec
) -> list[dict[str, Any]]:
    """Return the levels of a side, including retired ones."""
    chance = dict(zip(best.sides[side], chances, strict=True))
    leads = best.leader[axis] if best.leader and side not in spec.given else None
    shown = max(sum(level["shown"] for level in best.levels[side]), 1)
    return [
        {
            "label": level["label"],
            "retired": level["label"] not in chance,
            "out": not level["living"],
            "leads": level["label"] == leads,
            "control": (spec.control or {}).get(side) == level["label"],
            "chance": chance.get(level["label"]),
            **_told(level, level["label"] not in chance, level["shown"] / shown),
        }
        for level in best.levels[side]
    ]


def _told(level: dict[str, Any], retired: bool, seen: float) -> dict[str, Any]:
    """Return a level's share of the traffic, its lift, and when and why it was dropped."""
    at = (level.get("gone_at") or {}).get("at")
    why = "retired" if retired else None if level["living"] else level["why"] or "dropped"
    ends = (level.get("estimate"), *(level["lift"] or (None, None)))
    return {
        "share": _number(seen if level["share"] is None else level["share"]),
        "lift": [None if end is None else _number(end) for end in ends],
        "why": why,
        "gone_at": at if why else None,
    }


def _progress(state: StudyState) -> float | None:
    """Return the share of the required evidence collected so far; None if a policy chooses."""
    if state.design is None:
        return None
    live = state.settled()
    said = live.verdict()
    parts = [
        min(max(float(e) / live.design.threshold, 0.0), 1.0)
        for side in live.design.chosen
        for k, e in enumerate(said.log_e[side])
        if k != said.leaders[side]
    ]
    return _number(sum(parts) / len(parts)) if parts else None


def _ends(interval: Sequence[float] | None) -> list[float | None]:
    return [None, None] if interval is None else [_number(end) for end in interval]


def _per_day(state: StudyState, now: float) -> float | None:
    """Return the rewards a day that are evidence; those of held-out units aren't."""
    at, rewards = state.book.at[0], state.traffic.per_day(now)
    if rewards is None or not at.evidence:
        return rewards
    return float(rewards * at.evidence / (at.evidence + at.held))


def _number(value: float) -> float | None:
    """Round to five digits, more than a screen shows; None if the value isn't finite."""
    return float(f"{value:.5g}") if math.isfinite(value) else None


def _table(values: NDArray[np.float64]) -> list[list[float | None]]:
    return [[_number(value) for value in row] for row in values.tolist()]
