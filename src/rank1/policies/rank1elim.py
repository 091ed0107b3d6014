"""Rank1Elim, the paper's Algorithm 1."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rank1 import checks
from rank1.grid import MAX_ARMS
from rank1.policies.base import Known, Policy
from rank1.policies.elimination import EliminationState, start_elimination
from rank1.policies.stages import LEAPS

__all__ = ["Rank1Elim"]


@dataclass(frozen=True)
class Rank1Elim(Policy):
    """Eliminate rows over random columns, and columns over random rows, in growing stages.

    Parameters
    ----------
    confidence_scale
        Factor on the confidence radius √(log n / n_ℓ); 1 in the paper.

    Notes
    -----
    With unbounded noise of standard deviation σ, an observation is sub-Gaussian with variance proxy
    1/4 + σ². With s² = 1 + 4σ² the radius is s·√(log n / n_ℓ) and n_ℓ = ⌈4·s²·4^ℓ·log n⌉. Rewards
    in an interval of width w > 1, such as stars, are sub-Gaussian with w²/4: then s² = w² + 4σ²,
    and gaps are measured in units of w, so stages are as long as if rewards were divided by w.

    When rewards are late, a stage ends with the last of its rewards. Meanwhile `ask` returns pulls
    of rounds over the current survivors, which count towards the next stage.

    Examples
    --------
    >>> import rank1
    >>> problem = rank1.spike(K=4, L=4, p_u=0.5, p_v=0.5, delta_u=0.4, delta_v=0.4)
    >>> result = rank1.simulate(rank1.Rank1Elim(), problem, n=100_000, runs=3, seed=1)
    >>> result.best_pairs("rank1elim")
    [(0, 0), (0, 0), (0, 0)]

    References
    ----------
    Katariya, Kveton, Szepesvári, Vernade, Wen: Stochastic Rank-1 Bandits. AISTATS 2017.
    https://arxiv.org/abs/1608.03023
    """

    name = "rank1elim"
    sides = 2
    most_arms = MAX_ARMS
    layout = 2
    leaps = LEAPS
    confidence_scale: float = 1.0

    def __post_init__(self) -> None:
        checks.number("confidence_scale", self.confidence_scale, 0, 1e9, above=True)

    @property
    def needs_all(self) -> tuple[str, ...]:
        """All pulls: a stage needs equally many rewards of every row and column."""
        return ("pulls",)

    def start(self, known: Known) -> EliminationState:
        """The state before the first step."""
        self.check(known.grid)
        reach = known.high - known.low
        w = max(1.0, reach) if math.isfinite(reach) else 1.0
        s2 = w**2 + 4 * known.sigma**2
        log_n = math.log(known.n)
        # Stage gaps are 2^-ℓ·w; without the factor w the first stages would be missing.
        n_stage = [max(1, math.ceil(4 * s2 / w**2 * 4**stage * log_n)) for stage in range(31)]
        width = [self.confidence_scale * math.sqrt(s2 * log_n / length) for length in n_stage]
        return start_elimination(EliminationState, known, n_stage, width)
