"""A mistake in a policy or a law, in one line instead of Numba's hundred.

Mistakes that are visible in the source are found there: names and attributes that don't exist,
results of the wrong shape. For all others each method is compiled separately, so that Numba's error
is about its lines and not about the loop around it.
"""

from __future__ import annotations

import ast
import builtins
import dis
import functools
import inspect
import linecache
import os
import sys
import textwrap
import traceback
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from rank1.errors import PolicyError, listed, shown

__all__ = ["arguments_of", "explain", "explain_raised", "own_place", "source_tree"]

#: The parts of a pull.
PULL = ("arm", "tag")
MUST = f"choose must return ({', '.join(PULL)}), whole numbers"
#: The methods that compiled code calls, with their arguments.
STATE = {
    "choose": ("rng",),
    "update": (*PULL, "reward"),
    "issued": PULL,
    "expects": PULL,
    "load": ("arm", "count", "total"),
}
LAW = {"draw": ("arm", "rng"), "gap": ("arm",)}
#: Numba's messages for code that would have to allocate memory.
ALLOCATES = ("NRT required but not enabled", "Only accept returning of array passed")
#: Packages whose code isn't a policy's own.
OTHERS = ({"rank1", "numpy", "numba", "scipy"} | sys.stdlib_module_names) - {"__main__"}


class Mistake(NamedTuple):
    """A mistake, and where it is."""

    function: FunctionType
    line: int
    cause: str


def explain(error: Exception, *arguments: Any) -> PolicyError:
    """Explain in one line why Numba can't compile the code of a policy or a law.

    Parameters
    ----------
    error
        Numba's error; its text is kept as `details`.
    arguments
        The states and laws, or their classes. With a state, types are checked, too.

    Returns
    -------
    PolicyError
        With `policy` (the state's class), `method`, `file`, `line` and `cause`.
    """
    things = [one for one in arguments if hasattr(one, "_fields")]
    things.sort(key=lambda one: _class(one).__module__.startswith("rank1."))  # the user's own first
    for thing in things:
        for name in ("choose", "update"):
            if "limits" in thing._fields and not hasattr(thing, name):
                cls = _class(thing).__name__
                return PolicyError(f"{cls} has no method {name}", policy=cls, method=name)
        for mistake in _mistakes(thing):
            return _told(_class(thing), mistake, error)
    return PolicyError(f"the code can't be compiled: {_cause(error)}", details=str(error))


def _told(cls: type, mistake: Mistake, error: Exception) -> PolicyError:
    name, file = mistake.function.__qualname__, mistake.function.__code__.co_filename
    return _in_one_line(cls.__name__, name, file, mistake.line, mistake.cause, str(error))


def _in_one_line(
    cls: str, name: str, file: str, line: int, cause: str, details: str
) -> PolicyError:
    method = name.rpartition(".")[2]
    if "." in name:
        name = f"{cls}.{method}"
    return PolicyError(
        f"{name} ({min(os.path.relpath(file), file, key=len)}:{line}): {cause}",
        policy=cls, method=method, file=file, line=line, cause=cause, details=details,
    )  # fmt: skip


def explain_raised(error: Exception) -> PolicyError | None:
    """Explain in one line what a policy's own code raised as Python; None if it wasn't its code."""
    if (place := own_place(error)) is None:
        return None
    code, line = place
    parts = code.co_qualname.split(".")
    cls, cause = parts[-2] if len(parts) > 1 else "", f"{type(error).__name__}: {error}"
    return _in_one_line(cls, code.co_qualname, code.co_filename, line, cause, str(error))


def own_place(error: Exception) -> tuple[CodeType, int] | None:
    """The innermost code and line of an exception's traceback that is a policy's own."""
    own = [
        (frame.f_code, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if str(frame.f_globals.get("__name__")).partition(".")[0] not in OTHERS
    ]
    return own[-1] if own else None


def _class(thing: Any) -> type:
    return thing if isinstance(thing, type) else type(thing)


def _mistakes(thing: Any) -> Iterator[Mistake]:
    cls = _class(thing)
    known = STATE if "limits" in getattr(cls, "_fields", ()) else LAW
    methods = {name: found for name in known if (found := getattr(cls, name, None))}
    for method in methods.values():
        for function in _reached(method):
            yield from _unknown_names(function)
        yield from _unknown_attributes(cls, method)
        yield from _wrong_fields(thing, method)
    if "choose" in methods:
        yield from _wrong_returns(methods["choose"])
    if not isinstance(thing, type):
        for name, method in methods.items():
            yield from _compiled_alone(thing, method, known[name])


# In the source


def _reached(function: FunctionType) -> Iterator[FunctionType]:
    """A function, and the functions of its module that it names, directly or not."""
    todo, seen = [function], {function}
    while todo:
        one = todo.pop()
        yield one
        for name in one.__code__.co_names:
            other: Any = one.__globals__.get(name)
            same = isinstance(other, FunctionType) and other.__module__ == one.__module__
            if same and other not in seen:
                seen.add(other)
                todo.append(other)


def _unknown_names(function: FunctionType) -> Iterator[Mistake]:
    codes, line = [function.__code__], function.__code__.co_firstlineno
    module: Any = None  # if it was loaded by the step before
    while codes:
        code = codes.pop()
        codes += [const for const in code.co_consts if isinstance(const, CodeType)]
        for step in dis.get_instructions(code):
            line = (step.positions.lineno if step.positions else None) or line
            name = step.argval
            known = name in function.__globals__ or hasattr(builtins, str(name))
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME") and not known:
                yield Mistake(function, line, f"the name {name!r} isn't defined")
            if isinstance(module, ModuleType) and not hasattr(module, str(name)):
                cause = f"module {module.__name__!r} has no attribute {name!r}"
                yield Mistake(function, line, cause)
            module = function.__globals__.get(name) if step.opname == "LOAD_GLOBAL" else None


def source_tree(function: FunctionType) -> ast.AST:
    """A function's source, with the line numbers of its file; empty if there is none."""
    try:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return ast.Module([], [])
    return ast.increment_lineno(tree, first - 1)


def _unknown_attributes(cls: type, method: FunctionType) -> Iterator[Mistake]:
    own = next(iter(inspect.signature(method).parameters), None)
    # A state is a tuple, but `self.count` isn't meant to be a tuple's method.
    known = {name for name in dir(cls) if getattr(cls, name) is not getattr(tuple, name, None)}
    node: Any
    for node in ast.walk(source_tree(method)):
        found = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        if found and node.value.id == own and node.attr not in known:
            cause = f"{cls.__name__} has no attribute {node.attr!r}"
            yield Mistake(method, node.lineno, cause)


def _wrong_fields(thing: Any, method: FunctionType) -> Iterator[Mistake]:
    """Assignments to a field, and entries that a record doesn't have: `self.at[0].cuonts`."""
    own, tree = next(iter(inspect.signature(method).parameters), None), source_tree(method)
    fields = {} if isinstance(thing, type) else thing._asdict()
    records = {
        name: array.dtype.names
        for name, array in fields.items()
        if getattr(getattr(array, "dtype", None), "names", None)
    }
    aliases: dict[str, tuple[str, ...]] = {}

    def entries(node: Any) -> tuple[str, ...] | None:
        if isinstance(node, ast.Name):
            return aliases.get(node.id)
        field: Any = node.value if isinstance(node, ast.Subscript) else None
        is_field = isinstance(field, ast.Attribute) and isinstance(field.value, ast.Name)
        return records.get(field.attr) if is_field and field.value.id == own else None

    nodes: list[Any] = list(ast.walk(tree))
    for node in nodes:
        is_name = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        if is_name and (found := entries(node.value)):
            aliases[node.targets[0].id] = found
    for node in (node for node in nodes if isinstance(node, ast.Attribute)):
        if (known := entries(node.value)) and node.attr not in known:
            cause = f"{ast.unparse(node.value)} has no entry {node.attr!r}: {listed(known)}"
            yield Mistake(method, node.lineno, cause)
        is_own = isinstance(node.value, ast.Name) and node.value.id == own
        if is_own and isinstance(node.ctx, ast.Store):
            cause = f"{ast.unparse(node)} can't be assigned: write into its array"
            yield Mistake(method, node.lineno, cause)


def _wrong_returns(choose: FunctionType) -> Iterator[Mistake]:
    for node in ast.walk(source_tree(choose)):
        if isinstance(node, ast.Return):
            value = node.value
            count = len(value.elts) if isinstance(value, ast.Tuple) else 0
            if value is None or isinstance(value, ast.Constant) or count not in (0, len(PULL)):
                got = "nothing" if value is None else ast.unparse(value)
                yield Mistake(choose, node.lineno, f"{MUST}, not {got}")


# By Numba


def _compiled_alone(thing: Any, method: FunctionType, names: tuple[str, ...]) -> Iterator[Mistake]:
    """Compile one method, and yield what is wrong with it or with its result."""
    import numba
    import numpy as np

    from rank1.compiled.dispatch import OPTIONS

    file, line = method.__code__.co_filename, method.__code__.co_firstlineno
    if wanted := arguments_of(method, names):
        yield Mistake(method, line, f"{method.__name__} {wanted}")
        return
    known: Any = {"rng": np.random.default_rng(0), "reward": 0.0, "total": 0.0}
    typeof: Any = numba.typeof
    types = [typeof(given) for given in (thing, *(known.get(name, 0) for name in names))]
    alone: Any = numba.njit(**OPTIONS)(method)
    try:
        alone.compile(tuple(types))
    except Exception as error:  # Numba's own, and what it fails to catch
        place: Any = getattr(error, "loc", None)
        at = place.line if place is not None and place.filename == file else _named(file, error)
        source = linecache.getline(file, at).strip() if at else ""
        line = at or line
        yield Mistake(method, line, _cause(error, source))
        return
    if method.__name__ == "choose":
        returned = alone.nopython_signatures[0].return_type
        plain: Any = numba.types.unliteral
        parts = [plain(part) for part in getattr(returned, "types", ())]
        whole = all(isinstance(part, numba.types.Integer | numba.types.Boolean) for part in parts)
        if len(parts) != len(PULL) or not whole:
            got = f"({', '.join(map(str, parts))})" if parts else str(returned)
            yield Mistake(method, _last_return(method), f"{MUST}, not {got}")


@functools.cache
def arguments_of(method: FunctionType, names: tuple[str, ...]) -> str:
    """What a method's arguments must be; empty if it can be called with them."""
    try:
        inspect.signature(method).bind("self", *names)
    except TypeError:
        return f"must take the arguments ({', '.join(('self', *names))})"
    return ""


def _named(file: str, error: Exception) -> int:
    """The line of a file that Numba's message names last, as in `at FILE (12)`; 0 if none."""
    line = str(error).rpartition(f"{file} (")[2].partition(")")[0]
    return int(line) if line.isdigit() else 0


def _last_return(method: FunctionType) -> int:
    lines = [node.lineno for node in ast.walk(source_tree(method)) if isinstance(node, ast.Return)]
    return max(lines, default=method.__code__.co_firstlineno)


def _cause(error: Exception, source: str = "") -> str:
    """The most informative line of Numba's message, or the line of the source that allocates."""
    text = str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = next((line for line in lines if not line.startswith("Failed in nopython")), "")
    called = next((line[4:] for line in lines if line.startswith(">>> ")), "")
    if any(sign in text for sign in ALLOCATES):
        return f"compiled code can't allocate memory: {source or called or told}"
    return f"compiled code can't do {shown(called)}" if "found for signature" in told else told
