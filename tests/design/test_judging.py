"""`judge` says of counts what BetElim and the design's own fold say, and refuses what can't be."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
import pytest

import rank1
from rank1 import design
from rank1.design import Counts, Design, Version, first_shares, judge
from rank1.design.judging import _flat
from rank1.errors import InputError, InputTypeError
from tests.design.playing import studied
from tests.design.test_design import run_of

SIDES = {"headline": ["A", "B"], "image": ["x", "y", "z"]}
#: A row of version, headline, image, reward and count.
FIRST = [
    (1, "A", "x", 1, 30), (1, "A", "x", 0, 170), (1, "B", "x", 1, 45), (1, "B", "x", 0, 155),
    (1, "B", "y", 1, 60), (1, "B", "y", 0, 140), (1, "A", "z", 0, 200),
]  # fmt: skip


def table(rows: list[tuple[Any, ...]], sides: Any = SIDES, last: str = "count") -> pl.DataFrame:
    return pl.DataFrame(
        rows, ["version", *sides, "reward", last], orient="row", infer_schema_length=None
    )


def labelled(sides: dict[str, list[str]], counts: Counts) -> pl.DataFrame:
    """Counts of versions 0, 1, … as a table of versions 1, 2, …"""
    columns: dict[str, Any] = {"version": counts.version + 1}
    stride = math.prod(map(len, sides.values()))
    for side, labels in sides.items():
        stride //= len(labels)
        columns[side] = [labels[k] for k in counts.arm // stride % len(labels)]
    return pl.DataFrame({**columns, "reward": counts.reward, "count": counts.pulls})


def named(sizes: tuple[int, ...]) -> dict[str, list[str]]:
    return {f"s{d}": [f"l{k}" for k in range(size)] for d, size in enumerate(sizes)}


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("settings", [{}, {"min_lift": 0.1}, {"floor": 0.1}, {"given": ["s0"]}])
def test_version_for_version_what_the_design_says(settings: dict[str, Any]) -> None:
    sides = named((2, 3))
    shares = first_shares(sides, **settings)
    plan = Design([2, 3], growth=0.25, **{**settings, "given": [0] if "given" in settings else []})
    means = np.multiply.outer([0.5, 0.4], [0.9, 0.5, 0.8])
    for played in studied(plan, means, 600, 3):
        found = judge(shares, labelled(sides, played.counts))
        assert found.new
        assert found.version == max(played.versions) + 1
        assert found.stop == played.verdict.stop
        current, shares = played.versions[max(played.versions)], found.shares
        for d, (side, levels) in enumerate(found.sides.items()):
            for k, each in enumerate(levels.values()):
                assert each["log_e"] == pytest.approx(played.verdict.log_e[d][k], abs=1e-9)
                assert each["living"] == played.verdict.living[d][k]
                if side not in settings.get("given", ()):
                    assert each["share"] == pytest.approx(current.shares[d][k])
    over = design.lifts(plan, played.versions, played.counts, played.wealth)
    ends = found.sides["s1"]["l1"]["lift"]
    assert ends == pytest.approx(over[1][1].tolist(), rel=1e-6)


@pytest.mark.usefixtures("uncompiled")
def test_the_same_evidence_as_the_policy() -> None:
    problem = rank1.Bernoulli([0.8, 0.5], [0.9, 0.6, 0.5])
    state, rows = run_of(rank1.BetElim(growth=0.25), problem, 500, 5)
    sides, told = named((2, 3)), np.array(rows)
    shares = first_shares(sides)
    for version in range(int(told[:, 0].max()) + 1):
        counts = Counts.of(told[told[:, 0] <= version].tolist())
        found = judge(shares, labelled(sides, counts))
        shares = found.shares
    log_e = [each["log_e"] for levels in found.sides.values() for each in levels.values()]
    wealth = np.exp(state.logs) * state.wealth
    np.testing.assert_allclose(log_e, np.log(wealth.mean(axis=1)), atol=1e-8)


def test_the_same_counts_again_change_nothing() -> None:
    shares = first_shares(SIDES)
    found = judge(shares, table(FIRST))
    again = judge(json.loads(found.text), table(FIRST[::-1]))
    assert (found.new, again.new) == (True, False)
    assert again.text == found.text
    assert again.to_dict() == found.to_dict() | {"new": False}
    assert rank1.assign(found.shares["versions"][-1], "visitor-1").keys() == SIDES.keys()


def test_equal_shares_until_there_is_something_to_fit() -> None:
    found = judge(first_shares(SIDES), table([(1, "A", "x", 1, 3)]))
    assert (found.version, found.leader, found.stop) == (2, None, False)
    assert found.sides["headline"]["A"]["share"] == 0.5
    assert "equal shares" in found.reason
    assert judge(found.shares, table(FIRST)).leader == {"headline": "B", "image": "y"}


def test_a_unit_counts_once_by_its_first_exposure() -> None:
    shares = first_shares({"s0": ["a", "b"]})
    names = ["version", "s0", "reward", "unit", "time"]
    rows = [
        (1, "a", 1.0, "u1", 9), (1, "b", 0.0, "u1", 8), (1, "a", 1.0, "u2", 10),
        (1, "b", 1.0, "u3", 11), (1, "a", None, "u4", 1), (1, "a", 1.0, "u4", 12),
    ]  # fmt: skip
    ordered = pl.DataFrame(rows, names, orient="row")
    kept = [
        {"version": 1, "reward": 0.0, "counts": [0, 1]},
        {"version": 1, "reward": 1.0, "counts": [1, 1]},
    ]
    assert judge(shares, ordered).shares["counts"] == kept
    # A CSV file has texts; 9 comes before 10 all the same.
    assert judge(shares, ordered.cast(pl.String)).shares["counts"] == kept
    first_rows = judge(shares, ordered.drop("time")).shares["counts"]
    assert first_rows == [{"version": 1, "reward": 1.0, "counts": [2, 1]}]


@pytest.mark.parametrize("missing", [None, "", " "])
def test_an_exposure_without_a_unit_is_refused(missing: str | None) -> None:
    rows = [(1, "a", 1.0, "u1"), (1, "b", 0.0, missing), (1, "a", 0.0, "u2")]
    frame = pl.DataFrame(rows, ["version", "s0", "reward", "unit"], orient="row")
    with pytest.raises(InputError, match="row 2: unit must be an id in every row, got"):
        judge(first_shares({"s0": ["a", "b"]}), frame)


def test_rewards_of_many_values_stay_bounded_and_may_grow() -> None:
    shares = first_shares({"s0": ["a", "b"]}, reward_range=(0, 50))
    rewards = np.round(np.random.default_rng(1).gamma(2.0, 5.0, 400).clip(0, 50), 2)
    rows = [(1, "ab"[k % 2], reward, 1) for k, reward in enumerate(rewards)]
    sides = {"s0": ["a", "b"]}
    few, all_ = table(rows[:100], sides), table(rows, sides)
    found = judge(judge(shares, few).shares, all_)
    assert len(found.shares["counts"]) <= 129
    assert found.sides["s0"]["a"]["mean"] == pytest.approx(rewards[::2].mean(), rel=1e-6)
    assert not judge(found.shares, all_[::-1]).new
    with pytest.raises(InputError, match="as in the last update"):
        judge(found.shares, few)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ((3, "A", "x", 1, 5), r"row 8: version must be a version that exists \(1 to 1\), got 3"),
        ((1, "C", "x", 1, 5), "row 8: headline must be one of A, B, got 'C'"),
        ((1, None, "x", 1, 5), "row 8: headline must be one of A, B, got None"),
        ((1, "A", "x", 1, -5), "row 8: count must be a whole number of at least 0, got -5"),
        ((1, "A", "x", 1, None), "row 8: count must be .* got None"),
        ((1, "A", "x", 2, 5), r"row 8: reward must be a number in \[0, 1\], got 2"),
        ((1, "A", "x", None, 5), "row 8: reward must be .* got None"),
    ],
)
def test_what_does_not_fit_is_refused_by_row(row: tuple[Any, ...], said: str) -> None:
    with pytest.raises(InputError, match=said):
        judge(first_shares(SIDES), table([*FIRST, row]))


def test_fractions_missing_columns_and_other_things_are_refused() -> None:
    shares = first_shares(SIDES)
    with pytest.raises(InputError, match=r"row 1: count must be a whole number .* got 30\.5"):
        judge(shares, table([(1, "A", "x", 1, 30.5)]))
    with pytest.raises(InputError, match="missing: image"):
        judge(shares, table(FIRST).drop("image"))
    with pytest.raises(InputTypeError, match="frame must be"):
        judge(shares, 7)


def test_a_level_without_a_share_is_refused() -> None:
    shares = first_shares(SIDES)
    shares["versions"][0]["sides"]["image"] = {"x": 0.5, "y": 0.5}
    with pytest.raises(InputError, match=r"row 7: image must be a level with a share above 0"):
        judge(shares, table(FIRST))


def test_counts_that_shrank_are_refused() -> None:
    found = judge(first_shares(SIDES), table(FIRST))
    fewer = [*FIRST[:4], (1, "B", "y", 1, 59), *FIRST[5:], (1, "A", "y", 1, 90)]
    said = r"version 1, headline B, image y, reward 1: count must be at least 60, .* got 59"
    with pytest.raises(InputError, match=said):
        judge(found.shares, table(fewer))
    with pytest.raises(InputError, match=r"image z, reward 0: count must be .* got 0"):
        judge(found.shares, table(FIRST[:-1]))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"versions": []}, "versions must be a list"),
        ({"versions": [{"version": 2, "sides": {}}]}, "version must be 1"),
        ({"versions": [{"version": 1, "sides": {"a": {"b": 0.9}}}]}, "add up to 1, got 0.9"),
        ({"versions": [{"version": 1, "sides": {}}]}, "shares of a must be a number for each of b"),
        ({"sides": {}}, "sides must be"),
        ({"sides": {"reward": ["b"]}}, "side must be a name other than"),
        ({"sides": {"a": ["b", "b"]}}, "names that differ, got 'b' twice"),
        ({"control": {"a": "c"}}, "control.a must be one of b"),
        ({"given": ["c"]}, "given must be one of a"),
        ({"given": ["a"]}, r"given must be fewer sides: .*, got \['a'\]"),
        ({"given": "a"}, "given must be a list of names of sides"),
        ({"confidence": 1.5}, "confidence must be"),
        ({"reward_range": (5, 0)}, r"reward_range must be \(low, high\) with low < high"),
        ({"sides": {"a": ["b", "c"]}, "floor": 0.6}, "below 1/2, for the 2 levels of a, got 0.6"),
        (
            {"sides": {"a": ["b"], "s": ["x"]}, "given": ["s"], "control": {"a": "b", "s": "x"}},
            "control must be a level of each of a, and none of s, which is given",
        ),
        ({"sides": {"a": [""]}}, "names of levels that aren't empty, got ''"),
        ({"counts": [{"version": 7, "reward": 1, "counts": [1]}]}, "version must be .* at most 1"),
        ({"counts": [{"version": 1, "reward": 1, "counts": [1, 2]}]}, "counts must be 1 numbers"),
        ({"counts": [{"version": 1}]}, r"counts\[1\] must be"),
    ],
)
def test_documents_that_are_not_right(change: dict[str, Any], said: str) -> None:
    whole = {"sides": {"a": ["b"]}, "versions": [{"version": 1, "sides": {"a": {"b": 1}}}]}
    judge(whole, {"version": [1], "a": ["b"], "reward": [1], "count": [5]})
    with pytest.raises((InputError, InputTypeError), match=said):
        judge({**whole, **change}, {"version": [1], "a": ["b"], "reward": [1], "count": [5]})


#: What a document may have in any place if it was edited by hand.
STRANGE: list[Any] = [None, 5, -0.5, math.nan, 10**30, True, "x", [], [[]], {}, {"a": 5}]
STRANGE += [{"a": {"x": None}}]


def test_no_document_is_too_strange() -> None:
    """Whatever is in its place, a value is accepted or refused with an error of the package."""
    counts = {"version": [1, 1], "a": ["x", "y"], "reward": [1, 0], "count": [200, 200]}
    whole = json.loads(judge(first_shares({"a": ["x", "y"]}), counts).text)

    def changed(part: Any, value: Any) -> Iterator[Any]:
        """Yield copies of a part of the document, each with the value in another place."""
        yield value
        listed = range(len(part)) if isinstance(part, list) else ()
        for place in part if isinstance(part, dict) else listed:
            for inner in changed(part[place], value):
                copy = part.copy()
                copy[place] = inner
                yield copy

    def tried(document: Any) -> bool:
        try:
            judge(document, counts)
        except rank1.Rank1Error:
            return False
        return True

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        accepted = [tried(each) for value in STRANGE for each in changed(whole, value)]
    assert 0 < sum(accepted) < len(accepted) / 2


def test_bets_against_arms_are_those_of_the_formula() -> None:
    plan = Design([2, 2])
    shares = np.array([0.4, 0.6]), np.array([0.3, 0.7])
    fit = np.array([0.5, 0.3]), np.array([0.8, 0.6])
    version = Version(1, shares, (0, 1), fit, (np.ones(2, bool),) * 2)
    flat, arms = _flat(plan, version), design.any_grid(plan)
    rows = [(1, 1, 1.0, 6), (1, 1, 0.0, 5), (1, 2, 1.0, 4), (1, 2, 0.0, 9), (1, 3, 1.0, 2)]
    wealth = design.fold(arms, design.start(arms), {1: flat}, Counts.of(rows))
    drawn = np.outer(*shares).ravel()
    rho = drawn[2] / (drawn[1] + drawn[2])
    m = (1 - rho) * 0.5 * 0.6 + rho * 0.3 * 0.8
    for kappa, log in zip(plan.kappas, wealth.logs[2], strict=True):
        c = min(kappa / (1 - m), 0.95 / (rho * m), 0.95 / ((1 - rho) * (1 - m)))
        told = (1 + c * rho * (1 - m)) ** 6 * (1 - c * rho * m) ** 5
        told *= (1 - c * (1 - rho) * (1 - m)) ** 4 * (1 + c * (1 - rho) * m) ** 9
        assert log == pytest.approx(math.log(told))


def played_out(means: Any, seed: int, most: int, **settings: Any) -> Any:
    """Whole versions of growing size, each judged at its end, until the verdict on any grid."""
    rng, cells = np.random.default_rng(seed), np.asarray(means)
    sides = named(cells.shape)
    shares, rows, reports = first_shares(sides, salt="s", **settings), [], 0
    while reports < most:
        version, n = len(shares["versions"]), max(400, reports // 4)
        drawn = np.ones(1)
        for own in shares["versions"][-1]["sides"].values():
            drawn = np.multiply.outer(drawn, list(own.values())).ravel()
        pulls = rng.multinomial(n, drawn / drawn.sum())
        won, reports = rng.binomial(pulls, cells.ravel()), reports + n
        for reward, counts in ((1.0, won), (0.0, pulls - won)):
            at = np.flatnonzero(counts)
            rows.append(labelled(sides, Counts(np.full(len(at), version - 1), at,
                                               np.full(len(at), reward), counts[at])))  # fmt: skip
        found = judge(shares, pl.concat(rows))
        shares = found.shares
        if found.any_grid["stop"]:
            break
    return found


def test_both_verdicts_find_a_clear_best() -> None:
    found = played_out([[0.5, 0.2], [0.3, 0.1]], 1, 6000, floor=0.1)
    assert found.stop
    assert found.any_grid["stop"]
    assert found.leader == {"s0": "l0", "s1": "l0"}
    assert found.lift is not None
    assert 0 < found.lift["low"] < found.lift["estimate"] < found.lift["high"]


@pytest.mark.validate
@pytest.mark.parametrize("confidence", [0.95, 0.5])
def test_near_ties_are_rarely_wrong_however_often_one_looks(confidence: float) -> None:
    """The true best level is refuted in at most α of the runs, with a look after each version."""
    means, runs = np.multiply.outer([0.7, 0.699], [0.7, 0.699, 0.699]), 200
    wrong = any_wrong = 0
    for seed in range(runs):
        found = played_out(means, seed, 20_000, confidence=confidence)
        wrong += not all(found.sides[side]["l0"]["living"] for side in ("s0", "s1"))
        stopped = found.any_grid["stop"]
        any_wrong += stopped and found.leader != {"s0": "l0", "s1": "l0"}
    alpha = 1 - confidence
    most = runs * alpha + 3 * math.sqrt(runs * alpha * (1 - alpha))
    assert wrong <= most
    assert any_wrong <= most
