"""What the page shows of a study, as one JSON document."""

from __future__ import annotations

import datetime
import gzip
import json
import math
import threading
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1.documents import Best, to_document
from rank1.server.reward_curve import RewardCurve
from rank1.studies import Study
from rank1.studies.state import StudyState
from rank1.studies.storage import Reader
from rank1.studies.timeline import Days

__all__ = ["StudyView", "is_large"]

#: Events that are read at once.
PART = 100_000
#: Arms that are listed, those with the largest means.
LISTED = 10
#: Days that are shown.
MAX_DAYS = 400
#: The most arms whose tables fit into an answer; those of larger studies are read by pages.
MAX_ARMS = 100_000


def is_large(study: Study) -> bool:
    """Whether a study has too many arms for an answer with tables of them."""
    return math.prod(map(len, study.spec.sides.values())) > MAX_ARMS


class StudyView:
    """The document of one study, made once for all who look at the same time."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self._curve = RewardCurve(study.spec.room, *study.spec.reward_range)
        self._lock = threading.Lock()
        self._kept: tuple[str, bytes, bytes] | None = None
        self._days = Days()
        self._next = 0.0

    def get(self) -> tuple[str, bytes, bytes]:
        """A tag that changes with the study, the document as JSON, and the same compressed."""
        with self._lock:
            if self._kept is None or time.monotonic() >= self._next:
                began = time.monotonic()
                self._kept = self._made()
                # However large the study is, this takes no more than a third of a thread's time.
                self._next = time.monotonic() + max(0.5, 2 * (time.monotonic() - began))
            return self._kept

    def _made(self) -> tuple[str, bytes, bytes]:
        access = self.study.access
        last = access.compute(lambda state, now: state.seq)
        tag = f'"{access.study.uid}-{last}"'
        if self.study.spec.reward_window is None and self._kept and self._kept[0] == tag:
            return self._kept  # nothing has happened, and nothing becomes overdue
        best = self.study.best()
        document = access.look(lambda state, log: self._document(best, state, log))
        tag = f'"{access.study.uid}-{document["seq"]}"'
        text = json.dumps(document, allow_nan=False, separators=(",", ":")).encode()
        return tag, text, gzip.compress(text, 1)

    def _document(self, best: Best, state: StudyState, log: Reader) -> dict[str, Any]:
        study, spec = self.study, self.study.spec
        row = log.study(study.name)
        while (events := log.read(row.id, after=self._curve.seq, limit=PART)).size:
            self._curve.take(events)
            self._days.take(events)
        sides = [
            {"name": side, "levels": _levels(state, best, axis, side)}
            for axis, side in enumerate(state.labels)
        ]
        return {
            "name": study.name,
            "uid": row.uid,
            "seq": state.seq,
            "created": row.created,
            "retired": row.retired,
            "revision": state.revision,
            "goal": spec.goal,
            "policy": study.policy.label,
            "reward_range": list(spec.reward_range),
            "reward_window": spec.reward_window,
            "confidence": spec.confidence,
            "sides": sides,
            "leader": best.leader,
            "mean": _number(best.mean),
            "interval": _interval(best),
            "stop": best.stop,
            "statement": best.statement,
            "next_step": best.next_step,
            "assumes": best.assumes,
            "warnings": best.warnings,
            "lift": to_document(best.lift),
            "holdout": to_document(best.holdout),
            "progress": _progress(state),
            "days": [day._asdict() for day in self._days.list()[-MAX_DAYS:]],
            "reason": best.reason,
            "any_grid_stop": best.any_grid_stop,
            "any_grid_reason": best.any_grid_reason,
            "rate": _number(best.rate),
            "equal_split": _number(best.equal_split),
            "totals": best.totals,
            "size": best.counts.size,
            "out_arms": int(best.out.sum()),
            "arms": _leading(best),
            **(self._grid(best, state, sides) if len(sides) == 2 and not is_large(study) else {}),
            "curve": self._curve.to_dict(),
        }

    def _grid(self, best: Best, state: StudyState, sides: list[Any]) -> dict[str, Any]:
        """The heat map of two sides, over all levels that ever were."""
        low, high = self.study.spec.reward_range
        shape = state.grid.sizes
        counts, sums = state.book.counts.reshape(shape), state.book.sums.reshape(shape)
        with np.errstate(invalid="ignore", divide="ignore"):
            means = low + (high - low) * (sums / counts)
        out, given = np.zeros(shape, np.int64), counts.copy()
        if best.out.shape == state.shape:  # else a revision came in between
            living = np.ix_(*state.living.values())
            out[living] = best.out
            given[living] += best.pending
        return {
            "rows": sides[0]["levels"],
            "columns": sides[1]["levels"],
            "means": _table(means),
            "counts": counts.astype(np.int64).tolist(),
            "share": _table(given / max(given.sum(), 1)),
            "out": out.tolist(),
        }


def _levels(state: StudyState, best: Best, axis: int, side: str) -> list[dict[str, Any]]:
    """The levels of a side, those that are retired too.

    A level is out when all its arms are; its effect is an estimate with a lower and an upper end.
    """
    others = tuple(k for k in range(best.out.ndim) if k != axis)
    all_out: Any = best.out.all(axis=others)
    out = dict(zip(best.sides[side], all_out.tolist(), strict=True))
    effects = dict(zip(best.sides[side], best.effects[side].tolist(), strict=True))
    living = set(state.living_labels(side))
    told = {each["label"]: each for each in best.levels.get(side, ())}
    nothing: dict[str, Any] = {"share": None, "lift": [None, None], "living": True, "why": None}
    return [
        {
            "label": label,
            "retired": label not in living,
            "out": out.get(label, label not in living),
            "effect": [_number(value) for value in effects.get(label, [math.nan] * 3)],
            **_told(told.get(label, nothing), label not in living),
        }
        for label in state.labels[side]
    ]


def _told(level: dict[str, Any], retired: bool) -> dict[str, Any]:
    """A level's share of the traffic, its lift and whether it is in the running."""
    gone = "retired" if retired else level["why"] or "dropped"
    at = (level.get("gone_at") or {}).get("at")
    day = datetime.datetime.fromtimestamp(at, datetime.UTC) if at else None
    return {
        "share": level["share"],
        "lift": [None if end is None else _number(end) for end in level["lift"] or [None, None]],
        "state": "in the running"
        if level["living"] and not retired
        else gone + (f", {day:%Y-%m-%d}" if day else ""),
    }


def _progress(state: StudyState) -> float | None:
    """How much of the evidence against all other levels is in; None where a policy chooses."""
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


def _leading(best: Best) -> list[dict[str, Any]]:
    """The arms with the largest means, the largest first."""
    given = best.counts + best.pending
    means = np.where(best.counts > 0, best.means, -np.inf)
    found = []
    for arm in np.argsort(-means, axis=None, kind="stable")[:LISTED]:
        at = np.unravel_index(arm, means.shape)
        if best.counts[at] > 0:
            sides = zip(best.sides.values(), at, strict=True)
            labels = tuple(names[level] for names, level in sides)
            found.append(
                {
                    "levels": labels,
                    "mean": _number(float(means[at])),
                    "count": int(best.counts[at]),
                    "share": _number(float(given[at] / given.sum())),
                    "state": "leads" if labels == best.leader else "out" if best.out[at] else "",
                }
            )
    return found


def _interval(best: Best) -> list[float | None]:
    if best.leader is None:
        return [None, None]
    at = tuple(
        labels.index(label) for labels, label in zip(best.sides.values(), best.leader, strict=True)
    )
    return [_number(best.mean_lower[at]), _number(best.mean_upper[at])]


def _number(value: float) -> float | None:
    """With five digits, which is more than a screen shows; None where there is none."""
    return float(f"{value:.5g}") if math.isfinite(value) else None


def _table(values: NDArray[np.float64]) -> list[list[float | None]]:
    return [[_number(value) for value in row] for row in values.tolist()]
