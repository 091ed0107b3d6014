"""Results of sweeps, and reading files of results."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rank1.errors import Rank1Error
from rank1.simulation.backends import Failure, RunCell
from rank1.simulation.result import result_of
from rank1.simulation.tidy import Tidy, read_tidy

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

__all__ = ["Sweep", "load", "missing_of", "read_sweep"]


@dataclass(frozen=True, eq=False)
class Sweep:
    """Regret of every run of a grid, and which columns are settings."""

    #: Tidy: one row per run and checkpoint, read when needed.
    frame: pl.LazyFrame = field(repr=False)
    problem_settings: list[str]
    policy_settings: list[str]
    runs: int
    seed: int
    #: Planned runs that are missing: number of the series, first run, end.
    missing: list[tuple[int, int, int]] = field(repr=False)
    #: The total number of planned runs.
    planned: int
    #: Cells that failed, with the reasons; only available from the call that played them.
    failed: Sequence[tuple[RunCell, Failure]] = field(default=(), repr=False)

    @classmethod
    def of(cls, tidy: Tidy, failed: Sequence[tuple[RunCell, Failure]] = ()) -> Sweep:
        """From a file, or from what a file would contain."""
        facts = tidy.facts
        if "series" in facts:
            planned = facts["series"] * facts["runs"]
        else:  # written by `simulate`, whose `runs` are those that were completed
            planned = sum(len(policy["runs"]) for policy in facts["policies"])
            planned += sum(stop - start for _, start, stop in facts["missing"])
        return cls(
            tidy.frame,
            facts["problem_settings"],
            facts["policy_settings"],
            facts["runs"],
            facts["seed"],
            [(number, start, stop) for number, start, stop in facts["missing"]],
            planned,
            failed,
        )

    @property
    def gap(self) -> str:
        """How many runs are missing, in words; empty if none are."""
        missing = sum(stop - start for _, start, stop in self.missing)
        return f"{missing:,} of {self.planned:,} runs are missing" if missing else ""

    def summary(
        self, shown: Collection[str] = (), where: Mapping[str, Any] | None = None
    ) -> pl.DataFrame:
        """Means and standard errors over the runs; see `rank1.sweeps.summary`."""
        from rank1.sweeps.summary import summary

        return summary(self, shown, where)

    def plot(self, x: str = "step", y: str | None = None, **options: Any) -> Figure:
        """Plot regret against a setting, or with `y` the best policy at each x and y.

        Options are those of `rank1.sweeps.plots.plot_lines` and `plot_winners`.
        """
        from rank1.sweeps.plots import plot_lines, plot_winners

        if y is None:
            return plot_lines(self, x, **options)[0]
        return plot_winners(self, x, y, **options)[0]


def read_sweep(path: str | os.PathLike[str]) -> Sweep:
    """Open any file of results as a sweep; rows are read when needed."""
    return Sweep.of(read_tidy(path))


def load(path: str | os.PathLike[str]) -> Any:
    """Read a file of results, from `Result.save`, `rank1 simulate --out` or a sweep.

    Returns a `Result` or a `Sweep`. The checksum of the file is verified.

    Examples
    --------
    >>> import rank1, tempfile, pathlib
    >>> problem = rank1.spike(K=2, L=2, p_u=0.5, p_v=0.5, delta_u=0.4, delta_v=0.4)
    >>> result = rank1.simulate(rank1.Rank1Elim(), problem, n=1000, runs=2, seed=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result.save(pathlib.Path(folder) / "runs.parquet")
    ...     again = rank1.load(pathlib.Path(folder) / "runs.parquet")
    >>> again.to_frame().equals(result.to_frame())
    True
    """
    tidy = read_tidy(path)
    return result_of(tidy) if "policies" in tidy.facts else Sweep.of(tidy)


def missing_of(path: Path, what: str) -> int | None:
    """The number of runs missing from a file of this same sweep; None if it isn't one."""
    try:
        facts = read_tidy(path).facts
    except Rank1Error:
        return None
    if facts.get("what") != what:
        return None
    return sum(stop - start for _, start, stop in facts["missing"])
