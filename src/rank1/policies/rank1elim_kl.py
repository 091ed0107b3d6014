"""Rank1ElimKL: Rank1Elim with Bernoulli-KL intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rank1 import checks
from rank1.divergences import kl_level, kl_upper
from rank1.errors import InputError
from rank1.grid import MAX_ARMS
from rank1.policies.base import Known, Policy, require_unit_rewards
from rank1.policies.elimination import EliminationState, start_elimination
from rank1.policies.stages import LEAPS

__all__ = ["Rank1ElimKL"]


class KLEliminationState(EliminationState):
    """`width` is the divergence that an interval reaches on either side.

    If `width` is negative, the level depends on the time at which the stage ends. Compiled code is
    the same in both cases.
    """

    __slots__ = ()

    def interval(self, stage: int, mean: float, partners: int) -> tuple[float, float]:
        """All q with n_ℓ·kl(mean, q) ≤ log n + 3·log log n.

        If the level depends on time: all q with N·kl(mean, q) ≤ log t + log log t, where N counts
        each cell once more.
        """
        divergence = self.width[stage]
        if divergence < 0.0:
            length = self.n_stage[stage]
            count = length + partners
            mean *= length / count
            divergence = kl_level(self.at[0].reported, 1.0) / count
        return 1.0 - kl_upper(1.0 - mean, divergence), kl_upper(mean, divergence)


@dataclass(frozen=True)
class Rank1ElimKL(Policy):
    """Rank1Elim with KL intervals, which are narrow for means near 0 or 1.

    Stage ℓ has n_ℓ = ⌈16·4^ℓ·log n⌉ observations of each line; everything else is as in Rank1Elim.
    Rewards must lie in [0, 1].

    Parameters
    ----------
    level
        The bound on n_ℓ·kl within an interval. "horizon": log n + 3·log log n, as printed in the
        paper. "time": log t + log log t at step t, with counts that start at one per cell, as in
        its authors' program. "scaled": 1.1·log n, as in the program of Trinh et al.
    shrink
        The factor by which the gap shrinks from stage to stage, above 1:
        n_ℓ = ⌈16·shrink^(2ℓ)·log n⌉. Trinh et al. use 1.5.

    Examples
    --------
    >>> import rank1
    >>> problem = rank1.spike(K=4, L=4, p_u=0.5, p_v=0.5, delta_u=0.4, delta_v=0.4)
    >>> result = rank1.simulate(rank1.Rank1ElimKL(), problem, n=100_000, runs=3, seed=1)
    >>> result.best_pairs("rank1elim_kl")
    [(0, 0), (0, 0), (0, 0)]

    References
    ----------
    Katariya, Kveton, Szepesvári, Vernade, Wen: Bernoulli Rank-1 Bandits for Click Feedback. IJCAI
    2017. https://arxiv.org/abs/1703.06513

    Trinh, Kaufmann, Vernade, Combes: Solving Bernoulli rank-one bandits with unimodal Thompson
    sampling. ALT 2020. https://arxiv.org/abs/1912.03074
    """

    name = "rank1elim_kl"
    sides = 2
    most_arms = MAX_ARMS
    layout = 3
    leaps = LEAPS
    level: str = "horizon"
    shrink: float = 2.0

    def __post_init__(self) -> None:
        checks.one_of("level", self.level, ("horizon", "time", "scaled"))
        checks.number("shrink", self.shrink, 1, 1000, above=True)

    @property
    def needs_all(self) -> tuple[str, ...]:
        """All pulls: a stage needs equally many rewards of every row and column."""
        return ("pulls",)

    def start(self, known: Known) -> EliminationState:
        """The state before the first step."""
        self.check(known.grid)
        require_unit_rewards(self.name, known)
        log_n = math.log(known.n)
        n_stage = [
            max(1, math.ceil(16 * self.shrink ** (2 * stage) * log_n)) for stage in range(31)
        ]
        if 2 * n_stage[-1] <= known.n:
            raise InputError(
                "shrink",
                self.shrink,
                f"larger for n={known.n:,}",
                f"nothing would be eliminated after the last of the {len(n_stage)} stages",
            )
        # log log n is negative for n < 3, where no stage ends anyway.
        level = log_n + 3 * max(0.0, math.log(log_n)) if log_n > 0 else 0.0
        if self.level == "scaled":
            level = 1.1 * log_n
        width = [-1.0 if self.level == "time" else level / length for length in n_stage]
        return start_elimination(KLEliminationState, known, n_stage, width)
