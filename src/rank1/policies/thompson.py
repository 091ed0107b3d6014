"""Thompson sampling on all arms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1.policies.base import Known, Policy, Records, Simple, require_unit_rewards
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


class _Arrays(NamedTuple):
    limits: Records  # see `Known.limits`
    successes: Ints
    failures: Ints
    log_beta: Floats
    rest: Floats
    arms: Ints
    rates: Floats
    block_rates: Floats
    level: Records


class ThompsonState(_Arrays, Simple):
    """Posteriors of the arms, and the arrays that `betas` needs to sample from them."""

    caches = CACHES

    def choose(self, rng: np.random.Generator) -> tuple[int, int]:
        """The arm with the largest sample. The tag is a uniform number for the Bernoulli trick."""
        arm = largest(self, rng)
        return arm, uniform_tag(rng)

    def load(self, arm: int, count: int, total: float) -> None:
        """Count the rewards."""
        if count > 0:
            load_counts(self, arm, count, total)
            refresh(self, arm)

    def update(self, arm: int, tag: int, reward: float) -> None:
        """Count a success with probability `reward`."""
        count(self, arm, is_success(tag, reward))
        refresh(self, arm)

    def best(self) -> int:
        """The arm with the largest posterior mean, among the arms with a report."""
        counts = self.successes + self.failures
        return int(np.where(counts > 0, (1 + self.successes) / (2 + counts), 0.0).argmax())


@dataclass(frozen=True)
class ThompsonSampling(Policy):
    """Play each arm with its posterior probability of being the best.

    Every arm has the posterior Beta(1 + successes, 1 + failures); the arm with the largest sample
    is played. A reward between 0 and 1 counts as a success with that probability, decided by a
    uniform number drawn with the pull.

    Notes
    -----
    Only samples that can win are drawn, see `rank1.policies.betas`: a step on 1024 arms costs
    little more than one Beta sample, and choices have exactly the same law as with all samples.

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
    layout = 3

    def start(self, known: Known) -> ThompsonState:
        """The state before the first step."""
        self.check(known.grid)
        require_unit_rewards(self.name, known)
        fields = start_betas(known.arms, known.arms)
        fields["arms"][: known.arms] = np.arange(known.arms)
        return ThompsonState(known.limits, **fields)
