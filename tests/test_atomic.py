"""Files that are written completely or not at all."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest

from rank1.atomic import alone, check_writable, whole_file


@pytest.mark.parametrize("sync", [True, False])
def test_what_is_written_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sync: bool
) -> None:
    place = tmp_path / "a.txt"
    forced: list[bytes] = []

    def fsync(handle: int) -> None:
        assert not place.exists()
        forced.append(os.pread(handle, 100, 0))

    monkeypatch.setattr(os, "fsync", fsync)
    with whole_file(place, sync=sync) as temporary:
        temporary.write_bytes(b"all of it")
    assert place.read_bytes() == b"all of it"
    assert forced == ([b"all of it"] if sync else [])


def test_a_check_leaves_nothing_behind(tmp_path: Path) -> None:
    check_writable(tmp_path / "a.txt")
    assert os.listdir(tmp_path) == []
    with pytest.raises(OSError, match="in an existing, writable folder"):
        check_writable(tmp_path / "no" / "a.txt")


@pytest.mark.parametrize("number", [errno.EBADF, errno.EWOULDBLOCK])
def test_a_folder_that_can_not_be_locked_stops_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Neither one that knows no locks, nor one that another program keeps locked."""
    fcntl = pytest.importorskip("fcntl")
    waits: list[float] = []

    def refuse(*_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    monkeypatch.setattr(time, "sleep", waits.append)
    with alone(tmp_path / "a.txt"):
        assert sum(waits) == pytest.approx(5 if number == errno.EWOULDBLOCK else 0)
