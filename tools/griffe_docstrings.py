"""For the API reference: docstrings as this package writes them (`extensions` in mkdocs.yml)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import griffe

#: A doctest, up to the blank line after it.
DOCTEST = re.compile(r"^>>> .*(?:\n.+)*", re.M)


class Docstrings(griffe.Extension):  # type: ignore[misc]
    """Comments `#:` above a name, and examples that have no heading."""

    def on_attribute_instance(self, *, attr: griffe.Attribute, **_: Any) -> None:
        """Take the `#:` lines above an attribute for its docstring."""
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

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Mark doctests outside a section Examples as code; Markdown takes `>>>` for quotations."""
        if obj.docstring and "Examples\n---" not in obj.docstring.value:
            obj.docstring.value = DOCTEST.sub("```pycon\n\\g<0>\n```", obj.docstring.value)
