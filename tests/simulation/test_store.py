"""Finished runs are found again, however they were cut; anything broken is not there."""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rank1
from rank1.simulation import store as store_module
from rank1.simulation.block import missing_runs
from rank1.simulation.store import Store
from tests.forked import python
from tests.simulation.test_block import block

KEY = hashlib.sha256(b"a series").hexdigest()
OTHER = hashlib.sha256(b"another").hexdigest()

CELLS = st.tuples(st.integers(0, 30), st.integers(1, 12)).map(lambda c: range(c[0], c[0] + c[1]))


@given(cells=st.lists(CELLS, max_size=8), start=st.integers(0, 20), size=st.integers(1, 25))
@settings(max_examples=60)
def test_every_kept_run_is_there_once(
    tmp_path_factory: pytest.TempPathFactory, cells: list[range], start: int, size: int
) -> None:
    store = Store(tmp_path_factory.mktemp("store"))
    for cell in cells:
        store.put(KEY, cell, block(cell))
    wanted = range(start, start + size)
    loaded = store.load(KEY, wanted)
    found = [run for first, part in loaded.items() for run in range(first, first + part.runs)]
    assert found == sorted(set(wanted) & {run for cell in cells for run in cell})
    assert sorted([*found, *(run for gap in missing_runs(wanted, loaded) for run in gap)]) == [
        *wanted
    ]
    for first, part in loaded.items():
        assert part["curves"][:, 1, 1].tolist() == [*range(first, first + part.runs)]
        assert part["best_arms"].tolist() == [*range(first, first + part.runs)]
        assert part.seconds == pytest.approx(part.runs)


def test_a_series_has_its_own_cells(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put(KEY, range(3), block(range(3)))
    assert store.finished([KEY, OTHER]) == {KEY: [range(3)], OTHER: []}
    assert store.load(OTHER, range(3)) == {}


@pytest.mark.parametrize("size", [0, 10, 100, -1])
def test_a_cell_that_was_cut_short_is_not_there(tmp_path: Path, size: int) -> None:
    store = Store(tmp_path)
    store.put(KEY, range(4), block(range(4)))
    path = Path(store.path(KEY, range(4)))
    whole = path.read_bytes()
    path.write_bytes(whole[:size])
    assert store.load(KEY, range(4)) == {}
    # What another cut of the runs has fills the hole.
    store.put(KEY, range(2, 6), block(range(2, 6)))
    assert [*store.load(KEY, range(6))] == [2]
    path.write_bytes(whole)
    assert [*store.load(KEY, range(6))] == [0, 4]


def test_one_changed_bit_is_noticed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put(KEY, range(4), block(range(4)))
    path = Path(store.path(KEY, range(4)))
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    assert store.get(KEY, range(4)) is None
    # Nor does a cell pass for another one's, however many runs it has.
    store.put(KEY, range(4), block(range(4)))
    other = KEY[:-1] + ("0" if KEY[-1] != "0" else "1")
    for place in (store.path(other, range(4)), store.path(KEY, range(4, 8))):
        Path(place).write_bytes(path.read_bytes())
    assert store.get(other, range(4)) is None
    assert store.get(KEY, range(4, 8)) is None
    store.put(KEY, range(4), block(range(4)))
    path.rename(store.path(KEY, range(5)))
    assert store.get(KEY, range(5)) is None


def test_what_was_being_written_is_not_read(tmp_path: Path) -> None:
    """A process that is killed in `put` leaves a file of another name."""
    store = Store(tmp_path)
    path = Path(store.path(KEY, range(4)))
    path.parent.mkdir()
    (path.parent / f".{path.name}.abcdef").write_bytes(b"half")
    (path.parent / "notes.txt").write_text("somebody's own")
    assert store.finished([KEY]) == {KEY: []}


def test_looking_creates_nothing_in_the_folder(tmp_path: Path) -> None:
    assert Store(tmp_path).load(KEY, range(4)) == {}
    assert os.listdir(tmp_path) == []


def test_a_write_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(path: Path, data: bytes) -> int:
        with path.open("wb") as file:
            file.write(data[: len(data) // 2])
        raise OSError(28, "No space left on device")

    store = Store(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", half)
        with pytest.raises(OSError, match=r"can't write .*No space left on device"):
            store.put(KEY, range(4), block(range(4)))
    assert store.finished([KEY]) == {KEY: []}
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_cell_of_another_layout_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    store.put(KEY, range(4), block(range(4)))
    assert store.get(KEY, range(4)) is not None
    monkeypatch.setattr(store_module, "LAYOUT", store_module.LAYOUT.replace(b"4", b"5"))
    assert store.get(KEY, range(4)) is None


@pytest.mark.parametrize("there", [True, False], ids=["to a file", "to nothing"])
def test_a_link_is_not_followed(tmp_path: Path, there: bool) -> None:
    """Else whoever may write to a store could have any file of its users overwritten, or read."""
    theirs = tmp_path / "theirs.txt"
    if there:
        theirs.write_text("somebody's own")
    store = Store(tmp_path / "cells")
    store.put(KEY, range(4), block(range(4)))
    path = Path(store.path(KEY, range(4)))
    whole = path.read_bytes()
    path.unlink()
    path.symlink_to(theirs)
    assert store.get(KEY, range(4)) is None
    store.put(KEY, range(4), block(range(4)))
    assert not path.is_symlink()
    assert path.read_bytes() == whole
    assert theirs.exists() == there
    assert not there or theirs.read_text() == "somebody's own"
    # Nor is a whole cell taken that a link leads to.
    path.rename(tmp_path / "elsewhere.cell")
    path.symlink_to(tmp_path / "elsewhere.cell")
    assert store.get(KEY, range(4)) is None


def directory(path: Path) -> None:
    path.mkdir()
    (path / "notes.txt").write_text("somebody's own")


def pipe(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pipes of this kind")
@pytest.mark.parametrize("make", [directory, pipe])
def test_what_is_no_file_in_the_place_of_a_cell_neither_stops_nor_hangs(
    tmp_path: Path, make: Any
) -> None:
    store = Store(tmp_path)
    path = Path(store.path(KEY, range(4)))
    path.parent.mkdir()
    make(path)
    kind = path.lstat().st_mode
    assert store.finished([KEY]) == {KEY: [range(4)]}
    assert store.load(KEY, range(4)) == {}
    store.put(KEY, range(4), block(range(4)))
    assert path.lstat().st_mode == kind
    assert path.is_fifo() or (path / "notes.txt").read_text() == "somebody's own"
    # The same under `simulate`: all runs are there, and what isn't a cell is left alone.
    problem = rank1.spike(2, 2, 0.4, 0.4, 0.5, 0.5)
    arguments: Any = rank1.Uniform(), problem, 100, 4
    whole = rank1.simulate(*arguments, store=tmp_path / "cells").to_frame()
    (cell,) = (tmp_path / "cells").rglob("*.cell")
    cell.unlink()
    make(cell)
    assert rank1.simulate(*arguments, store=tmp_path / "cells").to_frame().equals(whole)
    assert not cell.is_file()


def test_a_folder_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "cells").touch()
    with pytest.raises(rank1.InputError, match=r"store must be a folder, got '.*cells', which is"):
        Store(tmp_path / "cells")
    # A file where cells of a series should lie counts as no cells, too.
    store = Store(tmp_path)
    (tmp_path / KEY[:2]).touch()
    assert store.load(KEY, range(4)) == {}


def test_what_a_killed_process_was_writing_is_removed_after_an_hour(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put(KEY, range(4), block(range(4)))
    folder = Path(store.path(KEY, range(4))).parent
    name = f".{KEY[2:]}.0-8.cell."
    old, new = folder / f"{name}0123456789ab", folder / f"{name}ba9876543210"
    theirs = folder / ".notes.txt"  # not a name that we give
    for path in (old, new, theirs):
        path.write_bytes(b"half")
    before = time.time() - 3700
    for path in (old, theirs):
        os.utime(path, (before, before))
    assert store.finished([KEY]) == {KEY: [range(4)]}
    assert sorted(path.name for path in folder.iterdir() if path.name.startswith(".")) == sorted(
        [new.name, theirs.name]
    )


#: Root may do everything; after what it takes to play is loaded, it becomes somebody else.
AS_NOBODY = """
import os, sys
import rank1
problem, arguments = rank1.spike(2, 2, 0.4, 0.4, 0.5, 0.5), eval(sys.argv[2])
rank1.simulate(rank1.Uniform(), problem, 100)
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
try:
    result = rank1.simulate(rank1.Uniform(), problem, 100, store=sys.argv[1], **arguments)
    print(result.outcomes[0].expected.sum())
except rank1.Rank1Error as error:
    print(error)
"""


def as_nobody(folder: Path, **arguments: Any) -> str:
    """Play with a store, as somebody whom permissions concern."""
    done = python(AS_NOBODY, str(folder), repr(arguments))
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Pytest's own are for their owner alone."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)
        Path(name).chmod(0o755)


@pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")
def test_permissions(open_folder: Path) -> None:
    """A finished store may be read-only; cells that may not be read are played again."""
    folder = open_folder / "cells"
    problem = rank1.spike(2, 2, 0.4, 0.4, 0.5, 0.5)

    def expected(**arguments: Any) -> str:
        return str(rank1.simulate(rank1.Uniform(), problem, 100, **arguments).outcomes[0]
                   .expected.sum())  # fmt: skip

    rank1.simulate(rank1.Uniform(), problem, 100, 4, store=folder)
    for path in (*folder.rglob("*"), folder):
        path.chmod(0o555 if path.is_dir() else 0o444)
    assert as_nobody(folder, runs=4) == expected(runs=4)
    # What isn't in it can't be kept, and that is told before it is played.
    refused = as_nobody(folder, runs=5)
    assert refused.startswith(f"store must be a writable folder, got '{folder}'")
    # Cells and folders without permission, in a store that may be written to.
    (cell,) = folder.rglob("*.cell")
    folder.chmod(0o777)
    cell.parent.chmod(0o777)
    cell.chmod(0o000)
    assert as_nobody(folder, runs=4) == expected(runs=4)
    cell.chmod(0o444)
    cell.parent.chmod(0o000)
    shut = as_nobody(folder, runs=4)
    cell.parent.chmod(0o755)
    assert shut.startswith(f"can't write '{cell}': Permission denied")
    # Nor does one that may not be entered.
    open_folder.chmod(0o700)
    assert as_nobody(folder, runs=4).startswith("store must be a writable folder")
