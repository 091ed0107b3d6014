"""Simulation results: regret of every run at the checkpoints, with summaries and files."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rank1 import checks
from rank1.errors import InputError
from rank1.grid import Grid
from rank1.notebook import never_fails
from rank1.policies.base import Policy
from rank1.problems import PROBLEMS
from rank1.problems.base import Problem
from rank1.settings import find_policy
from rank1.simulation.block import Block, joined
from rank1.simulation.feedback import AT_ONCE, Feedback
from rank1.simulation.known import NamesArms, best_document, problem_document
from rank1.simulation.series import Series, resolved
from rank1.simulation.tidy import Part, Tidy, write_tidy
from rank1.simulation.trace import Trace, trace_of
from rank1.statistics import mean_and_error

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

__all__ = ["Outcome", "Result", "result_of"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Outcome(NamesArms):
    """All runs of one policy."""

    label: str
    policy: str
    settings: dict[str, Any]
    seconds: float
    runs: list[int]
    grid: Grid
    #: The arm that each run recommends at its end.
    arms: list[int] = field(repr=False)
    #: Regret at the checkpoints: (runs, checkpoints).
    expected: Floats = field(repr=False)
    realised: Floats = field(repr=False)
    #: The policy itself; None if a file names one that isn't known here.
    player: Policy | None = field(repr=False)

    @classmethod
    def of(cls, series: Series, blocks: Mapping[int, Block]) -> Outcome:
        """Join blocks of runs, keyed by their first run, in order."""
        policy = series.policy
        whole = joined(block for _, block in sorted(blocks.items()))
        curves = whole["curves"]
        return cls(
            policy.label,
            policy.name,
            policy.settings,
            whole.seconds,
            [first + k for first, block in sorted(blocks.items()) for k in range(block.runs)],
            series.problem.grid,
            whole["best_arms"].tolist(),
            curves[:, :, 0],
            curves[:, :, 1],
            policy,
        )

    def entry(self, checkpoints: NDArray[np.int64]) -> dict[str, Any]:
        """The results as plain values: an entry of what `rank1 simulate --json` prints."""
        entry: dict[str, Any] = {
            "policy": self.policy,
            "settings": self.settings,
            "seconds": self.seconds,
            **best_document(self.best_arms),
            "expected_regret": mean_and_error(self.expected[:, -1]),
            "realised_regret": mean_and_error(self.realised[:, -1]),
            "steps": checkpoints.tolist(),
        }
        for kind in ("expected", "realised"):
            curve = [mean_and_error(values) for values in getattr(self, kind).T]
            entry[f"{kind}_curve"] = {name: [p[name] for p in curve] for name in ("mean", "se")}
        return entry

    def blocks(self) -> dict[int, Block]:
        """The runs as blocks, keyed by their first run: the reverse of `of`."""
        curves = np.stack([self.expected, self.realised], axis=2)
        arms = np.array(self.arms, np.int64)
        return {
            run: Block({"curves": curves[k : k + 1], "best_arms": arms[k : k + 1]}, 0.0)
            for k, run in enumerate(self.runs)
        }


@dataclass(frozen=True)
class Result:
    """Regret of every policy, run and checkpoint of one call of `simulate`."""

    #: The problem's name, sides and settings.
    about: dict[str, Any] = field(repr=False)
    #: None if a file doesn't say enough to rebuild it.
    problem: Problem | None
    n: int
    runs: int
    seed: int
    #: The steps at which regret was recorded.
    checkpoints: NDArray[np.int64] = field(repr=False)
    outcomes: list[Outcome]
    #: As requested: "auto", "steps" or "stages".
    method: str = "auto"
    shuffle: bool = False
    #: Requested runs that were not finished: number of the policy, first run, end.
    missing: list[tuple[int, int, int]] = field(default_factory=list, repr=False)
    #: How rewards arrived.
    feedback: Feedback = AT_ONCE

    @classmethod
    def of(
        cls,
        series: Series,
        method: str,
        runs: int,
        outcomes: list[Outcome],
        missing: list[tuple[int, int, int]],
    ) -> Result:
        """The result of series that differ only in their policy; `series` is one of them."""
        return cls(
            problem_document(series.problem),
            series.problem,
            series.n,
            runs,
            series.seed,
            series.checkpoints,
            outcomes,
            method,
            series.shuffle,
            missing,
            series.feedback,
        )

    def __getitem__(self, policy: str) -> Outcome:
        """The outcome of a policy, by its name or, with settings, its label."""
        labels = [outcome.label for outcome in self.outcomes]
        label = checks.one_of("policy", policy, labels)
        return self.outcomes[labels.index(label)]

    def best_arms(self, policy: str) -> list[tuple[int, ...]]:
        """The levels of the arm that each run of a policy recommends at the end."""
        return self[policy].best_arms

    def best_pairs(self, policy: str) -> list[tuple[int, int]]:
        """The pair that each run of a policy recommends at the end, for a grid with two sides."""
        return self[policy].best_pairs

    def summary(self) -> pl.DataFrame:
        """One row per policy: regret at the end, and the share of runs that found a best arm.

        `best_arm` has the levels of the arm that most runs name; `best_pair` is the same for two
        sides. If several arms are tied, a run names the first. This favours problems whose best arm
        is the first one, such as a spike, unless `shuffle=True`.
        """
        import polars as pl

        from rank1.frames import WholeFrame

        rows: list[dict[str, Any]] = []
        for outcome in self.outcomes:
            row: dict[str, Any] = {"policy": outcome.label, "runs": len(outcome.runs)}
            for kind in ("expected", "realised"):
                figures = mean_and_error(getattr(outcome, kind)[:, -1])
                row |= {f"{kind}_{name}": value for name, value in figures.items()}
            arms = outcome.arms
            most = outcome.grid.levels(Counter(sorted(arms)).most_common(1)[0][0])
            row |= {name: best[0] for name, best in best_document([most]).items()}
            row["found"] = None
            if self.problem is not None:
                row["found"] = sum(map(self.problem.is_best, arms)) / len(arms)
            row["seconds"] = outcome.seconds
            rows.append(row)
        floats = [f"{kind}_{name}" for kind in ("expected", "realised") for name in ("std", "se")]
        return WholeFrame(rows, schema_overrides=dict.fromkeys(floats, pl.Float64))

    def to_frame(self) -> pl.DataFrame:
        """A tidy frame: one row per policy, run and checkpoint."""
        import polars as pl

        parts = []
        for outcome in self.outcomes:
            runs, marks = outcome.expected.shape
            parts.append(
                pl.DataFrame(
                    {
                        "policy": [outcome.label] * (runs * marks),
                        "run": np.repeat(np.array(outcome.runs, np.int64), marks),
                        "step": np.tile(self.checkpoints, runs),
                        "expected_regret": outcome.expected.ravel(),
                        "realised_regret": outcome.realised.ravel(),
                    }
                )
            )
        return pl.concat(parts)

    def document(self) -> dict[str, Any]:
        """The results as one JSON document, as `rank1 simulate --json` prints it."""
        late = {} if self.feedback == AT_ONCE else {"feedback": self.feedback.document()}
        return {
            "problem": self.about,
            "n": self.n,
            "runs": self.runs,
            "seed": self.seed,
            "shuffle": self.shuffle,
            **late,
            "policies": [
                outcome.entry(self.checkpoints) | {"method": self._method_of(outcome)}
                for outcome in self.outcomes
            ],
        }

    def _method_of(self, outcome: Outcome) -> str | None:
        """How a policy's runs were played; None if a file doesn't say enough."""
        if self.feedback != AT_ONCE or self.method == "steps":
            return "steps"
        if self.problem is None or outcome.player is None:
            return None if self.method == "auto" else self.method
        return resolved(self.method, outcome.player, self.problem)

    def trace(self, run: int = 0, policy: str | None = None) -> Trace:
        """What happened stage by stage in one run of an elimination policy.

        The run is played again from its seed, since results don't store stages.

        >>> import rank1
        >>> problem = rank1.spike(K=4, L=4, p_u=0.5, p_v=0.5, delta_u=0.4, delta_v=0.4)
        >>> result = rank1.simulate(rank1.Rank1Elim(), problem, n=100_000, runs=3, seed=1)
        >>> trace = result.trace(run=2)
        >>> trace.rows, trace.columns, trace.held
        ([0], [0], True)
        """
        outcome = self.outcomes[0] if policy is None else self[policy]
        if self.problem is None or outcome.player is None:
            what = self.about["name"] if self.problem is None else outcome.policy
            expected = "one whose policy and problem can be rebuilt from the file"
            raise InputError("result", self, expected, "simulate it again", got=f"one of {what}")
        if run not in outcome.runs:
            last = outcome.runs[-1]
            raise InputError("run", run, f"the number of a finished run, up to {last}")
        series = Series.of(
            outcome.player,
            self.problem,
            self.n,
            self.checkpoints.tolist(),
            self.seed,
            self.method,
            self.shuffle,
            self.feedback,
        )
        return trace_of(series, run)

    def plot(
        self,
        *,
        regret: str = "expected",
        bounds: bool = False,
        log_x: bool = False,
        log_y: bool = False,
        ax: Axes | None = None,
    ) -> Axes:
        """Plot curves of mean regret with bands of one standard error over the runs.

        Parameters
        ----------
        regret
            "expected" or "realised".
        bounds
            Draw the lower bound's slope·log t (Theorem 2 for Bernoulli rewards, Theorem 3 for
            Gaussian ones, and the bound over neighbours unless there are two sides), and
            Rank1Elim's upper bound (Theorem 1) if it fits in the frame. The legend says what can't
            be drawn.
        log_x, log_y
            Logarithmic axes; they can't show regret of 0 or less.
        ax
            Axes to draw into instead of a new figure; they keep their scales, limits, title and
            labels.

        Examples
        --------
        >>> import rank1
        >>> problem = rank1.spike(K=8, L=8, p_u=0.7, p_v=0.7, delta_u=0.2, delta_v=0.2)
        >>> ax = rank1.simulate(rank1.Rank1Elim(), problem, n=100_000, runs=2).plot(bounds=True)
        >>> [text.get_text() for text in ax.get_legend().get_texts()][1]
        'Theorem 2: 28.5·log t, for t → ∞'
        """
        from rank1.plots import plot_result

        return plot_result(self, regret=regret, bounds=bounds, log_x=log_x, log_y=log_y, ax=ax)

    @never_fails
    def _repr_html_(self) -> str:
        from rank1.plots.html import result_html

        return result_html(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a Parquet file: a tidy frame, with everything else in its metadata.

        The file is replaced only when the new one is complete.
        """
        parts = [
            Part(
                self.about,
                outcome.label,
                outcome.settings,
                self.n,
                self.checkpoints,
                outcome.blocks(),
            )
            for outcome in self.outcomes
        ]
        facts = {
            "problem": self.about,
            "n": self.n,
            "runs": self.runs,
            "seed": self.seed,
            "method": self.method,
            "shuffle": self.shuffle,
            "checkpoints": self.checkpoints.tolist(),
            "missing": self.missing,
            "feedback": self.feedback.document(),
            "policies": [
                {
                    "policy": outcome.policy,
                    "settings": outcome.settings,
                    "label": outcome.label,
                    "seconds": outcome.seconds,
                    "runs": outcome.runs,
                }
                for outcome in self.outcomes
            ],
        }
        write_tidy(path, parts, facts)


def result_of(tidy: Tidy) -> Result:
    """The result that was saved in a file."""
    import polars as pl

    facts, frame = tidy.facts, tidy.frame.collect()
    about, checkpoints = facts["problem"], np.array(facts["checkpoints"], np.int64)
    about.setdefault("sides", [about.get("K"), about.get("L")])
    grid, outcomes = Grid(about["sides"]), []
    for entry in facts["policies"]:
        own = frame.filter(pl.col("policy") == entry["label"])
        shape = (len(entry["runs"]), len(checkpoints))
        ends = own.filter(pl.col("step") == facts["n"])
        if "best_arm" not in ends.columns:  # files from before there were sides
            best = pl.col("best_row") * grid.sizes[1] + pl.col("best_column")
            ends = ends.with_columns(best.alias("best_arm"))
        outcomes.append(
            Outcome(
                entry["label"],
                entry["policy"],
                entry["settings"],
                entry["seconds"],
                entry["runs"],
                grid,
                ends["best_arm"].to_list(),
                own["expected_regret"].to_numpy().reshape(shape),
                own["realised_regret"].to_numpy().reshape(shape),
                _built(find_policy, entry["policy"], entry["settings"]),
            )
        )
    return Result(
        about,
        _built(PROBLEMS.__getitem__, about["name"], about["settings"]),
        facts["n"],
        facts["runs"],
        facts["seed"],
        checkpoints,
        outcomes,
        facts["method"],
        facts["shuffle"],
        [(number, start, stop) for number, start, stop in facts["missing"]],
        Feedback.of(**facts.get("feedback", {})),  # missing in older files
    )


def _built(find: Callable[[str], Any], name: str, settings: dict[str, Any]) -> Any:
    """The problem or policy named in a file; None for samplers and for unknown classes."""
    try:
        return find(name)(**settings)
    except (KeyError, TypeError, ValueError):
        return None
