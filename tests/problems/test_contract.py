"""What every problem must do. A new one is found through `PROBLEMS` and needs an example here."""

from __future__ import annotations

import json
import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import stats

import rank1
from rank1.problems import PROBLEMS
from rank1.problems.arms import ArmsLaw
from tests.problems.support import draws

RNG = np.random.default_rng(2)
EXAMPLES: dict[str, rank1.Problem] = {
    "spike": rank1.spike(3, 4, 0.3, 0.5, 0.4, 0.2),
    "bernoulli": rank1.Bernoulli([0.2, 0.9, 0.9], [1.0, 0.0]),
    "product": rank1.Product([[0.8, 0.6], [0.5, 0.9, 0.9], [0.7, 0.3]]),
    "means": rank1.Means(RNG.random((2, 2, 3))),
    "gaussian": rank1.Gaussian([0.2, 0.9], [0.5, 0.7], sigma=0.3),
    "factors": rank1.Factors([rank1.Beta(2, 1), 0.3], [["interval", 0.1, 0.5], ["beta", 1, 3]]),
    "categorical": rank1.Categorical([0, 0.25, 1], RNG.dirichlet([1, 1, 1], (3, 2))),
    "position_based": rank1.PositionBased([0.3, 0.7], [0.9, 0.4]),
    "campaign": rank1.Campaign({"a": 0.3, "b": 0.7}, {"x": 0.9, "y": 0.4}),
}
#: Forms of them with another number of sides.
MORE: dict[str, rank1.Problem] = {
    "one side": rank1.Product([[0.3, 0.6, 0.6]]),
    "two sides": rank1.Product([[0.3, 0.6, 0.6], [0.9, 0.2]]),
    "four sides": rank1.Product([[0.9, 0.5], [0.6, 1.0], [0.0, 0.7], [0.8, 0.4]]),
    "means of one side": rank1.Means([0.2, 0.7, 0.1]),
    "means of two sides": rank1.Means([[0.5, 0.1], [0.1, 0.52]]),
    "gaussian of three sides": rank1.Gaussian(factors=[[0.2, 0.9], [0.5, 0.7], [1, 0]], sigma=0.3),
    "categorical of one side": rank1.Categorical([0, 1, 5], RNG.dirichlet([1, 1, 1], 3)),
}
TRIED = EXAMPLES | MORE
TWO_SIDED = {name: problem for name, problem in TRIED.items() if len(problem.grid.sizes) == 2}
EVERY_PROBLEM = pytest.mark.parametrize("problem", TRIED.values(), ids=TRIED)
DRAWS = 40_000


def test_every_problem_has_an_example() -> None:
    assert set(EXAMPLES) == set(PROBLEMS)


@EVERY_PROBLEM
def test_draws_have_the_means_that_it_claims(problem: rank1.Problem) -> None:
    for arm, own in enumerate(problem.means.ravel()):
        out = draws(problem, arm, DRAWS, seed=arm)
        for k, mean in enumerate((own, problem.best_mean - own)):
            error = out[:, k].std() / math.sqrt(DRAWS)
            assert abs(out[:, k].mean() - mean) <= 4.5 * error + 1e-12
        gap = type(problem.law).gap(problem.law, arm)
        assert gap == pytest.approx(problem.best_mean - own, abs=1e-12)


@EVERY_PROBLEM
def test_realised_regret_of_the_best_arm_is_exactly_zero(problem: rank1.Problem) -> None:
    assert np.all(draws(problem, problem.best_arm, 1000, seed=1)[:, 1] == 0)


@EVERY_PROBLEM
def test_interpreted_and_compiled_draws_agree(problem: rank1.Problem) -> None:
    arm = problem.arms - 1
    compiled = draws(problem, arm, 200, seed=4)
    rng, law = np.random.default_rng(4), problem.law
    problem.refill(law, rng)
    plain = np.array([law.draw(arm, rng) for _ in range(200)])
    np.testing.assert_array_equal(plain, compiled)


@EVERY_PROBLEM
def test_draws_from_python(problem: rank1.Problem) -> None:
    reward, regret = problem.draw(0, np.random.default_rng(1))
    assert isinstance(reward, float)
    assert isinstance(regret, float)
    for arm in (-1, problem.arms):
        with pytest.raises(rank1.InputError, match=rf"arm must be in 0 … \d+, got {arm}"):
            problem.draw(arm, np.random.default_rng(1))


@EVERY_PROBLEM
def test_geometry(problem: rank1.Problem) -> None:
    assert problem.means.shape == problem.grid.sizes
    assert problem.best_mean == pytest.approx(problem.means.max())
    assert problem.lowest_mean == pytest.approx(problem.means.min())
    assert problem.means.ravel()[problem.best_arm] == pytest.approx(problem.means.max())
    assert problem.best_arm == problem.best_arms[0]


@pytest.mark.parametrize("problem", TWO_SIDED.values(), ids=TWO_SIDED)
def test_words_of_two_sides(problem: rank1.Problem) -> None:
    assert problem.means.shape == (problem.K, problem.L)
    assert problem.best_pairs == [divmod(arm, problem.L) for arm in problem.best_arms]
    assert problem.best_pair == problem.best_pairs[0]
    np.testing.assert_allclose(
        problem.row_means(np.array([0, problem.L - 1])),
        problem.means[:, [0, problem.L - 1]].mean(axis=1),
    )
    np.testing.assert_allclose(
        problem.column_means(np.array([0, 0])), problem.means[[0, 0]].mean(axis=0)
    )


@EVERY_PROBLEM
def test_the_best_arms_are_those_of_the_largest_mean(problem: rank1.Problem) -> None:
    """An arm that is best on some of its lines isn't one."""
    best = np.isclose(problem.means.ravel(), problem.means.max(), rtol=1e-12, atol=0)
    for arm in range(problem.arms):
        assert problem.is_best(arm) == best[arm]
        assert (arm in problem.best_arms) == best[arm]
        assert problem.mean(arm) == pytest.approx(problem.means.ravel()[arm])


def test_rows_columns_and_pairs_are_for_two_sides() -> None:
    for name in ("K", "L", "best_pair", "best_pairs", "u", "v", "mu"):
        with pytest.raises(rank1.InputError, match="sides must be two, rows and columns, got 3"):
            getattr(EXAMPLES["product"], name)


def test_a_product_of_two_sides_is_the_papers_model() -> None:
    u, v = [0.2, 0.9, 0.9], [1.0, 0.4]
    one, other = rank1.Product([u, v]).law, rank1.Bernoulli(u, v).law
    assert type(one) is type(other)
    for ours, theirs in zip(one, other, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("sides", [1, 3, 4])
def test_laws_by_arm_share_what_the_model_shares(sides: int) -> None:
    """P(both give 1) from the definition: factors that an arm shares with the best count once."""
    factors = [[0.8, 0.6, 0.3], [0.5, 0.9], [0.7, 0.2], [0.6, 0.95]][:sides]
    problem = rank1.Product(factors)
    law, best = problem.law, problem.grid.levels(problem.best_arm)
    assert isinstance(law, ArmsLaw)
    for arm in range(problem.arms):
        levels, right = problem.grid.levels(arm), 1.0
        for side, level, top in zip(factors, levels, best, strict=True):
            right *= side[top] if level == top else side[level] * side[top]
        joint = law.joint[arm]
        if joint < 0:
            assert all(level != top for level, top in zip(levels, best, strict=True))
            joint = law.means[arm] * problem.best_mean
        assert joint == pytest.approx(right)


RANK_ONE = {name: p for name, p in TWO_SIDED.items() if isinstance(p, rank1.RankOne)}


@pytest.mark.parametrize("problem", RANK_ONE.values(), ids=RANK_ONE)
def test_rank_one_problems_are_what_their_factors_say(problem: rank1.RankOne) -> None:
    assert problem.means.tolist() == [[u * v for v in problem.v] for u in problem.u]
    assert problem.row_gaps.tolist() == [problem.u.max() - u for u in problem.u]
    assert problem.column_gaps.tolist() == [problem.v.max() - v for v in problem.v]
    for least, gaps in (
        (problem.min_row_gap, problem.row_gaps),
        (problem.min_column_gap, problem.column_gaps),
    ):
        assert least == min((gap for gap in gaps if gap > 0), default=math.inf)
    assert problem.mu == pytest.approx(min(sum(problem.u) / problem.K, sum(problem.v) / problem.L))


def test_only_grids_of_factors_have_factors() -> None:
    assert set(EXAMPLES) - set(RANK_ONE) == {"categorical", "means", "product"}
    for name in ("u", "v", "row_gaps", "column_gaps", "min_row_gap", "min_column_gap", "mu"):
        assert not hasattr(EXAMPLES["categorical"], name)


def test_large_sides_need_no_grid() -> None:
    problem = rank1.spike(2**20, 2**20, 0.3, 0.5, 0.4, 0.2)
    assert problem.best_pair == (0, 0)
    assert problem.best_pairs == [(0, 0)]
    assert problem.is_best(0)
    assert not problem.is_best(2**20 - 1)
    assert problem.lowest_mean == pytest.approx(0.15)
    assert problem.row_means(np.arange(4))[0] == pytest.approx(0.7 * (0.7 + 3 * 0.5) / 4)
    assert repr(problem) == "<spike 1048576×1048576, best arm (0, 0), mean 0.49>"
    result = rank1.simulate(rank1.Rank1Elim(), problem, 10, 1)
    assert result.outcomes[0].expected[0, -1] <= 10 * 0.34 + 1e-9
    assert "means" not in vars(problem)


class Worn(NamedTuple):
    """A law of somebody's own, with a parameter beside the means."""

    means: Any
    wear: float

    def gap(self, arm: int) -> float:
        return self.means[0] - self.means[arm]

    def draw(self, arm: int, rng: np.random.Generator) -> tuple[float, float]:
        reward = self.means[arm] + self.wear * (rng.random() - 0.5)
        return reward, self.means[0] - reward


class Torn(Worn):
    """The same fields under another name."""


class Own(rank1.Problem):
    """A problem of somebody's own: nothing but what the documentation asks for."""

    def __init__(self, wear: float, law: type[Worn] = Worn) -> None:
        self.means = np.array([[0.5, 0.25], [0.125, 0.0]])
        self.description = {"name": "own", "settings": {"wear": wear}}
        self.wear, self.kind = wear, law

    @property
    def law(self) -> Worn:
        return self.kind(self.means.ravel(), self.wear)


def test_a_problem_of_ones_own_needs_means_a_law_and_a_description() -> None:
    problem = Own(0.1)
    assert (problem.K, problem.L, problem.best_pair) == (2, 2, (0, 0))
    assert not problem.has_tallies
    result = rank1.simulate(rank1.Rank1Elim(), problem, 2000, 2)
    assert result.summary()["found"].to_list() == [1.0]
    with pytest.raises(
        rank1.InputTypeError, match="problem must be a problem with a law, got 'Problem'"
    ):
        _ = rank1.Problem().law
    with pytest.raises(rank1.InputTypeError, match="problem must be a problem with means"):
        _ = rank1.Problem().means


def test_seeds_tell_problems_apart_by_all_that_their_law_holds() -> None:
    digests = [
        problem.digest
        for problem in (
            Own(0.1),
            Own(0.2),
            Own(0.1, Torn),
            rank1.Bernoulli([0.5, 0.2], [0.3]),
            rank1.Bernoulli([0.5], [0.2, 0.3]),
            rank1.Gaussian([0.5, 0.2], [0.3], 0.5),
            rank1.Gaussian([0.5, 0.2], [0.3], 0.6),
            rank1.Factors([0.5, 0.2], [0.3]),
            rank1.Factors([0.5, 0.2], [["discrete", [0.3], [1.0]]]),
            rank1.Factors([0.5, 0.2], rank1.Sampler(lambda size, rng: None, [0.3])),  # type: ignore[arg-type, return-value]
            rank1.Factors([0.5, 0.2], rank1.Sampler(lambda size, rng: None, [0.3], "b")),  # type: ignore[arg-type, return-value]
            rank1.Categorical([0, 1], [[[0.85, 0.15]], [[0.94, 0.06]]]),
            rank1.Categorical([0, 2], [[[0.85, 0.15]], [[0.94, 0.06]]]),
        )
    ]
    assert len(set(digests)) == len(digests)
    assert Own(0.1).digest == digests[0]


def test_a_law_that_is_filled_in_blocks_must_say_what_tells_it_apart() -> None:
    problem = Own(0.1)
    problem.block = 10
    with pytest.raises(
        rank1.InputTypeError, match="problem must be one with a property `given` that"
    ):
        _ = problem.digest


def test_given_holds_no_objects() -> None:
    class Strange(Own):
        @property
        def given(self) -> tuple[Any, ...]:
            return (object(),)

    with pytest.raises(rank1.InputTypeError, match="given must be of strings, numbers and arrays"):
        _ = Strange(0.1).digest


@EVERY_PROBLEM
def test_description_builds_it_again(problem: rank1.Problem) -> None:
    about = json.loads(json.dumps(problem.description, allow_nan=False))
    again = PROBLEMS[about["name"]](**about["settings"])
    np.testing.assert_array_equal(again.means, problem.means)


def test_ties_and_zeros() -> None:
    tied = rank1.Bernoulli([0.5, 0.9, 0.9], [0.2, 0.2])
    assert tied.best_pairs == [(1, 0), (1, 1), (2, 0), (2, 1)]
    assert tied.best_pair == (1, 0)
    assert tied.min_column_gap == math.inf
    nothing = rank1.Bernoulli([0.0, 0.5], [0.0, 0.0])
    assert nothing.best_pair == (0, 0)
    assert len(nothing.best_pairs) == 4
    assert nothing.mu == 0


def test_labels() -> None:
    campaign = rank1.Campaign({"old": 0.1, "young": 0.2}, {"mail": 0.5})
    assert campaign.labels == [["old", "young"], ["mail"]]
    assert campaign.best_labels == ("young", "mail")


NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: rank1.Bernoulli([0.5, NAN], [0.5]), r"u\[1\] must be a number in .*, got nan"),
        (lambda: rank1.Bernoulli([0.5], [INF]), r"v\[0\] must be a number in \[0, 1\], got inf"),
        (lambda: rank1.Bernoulli([0.5], [-0.1]), r"v\[0\] must be .* got -0.1"),
        (lambda: rank1.Bernoulli([], [0.5]), "u must be a list of at least one number"),
        (lambda: rank1.Bernoulli([[0.5]], [0.5]), "u must be a list of at least one number"),
        (lambda: rank1.Bernoulli(["x"], [0.5]), "u must be a list of numbers"),
        (lambda: rank1.spike(0, 1, 0.1, 0.1, 0.1, 0.1), "K must be a whole number of at least 1"),
        (lambda: rank1.spike(1, 2.5, 0.1, 0.1, 0.1, 0.1), "L must be a whole number"),  # type: ignore[arg-type]
        (lambda: rank1.spike(1, 1, 1.1, 0.1, 0.1, 0.1), "p_u must be .* at most 1, got 1.1"),
        (lambda: rank1.spike(1, 1, 0.9, 0.1, 0.2, 0.1), "p_u . delta_u must be at most 1"),
        (lambda: rank1.spike(1, 1, 0.9, 0.1, 0.1, NAN), "delta_v must be a number"),
        (lambda: rank1.Gaussian([0.5], [0.5], 0), "sigma must be a number above 0 .*, got 0"),
        (lambda: rank1.Gaussian([0.5], [0.5], INF), "sigma must be .*, got inf"),
        (lambda: rank1.Categorical([0, 1], [[[0.5, 0.4]]]), "numbers that add up to 1, got 0.9"),
        (lambda: rank1.Categorical([0, 1], [[[1.5, -0.5]]]), r"probabilities\[0, 0, 0\] must be"),
        (lambda: rank1.Categorical([0, 1], [0.5, 0.5]), r"then one of length 2, got shape \(2,\)"),
        (lambda: rank1.Categorical([0, NAN], [[[1, 0]]]), r"values\[1\] must be a number"),
        (lambda: rank1.Campaign([0.5], {"a": 0.5}), "segments must be a mapping from labels"),  # type: ignore[arg-type]
        (lambda: rank1.PositionBased([2.0], [0.5]), r"attraction\[0\] must be a number"),
        (lambda: rank1.Factors([], [0.5]), "u_law must be a Sampler or a list"),
        (lambda: rank1.Factors([["gamma", 1]], [0.5]), r"u_law\[0\]\[0\] must be one of beta"),
        (lambda: rank1.Factors([["beta", 0, 1]], [0.5]), r"u_law\[0\]: a must be a number above 0"),
        (lambda: rank1.Factors([stats.norm()], [0.5]), r"u_law\[0\] must be a law on \[0, 1\]"),
        (lambda: rank1.Factors([None], [0.5]), r"u_law\[0\] must be a Beta"),
        (lambda: rank1.Discrete([0, 1], [0.5]), "probabilities must be 2 numbers"),
        (lambda: rank1.Discrete([0, 1], [0.5, 0.2]), "numbers that add up to 1, got 0.7"),
        (lambda: rank1.Product([]), "factors must be lists of factors for 1 to 16 sides, got 0"),
        (lambda: rank1.Product([[0.5]] * 17), "1 to 16 sides, got 17"),
        (lambda: rank1.Product([[0.5], []]), r"factors\[1\] must be a list of at least one number"),
        (lambda: rank1.Product([[0.5], [[0.5]]]), r"factors\[1\] must be a list"),
        (lambda: rank1.Product([[0.5], [0.5, 1.2]]), r"factors\[1\]\[1\] must be .*, got 1.2"),
        (lambda: rank1.Product([[0.5] * 1000] * 3), "few enough .* got 1,000,000,000"),
        (lambda: rank1.Product("abc"), "factors must be a list of factors for each side"),
        (lambda: rank1.Means([[0.5], [0.5, 0.1]]), "are the lists of equal length"),
        (lambda: rank1.Means(0.5), "got 0 axes"),
        (lambda: rank1.Means([[], []]), "side 1 must be a side of at least 1 level, got 0"),
        (lambda: rank1.Means([[0.5, 1.2]]), r"means\[0, 1\] must be a number in \[0, 1\], got 1.2"),
        (lambda: rank1.Means([[0.5, NAN]]), r"means\[0, 1\] must be .*, got nan"),
        (lambda: rank1.Gaussian([0.5], [0.5], 1, factors=[[1]]), "None if u and v are given"),
        (lambda: rank1.Gaussian(sigma=1), "u must be a list of at least one number"),
        (lambda: rank1.Interval(0.5, 0.2), "high must be a number of at least 0.5"),
    ],
)  # fmt: skip
def test_bad_input(make: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        make()


def test_a_sampler_must_keep_its_word() -> None:
    rng = np.random.default_rng(1)
    wrong_shape = rank1.Factors(rank1.Sampler(lambda size, rng: np.zeros(size), [0.5]), [0.5])
    with pytest.raises(
        ValueError, match=r"the array from the sampler of u_law must be an array of shape"
    ):
        wrong_shape.draw(0, rng)
    outside = rank1.Factors(rank1.Sampler(lambda size, rng: np.full((size, 1), 2.0), [0.5]), [0.5])
    with pytest.raises(ValueError, match=r"a draw of u_law must be a number in \[0, 1\], got 2.0"):
        outside.draw(0, rng)
