"""rank1 plot."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rank1.cli.app import app, print_json
from rank1.cli.options import Json, option
from rank1.errors import InputError

Where = Annotated[
    list[str] | None,
    option("Only these values of a setting: K=8, or K=[8,16].", "--where", metavar="NAME=VALUE"),
]
Result = Annotated[
    Path, typer.Argument(help="A file from `rank1 sweep` or `rank1 simulate --out`.")
]


@app.command(epilog="Example: rank1 plot result.parquet --x delta_u --facet K --out regret.png")
def plot(
    result: Result,
    out: Annotated[Path, option("A .png, .svg or .pdf file.")] = Path("plot.png"),
    x: Annotated[str, option("A numeric setting, or step.")] = "step",
    y: Annotated[
        str | None, option("A second setting: show which policy wins at each x and y.")
    ] = None,
    facet: Annotated[
        list[str] | None,
        option(
            "One panel per value of this setting; a second facet makes rows of panels.",
            metavar="NAME",
        ),
    ] = None,
    where: Where = None,
    regret: Annotated[str, option("expected or realised.")] = "expected",
    log_x: Annotated[bool, option("A logarithmic x axis.", "--log-x")] = False,
    log_y: Annotated[bool, option("A logarithmic y axis.", "--log-y")] = False,
    json_: Json = False,
) -> None:
    """Plot a file of results: mean regret against a setting, or which policy wins where."""
    from rank1.plots import checked_ending, save_figure
    from rank1.settings import parse_settings
    from rank1.sweeps import read_sweep
    from rank1.sweeps.plots import plot_lines, plot_winners

    checked_ending(out, "--out")
    kept = parse_settings(where or [], "--where")
    sweep = read_sweep(result)
    if y is None:
        figure, document = plot_lines(sweep, x, facet or [], kept, regret, log_x, log_y)
    elif log_x or log_y:
        hint = "logarithmic axes are for lines; with --y each value is a square"
        raise InputError("y", y, "left out with --log-x and --log-y", hint)
    else:
        figure, document = plot_winners(sweep, x, y, facet or [], kept, regret)
    save_figure(figure, out)
    if json_:
        print_json(document | {"missing": sweep.gap or None, "out": str(out)})
    else:
        print(f"Written: {out}" + (f" ({sweep.gap})" if sweep.gap else ""))
