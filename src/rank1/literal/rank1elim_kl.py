"""Rank1ElimKL, literally: Algorithm 1 of Rank1Elim with longer stages and KL intervals.

Katariya, Kveton, Szepesvári, Vernade, Wen: Bernoulli Rank-1 Bandits for Click Feedback. IJCAI 2017.
"""

from __future__ import annotations

import math

from rank1.literal.divergence import exploration_level, lower_end, upper_end
from rank1.literal.rank1elim import LiteralRank1Elim
from rank1.policies.base import Known


class LiteralRank1ElimKL(LiteralRank1Elim):
    """An interval has all q with n_ℓ·kl(mean, q) ≤ log n + 3·log log n."""

    def __init__(self, known: Known) -> None:
        super().__init__(known)

    def stage_length(self, gap: float) -> int:
        return max(1, math.ceil(16 * gap**-2 * math.log(self.n)))

    def upper(self, mean: float, n_stage: int) -> float:
        return float(upper_end(mean, n_stage, exploration_level(self.n, 3.0)))

    def lower(self, mean: float, n_stage: int) -> float:
        return float(lower_end(mean, n_stage, exploration_level(self.n, 3.0)))
