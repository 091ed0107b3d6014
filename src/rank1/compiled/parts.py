"""What a thing is made of: one level of the walk that takes a digest.

A function is its code and what that names: globals, attributes of modules, its closure, defaults.
A class is its bases and members, an object its class and attributes, or whatever `pickle` would
keep of it. An object may say it itself: `__digest__()` returns something simpler in its place.
"""

from __future__ import annotations

import builtins
import dataclasses
import enum
import functools
import hashlib
import importlib
import importlib.util
import pickle
import sys
import types
from collections.abc import Iterator
from copyreg import dispatch_table
from pathlib import PurePath
from types import FunctionType, ModuleType
from typing import Any, NamedTuple, TypeVar

import numba
import numpy as np

from rank1.compiled.bytecode import Facts, Import, facts_of
from rank1.compiled.pins import pin
from rank1.compiled.plain import plain

__all__ = ["Leaf", "Named", "Parts", "Refused", "parts_of", "title"]

#: A label, and what it labels.
Child = tuple[str, Any]


class Leaf(NamedTuple):
    """Something that a text says all about."""

    text: str


class Named(NamedTuple):
    """A module, of which only attributes of these names count."""

    module: ModuleType
    names: frozenset[str]


class Parts(NamedTuple):
    """Something that is made of others."""

    header: str
    children: list[Child]
    #: In a set, and in a dict, the order doesn't count.
    ordered: bool = True


class Refused(Exception):  # noqa: N818
    """There is no telling what a thing is made of."""


_ABSENT = Leaf("absent")

#: Members of a class that say nothing of what it does, or that other members say.
_NOISE = frozenset(
    [
        *("__dict__", "__weakref__", "__doc__", "__module__", "__qualname__"),
        *("__annotations__", "__annotate__", "__annotate_func__", "__annotations_cache__"),
        *("__classdictcell__", "__conditional_annotations__"),  # Python 3.14's, for annotations
        *("__firstlineno__", "__static_attributes__", "__abstractmethods__", "_abc_impl"),
        *("__parameters__", "__orig_bases__", "__type_params__", "__match_args__"),
        *("__dataclass_fields__", "__dataclass_params__", "__slotnames__"),
    ]
)
#: What a NamedTuple gets beside its fields; nobody else can define these.
_TUPLE_NOISE = frozenset(
    ["__new__", "__getnewargs__", "_make", "_replace", "__replace__", "_asdict"]
)
_DESCRIPTORS = (types.GetSetDescriptorType, types.MemberDescriptorType)
_TUPLE_FIELD = type(Leaf.text)
#: A flag of classes that aren't built into C code.
_HEAP_TYPE = 1 << 9
_CODE = (FunctionType, property, classmethod, staticmethod, functools.cached_property)


def title(thing: Any) -> str:
    """How a thing is called in a message."""
    code = isinstance(thing, type | FunctionType)
    return str(thing.__qualname__) if code else f"<{type(thing).__qualname__}>"


def parts_of(thing: Any) -> str | Parts:
    """What a thing is made of, or a text that says all about it."""
    if type(thing) is Leaf:
        return str(thing.text)
    if (text := plain(thing)) is not None:
        return text
    if isinstance(thing, FunctionType):
        if "__digest__" in vars(thing):
            return Parts("says", [("", vars(thing)["__digest__"]())])
    elif hasattr(type(thing), "__digest__"):
        return Parts("says", [("", type(thing)), ("__digest__()", thing.__digest__())])
    if callable(thing) and (text := _reference(thing)) is not None:
        return text
    if (look := _EXACTLY.get(type(thing))) is not None:
        return look(thing)
    for kind, look in _LIKE:
        if isinstance(thing, kind):
            return look(thing)
    if type(thing).__module__.partition(".")[0] == "numba":
        return _numba(thing)
    return _as_pickled(thing)


def _reference(thing: Any) -> str | None:
    """The name of a function or class that came with a version and can be found by its name."""
    name = getattr(thing, "__qualname__", None) or getattr(thing, "__name__", None)
    home = getattr(thing, "__module__", None)
    if isinstance(name, str) and isinstance(home, str) and (version := pin(home)):
        found: Any = sys.modules.get(home)
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is thing or (isinstance(thing, type) and not thing.__flags__ & _HEAP_TYPE):
            return f"{version} {home}.{name}"
    return None


# Code


def _function(function: FunctionType) -> Parts:
    facts = facts_of(function.__code__)
    home = function.__globals__.get("__name__", "")
    version = pin(home)
    children: list[Child] = [("defaults", function.__defaults__)] if function.__defaults__ else []
    children += sorted((function.__kwdefaults__ or {}).items())
    children += _closure(function, facts)
    children += sorted(vars(function).items())
    if version:  # made by installed code, such as a decorator, out of what it was given
        return Parts(f"function {version} {home}.{function.__code__.co_qualname}", children)
    children += [(".".join(chain), _lookup(function, chain)) for chain in facts.lookups]
    for one in facts.imports:
        children += _imported(function, facts, one)
    return Parts(f"function {facts.digest}", children)


def _closure(function: FunctionType, facts: Facts) -> Iterator[Child]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            value = cell.cell_contents
        except ValueError:
            value = _ABSENT
        yield name, Named(value, facts.names) if isinstance(value, ModuleType) else value


def _lookup(function: FunctionType, chain: tuple[str, ...]) -> Any:
    """What a name, and the attributes behind it, stand for in a function."""
    scope = function.__globals__
    found = scope.get(chain[0], _ABSENT)
    if found is _ABSENT:
        found = getattr(builtins, chain[0], _ABSENT)
    for k, name in enumerate(chain[1:], 1):
        if not isinstance(found, ModuleType):
            break  # an attribute of a class or an object, which is looked at as a whole
        if version := pin(found.__name__):
            return Leaf(f"{version} {'.'.join((found.__name__, *chain[k:]))}")
        found = getattr(found, name, _ABSENT)
    return found


def _imported(function: FunctionType, facts: Facts, one: Import) -> Iterator[Child]:
    """What an import inside a function brings."""
    name = one.module
    if one.level:
        package = function.__globals__.get("__package__") or ""
        name = importlib.util.resolve_name("." * one.level + name, package)
    if version := pin(name):
        yield name, Leaf(f"{version} {name} {one.names}")
        return
    try:
        module = importlib.import_module(name)
    except ImportError:
        yield name, _ABSENT
        return
    if one.names is None:
        yield name, Named(module, facts.names)
        yield name, Named(sys.modules[name.partition(".")[0]], facts.names)
    for attribute in one.names or ():
        if not hasattr(module, attribute):
            try:
                importlib.import_module(f"{name}.{attribute}")
            except ImportError:
                yield attribute, _ABSENT
                continue
        value = getattr(module, attribute)
        yield attribute, Named(value, facts.names) if isinstance(value, ModuleType) else value


def _module(module: ModuleType) -> str | Parts:
    """A module that is handed about: which of its names are used, nobody knows."""
    return _named(Named(module, frozenset(name for name in vars(module) if name[:2] != "__")))


def _named(given: Named) -> str | Parts:
    module, names = given
    if version := pin(module.__name__):
        return f"{version} {module.__name__}"
    children = []
    for name in sorted(names):
        value = getattr(module, name, _ABSENT)
        if value is not _ABSENT:
            inner = Named(value, names) if isinstance(value, ModuleType) else value
            children.append((f"{module.__name__}.{name}", inner))
    return Parts("module", children)


def _class(cls: type) -> Parts:
    name = cls.__qualname__
    children: list[Child] = [(name, base) for base in (type(cls), *cls.__bases__)]
    members = {key: value for key, value in vars(cls).items() if key not in _NOISE}
    if issubclass(cls, enum.Enum):
        members = {key: value for key, value in members.items() if isinstance(value, _CODE)}
        children += [(f"{name}.{key}", one.value) for key, one in cls.__members__.items()]
    if issubclass(cls, tuple) and "_fields" in members:
        members = {key: value for key, value in members.items() if key not in _TUPLE_NOISE}
    if "__dataclass_fields__" in vars(cls):
        for field in dataclasses.fields(cls):
            children += [(field.name, _default(field.default))]
            children += [(field.name, _default(field.default_factory))]
    for key in sorted(members):
        if not isinstance(members[key], (*_DESCRIPTORS, _TUPLE_FIELD)):
            children.append((f"{name}.{key}", members[key]))
    return Parts(f"class {cls.__module__}.{name}", children)


def _default(given: Any) -> Any:
    return _ABSENT if given is dataclasses.MISSING else given


def _numba(thing: Any) -> str | Parts:
    if isinstance(thing, numba.types.Type) and not hasattr(thing, "class_type"):
        return f"{pin('numba')} {thing!r}"
    for name in ("py_func", "_dispatcher", "_defn", "_pyfunc"):  # jit, vectorize, intrinsic, cfunc
        if (code := getattr(thing, name, None)) is not None:
            options = dict(getattr(thing, "targetoptions", {}))
            return Parts(f"compiled {pin('numba')}", [("", code), ("options", options)])
    raise Refused


# Values


def _list(values: list[Any]) -> str | Parts:
    texts = [plain(value) for value in values]
    if None not in texts:
        return f"[{''.join(f'{text},' for text in texts)}]"
    return Parts("list", _numbered(values))


def _numbered(values: Any) -> list[Child]:
    return [(f"[{k}]", value) for k, value in enumerate(values)]


def _dict(values: Any) -> Parts:
    texts = {key: plain(key) for key in values}
    if None in texts.values():
        return Parts("dict", [("", item) for item in values.items()], ordered=False)
    keys = sorted(values, key=lambda key: str(texts[key]))
    return Parts("dict", [(f"[{texts[key]}]", values[key]) for key in keys])


def _set(values: Any) -> str | Parts:
    texts = [plain(value) for value in values]
    if None not in texts and type(values) is set:
        return f"set({sorted(map(str, texts))})"
    return Parts("set", [("", part) for part in (type(values), *values)], ordered=False)


def _array(array: Any) -> str | Parts:
    header = f"array {array.dtype!r} {array.shape}"
    if array.dtype.hasobject:
        return Parts(header, [("", array.tolist())])
    if array.dtype.names:  # between its entries a record may have gaps, filled with anything
        return Parts(header, [(name, array[name]) for name in array.dtype.names])
    return f"{header} {hashlib.sha256(array.tobytes()).hexdigest()}"


def _as_pickled(thing: Any) -> str | Parts:
    """What `pickle` would keep of an object: its class, attributes and items."""
    cls = type(thing)
    try:
        reduce = dispatch_table.get(cls)
        kept: Any = reduce(thing) if reduce else thing.__reduce_ex__(4)
    except Exception as error:
        raise Refused from error
    if isinstance(kept, str):  # the name of a single thing
        home = pickle.whichmodule(thing, kept)  # type: ignore[attr-defined]
        version = pin(home)
        if version is None or getattr(sys.modules.get(home), kept, None) is not thing:
            raise Refused
        return f"{version} {home}.{kept}"
    make, arguments, state, items, pairs = (*kept, None, None, None)[:5]
    children: list[Child] = [("", make), ("", arguments)]
    # Attributes in __dict__, and those in __slots__.
    for attributes in state if isinstance(state, tuple) and len(state) == 2 else (state,):
        if isinstance(attributes, dict) and all(isinstance(key, str) for key in attributes):
            for key in sorted(attributes):
                if not isinstance(getattr(cls, key, None), functools.cached_property):
                    children.append((f"{cls.__qualname__}.{key}", attributes[key]))
        else:
            children.append(("", attributes))
    children += [] if items is None else _numbered(items)
    children += [] if pairs is None else [("", dict(pairs))]
    return Parts("object", children)


_EXACTLY: dict[type, Any] = {
    FunctionType: _function,
    Named: _named,
    ModuleType: _module,
    list: _list,
    tuple: lambda values: Parts("tuple", _numbered(values)),
    dict: _dict,
    types.MappingProxyType: _dict,
    np.ndarray: _array,
    np.memmap: _array,
    np.recarray: _array,
}
#: The first that fits is taken.
_LIKE: list[tuple[Any, Any]] = [
    (type, _class),
    (types.MethodType, lambda m: Parts("method", [("", m.__func__), ("", m.__self__)])),
    ((classmethod, staticmethod), lambda m: Parts(type(m).__name__, [("", m.__func__)])),
    (property, lambda p: Parts("property", [("", p.fget), ("", p.fset), ("", p.fdel)])),
    (functools.cached_property, lambda p: Parts("cached", [("", p.func)])),
    (functools._lru_cache_wrapper, lambda f: Parts("cached", [("", f.__wrapped__)])),
    (TypeVar, lambda variable: f"type variable {variable.__name__}"),
    (np.dtype, lambda dtype: f"dtype {dtype!r} {dtype.itemsize}"),
    (np.generic, lambda scalar: f"scalar {scalar.dtype!r} {scalar.tobytes().hex()}"),
    (enum.Enum, lambda one: Parts("member", [("", type(one)), ("", one.name), ("", one.value)])),
    (PurePath, lambda path: f"path {path.as_posix()!r}"),
    ((set, frozenset), _set),
    (ModuleType, _module),
]
