"""Rewards of studies that draw by shares count correctly: immediate, late, and in one batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rank1 import Study
from tests.studies.test_drawn import create, design, mean, time

__all__ = ["create", "time"]

pytestmark = pytest.mark.usefixtures("uncompiled")

Create = Callable[..., Study]
RATES = {"x": 0.1, "y": 0.9}


def test_the_only_level_left_may_turn_out_to_harm(create: Create) -> None:
    """It had refuted the control, which is living again then; no report is rejected."""
    sides = {"headline": ["A", "B"], "image": ["x", "y"]}
    control, guardrails = {"headline": "A", "image": "x"}, {"unsubscribed": {"worse_by": 0.02}}
    study = create(sides, control=control, guardrails=guardrails)
    why = []
    for harm, batches in ((0.0, 12), (1.0, 8)):
        for _ in range(batches):
            asked = study.ask(count=25)
            ys = [each.levels["image"] == "y" for each in asked]
            told = [
                (each.id, y, {"unsubscribed": harm * y}) for each, y in zip(asked, ys, strict=True)
            ]
            study.tell_many(told)
        image = {each["label"]: each for each in study.best().levels["image"]}
        why.append((image["x"]["why"], image["y"]["why"]))
    assert why == [("refuted", None), (None, "harms unsubscribed")]
    assert (image["x"]["living"], image["x"]["share"]) == (True, 1.0)
    assert study.verify().ok


def test_a_guardrail_is_watched_after_the_stop(create: Create) -> None:
    study = create(
        {"image": ["x", "y"]},
        control={"image": "x"},
        guardrails={"unsubscribed": {"worse_by": 0.2}},
    )
    for each in study.ask(count=300):
        label = each.levels["image"]
        study.tell(each.id, float(label == "y"), {"unsubscribed": 0.21 * (label == "y")})
    best = study.best()
    assert best.stop
    assert study.shares()["sides"]["image"] == {"x": 0.05, "y": 0.95}
    assert best.warnings == [
        "unsubscribed is 21.0% with y and 0.0% with x, the control: worse by more than 20.0%, "
        "though that isn't proven yet"
    ]


@pytest.mark.parametrize("guardrails", [{}, {"unsubscribed": {"worse_by": 0.1}}])
def test_one_large_batch_is_as_good_as_small_ones(create: Create, guardrails: Any) -> None:
    control = {"headline": "A", "image": "x"} if guardrails else None
    study, rng = create(guardrails=guardrails, control=control), np.random.default_rng(1)
    draws = study.ask(count=800)
    more = [{"unsubscribed": 0.0}] if guardrails else []
    study.tell_many([(each.id, float(rng.random() < mean(each.levels)), *more) for each in draws])
    assert design(study).number > 10
    assert study.best().stop
    assert study.verify().ok


def test_a_late_reward_is_bet_on(create: Create, time: list[float]) -> None:
    """Even if its exposure was dropped when its window closed."""
    found = []
    for wait in (0.0, 11.0):
        study, rng = create({"image": ["x", "y"]}, reward_window=10.0), np.random.default_rng(1)
        for _ in range(20):
            asked = study.ask(count=20)
            time[0] += wait
            study.tell_many([(e.id, float(rng.random() < RATES[e.levels["image"]])) for e in asked])
        found.append(study.best())
        assert (study.counts()["expired"], study.verify().ok) == (0, True)
    assert [each.stop for each in found] == [True, True]


@pytest.mark.parametrize("seed", range(6))
def test_a_level_without_a_reward_never_leads(create: Create, seed: int) -> None:
    """Even if all known rewards are 0."""
    study = create({"image": list("abcdef")}, seed=seed)
    assert study.best().leader is None
    shown = study.ask()
    study.tell(shown.id, 0.0)
    found = study.best()
    assert found.leader == found.recommended == (shown.levels["image"],)
