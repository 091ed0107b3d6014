"""Progress if standard error isn't a terminal: lines of text, and bars in notebooks."""

from __future__ import annotations

import sys
import time
import types
from typing import Any

import pytest

import rank1
from rank1 import progress


def test_lines_tell_what_is_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    with progress.Progress(True, "cells", 40.0, lines=True) as bar:
        for k in range(1, 5):
            now += 6.0  # a line every ten seconds
            bar.advance(10.0, f"{k} of 4")
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == ["2 of 4, 0:00:12 left", "4 of 4, 0:00:24 taken"]


def test_nothing_is_drawn_where_nobody_asked(capsys: pytest.CaptureFixture[str]) -> None:
    for wanted, lines in ((True, False), (False, True)):
        with progress.Progress(wanted, "cells", 2.0, lines=lines) as bar:
            bar.advance(2.0, "all")
    assert capsys.readouterr() == ("", "")


def test_short_numbers() -> None:
    values = (0, 5, 999, 1000, 1.5e6, 2e9)
    assert [progress.short(value) for value in values] == ["0", "5", "999", "1k", "1.5M", "2G"]


class Notebook:
    """The part of IPython that a Jupyter kernel provides."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, kernel: bool = True) -> None:
        self.shown: list[dict[str, str]] = []
        ipython: Any = types.ModuleType("IPython")
        shell = types.SimpleNamespace(kernel=1) if kernel else types.SimpleNamespace()
        ipython.get_ipython = lambda: shell
        ipython.display = types.ModuleType("IPython.display")
        ipython.display.display = self.display
        monkeypatch.setitem(sys.modules, "IPython", ipython)
        monkeypatch.setitem(sys.modules, "IPython.display", ipython.display)

    def display(self, data: dict[str, str], raw: bool, display_id: bool) -> Notebook:
        assert raw
        assert display_id
        self.shown.append(data)
        return self

    def update(self, data: dict[str, str], raw: bool) -> None:
        assert raw
        self.shown.append(data)


def test_a_notebook_has_a_bar(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook = Notebook(monkeypatch)
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    with progress.Progress(True, "steps", 40.0) as bar:
        for _ in range(400):  # there isn't a state for each of them
            now += 0.01
            bar.advance(0.1, "u<cb1")
    assert capsys.readouterr() == ("", "")
    texts = [data["text/plain"] for data in notebook.shown]
    assert texts[0] == "steps, …"
    assert texts[-1] == "u<cb1, 0:00:04 taken"
    assert "u<cb1, 0:00:02 left" in texts
    assert 10 < len(texts) < 20
    bars = [data["text/html"] for data in notebook.shown]
    done = [float(bar.split('"')[1]) for bar in bars]
    assert done == sorted(done)
    assert done[-1] == pytest.approx(40)
    assert 'max="40.0"></progress> u&lt;cb1, 0:00:04 taken' in bars[-1]


def test_a_notebook_shows_nothing_that_nobody_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = Notebook(monkeypatch)
    with progress.Progress(False, "steps", 2.0) as bar:
        bar.advance(2.0, "all")
    assert notebook.shown == []


def test_ipython_at_a_terminal_is_no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = Notebook(monkeypatch, kernel=False)
    with progress.Progress(True, "steps", 2.0) as bar:
        bar.advance(2.0, "all")
    assert notebook.shown == []


def test_simulate_shows_progress_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = Notebook(monkeypatch)
    rank1.simulate(rank1.UCB1(), rank1.spike(2, 2, 0.5, 0.5, 0.2, 0.2), 100, 2, progress=True)
    assert len(notebook.shown) >= 2
    assert notebook.shown[-1]["text/plain"].endswith(" taken")
