"""Rank1ElimKL: Rank1Elim with Bernoulli-KL intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rank1.divergences import kl_upper
from rank1.policies.base import Known, Policy, require_unit_rewards
from rank1.policies.elimination import EliminationState, start_elimination

__all__ = ["Rank1ElimKL"]


class KLEliminationState(EliminationState):
    """`width` is the divergence that an interval reaches to on either side."""

    __slots__ = ()

    def interval(self, stage: int, mean: float) -> tuple[float, float]:
        """All q with n_ℓ·kl(mean, q) ≤ log n + 3·log log n."""
        divergence = self.width[stage]
        return 1.0 - kl_upper(1.0 - mean, divergence), kl_upper(mean, divergence)


@dataclass(frozen=True)
class Rank1ElimKL(Policy):
    """Rank1Elim with KL intervals, which are narrow where means are near 0 or 1.

    Stage ℓ has n_ℓ = ⌈16·4^ℓ·log n⌉ observations of each line; everything else is as in Rank1Elim.
    Rewards must lie in [0, 1].

    Examples
    --------
    >>> import rank1
    >>> problem = rank1.spike(K=4, L=4, p_u=0.5, p_v=0.5, delta_u=0.4, delta_v=0.4)
    >>> result = rank1.simulate(rank1.Rank1ElimKL(), problem, n=100_000, runs=3, seed=1)
    >>> result.best_pairs("rank1elim_kl")
    [(0, 0), (0, 0), (0, 0)]

    References
    ----------
    Katariya, Kveton, Szepesvári, Vernade, Wen: Bernoulli Rank-1 Bandits for Click Feedback.
    IJCAI 2017.
    """

    name = "rank1elim_kl"
    eliminates = True

    def start(self, known: Known) -> KLEliminationState:
        """The state before the first step."""
        require_unit_rewards(self.name, known)
        log_n = math.log(known.n)
        n_stage = [max(1, math.ceil(16 * 4**stage * log_n)) for stage in range(31)]
        # log log n is negative for n < 3, where no stage ends anyway.
        level = log_n + 3 * max(0.0, math.log(log_n)) if log_n > 0 else 0.0
        width = [level / length for length in n_stage]
        return start_elimination(KLEliminationState, known, n_stage, width)
