"""The label of a policy: its name with its settings, as the command line takes it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from rank1.policies.base import Policy

__all__ = ["changed", "label_of", "plain_setting", "setting_text"]


def label_of(name: str, settings: Mapping[str, Any], cls: type[Policy] | None = None) -> str:
    """The label of a policy with these settings; settings at their default are left out.

    Without a class, for example for a third-party policy named in a file, it shows all settings.

    >>> import rank1
    >>> label_of("linucb", {"confidence_scale": 1 / 3, "ridge": 1.0}, rank1.LinUCB)
    'linucb:confidence_scale=1/3'
    >>> label_of("mine", {"a": 2.0, "b": "wide"})
    'mine:a=2,b=wide'
    """
    shown = [f"{key}={setting_text(value)}" for key, value in changed(settings, cls).items()]
    return name + (":" + ",".join(shown) if shown else "")


def changed(settings: Mapping[str, Any], cls: type[Policy] | None) -> dict[str, Any]:
    """The settings that differ from the defaults of the class; all of them without a class."""
    fields = dataclasses.fields(cls) if cls else ()
    defaults = {field.name: plain_setting(field.default) for field in fields}
    return {
        key: value
        for key, value in settings.items()
        if key not in defaults or value != defaults[key]
    }


def plain_setting(value: Any) -> Any:
    """A setting as a JSON value: numbers are floats, infinite ones strings."""
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if is_number:
        return float(value) if math.isfinite(value) else str(float(value))
    return value


def setting_text(value: Any) -> str:
    """The shortest text that the command line parses as this value.

    >>> setting_text(0.0), setting_text(1 / 3), setting_text(1000000.5), setting_text(False)
    ('0', '1/3', '1000000.5', 'false')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, float) or not math.isfinite(value):
        return str(value)
    if float(f"{value:g}") == value:
        return f"{value:g}"
    texts = [str(value)]
    for denominator in range(3, 100):
        if value > 0 and round(value * denominator) / denominator == value:
            texts.append(f"{round(value * denominator)}/{denominator}")
    return min(texts, key=len)
