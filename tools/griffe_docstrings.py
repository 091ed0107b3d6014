"""Griffe extension that reads this package's docstrings for the API reference (see mkdocs.yml)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import griffe

#: A doctest, up to the blank line after it.
DOCTEST = re.compile(r"^>>> .*(?:\n.+)*", re.M)
#: Parameters that share a description.
SHARED = re.compile(r"^(\w+(?:, \w+)+)\n((?: {4}.*(?:\n|\Z)|\n(?= {4}))+)", re.M)


class Docstrings(griffe.Extension):  # type: ignore[misc]
    """Handle comments above names, NamedTuple fields, and numpy style that Griffe can't parse."""

    def on_attribute_instance(self, *, attr: griffe.Attribute, **_: Any) -> None:
        """Use the `#:` lines above an attribute as its docstring."""
        if attr.docstring or not attr.lineno or not isinstance(attr.filepath, Path):
            return
        lines = attr.lines_collection[attr.filepath]
        said: list[str] = []
        number = attr.lineno - 1
        while number > 0 and (line := lines[number - 1].strip()).startswith("#:"):
            said.insert(0, line.removeprefix("#:").strip())
            number -= 1
        if said:
            attr.docstring = griffe.Docstring("\n".join(said), lineno=number + 1, parent=attr)

    def on_class_members(self, *, cls: griffe.Class, **_: Any) -> None:
        """Give a NamedTuple the signature of its fields."""
        if "NamedTuple" not in map(str, cls.bases):
            return
        fields = [
            griffe.Parameter(
                name,
                annotation=field.annotation,
                kind=griffe.ParameterKind.positional_or_keyword,
                default=field.value,
            )
            for name, field in cls.members.items()
            if field.is_attribute and field.annotation is not None
            and "property" not in field.labels
        ]  # fmt: skip
        self_parameter = griffe.Parameter("self", kind=griffe.ParameterKind.positional_or_keyword)
        cls["__init__"] = griffe.Function(
            "__init__", parameters=griffe.Parameters(self_parameter, *fields)
        )

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite what the parser would misread."""
        if not obj.docstring:
            return
        # Griffe would give all parameters that share a description the default of the first.
        text = SHARED.sub(
            lambda found: "".join(f"{name}\n{found[2]}" for name in found[1].split(", ")),
            obj.docstring.value + "\n",
        ).rstrip()
        # Outside an Examples section, Markdown reads `>>>` as a quotation.
        if "Examples\n---" not in text:
            text = DOCTEST.sub("```pycon\n\\g<0>\n```", text)
        obj.docstring.value = text
