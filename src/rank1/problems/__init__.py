"""Problems to play. To add one, write a new file and add a line here."""

import inspect as _inspect
import re as _re
from collections.abc import Callable as _Callable

# The order here is the order in which they are listed.
# isort: off
from rank1.problems.bernoulli import spike as spike
from rank1.problems.bernoulli import Bernoulli as Bernoulli
from rank1.problems.bernoulli import Product as Product
from rank1.problems.arms import Means as Means
from rank1.problems.gaussian import Gaussian as Gaussian
from rank1.problems.factors import Factors as Factors
from rank1.problems.categorical import Categorical as Categorical
from rank1.problems.bernoulli import PositionBased as PositionBased
from rank1.problems.bernoulli import Campaign as Campaign
# isort: on

from rank1.problems.base import Problem as Problem
from rank1.problems.laws import Beta as Beta
from rank1.problems.laws import Discrete as Discrete
from rank1.problems.laws import Interval as Interval
from rank1.problems.laws import Sampler as Sampler
from rank1.problems.rank_one import RankOne as RankOne

#: Every problem by its name on the command line: PositionBased is position_based.
PROBLEMS: dict[str, _Callable[..., Problem]] = {
    _re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower(): value
    for name, value in list(vars().items())
    if not name.startswith("_")
    and value not in (Problem, RankOne)
    and (_inspect.isfunction(value) or (_inspect.isclass(value) and issubclass(value, Problem)))
}
