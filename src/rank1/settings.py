"""Make policies and problems from names and settings, as users write them."""

from __future__ import annotations

import inspect
import json
import pkgutil
import re
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from rank1 import checks
from rank1.errors import InputError, InputTypeError, Rank1Error
from rank1.grid import MAX_SIDES

if TYPE_CHECKING:
    from rank1.policies import Policy

__all__ = [
    "all_policies",
    "build",
    "find_policy",
    "list_depth",
    "make",
    "make_policy",
    "parse_policy",
    "parse_settings",
    "settings_of",
]

T = TypeVar("T")


def settings_of(maker: Callable[..., Any]) -> dict[str, Any]:
    """The settings of something, with defaults; `inspect.Parameter.empty` if there is none.

    >>> import rank1
    >>> settings_of(rank1.Rank1Elim)
    {'confidence_scale': 1.0}
    """
    parameters = inspect.signature(maker).parameters
    return {name: parameter.default for name, parameter in parameters.items()}


def list_depth(maker: Callable[..., Any], setting: str) -> int:
    """How many levels of lists a setting may have: 0 for a number, 1 for a list of numbers.

    >>> import rank1
    >>> list_depth(rank1.spike, "K"), list_depth(rank1.Bernoulli, "u")
    (0, 1)
    >>> list_depth(rank1.Product, "factors"), list_depth(rank1.Means, "means")
    (2, 17)
    """
    parameter = inspect.signature(maker).parameters.get(setting)
    words = re.findall(r"\w+", str(parameter.annotation)) if parameter else []
    if "AxisPerSide" in words:  # and one for the values of Categorical
        return MAX_SIDES + 1
    return sum(word in ("ArrayLike", "Laws", "Sequence", "list") for word in words)


def build(kind: str, table: Mapping[str, Callable[..., T]], name: str, given: dict[str, Any]) -> T:
    """Make the policy or problem with this name, after checking the names of its settings.

    >>> from rank1.problems import PROBLEMS
    >>> build("problem", PROBLEMS, "bernoulli", {"u": [0.5]})
    Traceback (most recent call last):
    ...
    rank1.InputError: problem bernoulli: v must be given, got nothing: it takes u, v
    """
    return make(f"{kind} {name}", table[checks.one_of(kind, name, table)], given, kind)


def make(
    what: str, maker: Callable[..., T], given: dict[str, Any], argument: str | None = None
) -> T:
    """Call `maker` with these settings, part of an argument; errors say they belong to `what`."""
    known = settings_of(maker)
    empty = inspect.Parameter.empty
    missing = [key for key, value in known.items() if value is empty and key not in given]
    try:
        for key in given:
            if not known:
                raise InputError("settings", given, "none", got=checks.shown(key))
            checks.one_of("setting", key, known)
        if missing:
            names, takes = ", ".join(missing), f"it takes {', '.join(known)}"
            raise InputError(names, None, "given", takes, got="nothing")
        return maker(**given)
    except (InputError, InputTypeError) as error:
        error.part_of = argument
        raise error.within(what) from None


def find_policy(name: str) -> type[Policy]:
    """The class of a policy: one of rank1's, one from an entry point, or `module:Class`.

    Other packages provide policies through entry points of the group `rank1.policies`.

    >>> find_policy("uts")
    <class 'rank1.policies.uts.UTS'>
    >>> find_policy("rank1.policies:UTS")
    <class 'rank1.policies.uts.UTS'>
    """
    from rank1.policies import POLICIES, Policy

    if isinstance(name, str) and name in POLICIES:
        return POLICIES[name]
    if isinstance(name, str) and ":" in name:
        found = _imported(name)
    else:
        known = all_policies()
        found = known[checks.one_of("policy", name, known)]
    if not isinstance(found, type) or not issubclass(found, Policy):
        raise InputTypeError("policy", name, "the name of a class derived from rank1.Policy")
    return found


def all_policies() -> dict[str, type[Policy]]:
    """Every policy by its name, with those from other packages' entry points last.

    A policy that can't be imported is left out with a warning.
    """
    from importlib.metadata import entry_points

    from rank1.policies import POLICIES

    others = {}
    for point in entry_points(group="rank1.policies"):
        if point.name not in POLICIES:
            try:
                others[point.name] = _imported(point.value)
            except Exception as error:
                warnings.warn(f"the policy {point.name} is left out: {error}", stacklevel=2)
    return POLICIES | others


def _imported(name: str) -> Any:
    """The object that `module:Class` names."""
    try:
        return pkgutil.resolve_name(name)
    except Rank1Error:
        raise
    except Exception as error:  # a module may raise anything
        usual = isinstance(error, ImportError | AttributeError | ValueError)
        cause = str(error) if usual else f"{type(error).__name__}: {error}"
        raise InputError("policy", name, "a class that can be imported", cause) from None


def make_policy(name: str, settings: dict[str, Any]) -> Policy:
    """The policy with this name, see `find_policy`, and these settings."""
    return make(f"policy {name}", find_policy(name), settings, "policy")


def parse_policy(text: str) -> Policy:
    """Parse a policy, written as name or name:setting=value,setting=value.

    >>> parse_policy("rank1elim:confidence_scale=0.5")
    Rank1Elim(confidence_scale=0.5)
    >>> parse_policy("rank1.policies:UCB1:confidence=2")
    UCB1(confidence=2)
    """
    from rank1.policies import POLICIES

    name, _, rest = text.partition(":")
    if name not in POLICIES and (imported := re.fullmatch("([^:]+:[^:=]+)(?::(.*))?", text)):
        name, rest = imported.groups()
    settings = parse_settings(rest.split(",") if rest else [], f"settings of {name}")
    return make_policy(name, settings)


def parse_settings(texts: list[str], what: str) -> dict[str, Any]:
    """Parse settings written as name=value. A value is a number, a fraction, JSON or a word.

    `what` names them in errors.

    >>> parse_settings(["K=8", "u=[0.1, .2]", "scale=1/4", "radius=determinant"], "settings")
    {'K': 8, 'u': [0.1, 0.2], 'scale': 0.25, 'radius': 'determinant'}
    >>> parse_settings(["factors=[[.8,.64],[-.5]]"], "--set")
    {'factors': [[0.8, 0.64], [-0.5]]}
    """
    settings: dict[str, Any] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name or not value:
            raise InputError(what, text, "written as name=value")
        if name in settings:
            raise InputError(what, text, "given once each", got=f"{checks.shown(name)} twice")
        settings[name] = _value(value)
    return settings


def _value(text: str) -> Any:
    if fraction := re.fullmatch(r"(\d+)/(\d+)", text):
        if int(fraction[2]) == 0:
            raise InputError("a fraction", text, "one that doesn't divide by zero", got=text)
        return int(fraction[1]) / int(fraction[2])
    for read in (json.loads, float, _dotted):
        try:
            return read(text)
        except ValueError:
            continue
    return text


def _dotted(text: str) -> Any:
    """Parse JSON that may have .5 for 0.5."""
    return json.loads(re.sub(r"(?<![\d.])\.(?=\d)", "0.", text))
