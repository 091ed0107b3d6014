"""Stochastic rank-1 bandits: find the best arm of a grid from noisy feedback.

A *problem* is a grid of K rows and L columns whose mean rewards are u[i]·v[j], or a grid with more
sides; a *policy* chooses an arm in each step. Both are immutable values: `rank1.spike(…)`,
`rank1.Rank1Elim()`.

Examples
--------
Simulate, and look at the result:

>>> import rank1
>>> problem = rank1.spike(K=4, L=4, p_u=0.5, p_v=0.5, delta_u=0.4, delta_v=0.4)
>>> policies = [rank1.Rank1Elim(), rank1.UTS()]
>>> result = rank1.simulate(policies, problem, n=20_000, runs=5, seed=1)
>>> result.best_pairs("uts")
[(0, 0), (0, 0), (0, 0), (0, 0), (0, 0)]

Play a live grid, one pull at a time; rewards may be late, out of order or missing:

>>> import numpy as np
>>> state = rank1.UTS().start(rank1.Known(K=4, L=4, n=20_000))
>>> pull = rank1.ask(state, np.random.default_rng(1))
>>> rank1.tell(state, pull, reward=1.0)

Contents
--------
- simulate, sweep, load: play policies on problems; `Result` has summaries, tables and plots
- identify: play until the best arm is known, and count the pulls
- ask, tell, warm_up, snapshot, restore: policies in live use
- Study: a live grid on a durable log; `rank1 study` on the command line
- assign: the levels of a unit by hash, from a study's shares
- advise: which policy to use, for a grid, a horizon, a rate and a goal
- Client: studies of a service that `rank1 serve` runs
- rank1.problems: the problems; `rank1 problems` lists them on the command line
- rank1.policies: the algorithms; `rank1 policies` lists them
- rank1.theory: bounds on regret and on pulls
- rank1.stopping: whether a study may stop, from counts alone
- rank1.design: shares, bets and verdicts from counts by version
- rank1.datasets: grids of counts from the real world
- rank1.fit: does a grid have rank one?
- rank1.grids: both together, as `rank1 grids` prints them
- rank1.literal: a readable version of each algorithm
- rank1.optuna: a sampler for Optuna, if that is installed
- rank1.testing: test your own policy or problem

`dir(rank1)` has all names, and `help(rank1.Rank1Elim)` explains one of them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_EXPORTS = {
    "errors": """BackendError CancelledError ConflictError DamagedError EndedError FileError
        FormatError InputError InputTypeError MissingPackageError NoDigest OtherStudyError
        PolicyError Rank1Error SnapshotError StorageError StudyExistsError UnknownStudyError
        UnknownSuggestionError""",
    "assignment": "assign",
    "grid": "Grid",
    "problems": """Bernoulli Beta Campaign Categorical Discrete Factors Gaussian Interval Means
        PositionBased PROBLEMS Problem Product RankOne Sampler spike""",
    "policies": """BetElim FactorTS GLMUCB IMEDUB IdTS KLUCB Known LinUCB OSUB Oracle POLICIES
        PairElim Policy Pull Rank1Elim Rank1ElimKL State ThompsonSampling TopTwo Truth UCB1 UTS
        Uniform ask restore snapshot tell warm_up""",
    "simulation": """Identification Interrupted Outcome Result Searches Series Trace identify
        simulate""",
    "sweeps": "Sweep SweepGrid grid_of load read_grid read_sweep sweep write_sweep",
    "documents": """Best Forecast Imported Personalised Recorded Replayed Report Suggestion
        Verified""",
    "studies": "Study StudyFit",
    "client": "Assignment Client Recorder RemoteFit RemoteStudy",
    "advice": "Advice advise",
}
#: The module of each name. A module is imported when one of its names is first used: importing
#: rank1 imports none of them, nor NumPy, so an HTTP client doesn't wait for the simulation code.
HOMES = {name: module for module, names in _EXPORTS.items() for name in names.split()}
#: Public modules.
_MODULES = (
    *(
        "datasets",
        "design",
        "fit",
        "grids",
        "literal",
        "policies",
        "problems",
        "simulation",
        "stopping",
    ),
    *("studies", "sweeps", "testing", "theory"),
)

if TYPE_CHECKING:
    from rank1 import datasets as datasets
    from rank1 import design as design
    from rank1 import fit as fit
    from rank1 import grids as grids
    from rank1 import literal as literal
    from rank1 import optuna as optuna
    from rank1 import stopping as stopping
    from rank1 import testing as testing
    from rank1 import theory as theory
    from rank1.advice import *  # noqa: F403
    from rank1.assignment import assign as assign
    from rank1.client import *  # noqa: F403
    from rank1.errors import *  # noqa: F403
    from rank1.grid import Grid as Grid
    from rank1.policies import *  # noqa: F403
    from rank1.problems import *  # noqa: F403
    from rank1.simulation import *  # noqa: F403
    from rank1.studies import *  # noqa: F403
    from rank1.sweeps import *  # noqa: F403
else:
    __all__ = sorted({*HOMES, *_MODULES})

    def __getattr__(name: str) -> Any:
        if name in HOMES:
            value = getattr(importlib.import_module(f"rank1.{HOMES[name]}"), name)
            globals()[name] = value
            return value
        if name in _MODULES or name == "optuna":  # optuna may not be installed
            return importlib.import_module(f"rank1.{name}")
        raise AttributeError(f"module 'rank1' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return ["__version__", *__all__]
