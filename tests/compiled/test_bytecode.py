"""What is read from instructions agrees with what Python's own disassembler says."""

from __future__ import annotations

import dis
import importlib
import pkgutil
from collections.abc import Iterator
from types import CodeType, ModuleType
from typing import Any

import pytest

import rank1
from rank1.compiled.bytecode import Import, facts_of

ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
LOOKUPS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")


def code_in(const: Any) -> Iterator[CodeType]:
    if isinstance(const, CodeType):
        yield const
        for inner in const.co_consts:
            yield from code_in(inner)


def code_of(module: ModuleType) -> Iterator[CodeType]:
    """All code of a module's source, that of the module itself left out."""
    with open(str(module.__file__)) as file:
        source = compile(file.read(), str(module.__file__), "exec")
    for const in source.co_consts:
        yield from code_in(const)


def lookups_by_dis(code: CodeType) -> set[tuple[str, ...]]:
    found: set[tuple[str, ...]] = set()
    for inner in code_in(code):
        chain: tuple[str, ...] = ()
        for one in [*dis.get_instructions(inner), None]:
            if one and chain and one.opname in ATTRIBUTES:
                chain = (*chain, one.argval)
                continue
            if chain:
                found.add(chain)
            chain = (one.argval,) if one and one.opname in LOOKUPS else ()
    return found


MODULES = [
    *(f"rank1.{name}" for name in ("checks", "policies.base", "simulation.runs", "compiled.parts")),
    *("dataclasses", "enum", "typing", "subprocess", "argparse", "inspect", "tests.test_cli"),
]


@pytest.mark.parametrize("name", MODULES)
def test_names_are_those_of_the_disassembler(name: str) -> None:
    seen = 0
    for code in code_of(importlib.import_module(name)):
        assert set(facts_of(code).lookups) == lookups_by_dis(code)
        seen += len(facts_of(code).lookups)
    assert seen > 20


def test_more_names_than_fit_into_one_byte() -> None:
    names = [f"name{k}" for k in range(700)]
    body = "\n".join(f"    {name}.attribute{k}" for k, name in enumerate(names))
    (code,) = compile(f"def f():\n{body}", "<string>", "exec").co_consts[:1]
    assert isinstance(code, CodeType)
    expected = [(name, f"attribute{k}") for k, name in enumerate(names)]
    assert list(facts_of(code).lookups) == expected


def facts(source: str) -> Any:
    (code,) = (c for c in compile(source, "<string>", "exec").co_consts if isinstance(c, CodeType))
    return facts_of(code)


def test_imports_are_seen() -> None:
    source = """
def f():
    import a.b
    import c as d
    from .e import g, h
    from .. import i
    def inner():
        from j import k
"""
    assert set(facts(source).imports) == {
        Import("a.b", 0, None),
        Import("c", 0, None),
        Import("e", 1, ("g", "h")),
        Import("", 2, ("i",)),
        Import("j", 0, ("k",)),
    }


SAME = {
    "a docstring": "def f(x):\n    '''Doc.'''\n    g(x)\n    return x + 1",
    "lines": "def f(x):\n\n\n    g(x)\n\n    return x + 1",
    "a comment": "def f(x):  # why\n    g(x)\n    # this\n    return x + 1",
}
OTHER = {
    "a constant": "def f(x):\n    g(x)\n    return x + 2",
    "its type": "def f(x):\n    g(x)\n    return x + 1.0",
    "an operation": "def f(x):\n    g(x)\n    return x - 1",
    "a name": "def f(x):\n    h(x)\n    return x + 1",
    "an argument": "def f(x, y):\n    g(x)\n    return x + 1",
    "a string": "def f(x):\n    g(x)\n    return 'Doc.'",
    "a handler": "def f(x):\n    try:\n        g(x)\n    except E:\n        pass\n    return x + 1",
    "a generator": "def f(x):\n    g(x)\n    yield x + 1",
    "nested code": "def f(x):\n    g(x)\n    return (lambda: x + 1)()",
    "nested code of another kind": "def f(x):\n    g(x)\n    return (lambda: x + 2)()",
}


@pytest.mark.parametrize("source", SAME.values(), ids=SAME)
def test_what_does_not_run_leaves_no_trace(source: str) -> None:
    assert facts(source).digest == facts("def f(x):\n    g(x)\n    return x + 1").digest


def test_what_runs_does() -> None:
    sources = ["def f(x):\n    g(x)\n    return x + 1", *OTHER.values()]
    assert len({facts(source).digest for source in sources}) == len(sources)


def test_where_errors_are_caught_counts() -> None:
    """The same instructions, but none of them guarded."""

    def guarded(x: str) -> int:
        try:
            return int(x)
        except ValueError:
            return 0

    code = guarded.__code__
    assert facts_of(code).digest != facts_of(code.replace(co_exceptiontable=b"")).digest


def test_a_class_in_a_function_may_move_and_be_described() -> None:
    plain = "def f():\n    class C:\n        'One.'\n        a = 1\n    return C"
    moved = "def f():\n\n    # here\n    class C:\n        'Two.'\n\n        a = 1\n    return C"
    other = "def f():\n    class C:\n        'One.'\n        a = 2\n    return C"
    assert facts(plain).digest == facts(moved).digest != facts(other).digest


def test_all_of_the_package_can_be_read() -> None:
    """Python's next version may change its instructions: then this is the first to know."""
    names = [one.name for one in pkgutil.walk_packages(rank1.__path__, "rank1.")]
    assert len(names) > 50
    for name in names:
        if name != "rank1.__main__":
            for code in code_of(importlib.import_module(name)):
                assert facts_of(code).digest
