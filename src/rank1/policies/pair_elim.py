"""PairElim: eliminate rows within single columns and over all columns, and vice versa."""

from __future__ import annotations

from dataclasses import dataclass

from rank1.policies.base import Known, Policy, require_unit_rewards
from rank1.policies.pair_elim_leaps import LEAPS
from rank1.policies.pair_elim_state import PairElimState, start_pair_elim

__all__ = ["PairElim"]


@dataclass(frozen=True)
class PairElim(Policy):
    """Eliminate rows within single columns as well, and columns within single rows.

    A round plays all remaining rows in one random column, and all remaining columns in one random
    row. Each column has a process that compares the rows within it; one more process compares the
    rows over all columns. Columns are compared in the same way. A process looks when its candidates
    have ⌈4·log T·4^ℓ⌉ observations, for ℓ = 0, 1, …: it eliminates, for all processes, the
    candidates whose mean is more than 2·√(log T/observations) below the best, and the best
    replaces them.

    For rows, T is the horizon n. For columns it is 2^(2^w): after that many steps, w grows by one
    and all columns and their processes start again.

    Notes
    -----
    A gap between two rows is Δ·v_j within column j but Δ·mean(v) over all columns. If most columns
    are poor, the mean is small and the process of a good column sees the gap first, so the regret
    has no factor of one over the mean.

    When rewards are late or lost, a process looks once each of its remaining candidates has enough
    observations.

    Examples
    --------
    >>> import rank1
    >>> problem = rank1.spike(K=4, L=4, p_u=0.5, p_v=0.5, delta_u=0.4, delta_v=0.4)
    >>> result = rank1.simulate(rank1.PairElim(), problem, n=100_000, runs=3, seed=1)
    >>> result.best_pairs("pair_elim")
    [(0, 0), (0, 0), (0, 0)]

    References
    ----------
    Sentenac, Yi, Calauzènes, Perchet, Vojnović: Pure exploration and regret minimization in
    matching bandits. ICML 2021. https://arxiv.org/abs/2108.00230
    """

    name = "pair_elim"
    sides = 2
    layout = 2
    leaps = LEAPS

    @property
    def needs_all(self) -> tuple[str, ...]:
        """All pulls: a round needs equally many rewards of every row and column."""
        return ("pulls",)

    def start(self, known: Known) -> PairElimState:
        """The state before the first step."""
        self.check(known.grid)
        require_unit_rewards(self.name, known)
        return start_pair_elim(known)
