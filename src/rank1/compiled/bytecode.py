"""What a piece of code does and what it names, from its instructions in memory.

Line numbers, comments and docstrings leave no trace here: constants are taken from the
instructions that load them, and none loads a function's docstring.
"""

from __future__ import annotations

import dis
import hashlib
import sys
from types import CodeType
from typing import Any, NamedTuple

from rank1.compiled.plain import plain

__all__ = ["Facts", "Import", "facts_of"]


class Import(NamedTuple):
    """An import statement inside a function."""

    module: str
    #: Dots in front of the module's name.
    level: int
    #: None for `import module`, where the attributes are named later.
    names: tuple[str, ...] | None


class Facts(NamedTuple):
    """What there is to know about a code object and those nested in it."""

    digest: str
    #: Names that are looked up in the module, with the attributes that follow: ("consts", "X").
    lookups: tuple[tuple[str, ...], ...]
    imports: tuple[Import, ...]
    #: All names that the code uses, those of attributes among them.
    names: frozenset[str]


#: Code never changes, so it is read once. The code is kept too: its id must not be used again.
_known: dict[int, tuple[CodeType, Facts]] = {}

_EXTENDED = dis.opmap["EXTENDED_ARG"]
_CACHE = dis.opmap["CACHE"]
_CONST = frozenset(dis.hasconst)
_IMPORT = dis.opmap["IMPORT_NAME"]
_STORE = dis.opmap["STORE_NAME"]
_SMALL_INT = dis.opmap.get("LOAD_SMALL_INT", -1)  # Python 3.14
#: How far the index of a name is shifted in an instruction's argument.
_LOOKUP = {dis.opmap["LOAD_GLOBAL"]: 1, dis.opmap["LOAD_NAME"]: 0}
_ATTRIBUTE = {dis.opmap["LOAD_ATTR"]: 1}
if sys.version_info >= (3, 12):
    _LOOKUP[dis.opmap["LOAD_FROM_DICT_OR_GLOBALS"]] = 0
else:
    _ATTRIBUTE = {dis.opmap["LOAD_ATTR"]: 0, dis.opmap["LOAD_METHOD"]: 0}

_HAS_DOCSTRING = 0x4000000  # a flag of Python 3.13
#: What the body of a class notes about its source.
_NOTES = frozenset({"__doc__", "__firstlineno__", "__static_attributes__"})


def facts_of(code: CodeType) -> Facts:
    """What a code object does and names.

    >>> facts_of((lambda x: math.sqrt(x) + LIMIT).__code__).lookups
    (('math', 'sqrt'), ('LIMIT',))
    """
    found = _known.get(id(code))
    if found is None:
        found = _known[id(code)] = code, _read(code)
    return found[1]


def _instructions(code: CodeType) -> list[tuple[int, int]]:
    """Operations with their arguments, as they were compiled: not specialised for what they met."""
    found, high = [], 0
    raw = code.co_code
    for op, low in zip(raw[::2], raw[1::2], strict=True):
        arg = high | low
        if op == _EXTENDED:
            high = arg << 8
            continue
        high = 0
        if op != _CACHE:
            found.append((op, arg))
    return found


def _read(code: CodeType) -> Facts:
    names, consts = code.co_names, code.co_consts
    instructions = _instructions(code)
    does: list[tuple[int, int | str]] = []
    lookups: dict[tuple[str, ...], None] = {}
    imports: dict[Import, None] = {}
    chain: tuple[str, ...] = ()
    for k, (op, arg) in enumerate(instructions):
        if chain and op in _ATTRIBUTE:
            chain = (*chain, names[arg >> _ATTRIBUTE[op]])
        else:
            if chain:
                lookups[chain] = None
            chain = (names[arg >> _LOOKUP[op]],) if op in _LOOKUP else ()
        if op == _IMPORT:
            level, wanted = (
                _loaded(consts, *instruction) for instruction in instructions[k - 2 : k]
            )
            imports[Import(names[arg], level, wanted)] = None
        if op == _STORE and names[arg] in _NOTES:
            does.pop()
        else:
            does.append((op, _text(consts[arg]) if op in _CONST else arg))
    if chain:
        lookups[chain] = None
    for const in consts:
        if isinstance(const, CodeType):
            nested = facts_of(const)
            lookups |= dict.fromkeys(nested.lookups)
            imports |= dict.fromkeys(nested.imports)
            names += tuple(nested.names)
    shape = (
        *(code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount),
        *(code.co_flags & ~_HAS_DOCSTRING, code.co_exceptiontable),
        *(code.co_names, code.co_varnames, code.co_cellvars, code.co_freevars),
    )
    digest = hashlib.sha256(repr((shape, does)).encode()).hexdigest()
    return Facts(digest, tuple(lookups), tuple(imports), frozenset(names))


def _loaded(consts: tuple[Any, ...], op: int, arg: int) -> Any:
    return arg if op == _SMALL_INT else consts[arg]


def _text(const: Any) -> str:
    """A constant as text: plain values and nested code, maybe in tuples."""
    if isinstance(const, CodeType):
        return f"code {facts_of(const).digest}"
    text = plain(const)
    return repr(const) if text is None else text  # a slice of plain values, in Python 3.14
