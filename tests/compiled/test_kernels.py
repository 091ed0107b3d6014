"""Compiled code is kept between processes, and never outlives what it was made of."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from numba.core import event
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Flags
from numba.core.targetconfig import ConfigStack
from numba.core.typing import templates
from numpy.typing import NDArray

import rank1
from rank1.compiled import (
    in_background,
    inlined,
    jit,
    kernel,
    kernel_for,
    kernels,
    machine,
    method,
    ready,
)
from rank1.compiled.kernels import as_written
from rank1.errors import FileError
from tests.compiled.support import Sources

MINE = """
from typing import NamedTuple
import numpy as np
import helpers
from helpers import jitted

class State(NamedTuple):
    counts: np.ndarray
    def value(self, x):
        return helpers.add(x) + jitted(x)
"""
HELPERS = """
import deep
from rank1.compiled import jit

@jit
def add(x):
    return x + deep.AMOUNT

@jit
def jitted(x):
    return deep.far(x)
"""
DEEP = """
from rank1.compiled import jit

AMOUNT = 10

@jit
def far(x):
    return x * 2
"""

value = method("value")


def call(state: Any, x: int) -> Any:
    return value(state, x)


class Nested(NamedTuple):
    inner: Any

    def value(self, x: int) -> Any:
        return value(self.inner, x)


class Counted(NamedTuple):
    counts: NDArray[np.int64]

    def value(self, x: int) -> int:
        return x + len(self.counts)


@jit
def shared(x: int) -> int:
    return x + 1


@inlined
def within(x: int) -> int:
    return 2 * shared(x)


class Twice(NamedTuple):
    counts: NDArray[np.int64]

    def value(self, x: int) -> int:
        return shared(x) + within(x)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache directory of its own, and no kernel in memory."""
    monkeypatch.setenv("RANK1_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(kernels, "_kernels", {})
    kernels._warn.cache_clear()
    return tmp_path / "cache"


def kept(folder: Path) -> list[Path]:
    """Folders of kernels."""
    return sorted(folder.glob("kernels/*/*"))


def loaded(compiled: Any) -> int:
    """How often a kernel was taken from the disk."""
    return sum(compiled.stats.cache_hits.values())


EDITS = {
    "nothing": ("mine.py", "import", "import"),
    "the method": ("mine.py", "+ jitted", "- jitted"),
    "a helper": ("helpers.py", "x + deep", "x - deep"),
    "a constant two modules away": ("deep.py", "10", "11"),
    "a function two modules away": ("deep.py", "x * 2", "x * 3"),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_an_edit_is_compiled_and_nothing_else(
    sources: Sources, folder: Path, edit: tuple[str, str, str]
) -> None:
    sources.write({"mine.py": MINE, "helpers.py": HELPERS, "deep.py": DEEP})
    values = []
    for step in range(2):
        if step:
            sources.edit(*edit)
        state = sources.load("mine").State(np.zeros(1))
        compiled = kernel(call, state)
        values.append((compiled(state, 5), state.value(5)))
    assert [value for value, _ in values] == [expected for _, expected in values]
    same = values[0] == values[1]
    assert loaded(compiled) == same
    assert len(kept(folder)) == (1 if same else 2)
    assert {path.parent.name for path in kept(folder)} == {"call-State"}


def test_what_lies_within_an_argument_counts(sources: Sources, folder: Path) -> None:
    """A law may hold another law, whose methods are compiled into the same kernel."""
    sources.write({"mine.py": MINE, "helpers.py": HELPERS, "deep.py": DEEP})
    values = []
    for amount in ("10", "11"):
        sources.edit("deep.py", "AMOUNT = 10", f"AMOUNT = {amount}")
        state = Nested(sources.load("mine").State(np.zeros(1)))
        values.append((kernel(call, state)(state, 5), state.value(5)))
    assert values == [(25, 25), (26, 26)]
    assert len(kept(folder)) == 2


@pytest.mark.validate
def test_a_damaged_cache_is_compiled_anew(tmp_path: Path) -> None:
    code = "import rank1; "
    code += "rank1.warm_up(rank1.Uniform()); print(0)"
    environment = os.environ | {"RANK1_CACHE_DIR": str(tmp_path)}
    for damage in (None, b"", b"nonsense"):
        files = list(tmp_path.rglob("*.nb?"))
        assert bool(files) == (damage is not None)
        for file in files:
            file.write_bytes(damage or b"")
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True
        )
        assert done.stdout.strip() == "0", done.stderr


def test_a_second_process_does_not_compile(tmp_path: Path) -> None:
    code = (
        "import sys, rank1, numba.core.event as event\n"
        "seen = []\n"
        "class Listener(event.Listener):\n"
        "    def on_start(self, e): seen.append(e)\n"
        "    def on_end(self, e): pass\n"
        "event.register('numba:compile', Listener())\n"
        "problem = rank1.spike(2, 2, 0.4, 0.4, 0.5, 0.5)\n"
        "rank1.simulate(rank1.Uniform(), problem, 100, 1)\n"
        "print(len(seen))"
    )
    compiled = []
    for seed in "12":
        environment = {"RANK1_CACHE_DIR": str(tmp_path), "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        compiled.append(int(done.stdout))
    assert compiled[0] > 0
    assert compiled[1] == 0


def test_folders_that_nobody_uses_make_room(sources: Sources, folder: Path) -> None:
    sources.write({"mine.py": MINE, "helpers.py": HELPERS, "deep.py": DEEP})

    def use() -> None:
        state = sources.load("mine").State(np.zeros(1))
        kernel(call, state)

    use()
    (first,) = kept(folder)
    ages = {first: 8, first.with_name("a" * 24): 8, first.with_name("b" * 24): 6}
    ages |= {folder / ("c" * 24): 8, folder / ("d" * 24): 6, folder / "movielens": 100}
    ages |= {first.parent.with_name("other") / ("e" * 24): 8, first.with_name("notes"): 100}
    for path in ages:
        path.mkdir(parents=True, exist_ok=True)
        (path / "kernel.nbi").touch()

    def age() -> None:
        for path, days in ages.items():
            if path.exists():
                then = time.time() - days * 24 * 3600
                os.utime(path, (then, then))

    age()
    use()  # the same as before: a use keeps it alive
    assert time.time() - first.stat().st_mtime < 3600
    assert all(path.exists() for path in ages)
    age()
    sources.edit("deep.py", "10", "11")
    use()  # a new one, which makes room
    gone = {path for path in ages if not path.exists()}
    assert gone == {first, first.with_name("a" * 24), folder / ("c" * 24)}


def test_a_folder_may_vanish_while_it_is_used(folder: Path) -> None:
    state = Counted(np.zeros(3, np.int64))
    compiled = kernel(call, state)
    assert compiled(state, 1) == 4
    shutil.rmtree(folder)
    assert compiled(state, 2) == 5
    assert compiled(state, 2.5) == 5.5  # compiled now, and written into a folder made anew
    assert len(kept(folder)) == 1


def test_nowhere_to_write(folder: Path) -> None:
    folder.write_text("a file where a folder should be")
    state = Counted(np.zeros(3, np.int64))
    assert kernel(call, state)(state, 1) == 4


def test_helpers_are_optimised_within_their_kernel(folder: Path) -> None:
    """And kernels themselves in full; what others compile with Numba is left alone."""
    state = Counted(np.zeros(3, np.int64))
    made = kernel(call, state)
    assert made(state, 1) == 4
    library: Any = next(iter(made.overloads.values())).library
    assert isinstance(library, machine._Library)
    names = [one.name for one in library._final_module.functions]
    assert any(name.startswith(machine.FOR_PYTHON) for name in names)
    theirs: Any = numba.njit(lambda x: x + 1)
    assert theirs(1) == 2
    assert type(next(iter(theirs.overloads.values())).library) is JITCodeLibrary


def test_a_helper_is_compiled_once_for_all_callers(folder: Path) -> None:
    """Also for one that is inlined, and is compiled with other options."""
    recorder: Any = event.install_recorder("numba:compile")
    template: Any = templates._OverloadFunctionTemplate
    before = template._get_impl
    with recorder as seen:
        state = Twice(np.zeros(3, np.int64))
        assert kernel(call, state)(state, 1) == 6
    started = [each.data["dispatcher"].py_func for _, each in seen.buffer if each.is_start]
    assert started.count(within) == started.count(shared) == 1
    assert template._get_impl is before is not machine._get_impl  # of what others compile


@pytest.mark.parametrize(
    ("option", "value", "shared"),
    [("forceinline", True, True), ("no_cpython_wrapper", True, True),
     ("nrt", True, False), ("error_model", "numpy", False), ("fastmath", True, False)],
)  # fmt: skip
def test_callers_share_a_helper_unless_it_would_compute_otherwise(
    option: str, value: Any, shared: bool
) -> None:
    class Template:
        context = None

        def __init__(self) -> None:
            self._impl_cache: dict[Any, Any] = {}

        def _build_impl(self, key: Any, args: Any, kws: Any) -> Any:
            return self._impl_cache.setdefault(key, object())

    other: Any = Flags()  # type: ignore[no-untyped-call]
    setattr(other, option, value)
    template, found = Template(), []
    for flags in (Flags(), other):  # type: ignore[no-untyped-call]
        with ConfigStack().enter(flags):  # type: ignore[no-untyped-call]
            found.append(machine._get_impl(template, (), {}))
    assert (found[0] is found[1]) == shared


def test_no_home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Path:
        raise FileError("no home")

    monkeypatch.setattr(kernels, "cache_directory", none)
    state = Counted(np.zeros(3, np.int64))
    assert kernel(call, state)(state, 1) == 4


def test_where_there_is_no_digest_there_is_a_warning_and_no_cache(
    sources: Sources, folder: Path
) -> None:
    sources.write({"mine.py": MINE, "helpers.py": HELPERS, "deep.py": DEEP})
    state = sources.load("mine").State(np.zeros(1))
    sources.edit("deep.py", "10", "11")  # after the import
    with pytest.warns(RuntimeWarning, match="can't cache .*deep.py was edited") as seen:
        compiled = kernel(call, state)
    assert seen[0].filename == __file__
    assert compiled(state, 5) == 25
    assert not kept(folder)


def test_classes_of_one_process_are_compiled_in_each(folder: Path) -> None:
    class Local(NamedTuple):
        counts: NDArray[np.int64]

        def value(self, x: int) -> int:
            return x

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for state in (Local(np.zeros(1, np.int64)), Nested(Local(np.zeros(1, np.int64)))):
            assert kernel(call, state)(state, 3) == 3
    assert not kept(folder)


def test_bounds_are_checked_if_numba_is_told_to(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code without the checks must not be taken from the disk instead."""
    state = Counted(np.zeros(3, np.int64))
    kernel(call, state)
    monkeypatch.setenv("NUMBA_BOUNDSCHECK", "1")
    monkeypatch.setattr(kernels, "_kernels", {})
    kernel(call, state)
    assert len(kept(folder)) == 2


def test_asking_for_a_kernel_again_takes_no_digest(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`ask` and `tell` do so in every step."""
    state = rank1.Uniform().start(rank1.Known(2, 2, 9))
    compiled = kernel(call, state)
    monkeypatch.setattr(kernels, "digest", None)
    assert kernel(call, state) is compiled


# Python first


def doubled(state: Any, x: int) -> Any:
    return 2 * value(state, x)


@pytest.fixture
def background(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels._Background, "current", None)
    in_background()


def wait_for(function: Any, state: Any) -> Any:
    """The compiled kernel, once the thread has made it."""
    for _ in range(15_000):
        if hasattr(found := ready(function, state), "overloads"):
            return found
        time.sleep(0.02)
    raise AssertionError("it was never compiled")


def test_what_is_ready_is_python_until_there_is_a_kernel(folder: Path) -> None:
    state = Counted(np.zeros(3, np.int64))
    assert ready(call, state) is as_written(call)
    compiled = kernel(call, state)
    assert ready(call, state) is as_written(call)  # nothing is compiled yet
    assert compiled(state, 1) == 4
    assert ready(call, state) is compiled


def test_compiling_in_the_background(folder: Path, background: None) -> None:
    state = Counted(np.zeros(3, np.int64))
    assert ready(doubled, state)(state, 1) == 8  # at once
    assert ready(doubled, state) is as_written(doubled)  # asked for once
    compiled = wait_for(doubled, state)
    assert compiled(state, 1) == 8
    assert len(compiled.overloads) == 1
    assert kernel(doubled, state) is compiled
    assert len(kept(folder)) == 1


def test_work_that_adds_up_is_compiled_in_the_background(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels._Background, "current", None)
    monkeypatch.setattr(kernels, "in_background", in_background)
    monkeypatch.setattr(kernels, "_spent", {})
    state = Counted(np.zeros(3, np.int64))
    for _ in range(9):
        assert kernel_for(doubled, state, work=kernels.LONG // 10)(state, 1) == 8
    assert kernels._Background.current is None
    ready(doubled, state, work=kernels.LONG // 10)(state, 1)
    assert wait_for(doubled, state)(state, 1) == 8


def test_what_cannot_be_compiled_stays_python(
    folder: Path, background: None, caplog: pytest.LogCaptureFixture
) -> None:
    class Odd(NamedTuple):
        counts: NDArray[np.int64]

        def value(self, x: int) -> int:
            return len({x: str(self)})

    odd, state = Odd(np.zeros(1, np.int64)), Counted(np.zeros(3, np.int64))
    assert ready(doubled, odd)(odd, 1) == 2
    ready(doubled, state)(state, 1)
    wait_for(doubled, state)  # the thread has gone on
    assert ready(doubled, odd) is as_written(doubled)
    assert "is not compiled and runs as Python" in caplog.text


def test_threads_and_the_background_may_compile_at_once(folder: Path, background: None) -> None:
    state, found = Counted(np.zeros(3, np.int64)), []

    def work() -> None:
        found.append(kernel(call, state)(state, 1))

    ready(call, state)(state, 1)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [4] * 4


#: A process that ends or forks WHEN the thread has come so far.
ENDS = """
import os, sys, time, threading, numpy as np, rank1
from rank1.compiled import in_background
in_background()
state, rng = rank1.UCB1().start(rank1.Known(2, 2, 99)), np.random.default_rng(1)
pull = rank1.ask(state, rng)
when, how = sys.argv[1:]
while when != "at once" and "numba" not in sys.modules:
    time.sleep(0.001)
if when == "compiling":
    import numba  # waits until the thread has imported all of it
    from numba.core import event
    class Listener(event.Listener):
        compiling = threading.Event()
        def on_start(self, event):
            self.compiling.set()
        def on_end(self, event):
            pass
    with event.install_listener("numba:compile", Listener()):
        assert Listener.compiling.wait(300)
if how == "fork":
    child = os.fork()
    if child == 0:
        rank1.ask(state, rng)
        rank1.warm_up(rank1.Uniform())
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.parametrize(
    ("when", "how"),
    [
        ("at once", "end"),
        ("importing", "end"),
        pytest.param("compiling", "end", marks=pytest.mark.validate),
        pytest.param("compiling", "fork", marks=pytest.mark.validate),
    ],
)
def test_a_process_may_end_or_fork_while_it_compiles(tmp_path: Path, when: str, how: str) -> None:
    if how == "fork" and not hasattr(os, "fork"):
        pytest.skip("there is no fork here")
    done = subprocess.run(
        [sys.executable, "-c", ENDS, when, how],
        env=os.environ | {"RANK1_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_long_work_decides_by_size(folder: Path) -> None:
    state = Counted(np.zeros(3, np.int64))
    assert kernel_for(call, state, work=kernels.LONG_FROM_DISK) is as_written(call)
    compiled = kernel_for(call, state, work=kernels.LONG)
    assert compiled(state, 1) == 4
    kernels._kernels.clear()
    assert kernel_for(call, state, work=kernels.LONG_FROM_DISK - 1) is as_written(call)
    again = kernel_for(call, state, work=kernels.LONG_FROM_DISK)
    assert (again(state, 1), loaded(again)) == (4, 1)


def test_python_alone_imports_no_numba() -> None:
    code = (
        "import sys, numpy as np, rank1, rank1.studies, rank1.stopping, rank1.fit\n"
        "state = rank1.UTS().start(rank1.Known(2, 2, 99))\n"
        "rank1.tell(state, rank1.ask(state, np.random.default_rng(1)), 1.0)\n"
        "assert not {'numba', 'scipy', 'polars', 'matplotlib'} & {*sys.modules}\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
