"""The rivals of docs/why-bets.md are implemented correctly, and its figures are theirs."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from benchmarks import why_bets
from benchmarks.kaufmann_koolen import KaufmannKoolen, c_exp
from scipy.optimize import brentq
from scipy.stats import norm

import rank1

PAGE = Path(__file__).parent.parent / "docs/why-bets.md"
AB = "A/B, 3.6% against 3.0%"
Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize(("looks", "constant"), [(1, 1.960), (2, 1.977), (3, 2.004), (5, 2.040)])
def test_boundaries_are_those_of_the_tables(looks: int, constant: float) -> None:
    """Check O'Brien–Fleming constants for a two-sided level of 5% (Jennison, Turnbull 2000)."""
    bound = brentq(lambda b: why_bets.reaches(b, looks) - 0.025, 1, 10)
    assert bound / math.sqrt(looks) == pytest.approx(constant, abs=0.0006)


def test_the_power_against_several_levels() -> None:
    assert why_bets.beats_all(0.8416, 1) == pytest.approx(0.8, abs=1e-4)
    x = np.random.default_rng(1).standard_normal((200_000, 4))
    beaten = (x[:, :1] + math.sqrt(2) * 0.5 > x[:, 1:]).all(axis=1).mean()
    assert why_bets.beats_all(0.5, 3) == pytest.approx(beaten, abs=4 * 0.5 / math.sqrt(200_000))


def test_the_threshold_of_kaufmann_and_koolen() -> None:
    steps = np.diff([c_exp(x) for x in np.linspace(1, 30, 500)])
    assert (steps > 0).all()
    assert steps.max() < 0.15  # its two pieces meet
    assert c_exp(500.0) == pytest.approx(500, rel=0.06)  # asymptotically it is x
    evidence = KaufmannKoolen(0.05).start(rank1.Grid([3]))
    for arm, ones, zeros in ((0, 400, 200), (1, 100, 200), (2, 30, 60)):
        for reward, count in ((1.0, ones), (0.0, zeros)):
            for _ in range(count):
                evidence.learn(arm, reward)

    def divergence(s: float, f: float, m: float) -> float:
        return s * math.log(s / (s + f) / m) + f * math.log(f / (s + f) / (1 - m))

    found = divergence(400, 200, 430 / 690) + divergence(30, 60, 430 / 690)
    price = 3 * math.log(1 + math.log(600)) + 3 * math.log(1 + math.log(90))
    asked = price + 2 * c_exp(math.log(2 / 0.05) / 2)
    assert found < asked
    assert not evidence.may_stop(None)
    evidence.level[0] = found - price - 1e-9  # now both comparisons pass
    assert evidence.may_stop(None)
    evidence.level[0] = found - price + 1e-9
    assert not evidence.may_stop(None)
    assert evidence.leader() == 0


def test_a_planned_test_decides_in_four_of_five_runs() -> None:
    """And with a tie, at most 5% are wrong; both within 4 standard errors."""
    rng, runs = np.random.default_rng(1), 4000
    case = why_bets.Case(rank1.Product([[0.5, 0.4, 0.4]]))
    for looks in (1, 5):
        pulls, decided, arms = why_bets.planned(case, False, looks, runs, rng)
        assert decided.mean() == pytest.approx(0.8, abs=4 * math.sqrt(0.16 / runs) + 0.01)
        assert (arms[decided] == 0).mean() > 0.95
        assert (pulls.std() > 0) == (looks > 1)
    sides = [why_bets.sides_of(case, False)[0]._replace(gap=0.1)]
    even = why_bets.Case(rank1.Means([0.4, 0.4 - 1e-9, 0.4 - 1e-9]))
    bound = norm.isf(0.025)
    tested = why_bets.equal_split(
        even, sides, [500], lambda d, look, gaps, errors: gaps >= bound * errors, runs, rng
    )
    assert (tested.decided & (tested.arms > 0)).mean() <= 0.05 + 4 * math.sqrt(0.0475 / runs)


def test_an_always_valid_test_is_wrong_in_at_most_five_percent() -> None:
    even = why_bets.Case(rank1.Means([0.3, 0.3 - 1e-9]), n=20_000)
    side = why_bets.sides_of(why_bets.Case(rank1.Means([0.3, 0.25])), False)[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(why_bets, "sides_of", lambda case, one_order: [side])
        found = why_bets.mixture_sprt(even, False, 2000, np.random.default_rng(2))
    wrong = (found.decided & (found.arms == 1)).mean()
    assert 0.01 < wrong <= 0.05 + 4 * math.sqrt(0.0475 / 2000)


@pytest.mark.validate
def test_the_figures_of_the_page(capsys: Capture) -> None:
    for grid in (AB, "8×8 spike (.7/.5)"):
        why_bets.main(["--grid", grid])
        for line in capsys.readouterr().out.strip().splitlines():
            assert line in PAGE.read_text()
    why_bets.main(["--grid", AB, "--runs", "2", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert [row["method"] for row in told["outcomes"]][-1] == "BetElim"
