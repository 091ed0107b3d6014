"""Replaying a study's own order with rewards that aren't random gives the same counts."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray

import rank1
from rank1 import Study
from rank1.policies import Known, Policy
from rank1.policies.base import Records, Simple
from rank1.studies.fitting import Material, read_material
from rank1.studies.order import ASK, DROP, HISTORY, LEARN, REVISE, Replayer, grids_of, read_order
from rank1.studies.storage.sqlite import SqliteReader
from tests.support import examples

pytestmark = pytest.mark.usefixtures("uncompiled")

_numbers = itertools.count()
WINDOW = 100.0


def truth(row: str, column: str) -> float:
    """Return 0 or 1, for any levels."""
    return float(sum(map(ord, row + column)) * 7 % 5 < 2)


class _Arrays(NamedTuple):
    limits: Records
    next: NDArray[np.int64]


class InTurnState(_Arrays, Simple):
    """A state without counts and sums, so that it can't learn from a history."""

    def choose(self, rng: np.random.Generator) -> tuple[int, int]:
        arm = int(self.next[0])
        self.next[0] = (arm + 1) % self.limits[0].arms
        return arm, arm

    def issued(self, arm: int, tag: int) -> None:
        self.next[0] = (arm + 1) % self.limits[0].arms

    def update(self, arm: int, tag: int, reward: float) -> None:
        assert tag == arm
        self.next[0] = arm if reward else self.next[0]

    def forget(self, arm: int, tag: int) -> InTurnState:
        assert tag == arm
        return self._replace(next=np.array([arm]))

    def best(self) -> int:
        return 0


class InTurn(Policy):
    """Plays one arm after the other, continuing from what was rewarded or forgotten."""

    name = "in_turn"

    def start(self, known: Known) -> InTurnState:
        return InTurnState(known.limits, np.zeros(1, np.int64))


class Play:
    """Plays a study at random; rewards come from `truth`."""

    def __init__(
        self, place: Path, seed: int, policy: str, on_expiry: str, forgets: bool, repeat: str
    ) -> None:
        self.rng, self.on_expiry = np.random.default_rng(seed), on_expiry
        self.now = time.time() + 10.0  # the study's time never goes backwards
        self.open: dict[str, float] = {}
        self.study = Study.create(
            "s", ["a", "b", "c"], ["d", "e"], policy=policy, storage=place, seed=1,
            reward_window=WINDOW, on_expiry=on_expiry, forgetting=40.0 if forgets else None,
            reward_range=(1, 5), repeat=repeat,
        )  # fmt: skip
        self.actions: list[Callable[[], None]] = [
            self.ask, self.ask, self.ask, self.visit, self.tell, self.tell, self.cancel, self.wait,
            self.wait, self.load, self.revise,
        ]  # fmt: skip

    def ask(self) -> None:
        for each in self.study.ask(count=int(self.rng.integers(1, 9))):
            self.open[each.id] = truth(str(each.row), str(each.column))

    def visit(self) -> None:
        each = self.study.ask(unit=f"unit {self.rng.integers(3)}")
        self.open[each.id] = truth(str(each.row), str(each.column))

    def tell(self) -> None:
        for name in self.rng.permutation(list(self.open))[: self.rng.integers(1, 9)]:
            self.study.tell(str(name), 1.0 + 4.0 * self.open.pop(str(name)))

    def cancel(self) -> None:
        some = [name for name, reward in self.open.items() if not reward]
        if some:
            name = str(self.rng.choice(some))
            del self.open[name]
            try:
                self.study.cancel(name)
            except rank1.ConflictError:
                assert self.on_expiry == "default"  # the default was counted

    def wait(self) -> None:
        if self.on_expiry == "default":  # successes come in time, as the default is a failure
            for name in [name for name, reward in self.open.items() if reward]:
                self.study.tell(name, 1.0 + 4.0 * self.open.pop(name))
        self.now += float(self.rng.choice([1, 40, 101]))

    def load(self) -> None:
        if self.rng.random() < 0.3:
            sides = self.study.sides
            pair = str(self.rng.choice(sides["row"])), str(self.rng.choice(sides["column"]))
            count = int(self.rng.integers(1, 4))
            self.study.import_history(
                [(*pair, 1.0 + 4.0 * truth(*pair))] * count, key=str(next(_numbers))
            )

    def revise(self) -> None:
        if self.rng.random() < 0.3:
            rows = self.study.rows
            if len(rows) > 2:
                self.study.revise(retire={"row": [str(self.rng.choice(rows))]})
            else:
                gone = [name for name in "abcxyz" if name not in rows]
                self.study.revise(add={"row": [str(self.rng.choice(gone))]})

    def material(self, steps: int) -> Material:
        real = SqliteReader.clock
        SqliteReader.clock = lambda _: self.now  # type: ignore
        try:
            for _ in range(steps):
                self.actions[self.rng.integers(len(self.actions))]()
            study = self.study.access.study.id
            return self.study.look(lambda state, log: read_material(state, log, study))
        finally:
            SqliteReader.clock = real  # type: ignore


@pytest.mark.filterwarnings("ignore:repeat=")
@pytest.mark.filterwarnings("ignore:.*InTurn")  # it starts over, and learns from no history
@given(
    st.integers(0, 10**6),
    st.sampled_from(["top_two", "ucb1", f"{__name__}:InTurn"]),  # these draw no random numbers
    st.sampled_from(["drop", "default", "wait"]),
    st.booleans(),
    st.sampled_from(["once", "each"]),
)
@examples(8)
def test_the_replay_of_a_study_is_the_study(
    tmp_path_factory: pytest.TempPathFactory, seed: int, policy: str, on_expiry: str,
    forgets: bool, repeat: str,
) -> None:  # fmt: skip
    place = tmp_path_factory.mktemp("order") / "rank1.db"
    play = Play(place, seed, policy, on_expiry, forgets and "InTurn" not in policy, repeat)
    material = play.material(60)
    spec = play.study.spec
    grids = grids_of(spec, material.changes)
    order = read_order(material.events, spec, grids, material.now)
    living = material.sides
    with play.study as study:
        labels = study.look(lambda state, log: state.labels)
    assert grids.sizes == tuple(map(len, labels.values()))
    means = np.array([[truth(row, column) for column in labels["column"]] for row in labels["row"]])
    now = np.array([[truth(row, column) for column in living["column"]] for row in living["row"]])
    replay = Replayer(spec, grids, order, means, 1)
    won, lost = map(np.asarray, replay(now, np.random.default_rng(1)))
    np.testing.assert_array_equal(won + lost, material.counts)
    np.testing.assert_allclose(won, material.sums)


def test_what_an_order_keeps_of_a_log(tmp_path: Path) -> None:
    with Study.create("s", ["a", "b"], ["c", "d"], storage=tmp_path / "db", seed=1) as study:
        study.import_history([("a", "c", 1.0)] * 3 + [("b", "d", 0.0)])
        first = study.ask(count=3)
        study.tell(first[1].id, 1.0)
        study.cancel(first[0].id)
        study.revise(add={"row": ["e"]})
        again = study.ask(unit="u")
        study.tell(again.id, 0.0)
        assert study.ask(unit="u").levels == again.levels
        number = study.access.study.id
        material = study.look(lambda state, log: read_material(state, log, number))
        grids = grids_of(study.spec, material.changes)
        order = read_order(material.events, study.spec, grids, material.now)
    asked = [ASK] * 3
    # The second visit of a unit that counts once is left out.
    expected = [HISTORY, HISTORY, *asked, LEARN, DROP, REVISE, ASK, LEARN]
    assert order.steps.tolist() == expected
    assert order.which.tolist()[2:7] == [0, 1, 2, 1, 0]
    assert order.repeats.tolist() == [-1, -1, -1, -1, 3]
    assert order.counted.tolist() == [False, True, False, True, False]
    assert sorted(order.times.tolist()) == [1, 3]
    assert grids.sizes == (3, 2)
    assert grids.living == [[[0, 1], [0, 1]], [[0, 1, 2], [0, 1]]]
