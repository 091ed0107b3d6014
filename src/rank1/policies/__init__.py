"""Policies: one file each. A new one is a new file and a line here."""

from __future__ import annotations

from rank1.policies.base import Known, Policy, Pull, ask, tell
from rank1.policies.glm_ucb import GLMUCB
from rank1.policies.kl_ucb import KLUCB
from rank1.policies.linucb import LinUCB
from rank1.policies.oracle import Oracle
from rank1.policies.osub import OSUB
from rank1.policies.rank1elim import Rank1Elim
from rank1.policies.rank1elim_kl import Rank1ElimKL
from rank1.policies.thompson import ThompsonSampling
from rank1.policies.ucb1 import UCB1
from rank1.policies.uniform import Uniform
from rank1.policies.uts import UTS

__all__ = [
    "GLMUCB",
    "KLUCB",
    "OSUB",
    "POLICIES",
    "UCB1",
    "UTS",
    "Known",
    "LinUCB",
    "Oracle",
    "Policy",
    "Pull",
    "Rank1Elim",
    "Rank1ElimKL",
    "ThompsonSampling",
    "Uniform",
    "ask",
    "tell",
]

#: Every policy by its name on the command line.
POLICIES: dict[str, type[Policy]] = {
    cls.name: cls
    for cls in (
        Rank1Elim,
        Rank1ElimKL,
        UCB1,
        LinUCB,
        GLMUCB,
        KLUCB,
        ThompsonSampling,
        UTS,
        OSUB,
        Uniform,
        Oracle,
    )
}
