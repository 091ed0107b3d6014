"""Thompson sampling on the K·L pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1.policies.base import Known, Policy, Records, require_unit_rewards
from rank1.policies.betas import (
    CACHES,
    count,
    is_success,
    largest,
    load_counts,
    refresh,
    start_betas,
    uniform_tag,
)

__all__ = ["ThompsonSampling"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class ThompsonState(NamedTuple):
    """Posteriors of the pairs in row-major order, and what `betas` keeps to sample from them."""

    limits: Records  # see `Known.limits`
    successes: Ints
    failures: Ints
    log_beta: Floats
    rest: Floats
    arms: Ints
    rates: Floats
    block_rates: Floats
    level: Records

    def choose(self, rng: np.random.Generator) -> tuple[int, int, int]:
        """The pair of the largest sample. The tag is a uniform number for the Bernoulli trick."""
        k, L = largest(self, rng), self.limits[0].L
        row = k // L
        return row, k - row * L, uniform_tag(rng)

    def issued(self, row: int, column: int, tag: int) -> None:
        """Nothing depends on a pull that isn't reported."""

    def load(self, row: int, column: int, count: int, total: float) -> None:
        """So many rewards are known of the pair."""
        if count > 0:
            k = row * self.limits[0].L + column
            load_counts(self, k, count, total)
            refresh(self, k)

    def update(self, row: int, column: int, tag: int, reward: float) -> None:
        """A success with probability `reward`."""
        k = row * self.limits[0].L + column
        count(self, k, is_success(tag, reward))
        refresh(self, k)

    def expects(self, row: int, column: int, tag: int) -> bool:
        """Any pull may be reported."""
        return True

    def forget(self, row: int, column: int, tag: int) -> ThompsonState:
        """Nothing depends on a pull that isn't reported."""
        return self

    def best(self) -> tuple[int, int]:
        """The largest posterior mean among the pairs with a report."""
        counts = self.successes + self.failures
        means = np.where(counts > 0, (1 + self.successes) / (2 + counts), 0.0)
        row, column = divmod(int(means.argmax()), int(self.limits[0].L))
        return row, column


@dataclass(frozen=True)
class ThompsonSampling(Policy):
    """Play each pair with the probability that it is the best one, given what was seen.

    Every pair has the posterior Beta(1 + successes, 1 + failures); the pair of the largest sample
    is played. A reward between 0 and 1 counts as a success with that probability, by a uniform
    number drawn with the pull.

    Notes
    -----
    Only samples that may win are drawn, see `rank1.policies.betas`: a step on 1024 pairs costs
    little more than one Beta sample, and the law of the choices is exactly that of drawing all.

    Examples
    --------
    >>> import rank1
    >>> problem = rank1.spike(K=4, L=4, p_u=0.5, p_v=0.5, delta_u=0.4, delta_v=0.4)
    >>> result = rank1.simulate(rank1.ThompsonSampling(), problem, n=100_000, runs=3, seed=1)
    >>> result.best_pairs("thompson")
    [(0, 0), (0, 0), (0, 0)]

    References
    ----------
    Thompson: On the likelihood that one unknown probability exceeds another in view of the evidence
    of two samples. Biometrika 1933. https://doi.org/10.1093/biomet/25.3-4.285

    Agrawal, Goyal: Analysis of Thompson sampling for the multi-armed bandit problem. COLT 2012.
    https://arxiv.org/abs/1111.1797
    """

    name = "thompson"
    layout = 2
    counts = True
    caches = CACHES

    def start(self, known: Known) -> ThompsonState:
        """The state before the first step."""
        require_unit_rewards(self.name, known)
        pairs = known.K * known.L
        fields = start_betas(pairs, pairs)
        fields["arms"][:pairs] = np.arange(pairs)
        return ThompsonState(known.limits, **fields)
