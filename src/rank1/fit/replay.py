"""The law of the deviance under the fit, by replaying the data's design."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rank1 import checks
from rank1.counts import table
from rank1.errors import InputError, InputTypeError
from rank1.fit.model import Fit, fit, products

__all__ = ["Replay", "fixed_design", "p_value"]

Floats = NDArray[np.float64]

#: p-values below this are worth the double bootstrap.
CORRECTED = 0.1
#: Successes and failures that the design of some data gives on a grid with these means.
Replay = Callable[[Floats, np.random.Generator], tuple[ArrayLike, ArrayLike]]


def fixed_design(trials: ArrayLike) -> Replay:
    """A replay for data whose numbers of trials were fixed in advance, as in an A/B test.

    Parameters
    ----------
    trials
        Whole numbers, in an array with one axis per side.

    Examples
    --------
    >>> import numpy as np
    >>> from rank1 import fit
    >>> replay = fit.fixed_design([[10, 20]])
    >>> replay(np.array([[0.0, 1.0]]), np.random.default_rng(1))
    (array([[ 0, 20]]), array([[10,  0]]))
    """
    given = table("trials", trials)
    whole = given.astype(np.int64)
    if (whole != given).any():
        hint = "pass your own replay for other rewards"
        raise InputError("trials", float(given[whole != given][0]), "whole numbers", hint)

    def replay(means: Floats, rng: np.random.Generator) -> tuple[ArrayLike, ArrayLike]:
        won = rng.binomial(whole, np.clip(means, 0.0, 1.0))
        return won, whole - won

    return replay


def p_value(
    found: Fit, replay: Replay, B: int = 199, seed: int = 1, *, double: bool = False
) -> float:
    """The probability of a deviance this large on the fitted grid, by replaying the design.

    p = (1 + #{D_b ≥ D})/(1 + B). If a policy chose the arms, the law of D isn't χ², so `replay` has
    to play that policy for the same number of reports.

    Parameters
    ----------
    found
        A fit.
    replay
        `replay(means, rng)` returns the successes and failures of one repetition on a grid with
        these means; `fixed_design(trials)` makes one.
    B
        Number of repetitions.
    seed
        The seed of the repetitions.
    double
        Whether to raise a p below 0.1 to that of the fast double bootstrap, for designs under which
        the law of D depends on the means: each repetition is fitted and replayed once; then D is
        replaced by the deviance that as many of these exceed as repetitions exceed D. It is never
        lowered, because the second round adds noise.

    Examples
    --------
    >>> from rank1 import datasets, fit
    >>> table = datasets.hillstrom()
    >>> found = fit.fit(table.successes, table.failures)
    >>> fit.p_value(found, fit.fixed_design(table.trials)) > 0.05
    True

    References
    ----------
    Davidson, MacKinnon: Improving the reliability of bootstrap tests with the fast double
    bootstrap. Computational Statistics & Data Analysis 2007.
    https://doi.org/10.1016/j.csda.2006.04.001
    """
    if not isinstance(found, Fit):
        raise InputTypeError("found", found, "a Fit, as fit(…) returns")
    if not callable(replay):
        asked = "a function of means and a generator, such as fixed_design(trials)"
        raise InputTypeError("replay", replay, asked)
    B, seed = checks.integer("B", B, 1), checks.integer("seed", seed, 0)
    rng = np.random.default_rng(seed)
    deviances, factors = np.zeros(B), []
    for b in range(B):
        again = fit(*replay(found.means, rng))
        deviances[b] = again.deviance
        factors.append(again.factors)
    larger = _exceeding(deviances, found.deviance)
    if double and 0 < larger < CORRECTED * B:
        second = [fit(*replay(products(each), rng)).deviance for each in factors]
        larger = max(larger, _exceeding(deviances, sorted(second)[-larger]))
    return (1 + larger) / (1 + B)


def _exceeding(deviances: Floats, limit: float) -> int:
    """How many are at least as large; equal data must count as equal despite rounding."""
    return int((deviances >= limit - 1e-9 * (1 + limit)).sum())
