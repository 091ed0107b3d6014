"""A digest changes with all that something depends on, and with nothing else."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
import io
import math
import os
import pickle
import re
import subprocess
import sys
import threading
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import rank1
from rank1.compiled import digest, walked
from rank1.errors import NoDigest
from rank1.policies import POLICIES
from rank1.policies.live import _choose, _update
from rank1.problems.laws import Frozen
from rank1.simulation.loop import play
from rank1.simulation.stages import play_stages
from tests.compiled.support import Sources
from tests.problems.test_contract import EXAMPLES
from tests.support import start

PROBLEM = rank1.spike(3, 2, 0.4, 0.4, 0.5, 0.5)

# What somebody wrote

FILES = {
    "mine.py": '''
"""Mine."""
import functools
import consts
import pkg.mod
from consts import SCALE
from helpers import table
from base import Base, Mixin, decorated

LIMIT = 4

class Mine(Base):
    """A policy."""

    width = 3

    def start(self, known, k=2, *, m=5):
        """Begin."""
        # a comment
        return table(known) * SCALE + consts.X + pkg.mod.CONST + self.width + k + m

    @property
    def size(self):
        return [x + LIMIT for x in range(3)]

    @functools.cached_property
    def area(self):
        from late import later
        return later(2)

    @staticmethod
    def fixed():
        import late
        return late.more()

    call = staticmethod(functools.partial(table, 7))
    counts = decorated(lambda x: x + 1)

class Other:
    def start(self):
        return 1
''',
    "base.py": """
from deep import COUNT

class Base:
    kind = "row"

    def begin(self):
        return COUNT

class Mixin:
    pass

def decorated(function):
    step = 10
    def inner(x):
        return function(x) + step
    return inner
""",
    "helpers.py": """
import deep
from deep import far

def table(x):
    return far(x) + deep.TABLE["a"][1]

def unrelated():
    return 5
""",
    "deep.py": """
COUNT = 8
TABLE = {"a": [1, 2], "b": {3, 4}}
NOBODYS = 9

def far(x):
    return nearer(x) + 1

def nearer(x):
    return x * 2
""",
    "late.py": "def later(x):\n    return x + 30\n\ndef more():\n    return 40\n",
    "consts.py": "SCALE = 6\nX = 7\nY = 8\n",
    "pkg/__init__.py": "",
    "pkg/mod.py": "CONST = 20\nREST = 21\n",
}

CHANGES = {
    "its own code": ("mine.py", "+ k + m", "- k + m"),
    "a constant of its module": ("mine.py", "LIMIT = 4", "LIMIT = 4.0"),
    "a constant imported by name": ("consts.py", "SCALE = 6", "SCALE = 7"),
    "a constant of a module": ("consts.py", "X = 7", "X = 8"),
    "a constant of a module in a package": ("pkg/mod.py", "CONST = 20", "CONST = 21"),
    "a helper one module away": ("helpers.py", "+ deep.TABLE", "- deep.TABLE"),
    "a helper two modules away": ("deep.py", "nearer(x) + 1", "nearer(x) + 2"),
    "what that helper calls": ("deep.py", "x * 2", "x * 3"),
    "a constant two modules away": ("deep.py", "[1, 2]", "[1, 5]"),
    "a default": ("mine.py", "k=2", "k=3"),
    "a default by name": ("mine.py", "m=5", "m=6"),
    "a class attribute": ("mine.py", "width = 3", "width = 4"),
    "a base class": ("base.py", 'kind = "row"', 'kind = "column"'),
    "what a base class reaches": ("deep.py", "COUNT = 8", "COUNT = 9"),
    "other bases": ("mine.py", "(Base)", "(Base, Mixin)"),
    "a closure": ("base.py", "step = 10", "step = 11"),
    "what a decorator was given": ("mine.py", "lambda x: x + 1", "lambda x: x + 2"),
    "a partial's argument": ("mine.py", "partial(table, 7)", "partial(table, 8)"),
    "an import inside a function": ("late.py", "x + 30", "x + 31"),
    "a module imported inside a function": ("late.py", "return 40", "return 41"),
    "its name": ("mine.py", "Mine", "Yours"),
}
NO_CHANGES = {
    "a function that isn't used": ("helpers.py", "return 5", "return 6"),
    "a constant that isn't used": ("deep.py", "NOBODYS = 9", "NOBODYS = 10"),
    "another constant of a module that is": ("consts.py", "Y = 8", "Y = 9"),
    "another of a module in a package": ("pkg/mod.py", "REST = 21", "REST = 22"),
    "a class beside it": ("mine.py", "return 1\n", "return 2\n"),
    "a comment": ("mine.py", "# a comment", "# another\n        # comment"),
    "a docstring": ("mine.py", "Begin.", "Start."),
    "no docstring": ("mine.py", '"""Begin."""', ""),
    "a class's docstring": ("mine.py", "A policy.", "The policy."),
    "lines": ("mine.py", "class Mine", "\n\n\nclass Mine"),
    "the order in a dict": ("deep.py", '"a": [1, 2], "b": {3, 4}', '"b": {3, 4}, "a": [1, 2]'),
    "the order in a set": ("deep.py", "{3, 4}", "{4, 3}"),
    "the order of imports": (
        "helpers.py",
        "import deep\nfrom deep import far",
        "from deep import far\nimport deep",
    ),
}


def digests(sources: Sources, edit: tuple[str, str, str]) -> tuple[str, str]:
    sources.write(FILES)
    before = digest(sources.load("mine").Mine)
    sources.edit(*edit)
    module = sources.load("mine")
    return before, digest(getattr(module, "Mine", None) or module.Yours)


@pytest.mark.parametrize("edit", CHANGES.values(), ids=CHANGES)
def test_what_changes_a_digest(sources: Sources, edit: tuple[str, str, str]) -> None:
    before, after = digests(sources, edit)
    assert before != after


@pytest.mark.parametrize("edit", NO_CHANGES.values(), ids=NO_CHANGES)
def test_what_does_not(sources: Sources, edit: tuple[str, str, str]) -> None:
    before, after = digests(sources, edit)
    assert before == after


def test_memory_counts_and_not_the_file(sources: Sources) -> None:
    """A file that was edited after the import says nothing about what runs."""
    sources.write(FILES)
    mine = sources.load("mine").Mine
    before = digest(mine)
    sources.edit("deep.py", "x * 2", "x * 3")
    assert digest(mine) == before
    vars(sys.modules["consts"])["X"] += 1
    assert digest(mine) != before


def test_every_process_says_the_same(sources: Sources) -> None:
    """Also where sets and dicts have another order, and modules come from compiled files."""
    sources.write(FILES)
    code = (
        "import mine, rank1\n"
        "from rank1.compiled import digest\n"
        "from rank1.simulation.loop import play\n"
        "law = type(rank1.spike(2, 2, .5, .5, .1, .1).law)\n"
        "kinds = {mine.Mine, mine.Other, mine.table, law}\n"
        "print(digest(mine.Mine(), play, rank1.Rank1ElimKL(), law, {k: k for k in kinds}, kinds))\n"
    )
    seen = set()
    for seed in "123":
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONDONTWRITEBYTECODE": ""}
        environment["PYTHONPATH"] = os.pathsep.join([str(sources.folder), *sys.path])
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        seen.add(done.stdout)
    assert len(seen) == 1


# What rank1's own kernels depend on

#: What compiled code may reach: an edit elsewhere compiles nothing anew.
REACHED = (
    "rank1.compiled.",
    "rank1.divergences.",
    "rank1.policies.",
    "rank1.problems.",
    "rank1.simulation.loop.",
    "rank1.simulation.stages.",
)


@pytest.mark.parametrize("policy", POLICIES)
def test_kernels_depend_on_nothing_above_the_simulation(policy: str) -> None:
    state = type(start(POLICIES[policy](), PROBLEM, 100))
    for problem in EXAMPLES.values():
        for function in (play, play_stages, _choose, _update):
            for name in walked(function, state, type(problem.law)):
                assert name.startswith(REACHED) or not name.startswith("rank1"), name
    assert any(name.endswith("State.choose") for name in walked(_choose, state))


def test_an_edit_of_rank1_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of a constant that compiled code sees only from afar."""
    state = type(start(rank1.LinUCB(), PROBLEM, 100))
    before = digest(play, state)
    monkeypatch.setattr("rank1.policies.two_hot._TIE", 1e-10)
    assert digest(play, state) != before
    monkeypatch.undo()
    monkeypatch.setattr("rank1.policies.ucb1.ROUNDING", 1e-10)
    assert digest(play, state) == before


# Values


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Pair(NamedTuple):
    a: Any
    b: Any = 2


@dataclasses.dataclass(frozen=True)
class Settings:
    a: Any = 1
    b: Any = dataclasses.field(default_factory=list)


class Slots:
    __slots__ = ("a", "b")

    def __init__(self, a: Any) -> None:
        self.a = a


class Plain:
    def __init__(self, a: Any) -> None:
        self.a = a

    @functools.cached_property
    def double(self) -> Any:
        return self.a * 2


class Words(dict[str, int]):
    pass


class Numbers(list[int]):
    pass


def made(x: int) -> Callable[[], int]:
    return lambda: x


def times_pi(x: float) -> float:
    return x * math.pi


compiled = numba.njit(times_pi)


#: Each differs from all others.
DIFFERENT: list[Any] = [
    *(None, True, False, 0, 1, -1, 10**400, 0.0, -0.0, 1.0, math.nan, math.inf, 1j, ..., "", "1"),
    *(b"", b"1", (), (1,), (1, 2), ((1,), 2), (1, (2,)), [], [1], [1, 2], [[1], 2], [(1,)], {}),
    *({1: 2}, {2: 1}, {"1": 2}, set(), {1}, {2, 1}, frozenset(), frozenset({1}), {(): []}),
    *(range(3), range(4), slice(1, 2), Path("a"), Path("b"), Colour.RED, Colour.BLUE, Colour, Pair),
    *(Pair(1), Pair(2), Pair(1, 3), Settings(), Settings(2), Settings(b=[1]), Slots(1), Slots(2)),
    *(
        Plain(1),
        Plain(2),
        Plain([]),
        Words(),
        Words(a=1),
        Numbers(),
        Numbers([1]),
        made(1),
        made(2),
    ),
    *(np.float64(1), np.float32(1), np.int64(1), np.dtype("f4"), np.dtype("f8"), np.zeros(2)),
    *(np.zeros(3), np.zeros((2, 1)), np.zeros(2, "f4"), np.ones(2), np.array(["a"]), np.array("a")),
    *(np.array([None]), np.array([[]], object), np.zeros(1, "i4,i8"), np.ones(1, "i4,i8")),
    *(np.dtype([("a", int)]), np.dtype((np.record, [("a", int)])), np.datetime64("2020-01-01")),
    *(len, max, math.sqrt, math.log, np.sqrt, np.add, np.sum, np.mean, np.float64, np.random),
    *(compiled, numba.njit(fastmath=True)(times_pi), numba.njit(made(1)), numba.types.int8),
    *(functools.partial(max, 1), functools.partial(max, 2), functools.partial(max, 1, key=len)),
    *(
        functools.cache(made(1)),
        functools.cache(made(2)),
        rank1.UCB1().start,
        rank1.UCB1(3).start,
        [].append,
        [1].append,
    ),
    *(Fraction(1, 3), Fraction(1, 2), re.compile("a"), re.compile("b"), deque([1]), deque([2])),
    *(OrderedDict(a=1), defaultdict(int, a=1), defaultdict(bool, a=1), object(), Plain, Slots),
    *(types.SimpleNamespace(a=1), types.MappingProxyType({1: 3}), int | float, list[int], str.join),
    *(np.random.default_rng(1), np.random.default_rng(2), np.random.SeedSequence(1), Settings),
    *(Frozen(stats.beta(2, 1)), Frozen(stats.beta(2, 3)), Frozen(stats.norm(2, 1))),
    *(Frozen(stats.rv_discrete(values=([0, 1], [p, 1 - p]))()) for p in (0.25, 0.5)),
    *(rank1.UCB1(), rank1.UCB1(3), rank1.UTS(), *EXAMPLES.values()),
]


def test_different_things_have_different_digests() -> None:
    seen: dict[str, Any] = {}
    for thing in DIFFERENT:
        other = seen.setdefault(digest(thing), thing)
        assert other is thing, (other, thing)


def test_a_copy_is_as_good() -> None:
    """What was sent to another process is what it was, shared or not."""
    shared = [[1], Plain([2])]
    once, twice = [shared, shared], [shared, pickle.loads(pickle.dumps(shared))]
    assert digest(once) == digest(twice)
    assert digest(shared, once) == digest(pickle.loads(pickle.dumps(shared)), twice)
    for thing in EXAMPLES.values():
        assert digest(pickle.loads(pickle.dumps(thing))) == digest(thing)


def test_use_does_not_count() -> None:
    """Python leaves notes on classes whose objects were pickled."""

    class Used:
        __slots__ = ("a",)

    before = digest(Used)
    Used().__reduce_ex__(4)
    assert "__slotnames__" in vars(Used)
    assert digest(Used) == before


def test_what_was_computed_from_the_rest_does_not_count() -> None:
    thing = Plain(3)
    before = digest(thing)
    assert thing.double == 6
    assert "double" in vars(thing)
    assert digest(thing) == before


KEYS = st.integers() | st.text(max_size=3)


@given(st.dictionaries(KEYS, st.sets(st.floats() | st.binary(max_size=3), max_size=4), max_size=4))
def test_order_does_not_count(values: dict[Any, set[Any]]) -> None:
    turned: dict[Any, set[Any]] = {key: set() for key in reversed(values)}
    for key, members in values.items():
        for member in list(members)[::-1]:
            turned[key].add(member)
    assert digest(values) == digest(turned)


def test_gaps_in_records_do_not_count() -> None:
    kind = np.dtype([("a", "i1"), ("b", "i8")], align=True)
    filled = [np.frombuffer(bytes([k]) * kind.itemsize, kind).copy() for k in (1, 2)]
    for array in filled:
        array["a"], array["b"] = 3, 4
    assert filled[0].tobytes() != filled[1].tobytes()
    assert digest(filled[0]) == digest(filled[1])


def test_cycles_end() -> None:
    loop: list[Any] = [1]
    loop.append(loop)
    longer: list[Any] = [1, [1]]
    longer[1].append(longer)
    other: list[Any] = [2]
    other.append(other)
    assert digest(loop) != digest(other)
    # The same when unrolled, but longer: which of the two it is may count, that it ends must.
    assert digest(longer)


def test_a_set_may_hold_what_leads_back_to_it() -> None:
    def knot(k: int) -> dict[Any, Any]:
        own: dict[Any, Any] = {}
        own["self"] = {Colour.RED, Says(own), Says(own), made(k)}
        return own

    assert digest(knot(1)) == digest(knot(1))
    assert digest(knot(1)) != digest(knot(2))


def test_cycles_that_differ_only_in_where_they_lead() -> None:
    """First and last, x and y stand in the same places; what y holds is another thing."""

    def network(*, y_is_x: bool) -> list[Any]:
        root: list[Any] = ["root"]
        x: list[Any] = [root]
        y: list[Any] = x if y_is_x else []
        holder: list[Any] = ["holder", y]
        if not y_is_x:
            y.append(holder)
        root += [x, holder]
        return root

    assert digest(network(y_is_x=True)) != digest(network(y_is_x=False))
    assert digest(network(y_is_x=True)) == digest(network(y_is_x=True))


def test_hundreds_of_functions_that_all_call_each_other() -> None:
    """Depth isn't bounded by Python's recursion, nor does the work grow with the paths."""
    scope: dict[str, Any] = {"__name__": "many"}
    count = 300
    for k in range(count):
        calls = " + ".join(f"f{(k + step) % count}(x)" for step in (1, 2, 3, 5, 8))
        exec(f"def f{k}(x): return {calls} if x else {k}", scope)
    before = digest(scope["f0"])
    exec(f"def f{count // 2}(x): return 0", scope)
    assert digest(scope["f0"]) != before
    chain: list[Any] = []
    for _ in range(5000):
        chain = [chain]
    assert digest(chain)


class Says:
    def __init__(self, value: Any) -> None:
        self.value, self.lock = value, threading.Lock()

    def __digest__(self) -> Any:
        return self.value


def test_an_object_may_say_what_it_is() -> None:
    assert digest(Says(1)) == digest(Says(1))
    assert digest(Says(1)) != digest(Says(2))
    assert digest(Says([made(1)])) != digest(Says([made(2)]))


class Broken:
    def __digest__(self) -> Any:
        raise OSError("not today")


def test_an_object_that_fails_to_say_it() -> None:
    with pytest.raises(
        NoDigest, match=r"<Broken>, reached by <list> → \[0\] → <Broken> \(OSError: n"
    ):
        digest([Broken()])


LOCK = threading.Lock()


def locked(x: int) -> int:
    with LOCK:
        return x


def numbers() -> Iterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        (locked, "no digest can be taken of <lock>, reached by locked → LOCK → <lock>"),
        ([{"a": numbers()}], "<generator>, reached by <list> → [0] → ['a'] → <generator>"),
        (Plain(io.StringIO), None),
        (Plain((1, open)), None),
        (Plain(Plain(LOCK)), "<lock>, reached by <Plain> → Plain.a → Plain.a → <lock>"),
        (Slots(sys._getframe()), "<frame>, reached by <Slots> → Slots.a → <frame>"),
        ({LOCK}, "<lock>, reached by <set> → <lock>"),
        (np.array([LOCK]), "<lock>"),
        (np.frompyfunc(len, 1, 1), "<ufunc>"),
        (made(threading.local()), "<_thread._local>|<local>|<_local>"),  # type: ignore[arg-type]
    ],
)
def test_where_there_is_no_telling(thing: Any, message: str | None) -> None:
    if message is None:
        assert digest(thing)
        return
    with pytest.raises(NoDigest) as error:
        digest(thing)
    assert any(part in str(error.value) for part in message.split("|")), str(error.value)
    assert isinstance(error.value, rank1.Rank1Error)


def test_the_way_to_it_is_told(sources: Sources) -> None:
    sources.write(FILES)
    sources.edit("deep.py", '{"a": [1, 2], "b": {3, 4}}', "(x for x in 'ab')")
    sources.edit("helpers.py", 'deep.TABLE["a"][1]', "next(deep.TABLE)")
    sources.edit("mine.py", "functools.partial(table, 7)", "len")
    with pytest.raises(NoDigest) as error:
        digest(sources.load("mine").Mine)
    assert str(error.value).endswith("by Mine.start → table → deep.TABLE → <generator>")


# What is installed


def install(folder: Path, version: str, body: str, *, direct: bool = False) -> None:
    """What pip leaves of a package in site-packages."""
    (folder / "theirs.py").write_text(f"def helper(x):\n    return {body}\n")
    for old in folder.glob("theirs-*"):
        for file in old.iterdir():
            file.unlink()
        old.rmdir()
    info = folder / f"theirs-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: theirs\nVersion: {version}\n")
    if direct:
        (info / "direct_url.json").write_text('{"url": "file:///home/me/theirs", "dir_info": {}}')


def installed(sources: Sources, body: str, version: str = "1.0", *, direct: bool = False) -> str:
    from rank1.compiled import pins

    pins._version.cache_clear()
    pins.pin.cache_clear()
    install(sources.folder / "site-packages", version, body, direct=direct)
    sources.write({"mine.py": "from theirs import helper\ndef f(x):\n    return helper(x)\n"})
    return digest(sources.load("mine").f)


def test_an_installed_package_counts_by_its_version(
    sources: Sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = sources.folder / "site-packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    first = installed(sources, "x")
    assert installed(sources, "x + 1") == first
    assert installed(sources, "x", "1.1") != first
    # What is installed from a folder changes without a new version.
    folders = installed(sources, "x", direct=True)
    assert folders not in (first, installed(sources, "x + 1", direct=True))


def test_installed_decorators_hide_nothing() -> None:
    def function(k: int) -> Callable[[], Iterator[int]]:
        def numbers() -> Iterator[int]:
            yield k

        return numbers

    f, g = function(1), function(2)
    assert digest(contextlib.contextmanager(f)) != digest(contextlib.contextmanager(g))
    # A wrapper that borrows the name of something installed is still somebody's own.
    lent = [functools.wraps(np.sum)(each) for each in (f, g)]
    assert digest(lent[0]) != digest(lent[1])


def test_rank1_counts_by_its_code_wherever_it_lies(monkeypatch: pytest.MonkeyPatch) -> None:
    from rank1.compiled import pins

    monkeypatch.setattr(pins, "_is_installed", lambda module: True)
    monkeypatch.setattr(pins, "_version", lambda top: f"{top} 1.0")
    pins.pin.cache_clear()
    assert pins.pin("rank1.policies.ucb1") is None
    assert "rank1.checks.integer" in walked(rank1.spike)
    pins.pin.cache_clear()
