"""`make compare`: its page has all packages, and its tables show what the runs printed."""

from __future__ import annotations

import ast
import importlib
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.compare import page, run
from benchmarks.compare.__main__ import PAGE, RIVALS, N, Rival, main, outcome_of
from benchmarks.compare.game import CHECKPOINT, Game

FOLDER = Path(run.__file__).parent


def players(module: str) -> set[str]:
    """Return the names in EARN and FIND of a module whose package may not be installed."""
    found = set()
    for node in ast.parse((FOLDER / f"{module}.py").read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in ("EARN", "FIND"):
            assert isinstance(node.value, ast.Dict)
            found |= {ast.literal_eval(key) for key in node.value.keys if key}
    return found


def test_every_module_is_played() -> None:
    assert {rival.module for rival in RIVALS} == {path.stem for path in FOLDER.glob("with_*.py")}


@pytest.mark.parametrize("rival", RIVALS, ids=lambda rival: rival.module)
def test_the_page_has_every_player_or_says_why_not(rival: Any) -> None:
    part = PAGE.read_text().partition(page.BEGIN)[2].partition(page.END)[0]
    found = set(re.findall(rf"^\| {rival.title} [\d.]+ \| (.*?) \|", part, re.M))
    assert players(rival.module)
    if found:
        assert found >= players(rival.module)
    else:
        assert f"- {rival.title}: `" in part


def test_a_game_is_the_same_whoever_plays() -> None:
    one, two = Game(8, 10, seed=3), Game(8, 10, seed=3)
    for game in (one, two):
        for _ in range(20):
            for pair in range(64):
                game.pull(*divmod(pair, 8))
    assert one.regret == two.regret == pytest.approx(20 * (14 * 0.18 + 49 * 0.32))
    assert one.regret_at_checkpoint == two.regret_at_checkpoint < one.regret
    assert [one.pull(0, 0) for _ in range(50)] == [two.pull(0, 0) for _ in range(50)]
    assert sum(one.is_best(i, j) for i in range(8) for j in range(8)) == 1
    assert Game(8, 10, seed=4).means != one.means


def test_rounds_show_each_pair_equally_often() -> None:
    game = Game(8, 10, seed=3)
    sums = game.rounds(range(64), 4_000)
    means = np.ravel(game.means)
    assert np.abs(sums / 4_000 - means).max() < 4.5 * 0.5 / np.sqrt(4_000)
    assert game.regret == pytest.approx(4_000 * (14 * 0.18 + 49 * 0.32))
    assert game.steps == sum(game.played) == 64 * 4_000
    game.pull(*divmod(int(means.argmax()), 8))
    assert game.is_best(*game.most_played)


def test_drift_lowers_all_means_alike() -> None:
    game = Game(8, 10, seed=3, drift=True)
    sums = game.rounds(range(64), 4_000)  # 85.3 periods
    means = np.ravel(game.means)
    assert np.abs(sums / 4_000 / 0.55 - means).max() < 4.5 * 0.5 / np.sqrt(4_000) / 0.55
    assert game.regret == pytest.approx(0.55 * 4_000 * (14 * 0.18 + 49 * 0.32), rel=0.01)


MODULE = '''
from __future__ import annotations
import sys
from collections.abc import (
    Callable,
)
from benchmarks.compare.game import Game

def first_pair(game: Game) -> None:
    """Not counted."""

    for _ in range(game.n):
        _show(game)  # nor this

def _show(game: Game) -> None:
    game.pull(0, 0)

def another(game: Game) -> None:
    game.pull(0, 1)

EARN = {"first pair": first_pair}
SHARED = {"_show": EARN}
'''


def test_cells_and_lines_of_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "with_nothing.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("with_nothing")
    assert run.lines_of_code(module, module.first_pair) == 2 + 3 + 2
    cells = list(run.cells(module, n=2 * CHECKPOINT, runs=3))
    assert [cell["grid"] for cell in cells] == list(run.GRIDS)
    assert cells[0]["steps"] == [2 * CHECKPOINT] * 3
    assert cells[0]["regret"] == pytest.approx([2 * it for it in cells[0]["early"]])
    assert cells[0]["microseconds"] > 0


def cell(kind: str, player: str, grid: str, **more: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "kind": kind, "player": player, "grid": grid, "lines": 9, "microseconds": 12.3,
        "steps": [N, N], "regret": [90.0, 110.0], "early": [10.0, 20.0],
        "right": [True, True], "none": [False, False], "leads": [True, False],
    }  # fmt: skip
    return {**base, **more}


def test_tables_say_what_was_printed() -> None:
    lines = ["Warning: something else", json.dumps({"version": "1.2"})]
    lines += [json.dumps(cell("earn", "greedy", grid)) for grid in run.GRIDS]
    short = {"steps": [CHECKPOINT], "regret": [7.0], "early": [7.0]}
    lines += [json.dumps(cell("earn", "short", grid, **short)) for grid in run.GRIDS]
    found = {"steps": [300, 500], "right": [False, False], "none": [False, True]}
    lines += [json.dumps(cell("find", "test", grid, **found)) for grid in run.GRIDS]
    some = page.read("some", "\n".join(lines))
    text = page.tables([some, page.Outcome("none", error="it broke")], N, "a box", "make it")
    late = "100 ± 10 | 100 ± 10 | 100 ± 10 | 1 | 1 | 1"
    assert f"| some 1.2 | greedy | 15 ± 5 | 15 ± 5 | {late} | 2 | 12 | 12 | 9 |" in text
    assert "| some 1.2 | short | 7 | 7 | – | – | – | 1 | 1 | 1 | 1 | 12 | 12 | 9 |" in text
    pulls = "400 ± 100 | 400 ± 100 | 400 ± 100"
    assert f"| some 1.2 | test | {pulls} | 1 and 1 | 1 and 1 | 1 and 1 | 2 | 9 |" in text
    assert "- none: `it broke`" in text
    old = page.Outcome("old", "0.1", "no wheel", some.cells)
    assert "- old, first attempt; the tables have 0.1: `no wheel`" in page.tables([old], N, "", "")
    assert "`make it` on a box" in text
    whole = page.with_tables(f"before\n{page.BEGIN}\nold\n{page.END}\nafter\n", text)
    assert whole.startswith("before\n")
    assert whole.endswith("\nafter\n")
    assert "old" not in whole
    assert page.with_tables(whole, text) == whole


def test_the_line_that_says_most() -> None:
    pip = "  File '<string>', line 2\n  AttributeError: no attribute 'x'\nnote: not pip's fault\n"
    assert page.reason(pip) == "AttributeError: no attribute 'x'"
    path = "ERROR: Cannot open " + "/".join(["", "home", "me", "x.whl"])
    assert page.reason(path) == "ERROR: Cannot open …"
    assert page.reason("") == "no message"


def test_one_package_again_keeps_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Results are saved as soon as they are there, and the page is written from them."""
    command = "benchmarks.compare.__main__"
    monkeypatch.setattr(f"{command}.cache_directory", lambda: tmp_path)
    monkeypatch.setattr(f"{command}.PAGE", tmp_path / "page.md")
    (tmp_path / "page.md").write_text(f"{page.BEGIN}\n{page.END}")
    played: list[str] = []

    def outcome(rival: Rival) -> page.Outcome:
        played.append(rival.module)
        if len(played) == 4:
            raise KeyboardInterrupt
        cells = [cell("find", rival.module, grid) for grid in run.GRIDS]
        return page.Outcome(rival.title, str(len(played)), cells=cells)

    monkeypatch.setattr(f"{command}.outcome_of", outcome)
    for name in ("with_river", "with_obp", "with_river"):
        main(["--only", name])
    text = (tmp_path / "page.md").read_text()
    assert "| river 3 | with_river |" in text
    assert "| obp 2 | with_obp |" in text
    assert "- Optuna: `not played yet`" in text
    with pytest.raises(KeyboardInterrupt):
        main(["--only", "with_obp"])
    assert set(json.loads((tmp_path / "compare.json").read_text())) == {"with_river", "with_obp"}
    assert (tmp_path / "page.md").read_text() == text


def test_the_rule_stops_at_the_best_pair() -> None:
    from benchmarks.compare import with_rank1_stopping

    for player in with_rank1_stopping.FIND.values():
        game = Game(2, 300, seed=0)
        found = player(game)
        assert found
        assert game.is_best(*found)


def test_a_package_that_is_not_there_is_named() -> None:
    outcome = outcome_of(Rival("nobody", "with_nobody", "nobody", 1))
    assert not outcome.cells
    assert "with_nobody" in outcome.error
    assert sys.executable not in outcome.error
