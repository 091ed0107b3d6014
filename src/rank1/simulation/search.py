"""A series whose runs end when the stopping rule says so."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import generator, kernel
from rank1.interrupts import held_back
from rank1.policies.base import choose, update
from rank1.problems.shuffled import Shuffled
from rank1.simulation.block import Block
from rank1.simulation.loop import draw, gap, refuse
from rank1.simulation.series import CHUNK, SHUFFLE, Series
from rank1.stopping import may_stop, start_watch
from rank1.stopping.watch import note_report

__all__ = ["Search"]


def play_search(
    state: Any,
    law: Any,
    watch: Any,
    rng: np.random.Generator,
    K: int,
    L: int,
    t: int,
    stop: int,
    totals: NDArray[np.float64],
) -> tuple[int, int, int, bool]:
    """Steps t … stop − 1, or until the rule stops.

    Returns how far it came, the last pull, and whether the rule has stopped it. With fewer steps
    and no stop, that pull was outside the grid.
    """
    row = column = 0
    while t < stop:
        row, column, tag = choose(state, rng)
        if np.uint64(row) >= np.uint64(K) or np.uint64(column) >= np.uint64(L):
            return t, row, column, False
        reward, regret = draw(law, row, column, rng)
        update(state, row, column, tag, reward)
        totals[0] += gap(law, row, column)
        totals[1] += regret
        t += 1
        note_report(watch, row, column, reward)
        if may_stop(watch):
            return t, row, column, True
    return t, row, column, False


@dataclass(frozen=True, eq=False)
class Search(Series):
    """A series whose runs end when the stopping rule says so, or after n pulls."""

    confidence: float = 0.95
    tolerance: float = 0.0
    #: Whether the rule may assume that the grid has rank one.
    rank_one: bool = True

    def _depends_on(self) -> tuple[Any, ...]:
        rule = self.confidence, self.tolerance, self.rank_one
        return (*super()._depends_on(), *rule, play_search, start_watch)

    def play(self, runs: Iterable[int], stopped: Callable[[], bool] = lambda: False) -> Block:
        """Play some runs: pulls, whether the rule stopped them, the pair found, and regret."""
        self.compile()
        begin = time.thread_time()
        found = [self._search(run, stopped) for run in runs]
        pulls, ended, pairs, regret = zip(*found, strict=True)
        return Block(
            {
                "pulls": np.array(pulls, np.int64),
                "stopped": np.array(ended, np.bool_),
                "best_pairs": np.array(pairs, np.int64),
                "regret": np.array(regret),
            },
            time.thread_time() - begin,
        )

    def _search(
        self, run: int, stopped: Callable[[], bool]
    ) -> tuple[int, bool, tuple[int, int], NDArray[np.float64]]:
        problem = self.problem
        if self.shuffle:
            with generator(self.seed_of(run, SHUFFLE)) as rng:
                problem = Shuffled(problem, rng)
        K, L, law = problem.K, problem.L, problem.law
        state = self.start(problem)
        watch = start_watch(K, L, self.confidence, self.tolerance, self.rank_one)
        loop, totals, ended, t = kernel(play_search, state, law, watch), np.zeros(2), False, 0
        with generator(self.seed_of(run)) as rng:
            while t < self.n and not ended:
                if stopped():
                    raise KeyboardInterrupt
                problem.refill(law, rng)
                stop = min(t + (problem.block or CHUNK), self.n)
                t, row, column, ended = loop(state, law, watch, rng, K, L, t, stop, totals)
                if t < stop and not ended:
                    raise refuse(self.policy.label, t, row, column, K, L)
        pair = divmod(max(int(watch.at[0].leader), 0), L)
        if isinstance(problem, Shuffled):
            pair = problem.pair(*pair)
        return t, bool(ended), pair, totals

    def compile(self) -> None:
        """Have the kernel ready, so that compiling isn't counted as playing."""
        with generator(np.random.SeedSequence(0)) as rng, held_back():
            problem = Shuffled(self.problem, rng) if self.shuffle else self.problem
            state, watch = self.start(problem), start_watch(problem.K, problem.L)
            loop = kernel(play_search, state, problem.law, watch)
            loop(state, problem.law, watch, rng, problem.K, problem.L, 0, 0, np.zeros(2))

    @property
    def kind(self) -> tuple[Any, ...]:
        """A step of two series of the same kind takes as long."""
        return (*super().kind, "search")

    def probe(self) -> tuple[float, float]:
        """Seconds that a run takes, by playing one."""
        try:
            took = self.play(range(1)).seconds
        except Exception:  # its cells will say why
            took = 0.0
        return took, took
