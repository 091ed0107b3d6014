from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compiled.support import Sources


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sources]:
    """A folder for source files; what is imported of them is forgotten after the test."""
    # An edit within one second that keeps a file's size would go unnoticed.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    folder = tmp_path / "somebodys"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    written = Sources(folder)
    yield written
    written.forget()
