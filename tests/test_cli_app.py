"""Tables at a terminal: no text is cut and no number is broken, however narrow it is."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

import pytest
from rich import box
from rich.table import Table

from rank1 import cli
from rank1.cli.app import show

Print = Callable[..., str]
NUMBERS = ("1,234,567.8 ± 12,345.6", "1,388.9 ± 82.3")


def table() -> Table:
    table = Table(title="A title of a few words", caption="and a caption", box=box.SIMPLE)
    table.add_column("policy")
    for name in ("runs", "expected regret", "best pair"):
        table.add_column(name, justify="right")
    table.add_row("rank1elim", "20", NUMBERS[0], "(12, 3)")
    table.add_row("linucb:radius=horizon", "5", NUMBERS[1], "(0, 0)")
    return table


@pytest.fixture
def at_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Print:
    """Print on a terminal with this many columns, and remove escape sequences."""

    def printed(columns: int, work: Callable[[], Any]) -> str:
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        work()
        return re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out)

    return printed


def parts(cell: str) -> list[str]:
    """Return the parts of a cell that may be on separate lines."""
    return re.split("(?<!,) ", cell)


@pytest.mark.parametrize("columns", range(30, 100))
def test_no_number_is_cut_or_broken(columns: int, at_terminal: Print) -> None:
    out = at_terminal(columns, lambda: show(table()))
    assert max(map(len, out.splitlines())) <= columns
    assert "…" not in out
    for row in ("rank1elim", "linucb:radius=horizon", "(12, 3)", "(0, 0)"):
        assert row in out
    for number in NUMBERS:
        for part in parts(number):
            assert part in out
    assert "A title of a few words" in " ".join(out.split())
    assert "and a caption" in out


def test_a_wide_terminal_has_the_table_a_narrow_one_a_list(at_terminal: Print) -> None:
    wide = at_terminal(80, lambda: show(table()))
    assert re.search(r"rank1elim +20 +1,234,567\.8 ± 12,345\.6 +\(12, 3\)", wide)
    narrower = at_terminal(65, lambda: show(table()))
    assert re.search(r"rank1elim +20 +1,234,567\.8 ± +\(12, 3\)", narrower)
    assert at_terminal(40, lambda: show(table())).splitlines() == [
        "A title of a few words",
        "",
        "policy: rank1elim",
        "runs: 20",
        "expected regret: 1,234,567.8 ± 12,345.6",
        "best pair: (12, 3)",
        "",
        "policy: linucb:radius=horizon",
        "runs: 5",
        "expected regret: 1,388.9 ± 82.3",
        "best pair: (0, 0)",
        "and a caption",
        "",
    ]


def test_text_goes_where_there_is_room(at_terminal: Print) -> None:
    listing = Table("name", "what it is", "settings", box=box.SIMPLE)
    listing.add_row("a", "one two three four five six seven eight nine ten", "x=1, y=2")
    out = at_terminal(50, lambda: show(listing))
    assert len(out.splitlines()) == 6  # two of them are text
    assert "x=1, y=2" in out


def test_commands_at_40_columns(monkeypatch: pytest.MonkeyPatch, at_terminal: Print) -> None:
    settings = ["K=8", "L=8", "p_u=0.7", "p_v=0.7", "delta_u=0.2", "delta_v=0.2"]
    problem = ["--problem", "spike", *(part for each in settings for part in ("--set", each))]
    for command in (
        ["simulate", *problem, "--policy", "rank1elim", "--n", "1e5", "--runs", "3"],
        ["bounds", *problem],
        ["policies"],
    ):
        monkeypatch.setattr(sys, "argv", ["rank1", *command])

        def run() -> None:
            with pytest.raises(SystemExit) as end:
                cli.main()
            assert end.value.code == 0

        wide, narrow = at_terminal(300, run), at_terminal(40, run)
        assert max(map(len, narrow.splitlines())) <= 40
        numbers = [
            number
            for number in re.findall(r"\d[\d,.]*\d", wide)
            if "seconds" not in wide or "." not in number or "," in number  # times differ
        ]
        assert len(numbers) > 3
        for number in numbers:
            assert number in narrow, (command, number)


def test_a_file_gets_what_it_is_given_room_for(capsys: pytest.CaptureFixture[str]) -> None:
    show(table(), width=1000)
    assert re.search(r"rank1elim +20 +1,234,567\.8 ± 12,345\.6", capsys.readouterr().out)
