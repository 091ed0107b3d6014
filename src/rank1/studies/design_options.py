"""Options only for studies that draw by shares, such as floor, holdout and given sides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rank1 import checks
from rank1.design.options import check_floor
from rank1.errors import InputError, InputTypeError
from rank1.studies.events import check_text

__all__ = ["design_options", "no_design_options"]

Sides = Mapping[str, tuple[str, ...]]

NEW_LEVELS = ("refuse", "add")
#: The default of each option.
DEFAULTS: dict[str, Any] = {
    "floor": 0.0, "holdout": 0.0, "min_lift": 0.0, "given": (), "new_levels": "refuse",
    "guardrails": {},
}  # fmt: skip


def design_options(sides: Sides, control: Mapping[str, str] | None, **told: Any) -> dict[str, Any]:
    """Check that the options fit the sides of a study that draws by shares, and return them.

    >>> design_options({"image": ("x", "y")}, None, holdout=0.1)
    Traceback (most recent call last):
    ...
    rank1.InputError: holdout must be 0 for a study without a control, got 0.1: units that are held out are shown the control
    """  # noqa: E501
    given = _given(sides, told["given"]) if "given" in told else ()
    found = DEFAULTS | told | {"given": given}
    found["floor"] = checks.number("floor", found["floor"], 0, 1, below=True)
    found["holdout"] = checks.number("holdout", found["holdout"], 0, 1, below=True)
    found["min_lift"] = checks.number("min_lift", found["min_lift"], 0, 1)
    checks.one_of("new_levels", found["new_levels"], NEW_LEVELS)
    if found["new_levels"] == "add" and not given:
        expected = "refuse for a study without given sides"
        raise InputError("new_levels", "add", expected, "only levels of given sides are added")
    found["guardrails"] = _guardrails(found["guardrails"])
    check_floor(found["floor"], {side: len(sides[side]) for side in sides if side not in given})
    for name, expected, hint in (
        ("holdout", "0", "units that are held out are shown the control"),
        ("guardrails", "empty", "harm is measured against the control"),
    ):
        if control is None and found[name]:
            raise InputError(name, found[name], f"{expected} for a study without a control", hint)
    return found


def no_design_options(**told: Any) -> None:
    """Refuse these options for a study with a policy.

    >>> no_design_options(floor=0.1)
    Traceback (most recent call last):
    ...
    rank1.InputError: floor must be left out unless goal is find, without a policy, got 0.1: only such a study draws by shares
    """  # noqa: E501
    for name, value in told.items():
        if value is not None and value != DEFAULTS[name] and (name, value) != ("given", []):
            raise InputError(
                name, value, "left out unless goal is find, without a policy",
                "only such a study draws by shares",
            )  # fmt: skip


def _given(sides: Sides, given: Any) -> tuple[str, ...]:
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise InputTypeError("given", given, "a list of names of sides")
    found = tuple(given)
    for side in found:
        if not isinstance(side, str) or side not in sides or found.count(side) > 1:
            raise InputError("given", side, f"sides that differ, among {', '.join(sides)}")
    if len(found) == len(sides):
        raise InputError("given", list(found), "fewer sides: at least one must be chosen")
    return tuple(side for side in sides if side in found)


def _guardrails(guardrails: Any) -> dict[str, dict[str, float]]:
    expected = 'a mapping such as {"unsubscribed": {"worse_by": 0.02}}'
    if not isinstance(guardrails, Mapping):
        raise InputTypeError("guardrails", guardrails, expected)
    found = {}
    for name, options in guardrails.items():
        check_text("guardrails", name)
        if not isinstance(options, Mapping) or set(options) != {"worse_by"}:
            raise InputError(f"guardrails.{name}", options, expected)
        worse_by = checks.number(
            f"guardrails.{name}.worse_by", options["worse_by"], 0, 1, below=True
        )
        found[name] = {"worse_by": float(worse_by)}
    return found
