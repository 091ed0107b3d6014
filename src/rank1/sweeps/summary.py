"""Means and standard errors over the runs of a sweep."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from rank1 import checks
from rank1.errors import InputError
from rank1.simulation.tidy import REGRETS
from rank1.sweeps.output import Sweep

if TYPE_CHECKING:
    import polars as pl

__all__ = ["check_points", "summary", "winners"]

#: A policy wins clearly if its mean is lower by this many standard errors of the difference.
CLEAR = 2.0


def summary(
    sweep: Sweep, shown: Collection[str] = (), where: Mapping[str, Any] | None = None
) -> pl.DataFrame:
    """One row per combination of settings: runs, mean and standard error of both regrets.

    Regret is that at the end or, if `step` is among `shown`, at every checkpoint. `label` is the
    policy's name with every setting that isn't at its default, except for those among `shown`,
    which something else shows, such as the axis of a plot. `where` has values of settings, or lists
    of values; other rows are dropped.
    """
    import polars as pl

    keys = ["problem", *sweep.problem_settings, "policy", *sweep.policy_settings, "n"]
    for name in shown:
        checks.one_of("a setting", name, [*keys, "step"])
    frame = sweep.frame
    for name, value in (where or {}).items():
        checks.one_of("where: a setting", name, keys)
        kept = [_is(name, one) for one in _values(frame, name, value)]
        frame = frame.filter(pl.any_horizontal(kept))
    if "step" in shown:
        keys.append("step")
    else:
        frame = frame.filter(pl.col("step") == pl.col("n"))
    means = []
    for column in REGRETS:
        kind, runs = column.removesuffix("_regret"), pl.col(column).list
        error = runs.std() / runs.len().sqrt()
        means += [runs.mean().alias(f"{kind}_mean"), error.alias(f"{kind}_se")]
    # Lists keep the order of runs. Means of groups may be summed in another order every time, and
    # then the same file has tables that differ in the last digit.
    lists = frame.group_by(keys, maintain_order=True).agg(REGRETS).collect()
    number = pl.col(REGRETS[0]).list.len().alias("runs")
    rows = lists.with_columns(number, *means).drop(REGRETS)
    if rows.is_empty():
        raise InputError("where", where, "settings of some runs in the file")
    hidden = {name.removeprefix("policy_") for name in shown}
    # A label identifies a policy with its settings; colours depend only on its first word.
    return rows.with_columns(
        pl.Series("label", [_without(label, hidden) for label in rows["policy"]]),
        pl.Series("policy", [label.partition(":")[0] for label in rows["policy"]]),
    )


def _is(name: str, value: Any) -> pl.Expr:
    """Whether a column has a value. A policy's name matches it with any settings."""
    import polars as pl

    if name != "policy":
        return pl.col(name) == value
    label = pl.col(name).cast(pl.String)
    return (label == value) | label.str.starts_with(f"{value}:")


def _values(frame: pl.LazyFrame, name: str, value: Any) -> list[Any]:
    """The requested values of a column; each must exist."""
    import polars as pl

    there = frame.select(pl.col(name).unique(maintain_order=True)).collect()[name].drop_nulls()
    asked = value if isinstance(value, list) else [value]
    if isinstance(there.dtype, pl.Enum):
        asked = [one if isinstance(one, str) else json.dumps(one) for one in asked]
    known = there.to_list()
    if name == "policy":
        known = list(dict.fromkeys([*(label.partition(":")[0] for label in known), *known]))
    if not asked:
        raise InputError(f"where: {name}", asked, "a list of at least one value")
    for one in asked:
        if one not in known:
            some = ", ".join(str(v) for v in known[:12]) + (", …" if len(known) > 12 else "")
            raise InputError(f"where: {name}", one, f"one of {some or 'no value'}")
    return asked


def _without(label: str, hidden: Collection[str]) -> str:
    """A policy's label without some of its settings.

    >>> _without("linucb:confidence_scale=1/3,noise=1", {"noise"})
    'linucb:confidence_scale=1/3'
    """
    name, _, settings = label.partition(":")
    kept = [each for each in settings.split(",") if each.partition("=")[0] not in {"", *hidden}]
    return name + (":" + ",".join(kept) if kept else "")


def check_points(sweep: Sweep, rows: pl.DataFrame, shown: Collection[str]) -> None:
    """Check that each point of a plot is about one problem and one n."""
    import polars as pl

    hidden = [name for name in ("problem", *sweep.problem_settings, "n") if name not in shown]
    counts = rows.group_by([*shown, "label"]).agg(pl.col(hidden).n_unique()).select(hidden).max()
    for name, count in counts.row(0, named=True).items():
        if count > 1:
            hint = f"make it a facet, or keep one of its values, such as {name}={rows[name][0]}"
            got = f"{rows[name].n_unique()} values, which one point would mix"
            raise InputError(name, None, "the same in all runs of a point", hint, got=got)


def winners(rows: pl.DataFrame, by: list[str], regret: str = "expected") -> pl.DataFrame:
    """For each combination of `by`, the label with the smallest mean regret.

    `clear` says whether it is lower than the second's by two standard errors of their difference.
    """
    import polars as pl

    mean, se, label = pl.col(f"{regret}_mean"), pl.col(f"{regret}_se"), pl.col("label")
    second = mean.slice(1, 1).first()
    error = (se.first() ** 2 + se.slice(1, 1).first() ** 2).sqrt()
    clear = (second > mean.first()) & (second - mean.first() >= CLEAR * error)
    return (
        rows.sort(f"{regret}_mean", maintain_order=True)
        .group_by(by, maintain_order=True)
        .agg(
            label.first().alias("winner"),
            pl.col("policy").first(),
            mean.first().alias("mean"),
            se.first().alias("se"),
            label.slice(1, 1).first().alias("second"),
            second.alias("second_mean"),
            pl.when(pl.len() == 1).then(True).otherwise(clear.fill_null(False)).alias("clear"),
        )
        .sort(by)
    )
