"""What the page shows of a study, in one document."""

from __future__ import annotations

import gzip
import json
import math
import threading
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1.server.reward_curve import RewardCurve
from rank1.studies import Study
from rank1.studies.best import Best
from rank1.studies.memory import Memory
from rank1.studies.storage import Reader

__all__ = ["StudyView"]

#: Events that are read at once.
PART = 100_000


class StudyView:
    """The documents of one study; many who look at once cost one look."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._curve = RewardCurve(*study.spec.reward_range)
        self._lock = threading.Lock()
        self._kept: tuple[str, bytes, bytes] | None = None
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
        desk = self._study._desk
        last = desk.look(lambda memory, log: log.last(desk.study.id)[0])
        tag = f'"{desk.study.uid}-{last}"'
        if self._study.spec.reward_window is None and self._kept and self._kept[0] == tag:
            return self._kept  # nothing has happened, and nothing becomes overdue
        best = self._study.best()
        document = desk.look(lambda memory, log: self._document(best, memory, log))
        tag = f'"{desk.study.uid}-{document["seq"]}"'
        text = json.dumps(document, allow_nan=False, separators=(",", ":")).encode()
        return tag, text, gzip.compress(text, 1)

    def _document(self, best: Best, memory: Memory, log: Reader) -> dict[str, Any]:
        study, spec = self._study, self._study.spec
        row = log.study(study.name)
        while (events := log.read(row.id, after=self._curve.seq, limit=PART)).size:
            self._curve.take(events)
        low, high = spec.reward_range
        book = memory.book
        counts = book.counts
        with np.errstate(invalid="ignore", divide="ignore"):
            means = low + (high - low) * (book.sums / counts)
        out, pending = np.zeros(counts.shape, bool), np.zeros(counts.shape, np.int64)
        if (len(best.rows), len(best.columns)) == memory.shape:
            where = np.ix_(memory.living["rows"], memory.living["columns"])
            out[where], pending[where] = best.out, best.pending
        # A line is out when all its pairs that live are.
        lives = np.zeros(counts.shape, bool)
        lives[np.ix_(memory.living["rows"], memory.living["columns"])] = True
        gone = out | ~lives
        given = counts + pending
        return {
            "name": study.name,
            "uid": row.uid,
            "seq": memory.seq,
            "created": row.created,
            "retired": row.retired,
            "revision": memory.revision,
            "goal": spec.goal,
            "policy": study.policy.label,
            "reward_range": list(spec.reward_range),
            "reward_window": spec.reward_window,
            "confidence": spec.confidence,
            "rows": _lines(memory, "rows", best.rows, best.row_effects, gone.all(axis=1)),
            "columns": _lines(
                memory, "columns", best.columns, best.column_effects, gone.all(axis=0)
            ),
            "leader": best.leader,
            "mean": _number(best.mean),
            "interval": _interval(best),
            "stop": best.stop,
            "reason": best.reason,
            "any_grid_stop": best.any_grid_stop,
            "any_grid_reason": best.any_grid_reason,
            "rate": _number(best.rate),
            "equal_split": _number(best.equal_split),
            "totals": best.totals,
            "means": _table(means),
            "counts": counts.astype(np.int64).tolist(),
            "share": _table(given / given.sum() if given.sum() else np.zeros(counts.shape)),
            "out": out.astype(int).tolist(),
            "curve": self._curve.to_dict(),
        }


def _lines(
    memory: Memory, side: str, living: list[str], effects: NDArray[np.float64], out: Any
) -> list[dict[str, Any]]:
    """Rows or columns, those that are retired too; effects as estimate, lower and upper end."""
    known = dict(zip(living, effects.tolist(), strict=True))
    lives = set(memory.living_labels(side))
    return [
        {
            "label": label,
            "retired": label not in lives,
            "out": bool(out[k]),
            "effect": _numbers(known.get(label, [math.nan] * 3)),
        }
        for k, label in enumerate(memory.labels[side])
    ]


def _interval(best: Best) -> list[float | None]:
    if best.leader is None:
        return [None, None]
    i, j = best.rows.index(best.leader[0]), best.columns.index(best.leader[1])
    return _numbers([best.mean_lower[i, j], best.mean_upper[i, j]])


def _number(value: float) -> float | None:
    """With five digits, which is more than a screen shows; None where there is none."""
    return float(f"{value:.5g}") if math.isfinite(value) else None


def _numbers(values: Any) -> list[float | None]:
    return [_number(value) for value in values]


def _table(values: NDArray[np.float64]) -> list[list[float | None]]:
    return [[_number(value) for value in row] for row in values.tolist()]
