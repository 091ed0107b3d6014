"""Ray: the same bytes though a worker is killed, and signals. Only `make validate` installs it."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import psutil
import pytest

import rank1
from rank1.simulation.backends import Setup, backend
from rank1.simulation.store import Store
from rank1.sweeps import read_grid, write_sweep
from rank1.sweeps.play import plan
from tests.simulation.support import (
    DRIVER,
    ENDLESS,
    LONG,
    assert_finds_the_same,
    cells,
    started,
    wait_for,
)

ray: Any = pytest.importorskip("ray")


@pytest.mark.validate
def test_a_worker_is_killed_half_way(tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text(LONG)
    grid = read_grid(tmp_path / "grid.toml")
    todo = plan(grid)
    assert todo.play() == []
    write_sweep(tmp_path / "alone.parquet", grid, todo)
    paths = [tmp_path / name for name in ("grid.toml", "cells", "ray.parquet")]
    with started("-c", DRIVER, *paths, "ray") as sweep:
        wait_for(lambda: cells(paths[1]) >= 1)
        children = psutil.Process(sweep.pid).children(recursive=True)
        workers = [each.pid for each in children if "ray::run_task" in " ".join(each.cmdline())]
        os.kill(workers[0], signal.SIGKILL)
        assert cells(paths[1]) < len(plan(grid, Store(tmp_path / "none"), cell_seconds=0.1).cells)
        assert sweep.wait(300) == 0
    assert paths[2].read_bytes() == (tmp_path / "alone.parquet").read_bytes()


@pytest.mark.validate
@pytest.mark.parametrize(("number", "word"), [(signal.SIGTERM, "Term"), (signal.SIGINT, "Interr")])
def test_a_stop_says_how_to_go_on(tmp_path: Path, number: signal.Signals, word: str) -> None:
    (tmp_path / "grid.toml").write_text(ENDLESS)
    command = ["-m", "rank1", "sweep", "grid.toml", "--backend", "ray", "--jobs", "2"]
    quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": tmp_path}
    with started(*command, **quiet) as sweep:
        wait_for(lambda: cells(tmp_path / "cells") >= 1)
        if number == signal.SIGINT:
            os.killpg(sweep.pid, number)  # as a terminal does: to the workers, too
        else:
            sweep.send_signal(number)
        out, err = sweep.communicate(timeout=300)
    assert out == ""
    assert "Traceback" not in err
    assert f"{word}" in err
    assert "cells are in cells; to continue: rank1 sweep grid.toml --backend ray" in err
    # Now and then Ray itself falls over when it is shut down, after everything was said.
    assert sweep.returncode in (128 + number, -signal.SIGABRT, -signal.SIGSEGV)


@pytest.mark.validate
def test_searches_and_the_bets_of_the_paper_run_on_ray(tmp_path: Path) -> None:
    assert_finds_the_same("ray", tmp_path)


@pytest.mark.validate
def test_an_address_where_nothing_is_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Ray says it, after minutes, or at once for "auto" if no other test has a cluster."""

    def none(**_: Any) -> None:
        raise ConnectionError("Could not find any running Ray instance")

    monkeypatch.setattr(ray, "init", none)
    with pytest.raises(rank1.BackendError, match=r"address must be that of a ray cluster, such as"):
        next(backend("ray")([], Setup(1, "auto")))
