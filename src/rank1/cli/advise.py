"""rank1 advise."""

from __future__ import annotations

from typing import Annotated, Any

from rank1.cli.app import app, print_json, show
from rank1.cli.options import Jobs, Json, Seed, integer, number, option, whole


@app.command(
    epilog="Example: rank1 advise --side headline=3 --side image=4 --horizon 50000 --rate 0.05 "
    "--goal find --lift 0.5"
)
def advise(
    horizon: Annotated[int, integer("Number of pulls (visitors) available.")],
    rate: Annotated[float, number("Average reward (such as the success rate) of an equal split.")],
    rows: Annotated[int | None, integer("Number of rows.")] = None,
    columns: Annotated[int | None, integer("Number of columns.")] = None,
    sides: Annotated[
        str | None, option("Number of levels of each side, instead of rows and columns: 12,8,4.")
    ] = None,
    side: Annotated[
        list[str] | None,
        option(
            "A side, with its number of levels or their names: image=4, button=A,B. Can be "
            "repeated.",
            metavar="NAME=LEVELS",
        ),
    ] = None,
    goal: Annotated[
        str, option("find (be sure which arm is best) or earn (keep regret low).")
    ] = "earn",
    confidence: Annotated[float, number("Probability that the arm found is the best.")] = 0.95,
    lift: Annotated[
        list[float] | None,
        number(
            "How much better the best levels are than the second best: 0.2 for 20%. Can be "
            "repeated; default: 0.2 and 0.5."
        ),
    ] = None,
    policy: Annotated[
        list[str] | None,
        option(
            "Simulate this policy instead: see `rank1 policies`. Can be repeated.", metavar="POLICY"
        ),
    ] = None,
    runs: Annotated[
        int | None, integer("Runs on each grid; default: as many as time allows.")
    ] = None,
    seed: Seed = 1,
    jobs: Jobs = 1,
    json_: Json = False,
) -> None:
    """Simulate tests like yours: is the traffic enough, and which policy is best?"""
    from rank1 import advice
    from rank1.errors import InputError
    from rank1.settings import parse_policy

    if side and sides is not None:
        raise InputError("sides", sides, "left out if --side is given")
    sizes = None if sides is None else [whole(text) for text in sides.split(",")]
    told = advice.advise(
        rows, columns, horizon, rate, goal,
        sides=_sides(side) if side else sizes,
        confidence=confidence, lifts=lift or None,
        policies=[parse_policy(text) for text in policy] if policy else None,
        runs=runs, seed=seed, jobs=jobs, progress=True,
    )  # fmt: skip
    if json_:
        print_json(told.document())
        return
    for words in told.words:
        show(f"{words}\n")
    show(_table(told))


def _sides(given: list[str]) -> dict[str, int]:
    """Sides by name.

    >>> _sides(["image=4", "button=buy,go"])
    {'image': 4, 'button': 2}
    """
    from rank1.errors import InputError

    found: dict[str, int] = {}
    for text in given:
        name, equals, levels = text.partition("=")
        if not (name and equals) or name in found:
            expected = "a new name and its levels, such as image=4 or button=A,B"
            raise InputError("side", text, expected)
        found[name] = len(levels.split(",")) if "," in levels else whole(levels)
    return found


def _table(told: Any) -> Any:
    from rank1.advice.words import table_of
    from rank1.tables import table

    header, rows = table_of(told.goal, told.figures)
    columns = [name if number < 3 else f"+{name}" for number, name in enumerate(header)]
    return table(*columns, title=f"Simulated, seed {told.seed}", rows=rows)
