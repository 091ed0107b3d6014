"""The texts of studies: sentences, reports and forecasts agree with the numbers next to them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rank1 import Study, assignment, plots
from rank1.studies.outlook import _words
from rank1.studies.report import lift_text
from rank1.studies.words import Doubt, Finding, Lift
from tests.studies.test_drawn import create as create

pytestmark = pytest.mark.usefixtures("uncompiled")

IMAGE = {"image": ["x", "y"]}


def play(study: Study, mean: dict[str, float], steps: int, spread: float) -> None:
    rng = np.random.default_rng(0)
    for _ in range(0, steps, 200):
        study.tell_many(
            [
                (each.id, mean[each.levels["image"]] + float(rng.uniform(-spread, spread)))
                for each in study.ask(count=200)
            ]
        )


@pytest.mark.parametrize("goal", ["find", "earn"])
@pytest.mark.parametrize("low", [100.0, -60.0])
def test_lifts_say_that_they_are_above_the_lowest_reward(
    create: Callable[..., Study], goal: str, low: float
) -> None:
    options: dict[str, Any] = {"min_lift": 0.05} if goal == "find" else {}
    study = create(
        IMAGE, goal=goal, control={"image": "x"}, reward_range=(low, low + 60), **options
    )
    play(study, {"x": low + 30, "y": low + 45}, 1000, spread=10)
    best = study.best()
    assert best.lift is not None
    assert best.lift["estimate"] == pytest.approx(0.5, abs=0.05)
    assert best.lift["above"] == low
    shown = [best.lift["over_mean"], best.lift["mean"]]
    np.testing.assert_allclose(shown, best.means)
    np.testing.assert_allclose(shown, [low + 30, low + 45], atol=1)
    means = f"with {best.means[1]:.4g} against {best.means[0]:.4g} on average"
    assert f"in reward above {low:g} over x, the control, {means}" in best.statement
    assert f"Lift over the control in reward above {low:g}<" in study.report_text()
    assert plots.plot_best(best).axes[0].get_xlabel().endswith(f" in reward above {low:g}")
    if goal == "find":
        assert best.stop
        assert f"5% in reward above {low:g}." in best.statement
        assert f"by 5% or more in reward above {low:g}" in best.reason


def test_lifts_of_rewards_from_0_need_no_explanation(create: Callable[..., Study]) -> None:
    study = create(IMAGE, reward_range=(0.0, 60.0))
    play(study, {"x": 30, "y": 45}, 1000, spread=10)
    assert "above" not in study.best().statement
    assert "above 0" not in study.report_text()


@pytest.mark.parametrize("goal", ["find", "earn"])
def test_the_only_arm_is_shipped(create: Callable[..., Study], goal: str) -> None:
    study = create({"image": ["x"]}, goal=goal)
    assert not study.best().stop  # there are no reports yet
    later = create(IMAGE, goal=goal)
    for each in (study, later):
        each.tell(each.ask().id, 1.0)
    later.revise(retire={"image": ["y"]})
    for each in (study, later):
        found = each.best()
        assert found.statement == "Stop: ship x. It is the only arm."
        assert found.stop
        assert found.next_step == "Ship x, and retire the study."
        assert found.reason == "stop: x is the only arm"
    if goal == "find":
        assert study.forecast().statement == "There is only one arm."


def test_history_is_no_evidence_in_studies_that_draw(create: Callable[..., Study]) -> None:
    study = create(IMAGE)
    with pytest.warns(UserWarning, match="can't bet on rewards that it didn't draw"):
        study.import_history([("x", 0.0)] * 500 + [("y", 1.0)] * 500)
    found = study.best()
    assert found.statement == (
        "Keep going: y leads over x, the runner-up; it isn't known yet by how much."
    )
    assert found.reason.endswith("imported rewards aren't evidence")
    assert any(each.startswith("1,000 imported rewards count in av") for each in found.warnings)
    with pytest.raises(
        ValueError, match=r"at least 1 .* no reports yet for arms that the study drew itself"
    ):
        study.forecast()


@pytest.mark.parametrize(
    ("estimate", "low", "high", "expected"),
    [
        (math.inf, 2.4, math.inf, "leads by at least 240% over x, the runner-up"),
        (250.0, 2.4, math.inf, "leads by at least 240% over x, the runner-up"),
        (250.0, -1.0, math.inf, "leads over x, the runner-up; it isn't known yet by how much"),
        (math.nan,) * 3 + ("leads over x, the runner-up; it isn't known yet by how much",),
        (
            0.3,
            -0.5,
            math.inf,
            "leads by 30% over x, the runner-up; it is too early for an interval",
        ),
        (0.3, 0.1, math.inf, "leads by 30% (at least 10%) over x, the runner-up"),
        (0.3, 0.1, 0.5, "leads by 30% (10% to 50%) over x, the runner-up"),
    ],
)
def test_a_lift_in_words(estimate: float, low: float, high: float, expected: str) -> None:
    assert str(Lift(("x",), False, estimate, low, high, mean=2.0, over_mean=1.0)) == expected


@pytest.mark.parametrize("goal", ["find", "earn"])
def test_an_arm_without_results_is_no_runner_up(create: Callable[..., Study], goal: str) -> None:
    study = create(IMAGE, goal=goal)
    shown = study.ask()
    study.tell(shown.id, 1.0)
    leader = shown.levels["image"]
    assert study.best().statement == f"Keep going: {leader} leads; it isn't known yet by how much."


def test_no_lift_over_a_level_that_was_never_shown(create: Callable[..., Study]) -> None:
    """The fit of a level without rewards is a guess from those of the others."""
    study = create(IMAGE)
    play(study, {"x": 0.2, "y": 0.8}, 1000, spread=0.1)
    study.revise(add={"image": ["z"]})
    found = study.best()
    assert found.statement == "Keep going: y leads; it isn't known yet by how much."
    assert found.lift is not None
    assert math.isnan(found.lift["estimate"])
    estimates = {each["label"]: each["estimate"] for each in found.levels["image"]}
    assert math.isnan(estimates.pop("z"))
    assert estimates == {"x": pytest.approx(-0.75, abs=0.03), "y": 0}


def test_a_report_of_units_that_are_held_out_only(create: Callable[..., Study]) -> None:
    study = create(IMAGE, control={"image": "x"}, holdout=0.5)
    shares = study.shares()
    unit = next(u for u in map(str, range(99)) if assignment.held_out(shares, u))
    study.record(unit, 0, {"image": "x"}, 1.0)
    assert "1 visitor was held out and saw the control; nothing is" in study.report_text()


def test_a_report_says_which_side_comes_with_the_visitor(create: Callable[..., Study]) -> None:
    sides = {"segment": ["p", "q"], "image": ["x", "y"]}
    study = create(sides, given=["segment"])
    for segment in ("p", "q"):
        study.tell(study.ask(given={"segment": segment}).id, 1.0)
    study.revise(retire={"segment": ["q"]})
    text = study.report_text()
    assert "<h2>What leads so far</h2>" in text
    states = [line.split("<")[0] for line in text.split('data-what="State">')[1:]]
    first, second, *others = states
    assert (first, others) == ("comes with the visitor", ["in the running"] * 2)
    assert second.startswith("retired")


def test_estimates_lie_in_their_intervals(create: Callable[..., Study]) -> None:
    study = create(IMAGE, control={"image": "x"})
    with pytest.warns(UserWarning, match="isn't evidence"):  # the fit uses it, bets don't
        study.import_history([("x", 0.9), ("y", 0.1)] * 3000)
    play(study, {"x": 0.5, "y": 0.7}, 1000, spread=0.1)
    best = study.best()
    assert best.lift is not None
    assert best.lift["low"] <= best.lift["estimate"] <= best.lift["high"]
    for each in best.levels["image"]:
        assert each["lift"][0] <= each["estimate"] <= each["lift"][1]
    for effects in best.effects.values():
        assert np.all(effects[:, 1] <= effects[:, 0])
        assert np.all(effects[:, 0] <= effects[:, 2])


UNTIL = " until the best level of each side is known."


@pytest.mark.parametrize(
    ("more", "per_day", "expected"),
    [
        ((0, 0, 0), None, "The best level of each side is already known."),
        ((10, 20, 3000), None, "It will take about 20 more rewards "
         "(between 10 and 3,000 in 80 out of 100 such studies)" + UNTIL),
        ((10, 20, math.inf), 10, "It will take about 20 more rewards "
         "(at least 10 in 90 out of 100 such studies) or about 2.0 more days "
         "(at least 1.0 in 90 out of 100 such studies)" + UNTIL),
        ((3226, math.inf, math.inf), 10, "No end in sight: the levels that are left may be alike. "
         "But in 10 out of 100 such studies, 3,226 more rewards or 322.6 more days are enough."),
        ((math.inf,) * 3, None, "No end in sight: the levels that are left may be alike."),
    ],
)  # fmt: skip
def test_a_forecast_in_words(more: tuple[float, ...], per_day: float | None, expected: str) -> None:
    found = Finding(("y",), Lift(("x",), False, 0.1, 0.0, 0.2), more[2] == 0, None, 0.95)
    ends = dict(zip(("10%", "50%", "90%"), more, strict=True))
    days = None if per_day is None else {part: n / per_day for part, n in ends.items()}
    assert _words(found, ends, days) == expected


def test_a_forecast_shares_the_doubt_of_the_verdict() -> None:
    doubt = Doubt(("B", "x"), 0.5, 0.6, 3, speaks=False)
    found = Finding(("A", "y"), Lift(("A", "x"), False, 0.1, 0.0, 0.2), True, doubt, 0.95)
    said = _words(found, dict.fromkeys(("10%", "50%", "90%"), 0.0), None)
    assert said.startswith("The best level of each side is already known, but only if the sides ")
    assert said.endswith(
        ": B × x was shown only 3 times, too rarely to tell whether it is as good."
    )


def test_what_speaks_against_the_order_is_data() -> None:
    doubt = Doubt(("B", "x"), 0.5, 0.6, 3, speaks=False)
    found = Finding(("A", "y"), Lift(("A", "x"), False, 0.1, 0.0, 0.2), True, doubt, 0.95)
    said = found.objection
    assert said is not None
    words = said.pop("statement")
    assert said == {"arm": ["B", "x"], "mean": 0.5, "leading": 0.6, "tried": 3, "speaks": False}
    assert words.startswith(str(doubt))
    assert found.statement.endswith(words)
    for other in ({"doubt": None}, {"order_stop": False}, {"leader": None}, {"no_rule": "none"}):
        assert dataclasses.replace(found, **other).objection is None


def test_levels_are_not_called_alike_while_nothing_is_known_of_the_lift() -> None:
    """After one result it said "No end in sight: the levels that are left may be alike"."""
    found = Finding(("y",), Lift(("x",), False, math.nan, math.nan, math.nan), False, None, 0.95)
    said = _words(found, {"10%": 97.0, "50%": math.inf, "90%": math.inf}, None)
    early = "It is too early for a forecast: it isn't known yet by how much the leader leads."
    assert said == early


@pytest.mark.parametrize("goal", ["find", "earn"])
def test_a_warning_if_only_successes_are_reported(create: Callable[..., Study], goal: str) -> None:
    study = create(IMAGE, goal=goal)
    shown = study.ask(count=100)
    study.tell_many([(each.id, 1.0) for each in shown[:40]])
    (warning,) = study.best().warnings
    assert warning.startswith(
        "All 40 rewards so far are 1, the largest possible, and 60 suggestions have none."
    )
    study.tell(shown[40].id, 0.0)
    assert study.best().warnings == []


@pytest.mark.parametrize("told", [29, 50])
def test_no_such_warning_for_few_successes_or_few_that_are_missing(
    create: Callable[..., Study], told: int
) -> None:
    study = create(IMAGE)
    study.tell_many([(each.id, 1.0) for each in study.ask(count=100)[:told]])
    assert study.best().warnings == []
    late = create(IMAGE, reward_window=60, on_expiry="default")  # failures are still to come
    late.tell_many([(each.id, 1.0) for each in late.ask(count=100)[:40]])
    assert late.best().warnings == []


@pytest.mark.parametrize("policy", [None, "uts"])
def test_a_study_that_has_ended_says_so(create: Callable[..., Study], policy: str | None) -> None:
    study = create({"i": ["x", "y"]}, policy=policy)
    study.tell(study.ask().id, 1.0)
    study.retire()
    found = study.best()
    assert found.statement.startswith("Ended without a verdict: ")
    assert found.next_step == "The study has ended, and gives no more suggestions."


@pytest.mark.parametrize(
    ("ends", "text"),
    [
        ((-1.0, math.inf), "not known yet"),
        ((None, None), "not known yet"),
        ((-1.0, 0.25), "at most +25%"),
        ((-0.1, math.inf), "at least -10%"),
        ((0.0, 0.0), "–"),
    ],
)
def test_the_interval_of_a_lift(ends: tuple[Any, Any], text: str) -> None:
    assert lift_text({"lift": ends}) == text
