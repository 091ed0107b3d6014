"""A readable version of each algorithm, to read beside its paper and to compare with.

`LITERAL` has them by the policy's name. Each is called with a `Known` and the policy's settings,
and returns an object with two methods:

- `choose(rng)`: the next pull, as arm and tag,
- `update(arm, tag, reward)`: its reward, before `choose` is called again.

They follow the definitions: all indices, all samples, a whole inverse in every step. The policies
make the same choices from the same random numbers (`thompson` and `uts`: choices with the same
law), much faster; tests compare the two, and benchmarks time both. `uniform` and `oracle` are
already as plain as possible, and have no second version.

Some are NamedTuples of arrays whose methods also compile, for benchmarks and long comparisons.
Those of UCB1, KL-UCB, IMED-UB and TopTwo accept late rewards, too, and have a `forget`.

>>> import numpy as np, rank1
>>> literal = LITERAL["ucb1"](rank1.Known(K=2, L=2, n=100), confidence=1.5)
>>> rng = np.random.default_rng(1)
>>> for _ in range(5):
...     arm, tag = literal.choose(rng)
...     literal.update(arm, tag, reward=float(arm == 2))
>>> arm
2
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from rank1.literal.bet_elim import LiteralBetElim
from rank1.literal.factor_ts import LiteralFactorTS
from rank1.literal.glm_ucb import LiteralGLMUCB
from rank1.literal.id_ts import LiteralIdTS
from rank1.literal.imed_ub import literal_imed_ub
from rank1.literal.kl_ucb import literal_kl_ucb
from rank1.literal.linucb import LiteralLinUCB
from rank1.literal.osub import literal_osub
from rank1.literal.pair_elim import LiteralPairElim
from rank1.literal.rank1elim import LiteralRank1Elim
from rank1.literal.rank1elim_kl import LiteralRank1ElimKL
from rank1.literal.thompson import literal_thompson
from rank1.literal.top_two import literal_top_two
from rank1.literal.ucb1 import literal_ucb1
from rank1.literal.uts import literal_uts

__all__ = ["LITERAL", "Literal"]


class Literal(Protocol):
    """The methods of every literal version."""

    def choose(self, rng: np.random.Generator) -> tuple[int, int]:
        """The next pull, as arm and tag."""

    def update(self, arm: int, tag: int, reward: float) -> None:
        """Learn the reward of the last pull."""


#: Called as `LITERAL[policy.name](known, **policy.settings)`.
LITERAL: dict[str, Callable[..., Literal]] = {
    "rank1elim": LiteralRank1Elim,
    "rank1elim_kl": LiteralRank1ElimKL,
    "ucb1": literal_ucb1,
    "linucb": LiteralLinUCB,
    "glm_ucb": LiteralGLMUCB,
    "kl_ucb": literal_kl_ucb,
    "thompson": literal_thompson,
    "uts": literal_uts,
    "factor_ts": LiteralFactorTS,
    "osub": literal_osub,
    "imed_ub": literal_imed_ub,
    "top_two": literal_top_two,
    "bet_elim": LiteralBetElim,
    "id_ts": LiteralIdTS,
    "pair_elim": LiteralPairElim,
}
