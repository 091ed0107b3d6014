"""Progress where standard error isn't a terminal."""

from __future__ import annotations

import time

import pytest

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
