"""rank1: find the best pair of a grid from noisy feedback."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from rank1 import theory as theory
    from rank1.errors import BackendError as BackendError
    from rank1.errors import CancelledError as CancelledError
    from rank1.errors import ConflictError as ConflictError
    from rank1.errors import FileError as FileError
    from rank1.errors import FormatError as FormatError
    from rank1.errors import InputError as InputError
    from rank1.errors import InputTypeError as InputTypeError
    from rank1.errors import OtherStudyError as OtherStudyError
    from rank1.errors import Rank1Error as Rank1Error
    from rank1.errors import StorageError as StorageError
    from rank1.errors import StudyExistsError as StudyExistsError
    from rank1.errors import UnknownStudyError as UnknownStudyError
    from rank1.errors import UnknownSuggestionError as UnknownSuggestionError
    from rank1.policies import GLMUCB as GLMUCB
    from rank1.policies import KLUCB as KLUCB
    from rank1.policies import OSUB as OSUB
    from rank1.policies import UCB1 as UCB1
    from rank1.policies import UTS as UTS
    from rank1.policies import Known as Known
    from rank1.policies import LinUCB as LinUCB
    from rank1.policies import Oracle as Oracle
    from rank1.policies import Policy as Policy
    from rank1.policies import Pull as Pull
    from rank1.policies import Rank1Elim as Rank1Elim
    from rank1.policies import Rank1ElimKL as Rank1ElimKL
    from rank1.policies import ThompsonSampling as ThompsonSampling
    from rank1.policies import Uniform as Uniform
    from rank1.policies import ask as ask
    from rank1.policies import tell as tell
    from rank1.problems import Bernoulli as Bernoulli
    from rank1.problems import Beta as Beta
    from rank1.problems import Campaign as Campaign
    from rank1.problems import Categorical as Categorical
    from rank1.problems import Discrete as Discrete
    from rank1.problems import Factors as Factors
    from rank1.problems import Gaussian as Gaussian
    from rank1.problems import Interval as Interval
    from rank1.problems import PositionBased as PositionBased
    from rank1.problems import Problem as Problem
    from rank1.problems import Sampler as Sampler
    from rank1.problems import spike as spike
    from rank1.simulation import Interrupted as Interrupted
    from rank1.simulation import Result as Result
    from rank1.simulation import Series as Series
    from rank1.simulation import Trace as Trace
    from rank1.simulation import simulate as simulate
    from rank1.sweeps import Sweep as Sweep
    from rank1.sweeps import load as load
    from rank1.sweeps import sweep as sweep

# Compiled code is slow to import, so a name's module loads when the name is first used.
_MODULES = {
    "rank1.errors": "BackendError CancelledError ConflictError FileError FormatError InputError "
    "InputTypeError OtherStudyError Rank1Error StorageError StudyExistsError UnknownStudyError "
    "UnknownSuggestionError",
    "rank1.policies": "GLMUCB KLUCB OSUB UCB1 UTS Known LinUCB Oracle Policy Pull Rank1Elim "
    "Rank1ElimKL ThompsonSampling Uniform ask tell",
    "rank1.problems": "Bernoulli Beta Campaign Categorical Discrete Factors Gaussian Interval "
    "PositionBased Problem Sampler spike",
    "rank1.simulation": "Interrupted Result Series Trace simulate",
    "rank1.sweeps": "Sweep load sweep",
}
_HOME = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name in ("literal", "sweeps", "theory"):
        return importlib.import_module(f"rank1.{name}")
    if name in _HOME:
        value = getattr(importlib.import_module(_HOME[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'rank1' has no attribute {name!r}")


def __dir__() -> list[str]:
    return ["__version__", "theory", *sorted(_HOME)]
