"""Compiled code and plain Python fold a log to the same result."""

from __future__ import annotations

from pathlib import Path

import pytest

from rank1 import Study
from rank1.compiled import kernel
from rank1.studies import state
from rank1.studies.unit_of_work import fold_log


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

    def folded() -> state.StudyState:
        events = study.look(lambda _, log: study.access.read(log))
        return fold_log(state.StudyState(study.spec), *events)

    plain = folded()
    with monkeypatch.context() as patch:
        patch.setattr(state, "kernel_for", lambda function, *given, work: kernel(function, *given))
        compiled = folded()
    assert plain.differences(compiled) == []
    assert study.verify().ok
    study.close()
