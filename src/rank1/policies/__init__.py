"""Policies, one file each. To add one, write a new file and add a line here."""

# The order here is the order in which they are listed.
# isort: off
from rank1.policies.rank1elim import Rank1Elim as Rank1Elim
from rank1.policies.rank1elim_kl import Rank1ElimKL as Rank1ElimKL
from rank1.policies.ucb1 import UCB1 as UCB1
from rank1.policies.linucb import LinUCB as LinUCB
from rank1.policies.glm_ucb import GLMUCB as GLMUCB
from rank1.policies.kl_ucb import KLUCB as KLUCB
from rank1.policies.thompson import ThompsonSampling as ThompsonSampling
from rank1.policies.uts import UTS as UTS
from rank1.policies.factor_ts import FactorTS as FactorTS
from rank1.policies.osub import OSUB as OSUB
from rank1.policies.imed_ub import IMEDUB as IMEDUB
from rank1.policies.top_two import TopTwo as TopTwo
from rank1.policies.bet_elim import BetElim as BetElim
from rank1.policies.id_ts import IdTS as IdTS
from rank1.policies.pair_elim import PairElim as PairElim
from rank1.policies.uniform import Uniform as Uniform
from rank1.policies.oracle import Oracle as Oracle
# isort: on

from rank1.policies.base import Known as Known
from rank1.policies.base import Policy as Policy
from rank1.policies.base import Pull as Pull
from rank1.policies.base import State as State
from rank1.policies.base import Truth as Truth
from rank1.policies.live import ask as ask
from rank1.policies.live import tell as tell
from rank1.policies.live import warm_up as warm_up
from rank1.policies.snapshots import restore as restore
from rank1.policies.snapshots import snapshot as snapshot

#: The default policy of a study, by its goal.
DEFAULT_POLICY = {"earn": "uts", "find": "top_two"}

#: Every policy by its name on the command line.
POLICIES: dict[str, type[Policy]] = {
    value.name: value
    for value in list(vars().values())
    if isinstance(value, type) and issubclass(value, Policy) and value is not Policy
}
