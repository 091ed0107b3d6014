"""Files of results: every row is there, and every bit of a file is checked."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import rank1
from rank1.simulation import Series
from rank1.simulation import tidy as tidy_module
from rank1.simulation.tidy import read_tidy
from rank1.sweeps import SweepGrid, read_sweep, write_sweep
from rank1.sweeps.play import plan
from rank1.sweeps.summary import summary
from tests.simulation.support import ENVIRONMENT, NUMBERS, Named, grid

PROBLEM = rank1.spike(4, 3, 0.5, 0.4, 0.4, 0.5)
BOTH = [rank1.Rank1Elim(), rank1.Uniform()]
DAMAGED = "path must be a complete file of results"


def swept(some: SweepGrid, path: Path) -> int:
    todo = plan(some)
    assert todo.play() == []
    return write_sweep(path, some, todo)


def saved(path: Path) -> None:
    rank1.simulate(BOTH, PROBLEM, 1000, 3, seed=5, checkpoints=10).save(path)


@pytest.fixture(params=["simulate", "sweep"])
def path(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A file of either kind."""
    path = tmp_path / "runs.parquet"
    if request.param == "simulate":
        saved(path)
    else:
        swept(grid(BOTH), path)
    return path


def test_any_flipped_bit_is_the_one_clear_error(
    path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """400 bits anywhere, and every bit of the first and last words and of the digest."""
    whole = path.read_bytes()
    rng = np.random.default_rng(9)
    digest = whole.index(b"rank1-sha256") * 8
    bits = [*rng.integers(0, len(whole) * 8, 400), *range(64), *range(digest - 16, digest + 240, 3)]
    bits += range((len(whole) - 12) * 8, len(whole) * 8)
    where = whole.index(b'"format": 4') + 10
    bits += range(where * 8, where * 8 + 8)  # it isn't taken for a file of another version
    for bit in bits:
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        for read in (rank1.load, read_sweep):
            with pytest.raises(rank1.InputError, match=DAMAGED):
                read(path)
    path.write_bytes(whole)
    rank1.load(path)
    assert capfd.readouterr() == ("", "")  # what breaks inside doesn't show


def test_every_cut_is_an_error(path: Path) -> None:
    whole = path.read_bytes()
    for size in (0, 3, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(rank1.InputError, match=DAMAGED):
            rank1.load(path)
    path.write_bytes(whole + b"\0")
    with pytest.raises(rank1.InputError, match=DAMAGED):
        rank1.load(path)


@pytest.mark.parametrize("column", ["step", "run", "realised_regret", "best_arm", "K"])
def test_numbers_that_somebody_changed_are_noticed(path: Path, column: str) -> None:
    """The file is whole, and made by the same program."""
    runs, facts = pl.read_parquet(path), pl.read_parquet_metadata(path)["rank1"]
    runs[7, column] += 1
    runs.write_parquet(path, metadata={"rank1": facts})
    with pytest.raises(rank1.InputError, match="its checksum is wrong"):
        rank1.load(path)


def test_what_is_no_file_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_text("policy,run\n")
    with pytest.raises(rank1.InputError, match=DAMAGED):
        rank1.load(path)
    pl.DataFrame({"a": [1]}).write_parquet(path)
    with pytest.raises(rank1.InputError, match=DAMAGED):
        rank1.load(path)
    for there in ("nothing", "."):
        with pytest.raises(FileNotFoundError, match=r"path must name a file of results, got '.*'"):
            rank1.load(tmp_path / there)
    if os.name != "nt":
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(rank1.FileError, match=r"must name a file of results, got '.*pipe'"):
            rank1.load(tmp_path / "pipe")


def test_a_file_of_another_format_is_not_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither an older one nor a newer one; what wrote it could still read it."""
    for version in (2, 5):
        monkeypatch.setattr(tidy_module, "FORMAT", version)
        told = f"a file of format 3 or {version}, got format 4 in .*: install the version of rank1"
        for read in (rank1.load, read_sweep):
            with pytest.raises(rank1.InputError, match=told):
                read(path)
    # One without a digest, as there were: its format is told, too.
    facts = json.loads(pl.read_parquet_metadata(path)["rank1"])
    del facts["rank1-sha256"]
    old = {"rank1": json.dumps(facts | {"format": 2})}
    pl.read_parquet(path).write_parquet(path, metadata=old)
    monkeypatch.undo()
    with pytest.raises(rank1.InputError, match="a file of format 3 or 4, got format 2"):
        rank1.load(path)


def test_names_are_names_and_not_patterns(tmp_path: Path) -> None:
    """Else one would read another's numbers."""
    for name, seed in (("o[1].parquet", 1), ("o1.parquet", 2), ("o*.parquet", 3), ("o?", 4)):
        some = SweepGrid([PROBLEM], BOTH, [500], 3, seed, 2)
        swept(some, tmp_path / name)
    for name, seed in (("o[1].parquet", 1), ("o1.parquet", 2), ("o*.parquet", 3), ("o?", 4)):
        assert rank1.load(tmp_path / name).seed == seed
        expected = rank1.simulate(BOTH, PROBLEM, 500, 3, seed, checkpoints=2).to_frame()
        frame = read_sweep(tmp_path / name).frame.collect()
        assert frame["realised_regret"].equals(expected["realised_regret"])
    (tmp_path / "o1.parquet").unlink()
    with pytest.raises(FileNotFoundError):
        rank1.load(tmp_path / "o1.parquet")
    with pytest.raises(FileNotFoundError):
        rank1.load(tmp_path / "p*")
    folder = tmp_path / "[ab]"
    folder.mkdir()
    (tmp_path / "a").mkdir()
    shutil.copy(tmp_path / "o*.parquet", folder / "x.parquet")
    shutil.copy(tmp_path / "o?", tmp_path / "a" / "x.parquet")
    assert rank1.load(folder / "x.parquet").frame.collect().height == 12
    assert rank1.load(folder / "x.parquet").seed == 3


def test_rows_come_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However runs were cut into blocks: the file has the same rows."""
    some = grid(BOTH)
    swept(some, tmp_path / "whole.parquet")
    whole = pl.read_parquet(tmp_path / "whole.parquet")
    for size in (7, 1, 50):
        monkeypatch.setattr(tidy_module, "BATCH", size)
        todo = plan(some, cell_seconds=1e-9)
        todo.play()
        assert write_sweep(tmp_path / "batches.parquet", some, todo) == whole.height
        assert pl.read_parquet(tmp_path / "batches.parquet").equals(whole)


MANY = """
import sys
import numpy as np
from rank1.simulation.block import Block
from rank1.simulation.tidy import Part, read_tidy, write_tidy
runs = np.random.default_rng(1).random((40_000, 100, 2))
block = Block({"curves": runs, "best_arms": np.zeros(40_000, np.int64)}, 1.0)
about = {"name": "spike", "sides": [8, 8], "settings": {"K": 8}}
part = Part(about, "ucb1", {"confidence": 2.0}, 100,
            np.arange(1, 101), {0: block})
print(write_tidy(sys.argv[1], [part], {"missing": []}))
read_tidy(sys.argv[1])
# Not getrusage: what it says begins with the process that started this one.
print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
def test_many_rows_take_little_memory(tmp_path: Path) -> None:
    """Four million: the runs themselves are 64 MB, rows with all their columns would be 360.

    All in all 300 MB (460 with the oldest polars), of which 120 are the packages.
    """
    done = subprocess.run(
        [sys.executable, "-c", MANY, tmp_path / "many.parquet"],
        env=ENVIRONMENT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    rows, peak = map(int, done.stdout.split())
    assert rows == 4_000_000
    assert peak < 550_000  # kilobytes


def test_a_full_disk_under_the_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise pl.exceptions.ComputeError("No space left on device (os error 28)")

    monkeypatch.setattr(pl.LazyFrame, "sink_parquet", full)
    with pytest.raises(OSError, match=r"can't write '.*result.parquet': No space left on device"):
        swept(grid(BOTH), tmp_path / "result.parquet")
    assert os.listdir(tmp_path) == []


@pytest.mark.uncompiled
def test_settings_of_every_kind(tmp_path: Path) -> None:
    """Lists are JSON, words are words, and a policy's setting gives way to another column."""
    problems = [
        rank1.Bernoulli([0.1, 0.9], [0.5]),
        rank1.Gaussian([0.2, 0.8], [0.5], sigma=0.5),
        rank1.spike(2, 1, 0.5, 0.5, 0.1, 0.1),
    ]
    some = SweepGrid(problems, [Named(), Named(step=0.5, K="many")], [100], 2, 1, 2)
    assert swept(some, tmp_path / "a.parquet") == 6 * 2 * 2
    frame = pl.read_parquet(tmp_path / "a.parquet")
    assert frame.columns == [
        "problem", "u", "v", "sigma", "K", "L", "p_u", "p_v", "delta_u", "delta_v",
        "sides", "policy", "policy_step", "policy_K", "exact", "n", *NUMBERS, "best_arm",
    ]  # fmt: skip
    row = frame.row(-1, named=True)
    assert [row[name] for name in ("problem", "u", "K", "policy_K", "policy_step", "exact")] == [
        "spike", None, 2, "many", 0.5, True
    ]  # fmt: skip
    assert json.loads(frame["u"][0]) == [0.1, 0.9]
    assert frame["sigma"].unique().sort().to_list() == [None, 0.5]
    sweep = read_sweep(tmp_path / "a.parquet")
    labels = ["named", "named:step=0.5,K=many"]
    assert summary(sweep)["label"].to_list() == labels * 3
    kept = summary(sweep, where={"u": [[0.1, 0.9]], "policy_K": "few"})
    assert (kept.height, kept["problem"][0]) == (1, "bernoulli")


def test_a_long_list_is_told_by_its_digest(tmp_path: Path) -> None:
    """A file of a large grid doesn't have it in every row; two of them can be told apart."""
    problems = [rank1.Bernoulli([0.5] * 1000, [0.5, v]) for v in (0.1, 0.2)]
    problems.append(rank1.Bernoulli([0.5] * 999 + [0.4], [0.5, 0.1]))
    swept(SweepGrid(problems, [rank1.Uniform()], [10], 1, 1, 1), tmp_path / "a.parquet")
    u = pl.read_parquet(tmp_path / "a.parquet")["u"].to_list()
    assert u[0] == u[1] != u[2]
    assert all(value.startswith("sha256:") for value in u)


def test_both_kinds_are_read_as_either(tmp_path: Path) -> None:
    """What `simulate` saved has a summary by settings, too, and says what is missing."""
    saved(tmp_path / "a.parquet")
    rows = summary(read_sweep(tmp_path / "a.parquet"))
    result = rank1.load(tmp_path / "a.parquet")
    assert rows["label"].to_list() == ["rank1elim", "uniform"]
    assert rows["expected_mean"].to_list() == pytest.approx(
        result.summary()["expected_mean"].to_list(), rel=1e-12
    )
    assert read_sweep(tmp_path / "a.parquet").gap == ""
    swept(grid(BOTH), tmp_path / "b.parquet")
    assert isinstance(rank1.load(tmp_path / "b.parquet"), rank1.Sweep)
    assert isinstance(result, rank1.Result)


def test_an_interrupted_result_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of a policy of which not one run was finished."""
    original, played = Series.play_run, 0

    def some(self: Series, *rest: Any) -> Any:
        nonlocal played
        played += 1
        if played > 3:
            raise KeyboardInterrupt
        return original(self, *rest)

    monkeypatch.setattr(Series, "play_run", some)
    monkeypatch.setattr("rank1.simulation.plan.MAX_TASK", 1)
    with pytest.raises(rank1.Interrupted) as stop:
        rank1.simulate(BOTH, PROBLEM, 1000, 3, seed=5, checkpoints=2)
    assert stop.value.result is not None
    stop.value.result.save(tmp_path / "a.parquet")
    sweep = read_sweep(tmp_path / "a.parquet")
    assert sweep.missing == [(1, 0, 3)]
    assert sweep.gap == "3 of 6 runs are missing"
    again = rank1.load(tmp_path / "a.parquet")
    assert [outcome.runs for outcome in again.outcomes] == [[0, 1, 2]]
    assert again.missing == [(1, 0, 3)]


def test_facts_are_in_the_file(path: Path) -> None:
    facts = read_tidy(path).facts
    assert facts["format"] == 4
    assert facts["seed"] == 5
    assert facts["missing"] == []
    assert facts["problem_settings"] == ["K", "L", "p_u", "p_v", "delta_u", "delta_v"]
    assert facts["policy_settings"] == ["confidence_scale"]
