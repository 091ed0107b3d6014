"""rank1 advise: grids with the requested rate, figures from their own simulation, and texts."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import rank1
from rank1.advice.assumed import assumed_grid
from rank1.advice.find import _of_grid
from rank1.advice.words import about, table_of
from rank1.settings import parse_policy
from tests.test_cli import Output

Capture = pytest.CaptureFixture[str]
FIND = ["advise", "--rows", "3", "--columns", "2", "--rate", "0.4", "--lift", "0.6", "--runs", "4"]
SHORT = {"rate": 0.4, "lifts": [0.6], "runs": 4}


@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=4), st.floats(0.001, 0.2),
    st.floats(0.01, 0.8), st.sampled_from(["spike", "stairs"]),
)  # fmt: skip
def test_assumed_grids_have_the_rate_and_the_lift(
    sizes: list[int], rate: float, lift: float, shape: str
) -> None:
    if rate * (2 * (1 + lift)) ** len(sizes) > 1:
        return
    problem = assumed_grid(sizes, rate, lift, shape).problem
    assert problem.means.mean() == pytest.approx(rate)
    assert problem.best_arm == 0
    for side in problem.factors:
        if len(side) > 1:
            assert side[0] / side[1:].max() == pytest.approx(1 + lift)
        if len(side) > 2 and shape == "stairs":
            assert side[1] / side[-1] == pytest.approx(2)


def test_find_tells_what_identify_gives() -> None:
    told = rank1.advise(3, 2, 2000, goal="find", seed=3, **SHORT)  # type: ignore[arg-type]
    assert told.policy == "bet_elim"
    any_grid = "bet_elim:any_grid=true"
    assert [(row["shape"], row["policy"]) for row in told.figures] == [
        ("spike", "bet_elim"), ("spike", any_grid), ("stairs", "bet_elim"), ("stairs", any_grid),
    ]  # fmt: skip
    problem = assumed_grid([3, 2], 0.4, 0.6).problem
    policies = [rank1.BetElim(), rank1.BetElim(any_grid=True)]
    for row, policy in zip(told.figures, policies, strict=False):
        same = rank1.identify(
            policy, problem, n=row["most"], runs=4, seed=3, shuffle=True
        ).searches[0]
        assert row["median"] == np.median(same.pulls)
        assert row["within"] == (same.stopped & (same.pulls <= 2000)).mean()
    one, any_, *stairs = (row["median"] for row in told.figures)
    ratios = sorted([any_ / one, stairs[1] / stairs[0]])
    assert "assumes one order" in told.words[-1]
    assert f"{ratios[0]:.1f} to {ratios[1]:.1f} times as many pulls on these" in told.words[-1]
    assert told.summary()["median"].to_list() == [row["median"] for row in told.figures]
    assert json.loads(json.dumps(told.document())) == told.document()
    assert "one row and one column are 60% better than the others, which are equal" in str(told)
    assert "<table>" in str(told._repr_html_())


def test_a_horizon_that_is_too_short_to_find_is_said_with_the_pulls_it_takes() -> None:
    told = rank1.advise(3, 2, 20, goal="find", **SHORT)  # type: ignore[arg-type]
    assert told.policy is None
    assert "20 pulls are too few" in told.words[1]
    assert "even if lifts below 60% don't matter to you (min_lift=0.6)" in told.words[1]
    assert all(row["median"] > 20 for row in told.figures)
    assert re.search(r"half of the runs of bet_elim stop within [\d,]+ pulls", str(told))
    assert [row["policy"].partition(":")[2] for row in told.figures] == [
        "", "any_grid=true", "min_lift=0.3", "min_lift=0.6",
    ] * 2  # fmt: skip


def test_the_first_lever_of_short_traffic_is_a_smallest_lift() -> None:
    """It is tried on the grids that need it, starting from the smallest lift that helps."""
    given: dict[str, Any] = {"sides": [2], "rate": 0.3, "runs": 12}
    alone = rank1.advise(horizon=10**6, goal="find", lifts=[0.2], **given).figures
    assert [row["policy"] for row in alone] == ["bet_elim"]  # one side always has one order
    halves = {
        lift: rank1.identify(
            rank1.BetElim(min_lift=lift), assumed_grid([2], 0.3, 0.2).problem, n=alone[0]["most"],
            runs=12, shuffle=True,
        ).searches[0].pulls
        for lift in (0.1, 0.2)
    }  # fmt: skip
    horizon = int(np.median(halves[0.1])) + 1
    assert horizon < alone[0]["median"]
    told = rank1.advise(horizon=horizon, goal="find", lifts=[0.2], **given)
    assert [row["policy"] for row in told.figures] == ["bet_elim", "bet_elim:min_lift=0.1"]
    assert told.figures[1]["median"] == np.median(halves[0.1])
    assert told.policy == "bet_elim:min_lift=0.1"
    assert "too few to find the best arm. But if lifts below 10% don't matter" in told.words[1]
    assert "enough for most runs on all grids that were simulated" in told.words[1]
    assert "the best arm is at most 10% better than the one it names" in told.words[1]
    half = about(float(np.median(halves[0.1])), horizon)
    assert f"With min_lift=0.1, half of them stop within {half}." in told.words[2]
    easy = rank1.advise(horizon=horizon, goal="find", lifts=[0.2, 0.8], **given)
    assert easy.policy == "bet_elim"
    assert "enough for most runs on 1 of the 2 grids that were simulated" in easy.words[1]
    assert "pulls are enough for most runs on all grids" in easy.words[1]
    assert [row["policy"] for row in easy.figures if row["lift"] == 0.8] == ["bet_elim"]
    shorter = rank1.advise(
        horizon=int(np.median(halves[0.2])) + 1, goal="find", lifts=[0.2], **given
    )
    assert shorter.policy == "bet_elim:min_lift=0.2"
    assert [row["policy"] for row in shorter.figures[1:]] == [
        "bet_elim:min_lift=0.1", "bet_elim:min_lift=0.2",
    ]  # fmt: skip


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=20), st.integers(1, 10**6))
@example([50_348], 50_000)  # once said to stop within 50,000 pulls
@example([49_912], 49_950)
@example([500, 700, 800, 1000], 950)  # the 90% quantile, which is interpolated, is 940
def test_rounded_pulls_never_contradict_the_horizon(pulls: list[int], horizon: int) -> None:
    within, median = np.mean([each <= horizon for each in pulls]), float(np.median(pulls))
    row: dict[str, Any] = {
        "policy": "bet_elim", "median": median, "p90": float(np.quantile(pulls, 0.9)),
        "within": within, "most": 10**7, "cut": False, "cut_p90": False, "given_up": False,
    }  # fmt: skip
    told = _of_grid(assumed_grid([3, 2], 0.4, 0.6), [row], "bet_elim", [], horizon)
    found = re.search(r"half of the runs of bet_elim stop within ([\d,]+) pulls", told)
    assert found
    half = int(found[1].replace(",", ""))
    assert median <= half <= max(1.1 * median, median + 1)
    assert (half <= horizon) == (median <= horizon)
    assert np.mean([each <= half for each in pulls]) >= 0.5
    if found := re.search(r"90% within ([\d,]+)", told):
        most = int(found[1].replace(",", ""))
        assert row["p90"] <= most
        assert (most <= horizon) == (within >= 0.9)
    row |= {"cut": True, "most": int(median) + 1}
    told = _of_grid(assumed_grid([3, 2], 0.4, 0.6), [row], "bet_elim", [], horizon)
    found = re.search(r"fewer than half of the runs of bet_elim stop within ([\d,]+) pulls", told)
    assert found
    least = int(found[1].replace(",", ""))
    assert least <= row["most"]
    assert (least <= horizon) == (row["most"] <= horizon)


@pytest.mark.uncompiled
def test_a_policy_for_another_goal_is_not_the_fault_of_the_horizon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rank1.advice.find.WORK", 4000)
    told = rank1.advise(2, 2, 500, 0.3, "find", lifts=[0.5], policies=[rank1.UTS()], runs=4)
    assert "grids that were simulated for uts; others weren't simulated." in told.words[1]


def test_what_was_given_up_before_the_horizon_is_not_called_never(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rank1.advice.find.WORK", 1000)
    told = rank1.advise(4, 4, 10**12, 1e-9, "find", lifts=[0.5], runs=1)
    assert all(row["given_up"] for row in told.figures)
    assert all("≥ 0%" in line for line in table_of("find", told.figures)[1])


@pytest.mark.uncompiled
def test_an_equal_split_alone_can_be_asked() -> None:
    told = rank1.advise(3, 2, 2000, goal="find", policies=rank1.Uniform(), **SHORT)  # type: ignore[arg-type]
    assert told.policy == "uniform"
    assert {row["policy"] for row in told.figures} == {"uniform"}


@pytest.mark.validate
def test_more_pairs_than_pulls() -> None:
    """Policies that try every pair first are left out, because studies reject them."""
    told = rank1.advise(8, 8, 30, goal="find", policies=rank1.TopTwo(), **SHORT)  # type: ignore[arg-type]
    assert told.policy is None
    assert "top_two tries each of the 64 arms first" in told.left_out["top_two"]
    assert "top_two tries each of the 64 arms first" in told.words[-1]
    told = rank1.advise(
        8,
        8,
        30,
        policies=[rank1.UTS(), rank1.UTS(first_round=False)],
        **SHORT,  # type: ignore[arg-type]
    )
    assert list(told.left_out) == ["uts"]
    assert {row["policy"] for row in told.figures} == {"uts:first_round=false"}
    with pytest.raises(rank1.InputError, match="uts tries each of the 64 arms first"):
        rank1.Study.create("a", [str(k) for k in range(8)], [str(k) for k in range(8)], horizon=30)


def test_earning_is_compared_with_an_equal_split() -> None:
    told = rank1.advise(
        3,
        2,
        3000,
        seed=2,
        policies=[rank1.UTS(), rank1.Uniform()],
        **SHORT,  # type: ignore[arg-type]
    )
    assert told.policy == "uts"
    row = told.figures[0]
    problem = assumed_grid([3, 2], 0.4, 0.6).problem
    result = rank1.simulate(rank1.UTS(), problem, 3000, 4, 2, checkpoints=1, shuffle=True)
    assert row["regret"] == result.outcomes[0].expected[:, -1].mean()
    assert row["reward"] == pytest.approx(3000 * problem.best_mean - row["regret"])
    assert row["equal_split"] == pytest.approx(0.4 * 3000)
    assert row["gain"] == pytest.approx((row["reward"] - 1200) / (3000 * problem.best_mean - 1200))
    assert 0.5 < row["gain"] < 1


def test_too_few_pulls_to_earn_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rank1.advice.recommend.EARNING", 1_000_000)
    told = rank1.advise(3, 2, 2, 0.4, lifts=[0.6], policies=rank1.UTS(first_round=False))
    assert told.policy is None
    assert "in 2 pulls no policy gains 10%" in told.words[1]
    assert re.search(r"half of that takes about [\d,]+ pulls", told.words[2])


def test_no_verdict_on_pulls_that_were_not_played(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a horizon beyond the budget, later pulls may achieve what the first ones don't."""
    monkeypatch.setattr("rank1.advice.recommend.EARNING", 4 * 5 * 64)  # the first round
    told = rank1.advise(8, 8, 1_000_000, 0.02, lifts=[0.3], policies=[rank1.UTS()])
    assert {row["steps"] for row in told.figures} == {64}
    assert max(row["gain"] for row in told.figures) < 0.1
    assert told.policy == "uts"
    assert "in the first 64 of 1,000,000 pulls no policy gains 10%" in told.words[1]
    assert "A longer simulation would take too long here" in told.words[1]
    assert "Don't expect" not in str(told)
    assert "half of that takes" not in str(told)


def test_a_policy_that_earns_in_the_first_pulls_is_said_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rank1.advice.recommend.EARNING", 4 * 5 * 3000)
    told = rank1.advise(3, 2, 10**9, 0.4, lifts=[0.6], policies=[rank1.UTS()])
    assert told.policy == "uts"
    assert "judging by the first 3,000 of 1,000,000,000 pulls" in told.words[1]


@pytest.mark.parametrize("horizon", [2, 500, 10**12])
@pytest.mark.parametrize("size", [2, 30])
@pytest.mark.parametrize("names", [["uniform"], ["uniform", "uts"]])
def test_earning_keeps_to_its_budget(
    monkeypatch: pytest.MonkeyPatch, horizon: int, size: int, names: list[str]
) -> None:
    """For any horizon, grid and number of policies."""
    played = []

    def counted(policy: object, problem: object, n: int, runs: int, *rest: Any, **more: Any) -> Any:
        played.append(n * runs)
        return simulate(policy, problem, n, runs, *rest, **more)  # type: ignore[arg-type]

    simulate = rank1.simulate
    monkeypatch.setattr("rank1.advice.recommend.simulate", counted)
    monkeypatch.setattr("rank1.advice.recommend.EARNING", 12_000)
    policies = [parse_policy(name) for name in names]
    told = rank1.advise(size, size, horizon, 0.02, lifts=[0.3], policies=policies)
    lines = 2 * size
    assert 0 < sum(played) <= 12_000 * min(1, 40 / lines)
    once_more = told.policy is None and bool(told.figures)
    grids = len({(row["shape"], row["lift"]) for row in told.figures})
    assert len(played) == len(told.figures) + grids * once_more


def test_a_grid_of_many_pairs_has_fewer_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rank1.advice.recommend.MANY_ARMS", 5)
    monkeypatch.setattr("rank1.advice.recommend.EARNING", 1_000_000)
    told = rank1.advise(3, 2, 100, 0.4, lifts=[0.6], policies=[rank1.UTS()])
    assert {row["runs"] for row in told.figures} == {2}


def test_a_run_that_was_cut_before_the_horizon_says_nothing_about_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rank1.advice.find.WORK", 20_000)
    told = rank1.advise(3, 2, 1_000_000, 0.4, "find", lifts=[0.1], runs=2)
    assert told.policy == "bet_elim"
    assert "a simulation would take too long here" in told.words[1]
    assert "Longer runs weren't simulated" in told.words[2]


def test_a_search_by_versions_can_be_long() -> None:
    """Rates of 10⁻⁸ take 10¹¹ pulls, which can be simulated."""
    told = rank1.advise(2, 2, 10**12, 1e-8, "find", lifts=[0.5], runs=2)
    assert told.policy == "bet_elim"
    assert 1e9 < told.figures[0]["median"] < 1e12
    assert not told.figures[0]["cut"]


def test_only_the_search_itself_is_simulated_on_large_grids(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rank1.advice.find.MANY_ARMS", 5)
    monkeypatch.setattr("rank1.advice.find.MANY_LEVELS", 4)
    told = rank1.advise(3, 2, 20, goal="find", **SHORT)  # type: ignore[arg-type]
    assert {row["policy"] for row in told.figures} == {"bet_elim"}
    assert "Plan for the pulls below, set a min_lift, merge rows or columns" in told.words[1]
    assert "how much longer that takes wasn't simulated" in told.words[-1]


def test_three_sides() -> None:
    told = rank1.advise(sides=[2, 3, 2], horizon=2000, goal="find", **SHORT)  # type: ignore[arg-type]
    assert told.sides == [2, 3, 2]
    assert told.policy == "bet_elim"
    assert "2 × 3 × 2 arms" in str(told)
    assert "one level of each side is 60% better than the others" in str(told)
    assert "rows" not in told.document()
    named = rank1.advise(
        sides={"headline": 2, "image": 3, "logo": 1, "button": 2}, horizon=9, goal="find",
        policies=rank1.BetElim(), **SHORT,  # type: ignore[arg-type]
    )  # fmt: skip
    assert (named.sides, named.names) == ([2, 3, 1, 2], ["headline", "image", "logo", "button"])
    assert "the best headline, the best image and the best button are 60% better" in str(named)
    assert "merge levels" in named.words[1]


@pytest.mark.uncompiled
def test_one_side() -> None:
    earn = rank1.advise(sides=[4], horizon=500, **SHORT)  # type: ignore[arg-type]
    assert "the best level is 60% better than the second" in str(earn)
    assert {row["policy"] for row in earn.figures} == {"uts", "thompson"}
    assert not earn.left_out


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sides": [2, 0]}, "side 1 must be a side of at least 1 level, got 0"),
        ({"sides": [1, 1, 1]}, r"sides must be a grid with 2 to .* arms, got 1 \(1×1×1\)"),
        (
            {"sides": [10**3] * 3},
            r"sides must be a grid with 2 to 16,777,216 arms, got 1,000,000,000",
        ),
        ({"sides": [2, 2], "rows": 2}, "sides must be None if rows and columns are given"),
        ({"rows": 2}, "columns must be a whole number of at least 1, got None"),
    ],
)
def test_grids_that_make_no_sense(given: dict[str, Any], message: str) -> None:
    with pytest.raises(rank1.Rank1Error, match=message):
        rank1.advise(horizon=100, rate=0.1, **given)
    with pytest.raises(rank1.InputTypeError, match=r"horizon must be .*, got None"):
        rank1.advise(2, 2)


def test_json_is_what_python_gives(capsys: Capture) -> None:
    ran = Output(capsys, *FIND, "--horizon", "2e3", "--goal", "find", "--seed", "3", "--json")
    assert (ran.status, ran.err) == (0, "")
    told = rank1.advise(3, 2, 2000, goal="find", seed=3, **SHORT)  # type: ignore[arg-type]
    assert json.loads(ran.out) == told.document()


def test_words_and_a_table_for_a_person(capsys: Capture) -> None:
    ran = Output(capsys, *FIND, "--horizon", "2000", "--policy", "uts", "--policy", "uniform")
    assert (ran.status, ran.err) == (0, "")
    text = " ".join(ran.out.split())
    assert "Use uts, the default of a study with the goal earn." in text
    assert re.search(r"spike 60% uts 4 2,000 [\d.,]+ ± [\d.,]+ [\d,]+ \d+%", text)


def test_sides_by_name(capsys: Capture) -> None:
    sides = ["--side", "headline=2", "--side", "image=x,y,z", "--horizon", "2e3", "--goal", "find"]
    ran = Output(capsys, "advise", *sides, *FIND[5:], "--json")
    told = rank1.advise(sides={"headline": 2, "image": 3}, horizon=2000, goal="find", **SHORT)  # type: ignore[arg-type]
    assert json.loads(ran.out) == told.document()
    assert told.document()["names"] == ["headline", "image"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--side", "image"], "--side must be a new name and its levels, .* got 'image'"),
        (["--side", "a=2", "--side", "a=3"], "--side must be a new name .* got 'a=3'"),
        (["--side", "image=few"], "must be a whole number, such as 20 or 2e6, got 'few'"),
        (["--side", "a=2"], "sides must be None if rows and columns are given"),
        (["--side", "a=2", "--sides", "2"], "--sides must be left out if --side is given"),
        (["--rows", "0"], "--rows must be a whole number of at least 1, got 0"),
        (
            ["--columns", "1e7"],
            r"must be a grid with 2 to 16,777,216 arms, got 30,000,000 \(3×10000000\)",
        ),
        (
            ["--rows", "1", "--columns", "1"],
            r"must be a grid with 2 to 16,777,216 arms, got 1 \(1×1\)",
        ),
        (["--rate", "0"], "--rate must be a number above 0 and below 1, got 0"),
        (["--rate", "5%"], "must be a number, such as 0.98, got '5%'"),
        (["--horizon", "0"], "--horizon must be a whole number of at least 1, got 0"),
        (["--goal", "fnd"], "--goal must be one of earn, find, got 'fnd': did you mean find"),
        (["--lift", "0"], "--lift must be a number above 0 .*got 0"),
        (
            ["--rate", "0.9"],
            "--lift must be one that leaves the best arm a mean of at most 1, got 0.6.*smaller",
        ),
        (["--confidence", "1"], "--confidence must be a number above 0 and below 1, got 1"),
        (["--lift", "0.6"], "must be at least one number, without duplicates, got"),
        (["--policy", "utz"], "did you mean uts"),
        (
            ["--policy", "oracle"],
            r"must be policies that don't need to know the answer, got Oracle\(\)",
        ),
        (["--policy", "uts", "--policy", "glm_ucb"], "don't need to know the answer, got GLMUCB"),
        (["--runs", "0"], "--runs must be a whole number of at least 1, got 0"),
    ],
)
def test_bad_input_is_told(capsys: Capture, options: list[str], message: str) -> None:
    ran = Output(capsys, *FIND, "--horizon", "2000", *options)
    assert ran.status == 2
    assert re.search(message, ran.err.replace("\n", " "))
    assert ran.out == ""


@pytest.mark.parametrize(
    ("lifts", "kind", "message"),
    [
        (0.5, rank1.InputTypeError, r"lifts must be a list of numbers, .*, got 0.5"),
        (np.array(0.5), rank1.InputTypeError, r"lifts must be a list of numbers"),
        ("0.5", rank1.InputTypeError, "lift must be a number .*, got '0'"),
        ([], rank1.InputError, r"lifts must be at least one number, without duplicates, got \[\]"),
        (
            [0.5, 0.2, 0.5],
            rank1.InputError,
            "lifts must be at least one number, without duplicates",
        ),
        (
            None,
            rank1.InputError,
            "^rate must be one that leaves .* at most 1, got 0.95: with a lift of 0.2",
        ),
        ([0.5], rank1.InputError, "^lift must be one that leaves .* at most 1, got 0.5"),
    ],
)
def test_bad_lifts_are_told(lifts: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        rank1.advise(3, 2, 100, 0.95, lifts=lifts)
