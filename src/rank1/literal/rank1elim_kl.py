"""Rank1ElimKL, literally: Algorithm 1 of Rank1Elim with longer stages and KL intervals.

Katariya, Kveton, Szepesvári, Vernade, Wen: Bernoulli Rank-1 Bandits for Click Feedback. IJCAI 2017.
"""

from __future__ import annotations

import math

from rank1.literal.divergence import exploration_level, lower_end, upper_end
from rank1.literal.rank1elim import LiteralRank1Elim
from rank1.policies.base import Known


class LiteralRank1ElimKL(LiteralRank1Elim):
    """An interval contains all q with n_ℓ·kl(mean, q) ≤ log n + 3·log log n.

    level="time" and level="scaled" follow two programs that were published with papers.
    """

    def __init__(self, known: Known, level: str = "horizon", shrink: float = 2.0) -> None:
        super().__init__(known)
        self.level, self.shrink = level, shrink
        self.first_count = 1 if level == "time" else 0

    def stage_length(self, gap: float) -> int:
        stage = round(-math.log2(gap))  # Rank1Elim's gaps are 1, 1/2, 1/4 …
        return max(1, math.ceil(16 * self.shrink ** (2 * stage) * math.log(self.n)))

    def reach(self) -> float:
        if self.level == "time":
            return float(exploration_level(self.t, 1.0))
        if self.level == "scaled":
            return 1.1 * math.log(self.n)
        return float(exploration_level(self.n, 3.0))

    def upper(self, mean: float, n_stage: int) -> float:
        return float(upper_end(mean, n_stage, self.reach()))

    def lower(self, mean: float, n_stage: int) -> float:
        return float(lower_end(mean, n_stage, self.reach()))
