"""Snapshots that can't be restored say why. That the others can is part of the contract."""

from __future__ import annotations

import hashlib
import io
import json
import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import rank1
from rank1.policies.snapshots import _FIRST
from rank1.policies.uniform import UniformState
from tests.support import play_policy, start

PROBLEM = rank1.Bernoulli([0.9, 0.2, 0.5], [0.3, 0.8])


def sealed(body: bytes) -> bytes:
    return _FIRST + hashlib.sha256(body).digest() + body


def altered(data: bytes, header: dict[str, Any] | None = None, **arrays: Any) -> bytes:
    """The same snapshot with another header or other arrays, and a checksum that fits."""
    with np.load(io.BytesIO(data[len(_FIRST) + 32 :])) as file:
        parts = dict(file)
    told = json.loads(str(parts.pop("header"))) | (header or {})
    parts = {name: array for name, array in (parts | arrays).items() if array is not None}
    file = io.BytesIO()
    np.savez(file, header=np.array(json.dumps(told)), **parts)
    return sealed(file.getvalue())


@pytest.fixture
def data() -> bytes:
    _, _, state = play_policy(rank1.UCB1(1.5), PROBLEM, 500, seed=1)
    return rank1.snapshot(rank1.UCB1(1.5), state)


def test_what_it_holds(data: bytes) -> None:
    with np.load(io.BytesIO(data[len(_FIRST) + 32 :]), allow_pickle=False) as file:
        header = json.loads(str(file["header"]))
        assert set(file.files) == {"header", *start(rank1.UCB1(), PROBLEM, 9)._asdict()}
    assert header == {
        "policy": "ucb1",
        "settings": {"confidence": 1.5},
        "layout": rank1.UCB1.layout,
        "rank1": rank1.__version__,
    }


def test_the_same_state_has_the_same_snapshot(data: bytes) -> None:
    assert rank1.snapshot(*rank1.restore(data)) == data


def test_a_snapshot_that_is_cut_or_damaged_anywhere_is_refused(data: bytes) -> None:
    for length in [*range(200), *range(200, len(data), 97), len(data) - 1]:
        with pytest.raises(rank1.SnapshotError, match="cut short"):
            rank1.restore(data[:length])
    rng = np.random.default_rng(1)
    for at in [*range(60), *rng.integers(len(data), size=300).tolist()]:
        flipped = bytearray(data)
        flipped[at] ^= 1 << int(rng.integers(8))
        with pytest.raises(rank1.SnapshotError):
            rank1.restore(bytes(flipped))
    with pytest.raises(rank1.SnapshotError, match="damaged or cut short: its checksum is wrong"):
        rank1.restore(data + b"x")
    with pytest.raises(rank1.SnapshotError, match="must be a snapshot made by rank1"):
        rank1.restore(b"PK\x03\x04 something else")
    with pytest.raises(rank1.SnapshotError, match="can't be read"):
        rank1.restore(sealed(b"no arrays"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"header": {"layout": 9}}, r"ucb1 has layout 9, made by rank1 \S+; this is .* layout \d"),
        ({"header": {"policy": "mine"}}, r"policy 'mine', .* restore\(…, policies=\[…\]\)"),
        ({"header": {"settings": {"confidence": -1}}}, "settings that ucb1 can't have: confidence"),
        ({"header": {"settings": {"a": 1}}}, "settings that ucb1 can't have: .*'a'"),
        ({"sums": None}, "must have the arrays limits, .*: missing: sums, too many: none"),
        ({"more": np.zeros(1)}, "missing: none, too many: more"),
        ({"sums": np.zeros(5)}, r"sums of ucb1 must have shape \(6,\) .* got \(5,\)"),
        ({"sums": np.zeros(6, np.int64)}, r"shape \(6,\) of float64, got \(6,\) of int64"),
        ({"at": np.zeros(1)}, r"at of ucb1 must have shape \(1,\) of .*winner.*got .* float64"),
        ({"limits": None}, "has no limits"),
        ({"limits": np.zeros(4)}, "has no limits, or limits that are invalid for ucb1"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_snapshot_of_something_else_is_refused(
    data: bytes, change: dict[str, Any], message: str
) -> None:
    assert issubclass(rank1.SnapshotError, ValueError)
    with pytest.raises(rank1.SnapshotError, match=message):
        rank1.restore(altered(data, **change))


def test_nothing_is_unpickled(data: bytes) -> None:
    with pytest.raises(rank1.SnapshotError, match=r"can't be read: .*allow_pickle"):
        rank1.restore(altered(data, sums=np.array([{}], object)))


@dataclass(frozen=True)
class Mine(rank1.Policy):
    name = "mine"
    kind: Any = "wide"

    def start(self, known: rank1.Known) -> UniformState:
        return rank1.Uniform().start(known)


def test_a_policy_of_somebody_else_is_restored_by_its_class() -> None:
    data = rank1.snapshot(Mine("narrow"), start(Mine(), PROBLEM, 100))
    with pytest.raises(rank1.SnapshotError, match="policy 'mine', which isn't one of rank1elim, "):
        rank1.restore(data)
    policy, _ = rank1.restore(data, policies=[Mine])
    assert policy == Mine("narrow")
    with pytest.raises(TypeError, match="settings of mine must be numbers, strings, booleans or "):
        rank1.snapshot(Mine(kind=object()), start(Mine(), PROBLEM, 100))


def test_the_truth_is_not_needed_again() -> None:
    policy, state = rank1.restore(rank1.snapshot(rank1.Oracle(), start(rank1.Oracle(), PROBLEM, 9)))
    assert policy == rank1.Oracle()
    assert state.best() == PROBLEM.best_arm


def test_pulls_that_were_given_back_are_kept() -> None:
    """The room for them grows with their number."""
    policy, rng = rank1.Rank1Elim(), np.random.default_rng(1)
    state = start(policy, PROBLEM, 10_000)
    pulls = [rank1.ask(state, rng) for _ in range(100)]
    for pull in pulls[:40]:
        state = state.forget(*pull)
    _, restored = rank1.restore(rank1.snapshot(policy, state))
    again = [rank1.ask(restored, rng) for _ in range(40)]
    assert sorted(again) == sorted(pulls[:40])


@pytest.mark.parametrize("name", sorted(rank1.policies.POLICIES))
def test_a_state_can_be_pickled(name: str) -> None:
    """For example to send it to another process."""
    given = {"c_mu": 0.1} if name == "glm_ucb" else {}
    state = start(rank1.policies.POLICIES[name](**given), rank1.spike(2, 3, 0.5, 0.4, 0.4, 0.5), 9)
    again = pickle.loads(pickle.dumps(state))
    for field, array in state._asdict().items():
        assert getattr(again, field).dtype == array.dtype
        assert getattr(again, field).tobytes() == array.tobytes()
