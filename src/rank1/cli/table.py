"""rank1 table."""

from __future__ import annotations

from rank1.cli.app import app, print_json, show
from rank1.cli.options import Json
from rank1.cli.plot import Result, Where


@app.command(epilog="Example: rank1 table result.parquet --where K=8")
def table(result: Result, where: Where = None, json_: Json = False) -> None:
    """Print the final regret of the runs in a file: mean and standard error."""
    import polars as pl

    from rank1.settings import parse_settings
    from rank1.statistics import with_error
    from rank1.sweeps import read_sweep
    from rank1.sweeps.summary import summary
    from rank1.tables import table as table_of

    sweep = read_sweep(result)
    settings = ["problem", *sweep.problem_settings, "n"]
    least = pl.col("expected_mean") == pl.col("expected_mean").min().over(settings)
    rows = summary(sweep, where=parse_settings(where or [], "--where")).with_columns(best=least)
    if json_:
        print_json({"rows": rows.to_dicts(), "missing": sweep.gap or None})
        return
    varying = [name for name in settings if rows[name].n_unique() > 1]
    fixed = {name: rows[name][0] for name in settings if name not in varying}
    text = ", ".join(f"{name} = {value}" for name, value in fixed.items() if value is not None)
    columns = *(f"+{name}" for name in varying), "policy", "+runs"
    regret = [f"+{kind} regret" for kind in ("expected", "realised")]
    told = [
        (
            *("" if row[name] is None else row[name] for name in varying),
            row["label"], row["runs"],
            *(with_error(row[f"{k}_mean"], row[f"{k}_se"]) for k in ("expected", "realised")),
            "*" if row["best"] else "",
        )
        for row in rows.iter_rows(named=True)
    ]  # fmt: skip
    caption = f"{sweep.gap}: these figures are from the others." if sweep.gap else ""
    shown = table_of(*columns, *regret, "+least", title=text, caption=caption, rows=told)
    show(shown, width=1000)
