"""What simulations give: regret of every run at the checkpoints, with summaries and files."""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rank1 import checks
from rank1.atomic import whole_file
from rank1.errors import InputError
from rank1.policies import POLICIES
from rank1.policies.base import Policy
from rank1.problems import PROBLEMS
from rank1.problems.base import Problem
from rank1.simulation.store import Block

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

    from rank1.simulation.trace import Trace

__all__ = ["Outcome", "Result", "load", "mean_and_error"]

Floats = NDArray[np.float64]

#: Raised when the file's layout changes, so that an old program never misreads a new file.
FORMAT = 2


def mean_and_error(values: Floats) -> dict[str, float | None]:
    """Mean, standard deviation and standard error; the last two need more than one value.

    >>> mean_and_error(np.array([1.0, 3.0]))
    {'mean': 2.0, 'std': 1.4142135623730951, 'se': 1.0}
    """
    std = float(values.std(ddof=1)) if len(values) > 1 else None
    se = None if std is None else std / math.sqrt(len(values))
    return {"mean": float(values.mean()), "std": std, "se": se}


@dataclass(frozen=True)
class Outcome:
    """All runs of one policy."""

    label: str
    policy: str
    settings: dict[str, Any]
    seconds: float
    runs: list[int]
    best_pairs: list[tuple[int, int]]
    #: Regret at the checkpoints: (runs, checkpoints).
    expected: Floats = field(repr=False)
    realised: Floats = field(repr=False)
    #: The policy itself; None where a file names one that isn't known here.
    player: Policy | None = field(repr=False)

    @classmethod
    def of(cls, policy: Policy, blocks: Mapping[int, Block]) -> Outcome:
        """Put blocks of runs, by the number of their first run, together in order."""
        ordered = sorted(blocks.items())
        curves = np.concatenate([block.curves for _, block in ordered])
        return cls(
            policy.label,
            policy.name,
            policy.settings,
            sum(block.seconds for _, block in ordered),
            [first + k for first, block in ordered for k in range(len(block.curves))],
            [(int(i), int(j)) for _, block in ordered for i, j in block.best_pairs],
            curves[:, :, 0],
            curves[:, :, 1],
            policy,
        )


@dataclass(frozen=True)
class Result:
    """Regret of every policy, run and checkpoint of one call of `simulate`."""

    #: The problem's name, K, L and settings.
    about: dict[str, Any] = field(repr=False)
    #: None where a file doesn't say enough to build it again.
    problem: Problem | None
    n: int
    runs: int
    seed: int
    steps: NDArray[np.int64] = field(repr=False)
    outcomes: list[Outcome]
    engine: str = "auto"

    def __getitem__(self, policy: str) -> Outcome:
        """The outcome of a policy, by its name or, with settings, its label."""
        labels = [outcome.label for outcome in self.outcomes]
        label = checks.one_of("policy", policy, labels)
        return self.outcomes[labels.index(label)]

    def best_pairs(self, policy: str) -> list[tuple[int, int]]:
        """The pair that each run of a policy recommends at the end."""
        return self[policy].best_pairs

    def summary(self) -> pl.DataFrame:
        """One row a policy: regret at the end, the share of runs that found a best pair."""
        import polars as pl

        from rank1.frames import WholeFrame

        rows: list[dict[str, Any]] = []
        for outcome in self.outcomes:
            row: dict[str, Any] = {"policy": outcome.label, "runs": len(outcome.runs)}
            for kind in ("expected", "realised"):
                figures = mean_and_error(getattr(outcome, kind)[:, -1])
                row |= {f"{kind}_{name}": value for name, value in figures.items()}
            pairs = outcome.best_pairs
            row["best_pair"] = list(Counter(sorted(pairs)).most_common(1)[0][0])
            row["found"] = None
            if self.problem is not None:
                row["found"] = sum(self.problem.is_best(*pair) for pair in pairs) / len(pairs)
            row["seconds"] = outcome.seconds
            rows.append(row)
        floats = [f"{kind}_{name}" for kind in ("expected", "realised") for name in ("std", "se")]
        return WholeFrame(rows, schema_overrides=dict.fromkeys(floats, pl.Float64))

    def to_frame(self) -> pl.DataFrame:
        """Tidy: a row for every policy, run and checkpoint."""
        import polars as pl

        parts = []
        for outcome in self.outcomes:
            runs, marks = outcome.expected.shape
            parts.append(
                pl.DataFrame(
                    {
                        "policy": [outcome.label] * (runs * marks),
                        "run": np.repeat(np.array(outcome.runs, np.int64), marks),
                        "step": np.tile(self.steps, runs),
                        "expected_regret": outcome.expected.ravel(),
                        "realised_regret": outcome.realised.ravel(),
                    }
                )
            )
        return pl.concat(parts)

    def document(self) -> dict[str, Any]:
        """The facts as one JSON document, as `rank1 simulate --json` prints them."""
        policies = []
        for outcome in self.outcomes:
            entry: dict[str, Any] = {
                "policy": outcome.policy,
                "settings": outcome.settings,
                "seconds": outcome.seconds,
                "best_pair": [list(pair) for pair in outcome.best_pairs],
                "expected_regret": mean_and_error(outcome.expected[:, -1]),
                "realised_regret": mean_and_error(outcome.realised[:, -1]),
                "steps": self.steps.tolist(),
            }
            for kind in ("expected", "realised"):
                curve = [mean_and_error(values) for values in getattr(outcome, kind).T]
                entry[f"{kind}_curve"] = {name: [p[name] for p in curve] for name in ("mean", "se")}
            policies.append(entry)
        return {
            "problem": self.about,
            "n": self.n,
            "runs": self.runs,
            "seed": self.seed,
            "policies": policies,
        }

    def trace(self, run: int = 0, policy: str | None = None) -> Trace:
        """What happened stage by stage in one run of an elimination policy.

        The run is played again from its seed, so that nothing had to be kept.

        >>> import rank1
        >>> problem = rank1.spike(K=4, L=4, p_u=0.5, p_v=0.5, delta_u=0.4, delta_v=0.4)
        >>> result = rank1.simulate(rank1.Rank1Elim(), problem, n=100_000, runs=3, seed=1)
        >>> trace = result.trace(run=2)
        >>> trace.rows, trace.columns, trace.held
        ([0], [0], True)
        """
        from rank1.simulation.trace import trace_of

        outcome = self.outcomes[0] if policy is None else self[policy]
        if self.problem is None or outcome.player is None:
            what = self.about["name"] if self.problem is None else outcome.policy
            raise InputError(
                f"this result can't be traced: {what} can't be built from a file; simulate it again"
            )
        if run not in outcome.runs:
            raise InputError(
                f"run must be the number of a finished run, up to {outcome.runs[-1]}, "
                f"got {checks.shown(run)}"
            )
        return trace_of(
            outcome.player, self.problem, self.n, self.seed, run, self.steps, self.engine
        )

    def plot(
        self,
        *,
        regret: str = "expected",
        bounds: bool = False,
        log_x: bool = False,
        log_y: bool = False,
        ax: Axes | None = None,
    ) -> Axes:
        """Curves of mean regret with bands of one standard error over the runs.

        Parameters
        ----------
        regret
            "expected" or "realised".
        bounds
            Draw the lower bound's slope·log t (Theorem 2 for Bernoulli rewards, Theorem 3 for
            Gaussian ones), and Rank1Elim's upper bound (Theorem 1) where it fits in the frame.
            What can't be drawn is said in the legend.
        log_x, log_y
            Logarithmic axes.
        ax
            Axes to draw into, rather than those of a new figure; they keep their scales, limits,
            title and labels.

        >>> import rank1
        >>> problem = rank1.spike(K=8, L=8, p_u=0.7, p_v=0.7, delta_u=0.2, delta_v=0.2)
        >>> ax = rank1.simulate(rank1.Rank1Elim(), problem, n=100_000, runs=2).plot(bounds=True)
        >>> [text.get_text() for text in ax.get_legend().get_texts()][1]
        'Theorem 2: 28.5·log t, for t → ∞'
        """
        from rank1.plots import plot_result

        return plot_result(self, regret=regret, bounds=bounds, log_x=log_x, log_y=log_y, ax=ax)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a Parquet file: the tidy frame, and in its metadata all the rest.

        The file appears when it is whole; what stood there before is kept until then.
        """
        frame = self.to_frame()
        facts = {
            "format": FORMAT,
            "problem": self.about,
            "n": self.n,
            "runs": self.runs,
            "seed": self.seed,
            "engine": self.engine,
            "digest": _digest(frame),
            "steps": self.steps.tolist(),
            "policies": [
                {
                    "policy": outcome.policy,
                    "settings": outcome.settings,
                    "label": outcome.label,
                    "seconds": outcome.seconds,
                    "runs": outcome.runs,
                    "best_pairs": outcome.best_pairs,
                }
                for outcome in self.outcomes
            ],
        }
        with whole_file(path) as temporary:
            # Through Python, whose errors name a full disk; Polars' own don't.
            buffer = io.BytesIO()
            frame.write_parquet(buffer, metadata={"rank1": json.dumps(facts)})
            temporary.write_bytes(buffer.getbuffer())


def load(path: str | os.PathLike[str]) -> Result:
    """Read what `Result.save` wrote.

    >>> import rank1, tempfile, pathlib
    >>> problem = rank1.spike(K=2, L=2, p_u=0.5, p_v=0.5, delta_u=0.4, delta_v=0.4)
    >>> result = rank1.simulate(rank1.Rank1Elim(), problem, n=1000, runs=2, seed=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result.save(pathlib.Path(folder) / "runs.parquet")
    ...     again = rank1.load(pathlib.Path(folder) / "runs.parquet")
    >>> again.to_frame().equals(result.to_frame())
    True
    """
    import polars as pl

    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"path must name a file of results, got {os.fspath(path)!r}")
    try:
        metadata = pl.read_parquet_metadata(path)
        if "rank1_sweep" in metadata:
            raise InputError("it is a sweep's: see rank1 table, or rank1.sweeps.read_sweep")
        facts = json.loads(metadata["rank1"])
        frame = pl.read_parquet(path, glob=False)
        if facts["format"] == FORMAT and facts["digest"] != _digest(frame):
            raise InputError("its numbers are not those that were written")
    except (pl.exceptions.PolarsError, OSError, KeyError, ValueError) as error:
        raise InputError(
            f"{os.fspath(path)!r} is not a whole file of results ({str(error).splitlines()[0]}); "
            "it may have been cut short or damaged: simulate again and save it anew"
        ) from None
    if facts["format"] != FORMAT:
        raise InputError(
            f"{os.fspath(path)!r} has format {facts['format']}, this version of rank1 reads "
            f"{FORMAT}: install the version that wrote it"
        )
    steps = np.array(facts["steps"], np.int64)
    outcomes = []
    for entry in facts["policies"]:
        own = frame.filter(pl.col("policy") == entry["label"])
        shape = (len(entry["runs"]), len(steps))
        outcomes.append(
            Outcome(
                entry["label"],
                entry["policy"],
                entry["settings"],
                entry["seconds"],
                entry["runs"],
                [(row, column) for row, column in entry["best_pairs"]],
                own["expected_regret"].to_numpy().reshape(shape),
                own["realised_regret"].to_numpy().reshape(shape),
                _built(POLICIES, entry["policy"], entry["settings"]),
            )
        )
    about = facts["problem"]
    return Result(
        about,
        _built(PROBLEMS, about["name"], about["settings"]),
        facts["n"],
        facts["runs"],
        facts["seed"],
        steps,
        outcomes,
        facts["engine"],
    )


def _digest(frame: pl.DataFrame) -> str:
    """Tells whether the numbers are those that were written."""
    regret = frame.select("expected_regret", "realised_regret").to_numpy(order="c")
    return hashlib.sha256(regret.tobytes()).hexdigest()


def _built(known: Mapping[str, Any], name: str, settings: dict[str, Any]) -> Any:
    """The problem or policy of a file; None for a sampler, and for what is somebody's own."""
    try:
        return known[name](**settings)
    except (KeyError, TypeError, ValueError):
        return None
