"""Compiled code and plain Python fold a log to the same result."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rank1
from rank1 import Study
from rank1.compiled import kernel, kernels
from rank1.compiled.kernels import as_written
from rank1.studies import fold, fold_records, state
from tests.studies.support import from_log


@pytest.mark.compiled
def test_a_fold_is_the_same_either_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = Study.create(
        "home", sides={"headline": ["A", "B"], "image": ["x", "y", "z"], "button": ["buy"]},
        storage=tmp_path / "rank1.db", seed=1, reward_window=1000, on_expiry="default",
        forgetting=50,
    )  # fmt: skip
    for turn in range(40):
        given = study.ask(count=2, unit=None)
        study.tell(given[0].id, float(turn % 3 == 0))
        study.cancel(given[1].id)
    study.import_history([("A", "x", "buy", 1.0)])
    study.revise(add={"button": ["go"]}, retire={"image": ["z"]})
    study.ask(count=10)

    plain = from_log(study)
    with monkeypatch.context() as patch:
        patch.setattr(state, "kernel_for", lambda function, *given, work: kernel(function, *given))
        compiled = from_log(study)
    assert plain.differences(compiled) == []
    assert study.verify().ok
    study.close()


@pytest.mark.compiled
def test_runs_of_records_are_folded_to_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = Study.create(
        "home", sides={"headline": ["A", "B"], "image": ["x", "y", "z"]}, goal="find", seed=1,
        storage=tmp_path / "rank1.db", control={"headline": "A", "image": "x"}, holdout=0.1,
        reward_range=(1, 5), guardrails={"left": {"worse_by": 0.1}},
    )  # fmt: skip
    rng = np.random.default_rng(1)
    for turn in range(8):
        shares, records = study.shares(), []
        for k in range(500):
            unit = f"{turn} {k}"
            reward = None if k % 100 == 7 else float(rng.uniform(1, 5))
            left = {"left": 0.0} if k % 100 == 9 else None
            levels = rank1.assign(shares, unit)
            records.append((unit, shares["version"], levels, reward, left))
        study.record_many(records)
    for suggestion in study.ask(count=20):
        study.tell(suggestion.id, 2.0)

    def by(how: Callable[..., Any]) -> None:
        for name in ("kernel_for", "ready"):
            monkeypatch.setattr(state, name, lambda function, *given, work=1: how(function, *given))

    by(lambda function, *given: as_written(function))
    by_runs = from_log(study)
    monkeypatch.setattr(fold_records, "LEAST", sys.maxsize)
    one_by_one = from_log(study)
    for name, array in one_by_one.book._asdict().items():
        if name == "table":
            array, other = one_by_one.open_table(), by_runs.open_table()
        else:
            other = getattr(by_runs.book, name)
        assert other.tobytes() == array.tobytes(), name
    assert one_by_one.book.at[0].held > 300
    assert by_runs.differences(one_by_one) == []
    by(kernel)
    assert by_runs.differences(from_log(study)) == []
    study.close()


def test_records_alone_need_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiling takes a second, during which a new study's records would wait."""
    spent: dict[Any, int] = {}
    monkeypatch.setattr(kernels, "_spent", spent)
    study = Study.create("home", sides={"image": ["x", "y"]}, goal="find", storage=tmp_path / "db")
    for turn in range(3):
        shares = study.shares()
        units = [f"{turn} {k}" for k in range(1000)]
        study.record_many([(u, shares["version"], rank1.assign(shares, u), 1.0) for u in units])
    assert study.counts()["reports"] == 3000
    assert sum(work for key, work in spent.items() if key[0] is fold.fold_events) < 200
    study.close()
