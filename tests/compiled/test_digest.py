"""A digest changes with the source that something depends on, and with nothing beside it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from fractions import Fraction
from functools import cached_property, partial
from pathlib import Path
from types import MethodType
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import stats

import rank1
from rank1.compiled import closure, digest
from rank1.compiled import sources as module
from rank1.errors import NoDigest
from rank1.policies import POLICIES
from rank1.policies.live import _choose
from rank1.policies.stages import leap_stages
from rank1.problems.laws import Frozen
from rank1.simulation.loop import play
from tests.compiled.support import Sources
from tests.support import start

FILES = {
    "mine.py": """
import consts
import pkg.mod
import rank1
from helpers import table
from pkg import other as named
from pkg.relative import deepest

class Mine(rank1.Uniform):
    def start(self, known):
        return table(known) * consts.X + pkg.mod.CONST + rank1.Known(2, 2, 9).K + named.Y

    def late(self):
        from late import later
        return later(2)
""",
    "helpers.py": "import deep\n\ndef table(x):\n    return deep.far(x)\n",
    "deep.py": "COUNT = 8\n\ndef far(x):\n    return x * 2\n",
    "late.py": "def later(x):\n    return x + 30\n",
    "consts.py": "X = 7\n",
    "unrelated.py": "Z = 1\n",
    "pkg/__init__.py": "",
    "pkg/mod.py": "CONST = 20\n",
    "pkg/other.py": "Y = 20\n",
    "pkg/beside.py": "Y = 20\n",
    "pkg/relative.py": "from . import mod\nfrom .below import deepest\n",
    "pkg/below.py": "def deepest():\n    return 1\n",
}
CHANGES = {
    "its own code": ("mine.py", "* consts", "+ consts"),
    "a constant that it imports": ("consts.py", "7", "8"),
    "a module in a package": ("pkg/mod.py", "20", "21"),
    "a module imported from a package": ("pkg/other.py", "20", "21"),
    "a relative import": ("pkg/below.py", "1", "2"),
    "a helper": ("helpers.py", "deep.far(x)", "-deep.far(x)"),
    "a helper two modules away": ("deep.py", "x * 2", "x * 3"),
    "an import inside a function": ("late.py", "30", "31"),
}
NO_CHANGES = {
    "a module that isn't imported": ("unrelated.py", "1", "2"),
    "a module beside those that are": ("pkg/beside.py", "20", "21"),
}


def digests(written: Sources, edit: tuple[str, str, str]) -> tuple[str, str]:
    written.write(FILES)
    before = digest(written.load("mine").Mine)
    written.edit(*edit)
    return before, digest(written.load("mine").Mine)


@pytest.mark.parametrize("edit", CHANGES.values(), ids=CHANGES)
def test_what_changes_a_digest(sources: Sources, edit: tuple[str, str, str]) -> None:
    before, after = digests(sources, edit)
    assert before != after


@pytest.mark.parametrize("edit", NO_CHANGES.values(), ids=NO_CHANGES)
def test_what_does_not(sources: Sources, edit: tuple[str, str, str]) -> None:
    before, after = digests(sources, edit)
    assert before == after


def test_a_file_that_was_edited_after_its_import_has_no_digest(sources: Sources) -> None:
    """It doesn't say what the code in memory does."""
    sources.write(FILES)
    mine = sources.load("mine").Mine
    sources.edit("deep.py", "x * 2", "x * 3")
    with pytest.raises(NoDigest, match=r"deep\.py was edited after it was imported: start a new"):
        digest(mine)
    assert digest(sources.load("mine").Mine)  # imported again


def test_what_was_digested_stays_so(sources: Sources) -> None:
    sources.write(FILES)
    mine = sources.load("mine").Mine
    before = digest(mine)
    sources.edit("deep.py", "x * 2", "x * 3")
    assert digest(mine) == before


def test_names_of_rank1_stand_for_their_modules(sources: Sources) -> None:
    sources.write(FILES)
    found = closure(sources.load("mine").__name__)
    assert "rank1.policies.uniform" in found
    assert not {name for name in found if name.startswith(("rank1.sweeps", "rank1.client"))}
    sources.write({"bare.py": "from rank1 import checks\n"})
    sources.load("bare")
    ours = {name for name in closure("bare") if name.startswith("rank1")}
    assert ours == {"rank1.checks", "rank1.errors"}


def test_every_process_says_the_same(sources: Sources) -> None:
    sources.write(FILES)
    code = (
        "import mine, rank1\n"
        "from rank1.compiled import digest\n"
        "kinds = {mine.Mine, mine.table, rank1.UCB1}\n"
        "print(digest(mine.Mine(), rank1.Rank1ElimKL(), {k: k for k in kinds}, kinds))\n"
    )
    seen = set()
    for seed in "12":
        environment = os.environ | {"PYTHONHASHSEED": seed}
        environment["PYTHONPATH"] = os.pathsep.join([str(sources.folder), *sys.path])
        command = [sys.executable, "-c", code]
        seen.add(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)
    assert len(seen) == 1


@pytest.mark.parametrize("policy", POLICIES)
def test_kernels_depend_on_nothing_above_the_simulation(policy: str) -> None:
    """An edit of the command line, the service, the plots or the docs compiles nothing anew."""
    problem = rank1.spike(3, 2, 0.4, 0.4, 0.5, 0.5)
    state = type(start(POLICIES[policy](), problem, 100))
    below = (
        *("checks", "compiled", "design", "divergences", "errors", "grid", "notebook", "paths"),
        *("policies", "hypergeometric", "problems", "rows", "simulation.loop", "tournament"),
    )
    for thing in (play, leap_stages, _choose, state, type(problem.law)):
        for name in closure(thing.__module__):
            allowed = name.removeprefix("rank1.").startswith(below)
            assert allowed or not name.startswith("rank1"), (thing, name)


def test_kernels_of_studies_depend_on_nothing_beside_them() -> None:
    above = ("client", "paper", "plots", "server", "simulation", "sweeps", "theory")
    for name in ("rank1.studies.state", "rank1.studies.order", "rank1.studies.export"):
        names = {each.removeprefix("rank1.").partition(".")[0] for each in closure(name)}
        assert not names & {*above}, name


def install(folder: Path, version: str, body: str, *, direct: bool) -> None:
    (folder / "theirs").mkdir(parents=True, exist_ok=True)
    (folder / "theirs" / "__init__.py").write_text(f"def helper(x):\n    return {body}\n")
    for old in folder.glob("*.dist-info"):
        for file in old.iterdir():
            file.unlink()
        old.rmdir()
    info = folder / f"theirs-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: theirs\nVersion: {version}\n")
    if direct:
        (info / "direct_url.json").write_text('{"url": "file:///home/me/theirs", "dir_info": {}}')


def test_an_installed_package_counts_by_its_version(
    sources: Sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = sources.folder / "site-packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)

    def installed(body: str, version: str = "1.0", *, direct: bool = False) -> str:
        install(folder, version, body, direct=direct)
        sources.write({"mine.py": "from theirs import helper\ndef f(x):\n    return helper(x)\n"})
        mine = sources.load("mine")
        module.version_of.cache_clear()
        return digest(mine.f)

    first = installed("x")
    assert installed("x + 1") == first
    assert installed("x", "1.1") != first
    # What is installed from a folder changes without a new version.
    assert installed("x", direct=True) not in (first, installed("x + 1", direct=True))
    module.version_of.cache_clear()


# Values


class Point(NamedTuple):
    x: float


class Held:
    def __init__(self, x: Any) -> None:
        self.x = x

    @cached_property
    def twice(self) -> Any:
        return 2 * self.x


class Keyed:
    def __init__(self, x: int) -> None:
        self.x = x

    def __getstate__(self) -> dict[int, int]:
        return {1: self.x}


def first(self: Any) -> int:
    return 1


def second(self: Any) -> int:
    return 2


second.__name__ = "first"
VALUES = [
    *(None, True, 1, 1.0, -0.0, 0.0, "1", b"1", 2**5000, (1, 2), [1, 2], [[1], 2], {1, 2}),
    *({"a": 1}, {"a": 2}, frozenset({1, 2}), np.zeros(2), np.zeros((2, 1)), np.zeros(2, np.int64)),
    *(np.float64(1), np.dtype(float), Point(1), Point(2), Held(1), Held(2), Held(np.ones(3))),
    *(Fraction(1, 2), Path("a"), np.sum, np.add, len, digest, Point, Held, partial(digest, 1)),
    *(partial(digest, 2), rank1.UCB1().start, rank1.UCB1(), rank1.UCB1(confidence=3.0), 1j),
    *(Frozen(stats.beta(1, 2)), Frozen(stats.beta(1, 3)), Frozen(stats.uniform(0, 1))),
    *(Keyed(1), Keyed(2), MethodType(first, Held(1)), MethodType(second, Held(1))),
]


def test_values_are_told_apart() -> None:
    seen: dict[str, Any] = {}
    for value in VALUES:
        other = seen.setdefault(digest(value), value)
        assert other is value, (other, value)
    again = [digest(Held(1)), digest(Frozen(stats.beta(1, 2))), digest(np.zeros(2))]
    assert {*again} <= {*seen}


def test_order_and_what_is_merely_kept_do_not_count() -> None:
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    used = Held(1)
    assert used.twice == 2
    assert digest(used) == digest(Held(1))


def test_what_has_no_digest() -> None:
    inside: list[Any] = []
    inside.append(inside)

    class Local:
        pass

    main = type("Main", (), {"__module__": "__main__"})
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for thing in (
        threading.Lock(),
        (k for k in [1]),
        lambda: 1,
        Local,
        Local(),
        main,
        inside,
        deep,
    ):
        with pytest.raises(NoDigest, match="no digest can be taken of"):
            digest(thing)


def test_nothing_is_imported_to_find_out() -> None:
    code = (
        "import sys, rank1.policies.ucb1\n"
        "from rank1.compiled import digest\n"
        "digest(rank1.UCB1)\n"
        "assert not {'numba', 'scipy', 'joblib'} & {*sys.modules}\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_imports_are_noted_once() -> None:
    assert sys.meta_path.count(module._Imports) == 1
