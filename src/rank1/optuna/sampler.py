"""The samplers, as Optuna's interface requires."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from rank1 import checks, stopping
from rank1.design.options import range_of
from rank1.errors import InputError, InputTypeError
from rank1.grid import MAX_SIDES
from rank1.optuna.trials import KEY, Settings, Trials, categorical
from rank1.policies import Policy
from rank1.studies.spec import policy_of

__all__ = ["ArmSampler", "PairSampler"]


class ArmSampler(BaseSampler):
    """Let a policy suggest the sides of a grid, and another sampler the other parameters.

    The policy learns the values of finished trials; running trials are pulls with late rewards, and
    failed or pruned trials teach it nothing. The grid is known once a trial has suggested all of
    its parameters; until then they are random.

    Parameters
    ----------
    sides
        The names of the categorical parameters that form the sides of the grid, 1 to 16.
    policy
        A policy, or its name with settings, as for `--policy`.
    reward_range
        The smallest and the largest possible value of the objective; a value outside is an error.
        The policy gets the value scaled to [0, 1], with 1 for the best: the largest if the study
        maximises, the smallest if it minimises.
    horizon
        The planned number of trials, if known.
    seed
        An integer below 2^32. With one worker, the same seed gives the same arms, even across
        restarts. Workers of one study may share a seed.
    independent_sampler
        For all other parameters; default: a RandomSampler with the same seed, which starts again
        with each worker and restart.

    Examples
    --------
    >>> import optuna, rank1
    >>> optuna.logging.set_verbosity(optuna.logging.ERROR)
    >>> sampler = rank1.optuna.ArmSampler(["headline", "image", "button"], policy="uts", seed=1)
    >>> study = optuna.create_study(direction="maximize", sampler=sampler)
    >>> def objective(trial):
    ...     headline = trial.suggest_categorical("headline", ["A", "B"])
    ...     image = trial.suggest_categorical("image", ["x", "y"])
    ...     button = trial.suggest_categorical("button", ["buy", "go"])
    ...     return 0.2 + 0.2 * (headline == "B") + 0.2 * (image == "y") + 0.2 * (button == "go")
    >>> study.optimize(objective, n_trials=60)
    >>> sampler.best(study)
    {'headline': 'B', 'image': 'y', 'button': 'go'}
    """

    def __init__(
        self,
        sides: Sequence[str],
        policy: Policy | str = "top_two",
        *,
        reward_range: tuple[float, float] = (0.0, 1.0),
        horizon: int | None = None,
        seed: int | None = None,
        independent_sampler: BaseSampler | None = None,
    ) -> None:
        try:
            names = (sides,) if isinstance(sides, str) else tuple(sides)
        except TypeError:
            raise InputTypeError("sides", sides, "names of parameters") from None
        for name in names:
            if not isinstance(name, str):
                raise InputTypeError("sides", name, "names of parameters")
            if names.count(name) > 1:
                raise InputError("sides", name, "parameters that differ", got=f"{name!r} twice")
        if not 1 <= len(names) <= MAX_SIDES:
            raise InputError("sides", sides, f"1 to {MAX_SIDES} parameters", got=f"{len(names)}")
        chosen = policy_of(policy, "find")
        if chosen.needs_truth:
            raise InputError("policy", policy, "one that doesn't need to know the answer")
        if chosen.sides not in (None, len(names)):
            asked = f"one for {len(names)} sides"
            raise InputError("policy", policy, asked, f"{chosen.name} is for {chosen.sides}")
        if horizon is not None:
            horizon = checks.integer("horizon", horizon, 1)
        self._settings = Settings(names, chosen, range_of(reward_range), horizon)
        if seed is not None:
            seed = checks.integer("seed", seed, 0, 2**32 - 1)
        self._seed = int.from_bytes(os.urandom(6)) if seed is None else seed
        self._others = independent_sampler or RandomSampler(seed)
        self._lock = threading.Lock()  # for threads of one study, which share their sampler
        self._trials: Trials | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what was read from a study, since it can be read again."""
        return {key: it for key, it in vars(self).items() if key not in ("_lock", "_trials")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock(), _trials=None)

    # For users

    def best(self, study: Study) -> dict[str, Any]:
        """The arm that the policy recommends now.

        This isn't the arm of `study.best_trial`, which had the luckiest trial.
        """
        with self._read(study) as trials:
            if not trials.state.evidence(0.0)[0].any():
                asked = "one with a trial that has ended with a value"
                raise InputError("study", study.study_name, asked)
            return self._choices(trials, map(int, trials.state.recommended()))

    def verdict(
        self,
        study: Study,
        confidence: float = 0.95,
        tolerance: float = 0.0,
        rank_one: bool = True,
    ) -> stopping.Verdict:
        """Whether you may stop and declare the leading arm the best; see `rank1.stopping.verdict`.

        Arms are given by their choices, and rewards are scaled to [0, 1].
        """
        with self._read(study) as trials:
            counts, sums = trials.state.evidence(0.0)
            failures = np.maximum(counts - sums, 0.0)
            found = stopping.verdict(sums, failures, confidence, tolerance, rank_one)
            named: dict[str, Any] = {
                name: tuple(self._choices(trials, levels).values())
                for name, levels in (("leader", found.leader), ("weakest", found.weakest))
                if levels is not None
            }
            return dataclasses.replace(found, **named)

    def reason(
        self,
        study: Study,
        confidence: float = 0.95,
        tolerance: float = 0.0,
        rank_one: bool = True,
    ) -> str:
        """The verdict in words, with arms named by their choices."""
        found = self.verdict(study, confidence, tolerance, rank_one)
        return found.reason_with(lambda *choices: " × ".join(map(str, choices)))

    # For Optuna

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """The sides, once their choices are known."""
        self._raise_error_if_multi_objective(study)
        with self._lock:
            grid = self._trials_of(study).grid
        if not grid:
            with self._read(study) as trials:
                grid = trials.grid
        return dict(zip(self._settings.names, grid, strict=False))  # none, or all

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Ask the policy for an arm, and store which pull it was."""
        self._raise_error_if_multi_objective(study)
        names = self._settings.names
        if not set(names) <= set(search_space):
            return {}  # something else fixes one of them
        with self._read(study, [search_space[name] for name in names]) as trials:
            choice = trials.choose(trial.number, self._seed)
            study._storage.set_trial_system_attr(trial._trial_id, KEY, asdict(choice))
            return self._choices(trials, choice.levels)

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """A single side is random; the other sampler chooses all other parameters."""
        self._raise_error_if_multi_objective(study)
        if param_name in self._settings.names:
            choices = categorical(param_name, param_distribution).choices
            side = self._settings.names.index(param_name)
            rng = np.random.default_rng((self._seed, trial.number, 1 + side))
            return choices[rng.integers(len(choices))]
        return self._others.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Call the other sampler."""
        self._others.before_trial(study, trial)

    def after_trial(
        self,
        study: Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        """Raise an error at once if a value is outside the range."""
        self._others.after_trial(study, trial, state, values)
        whole = set(self._settings.names) <= set(trial.params)
        if state == TrialState.COMPLETE and values and whole:
            self._settings.scaled(values[0], trial.number)

    def reseed_rng(self) -> None:
        """Reseed the other sampler: only its random numbers continue from trial to trial."""
        self._others.reseed_rng()

    @contextlib.contextmanager
    def _read(self, study: Study, space: Sequence[BaseDistribution] = ()) -> Iterator[Trials]:
        """The study's trials up to now, for one thread at a time."""
        with self._lock:
            trials = self._trials_of(study)
            try:
                trials.read(space)
                yield trials
            except BaseException:
                # The state may be half updated, or include a pull that was never handed out.
                self._trials = None
                raise

    def _trials_of(self, study: Study) -> Trials:
        trials = self._trials
        if not trials or trials.storage is not study._storage or trials.study != study._study_id:
            trials = self._trials = Trials(self._settings, study)
        return trials

    def _choices(self, trials: Trials, levels: Iterable[int]) -> dict[str, Any]:
        choices = [it.choices[level] for it, level in zip(trials.grid, levels, strict=True)]
        return dict(zip(self._settings.names, choices, strict=True))


class PairSampler(ArmSampler):
    """An `ArmSampler` for two sides, given by the names of the row and the column parameter.

    >>> import rank1
    >>> sampler = rank1.optuna.PairSampler(row="segment", column="channel", policy="uts", seed=1)
    """

    def __init__(
        self, row: str, column: str, policy: Policy | str = "top_two", **more: Any
    ) -> None:
        for name, value in (("row", row), ("column", column)):
            if not isinstance(value, str):
                raise InputTypeError(name, value, "the name of a parameter")
        super().__init__((row, column), policy, **more)
