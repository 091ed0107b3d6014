"""Finished runs are found again, however they were cut; anything broken is not there."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rank1.simulation.store import Block, Store, gaps

KEY = Store.key("a series")


def block(runs: range) -> Block:
    """Runs that can be told apart."""
    numbers = np.array(runs, np.float64)
    curves = np.repeat(numbers, 6).reshape(len(runs), 3, 2)
    return Block(curves, np.repeat(numbers, 2).reshape(-1, 2).astype(np.int64), len(runs) * 1.0)


CELLS = st.tuples(st.integers(0, 30), st.integers(1, 12)).map(lambda c: range(c[0], c[0] + c[1]))


@given(cells=st.lists(CELLS, max_size=8), start=st.integers(0, 20), size=st.integers(1, 25))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_kept_run_is_there_once(
    tmp_path_factory: pytest.TempPathFactory, cells: list[range], start: int, size: int
) -> None:
    store = Store(tmp_path_factory.mktemp("store"))
    for cell in cells:
        store.put(KEY, cell, block(cell))
    wanted = range(start, start + size)
    loaded = store.load(KEY, wanted)
    found = [run for first, part in loaded.items() for run in range(first, first + len(part[0]))]
    assert found == sorted(set(wanted) & {run for cell in cells for run in cell})
    assert sorted([*found, *(run for gap in gaps(wanted, loaded) for run in gap)]) == [*wanted]
    for first, part in loaded.items():
        assert part.curves[:, 1, 1].tolist() == [*range(first, first + len(part.curves))]
        assert part.best_pairs[:, 0].tolist() == [*range(first, first + len(part.curves))]
        assert part.seconds == pytest.approx(len(part.curves))


def test_a_series_has_its_own_cells(tmp_path: Path) -> None:
    store, other = Store(tmp_path), Store.key("another")
    store.put(KEY, range(3), block(range(3)))
    assert store.finished([KEY, other]) == {KEY: [range(3)], other: []}
    assert store.load(other, range(3)) == {}


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


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_to(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(ValueError, match="the store must be a folder that may be written to"):
        Store(tmp_path)
