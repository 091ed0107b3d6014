"""Policies and problems from the names and settings that people write."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from rank1 import checks
from rank1.errors import InputError, InputTypeError

__all__ = ["build", "list_depth", "parse_policy", "parse_settings", "settings_of"]

T = TypeVar("T")


def settings_of(maker: Callable[..., Any]) -> dict[str, Any]:
    """The settings something takes, with defaults; `inspect.Parameter.empty` where there is none.

    >>> import rank1
    >>> settings_of(rank1.Rank1Elim)
    {'confidence_scale': 1.0}
    """
    parameters = inspect.signature(maker).parameters
    return {name: parameter.default for name, parameter in parameters.items()}


def list_depth(maker: Callable[..., Any], setting: str) -> int:
    """How many lists deep a setting is: 0 for a number, 1 for a list of numbers.

    >>> import rank1
    >>> list_depth(rank1.spike, "K"), list_depth(rank1.Bernoulli, "u")
    (0, 1)
    """
    parameter = inspect.signature(maker).parameters.get(setting)
    words = set(re.findall(r"\w+", str(parameter.annotation))) if parameter else set()
    if not words & {"ArrayLike", "Laws", "Sequence", "list"}:
        return 0
    return 3 if setting == "probabilities" else 1  # K×L×values


def build(kind: str, table: Mapping[str, Callable[..., T]], name: str, given: dict[str, Any]) -> T:
    """Make the policy or problem of this name, after checking what its settings are called.

    >>> from rank1.problems import PROBLEMS
    >>> build("problem", PROBLEMS, "bernoulli", {"u": [0.5]})
    Traceback (most recent call last):
    ...
    rank1.InputError: problem bernoulli needs v; it takes u, v
    """
    maker = table[checks.one_of(kind, name, table)]
    known = settings_of(maker)
    takes = f"it takes {', '.join(known)}" if known else "it takes no settings"
    for key in given:
        if key not in known:
            raise InputError(f"{kind} {name} has no setting {checks.shown(key)}; {takes}")
    missing = [
        key
        for key, default in known.items()
        if default is inspect.Parameter.empty and key not in given
    ]
    if missing:
        raise InputError(f"{kind} {name} needs {', '.join(missing)}; {takes}")
    try:
        return maker(**given)
    except (InputError, InputTypeError) as error:
        raise type(error)(f"{kind} {name}: {error}") from None


def parse_settings(texts: list[str], what: str) -> dict[str, Any]:
    """Settings written as name=value. A value is a number, a fraction, JSON, or else a word.

    Messages call them `what`.

    >>> parse_settings(["K=8", "u=[0.1, .2]", "scale=1/4", "radius=determinant"], "settings")
    {'K': 8, 'u': [0.1, 0.2], 'scale': 0.25, 'radius': 'determinant'}
    """
    settings: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise InputError(f"{what} must look like name=value, got {checks.shown(text)}")
        if name.strip() in settings:
            raise InputError(f"{what} must set {name.strip()} once, got it twice")
        settings[name.strip()] = _value(value.strip())
    return settings


def _value(text: str) -> Any:
    if fraction := re.fullmatch(r"(\d+)/(\d+)", text):
        if int(fraction[2]) == 0:
            raise InputError(f"a fraction must not divide by zero, got {text}")
        return int(fraction[1]) / int(fraction[2])
    for read in (json.loads, float, _dotted):
        try:
            return read(text)
        except ValueError:
            continue
    return text


def _dotted(text: str) -> Any:
    """JSON in which .5 stands for 0.5."""
    return json.loads(re.sub(r"(?<![\d.])\.(?=\d)", "0.", text))


def parse_policy(text: str) -> Any:
    """A policy written as name or name:setting=value,setting=value.

    >>> parse_policy("rank1elim:confidence_scale=0.5")
    Rank1Elim(confidence_scale=0.5)
    """
    from rank1.policies import POLICIES

    name, _, rest = text.partition(":")
    settings = parse_settings(rest.split(",") if rest else [], f"settings of {name}")
    return build("policy", POLICIES, name, settings)
