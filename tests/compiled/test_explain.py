"""A mistake in a policy is told in one line: class, method, file:line, cause."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

import numpy as np
import pytest

from rank1.compiled import explain, jit, kernel, method, record
from rank1.errors import PolicyError

choose, update = method("choose"), method("update")


def play(state: Any, rng: Any) -> int:
    arm, tag = choose(state, rng)
    update(state, arm, tag, 1.0)
    return int(state.counts[arm])


class Fine(NamedTuple):
    limits: Any
    counts: Any

    def choose(self, rng: Any) -> Any:
        return 0, 0

    def update(self, arm: int, tag: int, reward: float) -> None:
        self.counts[arm] += 1


class Allocates(Fine):
    def choose(self, rng: Any) -> Any:
        means = np.zeros(len(self.counts))  # here
        return int(np.argmax(means)), 0


class WholeArrays(Fine):
    def choose(self, rng: Any) -> Any:
        means = self.counts / self.counts  # here
        return int(np.argmax(means)), 0


class Lists(Fine):
    def choose(self, rng: Any) -> Any:
        pair = [0, 1]  # here
        return pair[0], 0


class Keeps(Fine):
    def choose(self, rng: Any) -> Any:
        seen = {}
        seen[1] = 2  # here
        return seen[1], 0


class Name(Fine):
    def choose(self, rng: Any) -> Any:
        arm = 0
        return arm, meen  # type: ignore[name-defined]  # noqa: F821  # here


class ModuleName(Fine):
    def choose(self, rng: Any) -> Any:
        best = np.argmaxx(self.counts)  # type: ignore[attr-defined]  # here
        return best, 0


last = 0


class Unsupported(Fine):
    def choose(self, rng: Any) -> Any:
        global last
        last = 1  # here
        return 0, 0


class Attribute(Fine):
    def update(self, arm: int, tag: int, reward: float) -> None:
        self.cuonts[arm] += 1  # type: ignore[attr-defined]  # here


class Index(Fine):
    def choose(self, rng: Any) -> Any:
        return int(self.index[0]), 0  # type: ignore[index]  # here


class NoTag(Fine):
    def choose(self, rng: Any) -> Any:
        return (0,)  # here


class Bare(Fine):
    def choose(self, rng: Any) -> Any:
        return 0  # here


class Float(Fine):
    def choose(self, rng: Any) -> Any:
        arm = 2 * rng.random()
        return arm, 0  # here


@jit
def helper(x: int) -> Any:
    return x + amuont  # type: ignore[name-defined]  # noqa: F821  # here


class Helped(Fine):
    def choose(self, rng: Any) -> Any:
        return helper(1), 0


AT = record("leader", share=float)


class Entry(Fine):
    def choose(self, rng: Any) -> Any:
        at = self.limits[0]
        return at.laeder, 0  # here


class EntryInPlace(Fine):
    def choose(self, rng: Any) -> Any:
        return int(rng.random() < self.limits[0].shore), 0  # here


class Assigned(Fine):
    def choose(self, rng: Any) -> Any:
        self.counts = 3  # type: ignore[misc]  # here
        return 0, 0


class Few(Fine):
    def choose(self) -> Any:  # type: ignore[override]  # here
        return 0, 0


MUST = "choose must return (arm, tag), whole numbers, not"
MISTAKES = {
    Allocates: "compiled code can't allocate memory: means = np.zeros(len(self.counts))  # here",
    WholeArrays: "compiled code can't allocate memory: means = self.counts / self.counts  # here",
    Lists: "compiled code can't allocate memory: pair = [0, 1]  # here",
    Keeps: "compiled code can't allocate memory: seen[1] = 2  # here",
    Name: "the name 'meen' isn't defined",
    ModuleName: "module 'numpy' has no attribute 'argmaxx'",
    Unsupported: "Use of unsupported opcode (STORE_GLOBAL) found.",
    Attribute: "Attribute has no attribute 'cuonts'",
    Index: "Index has no attribute 'index'",
    NoTag: f"{MUST} (0,)",
    Bare: f"{MUST} 0",
    Float: f"{MUST} (float64, int64)",
    Helped: "the name 'amuont' isn't defined",
    Entry: "at has no entry 'laeder': leader, share",
    EntryInPlace: "self.limits[0] has no entry 'shore': leader, share",
    Assigned: "self.counts can't be assigned: write into its array",
    Few: "choose must take the arguments (self, rng)",
}


@pytest.mark.parametrize(
    ("cls", "cause"), MISTAKES.items(), ids=lambda one: getattr(one, "__name__", "")
)
def test_one_line(cls: Any, cause: str) -> None:
    state = cls(np.zeros(1, AT), np.zeros(3))
    with pytest.raises(PolicyError) as seen:
        kernel(play, state)(state, np.random.default_rng(1))
    error: Any = seen.value
    lines, first = inspect.getsourcelines(helper if cls is Helped else cls)
    (line,) = [first + k for k, text in enumerate(lines) if text.endswith("# here\n")]
    assert (error.policy, error.file, error.line) == (cls.__name__, __file__, line)
    assert error.cause == cause or (cls is Unsupported and error.cause.startswith(cause))
    assert error.method in ("choose", "update", "helper")
    assert str(error).endswith(f"test_explain.py:{line}): {error.cause}")
    assert "\n" not in str(error)


def test_a_method_that_is_missing() -> None:
    class Empty(NamedTuple):
        limits: Any

    assert str(explain(TypeError("?"), Empty)) == "Empty has no method choose"


def test_without_a_state_the_source_is_looked_at() -> None:
    assert "'meen'" in str(explain(TypeError("?"), Name))
    assert str(explain(TypeError("Numba's word"))) == "the code can't be compiled: Numba's word"


def test_what_is_fine_compiles() -> None:
    state = Fine(np.zeros(1), np.zeros(3))
    assert kernel(play, state)(state, np.random.default_rng(1)) == 1
