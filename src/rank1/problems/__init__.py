"""Problems: what is played. A new one is a new file and a line here."""

from __future__ import annotations

from collections.abc import Callable

from rank1.problems.base import Problem
from rank1.problems.bernoulli import Bernoulli, Campaign, PositionBased, spike
from rank1.problems.categorical import Categorical
from rank1.problems.factors import Factors
from rank1.problems.gaussian import Gaussian
from rank1.problems.laws import Beta, Discrete, Interval, Sampler
from rank1.problems.rank_one import RankOne
from rank1.problems.shuffled import Shuffled

__all__ = [
    "PROBLEMS",
    "Bernoulli",
    "Beta",
    "Campaign",
    "Categorical",
    "Discrete",
    "Factors",
    "Gaussian",
    "Interval",
    "PositionBased",
    "Problem",
    "RankOne",
    "Sampler",
    "Shuffled",
    "spike",
]

#: Every problem by its name on the command line.
PROBLEMS: dict[str, Callable[..., Problem]] = {
    "spike": spike,
    "bernoulli": Bernoulli,
    "gaussian": Gaussian,
    "factors": Factors,
    "categorical": Categorical,
    "position_based": PositionBased,
    "campaign": Campaign,
}
