"""Stochastic rank-1 bandits: find the best pair of a grid from noisy feedback.

A *problem* is a grid of K rows and L columns whose mean rewards are u[i]·v[j]; a *policy* chooses a
pair in each step. Both are immutable values: `rank1.spike(…)`, `rank1.Rank1Elim()`.

Examples
--------
Simulate, and look at what came out:

>>> import rank1
>>> problem = rank1.spike(K=4, L=4, p_u=0.5, p_v=0.5, delta_u=0.4, delta_v=0.4)
>>> policies = [rank1.Rank1Elim(), rank1.UTS()]
>>> result = rank1.simulate(policies, problem, n=20_000, runs=5, seed=1)
>>> result.best_pairs("uts")
[(0, 0), (0, 0), (0, 0), (0, 0), (0, 0)]

Play a live grid, one pull at a time; rewards may come late, in any order or never:

>>> import numpy as np
>>> state = rank1.UTS().start(rank1.Known(K=4, L=4, n=20_000))
>>> pull = rank1.ask(state, np.random.default_rng(1))
>>> rank1.tell(state, pull, reward=1.0)

Where things are
----------------
- simulate, sweep, load: play policies on problems; `Result` has summaries, tables and plots
- identify: play until the best pair is known, and count the pulls
- ask, tell, warm_up, snapshot, restore: policies in live use
- Study: a live grid on a durable log; `rank1 study` on the command line
- advise: which policy, for a grid, a horizon, a rate and a goal
- Client: studies of a service, which `rank1 serve` runs
- rank1.problems: what can be played; `rank1 problems` lists them on the command line
- rank1.policies: who can play; `rank1 policies` lists them
- rank1.theory: bounds on regret, and on pulls
- rank1.stopping: when one may stop, from counts alone
- rank1.datasets: grids of counts from the real world
- rank1.fit: is a grid of rank one?
- rank1.grids: both together, as `rank1 grids` prints them
- rank1.literal: the readable version of each algorithm
- rank1.optuna: a sampler for Optuna, where that is installed
- rank1.testing: try a policy or a problem of your own

`dir(rank1)` has all names, and `help(rank1.Rank1Elim)` says what one of them is.
"""

from __future__ import annotations

import importlib.util
from types import ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

#: What these export are names of rank1. Each loads when a name is looked up that those before it
#: don't have, because compiled code is slow to import.
_EXPORTED = (
    "errors",
    "problems",
    "policies",
    "simulation",
    "sweeps",
    "studies",
    "client",
    "advice",
)
#: Modules to be found by people, in `dir(rank1)`.
_MODULES = (
    "datasets",
    "fit",
    "grids",
    "literal",
    "policies",
    "problems",
    "simulation",
    "stopping",
    "studies",
    "sweeps",
    "testing",
    "theory",
)

if TYPE_CHECKING:
    from rank1 import datasets as datasets
    from rank1 import fit as fit
    from rank1 import grids as grids
    from rank1 import literal as literal
    from rank1 import optuna as optuna
    from rank1 import stopping as stopping
    from rank1 import testing as testing
    from rank1 import theory as theory
    from rank1.advice import *  # noqa: F403
    from rank1.client import *  # noqa: F403
    from rank1.errors import *  # noqa: F403
    from rank1.policies import *  # noqa: F403
    from rank1.problems import *  # noqa: F403
    from rank1.simulation import *  # noqa: F403
    from rank1.studies import *  # noqa: F403
    from rank1.sweeps import *  # noqa: F403
else:

    def __getattr__(name: str) -> Any:
        if name == "__all__":
            return [each for each in __dir__() if not each.startswith("_")]
        if not name.startswith("_"):
            if importlib.util.find_spec(f"rank1.{name}"):
                return importlib.import_module(f"rank1.{name}")
            for module in _EXPORTED:
                exports = _exports(module)
                if name in exports:
                    globals()[name] = exports[name]
                    return exports[name]
        raise AttributeError(f"module 'rank1' has no attribute {name!r}")

    def __dir__() -> list[str]:
        names = {name for module in _EXPORTED for name in _exports(module)}
        return ["__version__", *sorted(names.union(_MODULES))]


def _exports(module: str) -> dict[str, Any]:
    """What a module exports: what its `__all__` says, or all of rank1's that it has by name."""
    found = vars(importlib.import_module(f"rank1.{module}"))
    if "__all__" in found:
        return {name: found[name] for name in found["__all__"]}
    return {name: it for name, it in found.items() if not name.startswith("_") and _is_ours(it)}


def _is_ours(value: Any) -> bool:
    home = getattr(value, "__module__", "rank1")
    return not isinstance(value, ModuleType) and home.split(".")[0] == "rank1"
