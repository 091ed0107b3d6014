"""rank1 study best and rank1 study show: the results, in words and as a picture."""

from __future__ import annotations

import math
from typing import Any

from rank1.cli.app import counted, print_json, show
from rank1.cli.options import Json
from rank1.cli.study import Name, Storage, _opened, _table, study_app
from rank1.documents import above

#: Shades from low to high means, for grids that are too wide for numbers.
SHADES = " ░▒▓█"
#: The widest grid, in columns, that is drawn with numbers.
COLUMNS = 12


@study_app.command(epilog="Example: rank1 study best spring")
def best(name: Name, storage: Storage = "rank1.db", json_: Json = False) -> None:
    """Print the leader, intervals and effects, and whether to stop."""
    with _opened(name, storage) as study:
        found = study.best()
    if json_:
        print_json(found.to_dict())
        return
    _verdicts(found)
    if found.leader is None:
        return
    _arms(found, (-found.mean_upper).argsort(axis=None, kind="stable")[:10].tolist())
    show(
        "An effect is a level's mean relative to that of the leader's level, with an interval at "
        f"{found.confidence:.0%} confidence."
    )
    for side, names in found.sides.items():
        effects = found.effects[side]
        scale = above((found.lift or {}).get("above", 0.0))
        table = _table(side, f"effect{scale}", "interval")
        for label, (effect, low, high) in list(zip(names, effects.tolist(), strict=True))[:20]:
            known = "?" if math.isnan(effect) else f"{effect:.3g}"
            table.add_row(label, known, f"{low:.3g} to {high:.3g}")
        show(table)


def _arms(found: Any, order: list[int]) -> None:
    """Print a line for each of these arms that has reports."""
    import numpy as np

    table = _table("arm", "reports", "mean", "interval", "")
    for k in order:
        at = np.unravel_index(k, found.counts.shape)
        labels = tuple(names[i] for names, i in zip(found.sides.values(), at, strict=True))
        if found.counts[at]:
            pending = f"+{found.pending[at]}" if found.pending[at] else ""
            mark = "leads" if labels == found.leader else "ruled out" if found.out[at] else ""
            table.add_row(
                " × ".join(labels),
                f"{found.counts[at]:,.0f}",
                f"{found.means[at]:.4g}",
                f"{found.mean_lower[at]:.3g} to {found.mean_upper[at]:.3g}",
                f"{mark} {pending}".strip(),
            )
    show(table)


def _verdicts(found: Any) -> None:
    show(found.statement)
    show(found.next_step)
    for warning in found.warnings:
        show(f"Note: {warning}")
    show(f"If one order holds: {found.reason}.")
    show(f"On any grid: {found.any_grid_reason}.")
    if found.leader is not None:
        show(
            f"The average reward is {found.rate:.4g} so far; an equal split would have brought "
            f"about {found.equal_split:.4g}."
        )


@study_app.command("show", epilog="Example: rank1 study show spring")
def show_(name: Name, storage: Storage = "rank1.db", json_: Json = False) -> None:
    """Draw the grid: means, the leader (*), arms ruled out (-) and pending suggestions (+n).

    Unless there are exactly two sides, list the arms with the largest means instead.
    """
    with _opened(name, storage) as study:
        found, label, revision = study.best(), study.policy.label, study.revision
    if json_:
        print_json({"name": name, "policy": label, "revision": revision, **found.to_dict()})
        return
    totals = ", ".join(
        counted(n, key[:-1]) if key.endswith("s") else f"{n:,} {key}"
        for key, n in found.totals.items()
    )
    show(f"{name}: {label}, revision {revision}; {totals}")
    if len(found.sides) == 2:
        show(_figures(found) if len(found.columns) <= COLUMNS else _shades(found))
    else:
        _arms(found, (-found.means).argsort(axis=None, kind="stable")[:40].tolist())
    _verdicts(found)


def _scale(found: Any) -> tuple[float, float]:
    known = found.means[found.counts > 0]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    return low, max(high - low, 1e-12)


def _figures(found: Any) -> Any:
    """Make a table with a cell for each pair; on a terminal, darker means better."""
    from rich.text import Text

    from rank1.tables import table as table_of

    low, width = _scale(found)
    table = table_of("", *(f"+{column}" for column in found.columns))
    for i, row in enumerate(found.rows):
        cells = []
        for j, column in enumerate(found.columns):
            text, style = "?", ""
            if found.counts[i, j]:
                text = f"{found.means[i, j]:.3g}"
                shade = 255 - round(200 * (found.means[i, j] - low) / width)
                ink = "black" if shade > 140 else "white"
                style = f"{ink} on rgb({shade},{shade},255)"
            text += "*" if (row, column) == found.leader else "-" if found.out[i, j] else " "
            text += f" +{found.pending[i, j]}" if found.pending[i, j] else ""
            cells.append(Text(text, style))
        table.add_row(row, *cells)
    return table


def _shades(found: Any) -> str:
    """Draw a character for each pair: a shade for its mean, * for the leader, ? without reports."""
    low, width = _scale(found)
    label = max(len(row) for row in found.rows)
    lines = []
    for i, row in enumerate(found.rows):
        cells = ""
        for j, column in enumerate(found.columns):
            place = (found.means[i, j] - low) / width if found.counts[i, j] else 0.0
            shade = SHADES[min(int(place * len(SHADES)), len(SHADES) - 1)]
            mark = shade if found.counts[i, j] else "?"
            cells += "*" if (row, column) == found.leader else mark
        lines.append(f"{row:>{label}} {cells}")
    scale = f"'{SHADES[0]}' is {low:.3g}, '{SHADES[-1]}' is {low + width:.3g}, * leads"
    return "\n".join([*lines, f"columns: {', '.join(found.columns)}", scale])
