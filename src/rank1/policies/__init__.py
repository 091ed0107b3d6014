"""Policies: one file each. A new one is a new file and a line here."""

from __future__ import annotations

from rank1.policies.base import Known, Policy, Pull, ask, tell
from rank1.policies.kl_ucb import KLUCB
from rank1.policies.oracle import Oracle
from rank1.policies.rank1elim import Rank1Elim
from rank1.policies.ucb1 import UCB1
from rank1.policies.uniform import Uniform

__all__ = [
    "KLUCB",
    "POLICIES",
    "UCB1",
    "Known",
    "Oracle",
    "Policy",
    "Pull",
    "Rank1Elim",
    "Uniform",
    "ask",
    "tell",
]

#: Every policy by its name on the command line.
POLICIES: dict[str, type[Policy]] = {
    cls.name: cls for cls in (Rank1Elim, UCB1, KLUCB, Uniform, Oracle)
}
