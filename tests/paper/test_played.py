"""The papers' experiments are plans: on any backend, kept cell by cell, with the same numbers."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

import rank1
from rank1.paper import Options, artefact, bets, theorems
from rank1.paper.artefact import played
from rank1.simulation import Series
from rank1.simulation.backends import base
from rank1.simulation.plan import Plan
from tests.simulation.support import PROBLEMS, Broken, cells
from tests.test_cli import Output


@pytest.fixture
def long_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that runs take long: else no process would be started."""
    monkeypatch.setattr(Series, "guess", lambda self: 0.5)
    monkeypatch.setattr("rank1.simulation.plan.PROBE_WORTH", float("inf"))


def written(folder: Path) -> str:
    """A document without what tells when and by which command it was made."""
    text = (folder / "table1.json").read_text()
    return re.sub(r'"(seconds|date|command)": .*', r'"\1"', text)


@pytest.mark.usefixtures("long_work")
@pytest.mark.skipif(os.name == "nt", reason="the tests of processes need Unix")
@pytest.mark.validate
def test_same_bytes_on_every_backend(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if several jobs play side by side; and cells are those of a `threads` call."""
    here: list[int] = []
    original = Series.play

    def play(self: Series, *rest: Any) -> Any:
        here.append(self.n)
        return original(self, *rest)

    monkeypatch.setattr(Series, "play", play)
    texts = {}
    for backend, jobs in (("threads", "1"), ("threads", "2"), ("processes", "2"), ("dask", "2")):
        here.clear()
        out = tmp_path / f"{backend}{jobs}"
        arguments = ["--n", "2000", "--runs", "3", "--seed", "4", "--out", str(out), "--json"]
        ran = Output(capsys, "paper", "table1", "--backend", backend, "--jobs", jobs, *arguments)
        assert ran.status == 0, ran.err
        assert json.loads(ran.out)["runs"] == 3
        texts[out.name] = written(out)
        # Else it was played elsewhere, but for the one run of the page's introduction.
        assert (2000 in here) == (backend == "threads")
        assert ("Dask at tcp://" in ran.err) == (backend == "dask")
    assert len(set(texts.values())) == 1
    kept = [sorted(p.name for p in (tmp_path / name).rglob("*.cell")) for name in texts]
    assert kept == [kept[0]] * 4
    # Of two runs and of one; what all three sub-tables share is played once.
    assert len(kept[0]) == 2 * 25


def test_what_was_finished_is_not_played_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = Options(runs=3, n=1000, out=tmp_path)
    first = artefact.make("table1", options)["cells"]
    count = cells(options.store)

    def play(self: Series, *rest: Any) -> Any:
        raise AssertionError("it was played before")

    monkeypatch.setattr(Series, "play", play)
    assert artefact.make("table1", options)["cells"] == first
    assert cells(options.store) == count
    with pytest.raises(rank1.BackendError, match="it was played before"):
        artefact.make("table1", options._replace(seed=2))


def test_a_cell_that_fails_is_told(tmp_path: Path) -> None:
    """An artefact of which a part is missing isn't made."""
    series = [Series.of(policy, PROBLEMS[0], 100, 1) for policy in (rank1.Uniform(), Broken())]
    message = r"^1 cells could not be played; the first was broken on spike .*no luck with 4 rows$"
    with pytest.raises(rank1.BackendError, match=message):
        list(played(Options(out=tmp_path), "Title", [[(one, 2)] for one in series]))
    assert cells(tmp_path / "cells") == 1


@pytest.mark.uncompiled
def test_all_artefacts_are_one_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a part of one is missing, those before it are still made."""
    sizes: list[int] = []
    original = Plan.play

    def play(self: Plan[Any], *rest: Any, **named: Any) -> Any:
        sizes.append(len(self.series))
        return original(self, *rest, **named)

    monkeypatch.setattr(Plan, "play", play)
    monkeypatch.setattr(theorems, "HORIZONS", (10**6, 10**7))
    options = Options(runs=2, n=1000, out=tmp_path)
    made = dict(artefact.make_all(["table1", "theorems"], options))
    assert sizes == [27 + 4]
    for name in made:
        alone = artefact.make(name, options._replace(out=tmp_path / name))
        assert made[name]["cells"] == alone["cells"]
    monkeypatch.setattr(theorems, "Rank1Elim", Broken)
    some = artefact.make_all(["table1", "theorems"], options)
    assert next(some)[0] == "table1"
    with pytest.raises(rank1.BackendError, match="could not be played"):
        next(some)


def test_a_worker_that_is_not_like_the_client_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = base.run_task
    monkeypatch.setattr(
        "rank1.simulation.backends.threads.run_task",
        lambda task, stopped: original(task, ["another"] * len(task), stopped),
    )
    with pytest.raises(rank1.BackendError, match="the worker has a different version of rank1"):
        artefact.make("table1", Options(runs=2, n=100, out=tmp_path))
    assert not (tmp_path / "table1.json").exists()


@pytest.mark.uncompiled
def test_bets_are_played_where_the_options_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}

    def identify(*given: Any, **named: Any) -> Any:
        asked.update(named)
        return rank1.identify(*given, **{**named, "backend": "threads", "address": None})

    monkeypatch.setattr(bets, "identify", identify)
    monkeypatch.setattr(
        artefact,
        "played",
        lambda options, *rest: played(options._replace(backend="threads"), *rest),
    )
    where: dict[str, Any] = {"backend": "dask", "address": "tcp://10.0.0.1:8786"}
    artefact.make("bets", Options(runs=1, n=500, out=tmp_path, **where))
    assert {name: asked[name] for name in where} == where
