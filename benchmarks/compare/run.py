"""Play the games with one package, in that package's environment.

`python -m benchmarks.compare.run with_river river 20000 10` prints a line of JSON for each cell.
"""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import inspect
import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from benchmarks.compare.game import Game

__all__ = ["GRIDS", "cells", "lines_of_code"]

#: By name: the size, and whether the means drift.
GRIDS = {"8×8": (8, False), "16×16": (16, False), "8×8, drift": (8, True)}
#: Steps that each player plays before the measurement, to compile and import everything.
WARM_UP = 300


def lines_of_code(module: ModuleType, player: Callable[..., Any]) -> int:
    """Count the lines that a user writes: the imports, the function, and the helpers it uses.

    The lines are those of `ast.unparse`: no blank lines or comments, and each statement on one
    line. Docstrings and the import of the game don't count.
    """
    sharing: dict[str, Any] = getattr(module, "SHARED", {})
    names = {player.__name__} | {name for name, by in sharing.items() if player in by.values()}
    found = 0
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.FunctionDef) and node.name in names:
            if ast.get_docstring(node) is not None:
                del node.body[0]
            found += len(ast.unparse(node).splitlines())
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found += getattr(node, "module", "") not in ("__future__", "benchmarks.compare.game")
    return found


def cells(module: ModuleType, n: int, runs: int) -> Iterator[dict[str, Any]]:
    """Play each player on each grid."""
    kinds = [("earn", getattr(module, "EARN", {})), ("find", getattr(module, "FIND", {}))]
    for kind, players in kinds:
        for (name, player), grid in itertools.product(players.items(), GRIDS):
            player(Game(2, WARM_UP, seed=0))
            K, drift = GRIDS[grid]
            games = [Game(K, n, seed, drift) for seed in range(1, runs + 1)]
            begin = time.process_time()
            answers = [player(game) for game in games]
            seconds = time.process_time() - begin
            steps = sum(game.steps for game in games)
            yield {
                "kind": kind,
                "player": name,
                "grid": grid,
                "lines": lines_of_code(module, player),
                "microseconds": 1e6 * seconds / steps,
                "steps": [game.steps for game in games],
                "regret": [game.regret for game in games],
                "early": [game.regret_at_checkpoint for game in games],
                "right": [
                    bool(it and game.is_best(*it)) for it, game in zip(answers, games, strict=True)
                ],
                "none": [it is None for it in answers],
                "leads": [game.is_best(*game.most_played) for game in games],
            }


if __name__ == "__main__":
    name, package, n, runs = sys.argv[1:]
    module = importlib.import_module(f"benchmarks.compare.{name}")
    print(json.dumps({"version": importlib.metadata.version(package)}), flush=True)
    for cell in cells(module, int(n), int(runs)):
        print(json.dumps(cell), flush=True)
