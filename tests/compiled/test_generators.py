from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

import rank1
from rank1.compiled import generator, generators


def alive() -> int:
    """How many generators there are in memory."""
    gc.collect()
    return sum(type(thing) is np.random.Generator for thing in gc.get_objects())


@pytest.fixture(autouse=True)
def _afresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generators, "_idle", [])


def test_the_numbers_are_those_of_a_new_one() -> None:
    for k in range(20):
        seed = np.random.SeedSequence(k, spawn_key=(1, k))
        fresh = np.random.Generator(np.random.PCG64(np.random.SeedSequence(k, spawn_key=(1, k))))
        with generator(seed) as rng:
            # An odd number of 32-bit draws leaves half a draw behind.
            for draw in ("random", "standard_normal", "standard_exponential"):
                assert getattr(rng, draw)(7).tolist() == getattr(fresh, draw)(7).tolist()
            assert rng.integers(9, size=3, dtype=np.int32).tolist() == (
                fresh.integers(9, size=3, dtype=np.int32).tolist()
            )
            assert rng.binomial(100, 0.3, 5).tolist() == fresh.binomial(100, 0.3, 5).tolist()
            child, expected = rng.spawn(1)[0], fresh.spawn(1)[0]
            assert child.random() == expected.random()
    assert len(generators._idle) == 1


def test_two_at_once_do_not_disturb_each_other() -> None:
    seeds = [np.random.SeedSequence(k) for k in range(2)]
    expected = [np.random.Generator(np.random.PCG64(seed)).random(3).tolist() for seed in seeds]
    for _ in range(3):
        with generator(seeds[0]) as first, generator(seeds[1]) as second:
            pairs = [(first.random(), second.random()) for _ in range(3)]
        assert [list(side) for side in zip(*pairs, strict=True)] == expected
    assert len(generators._idle) == 2


def test_threads_do_not_share() -> None:
    """Each has one for itself as long as it needs it."""
    barrier, wrong = threading.Barrier(8), []

    def work(k: int) -> None:
        seed = np.random.SeedSequence(k)
        expected = np.random.Generator(np.random.PCG64(seed)).random(200).tolist()
        for _ in range(20):
            barrier.wait()
            with generator(seed) as rng:
                if [rng.random() for _ in range(200)] != expected:
                    wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(generators._idle) <= 8


def test_it_comes_back_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), generator(np.random.SeedSequence(1)):
        raise ZeroDivisionError
    assert len(generators._idle) == 1


@pytest.mark.parametrize("method", ["steps", "stages"])
def test_runs_leave_nothing_behind(method: str) -> None:
    """Compiled code never gives a Generator back, so two hundred runs must share one."""
    problem = rank1.spike(2, 2, 0.5, 0.5, 0.2, 0.2)

    def work(runs: int) -> None:
        rank1.simulate(rank1.Rank1Elim(), problem, 10, runs, seed=1, method=method, jobs=2)

    work(4)
    before = alive()
    work(200)
    assert alive() - before <= 2
