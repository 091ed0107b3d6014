"""Notebooks as pages of the site."""

from __future__ import annotations

import re
from typing import Any

#: How an output is told from code.
PRINTED = "{ .text .no-copy .printed }"


def notebook_page(notebook: dict[str, Any]) -> str:
    """A notebook as Markdown, with the outputs that are stored in it."""
    parts = []
    for cell in notebook["cells"]:
        text = "".join(cell["source"]).strip("\n")
        if cell["cell_type"] == "markdown":
            parts.append(text)
        elif cell["cell_type"] == "code" and text:
            parts += [fenced(text, "python"), *map(shown, cell["outputs"])]
    return "\n\n".join(part for part in parts if part) + "\n"


def shown(output: dict[str, Any]) -> str:
    """One output of a cell, in the richest form that it has."""
    if output["output_type"] == "stream":  # standard error has progress bars
        return fenced("".join(output["text"]), PRINTED) if output["name"] == "stdout" else ""
    if output["output_type"] == "error":
        return fenced(f"{output['ename']}: {output['evalue']}", PRINTED)
    data = {kind: "".join(text) for kind, text in output["data"].items() if "json" not in kind}
    if "text/html" in data:
        # A blank line would end the block for Markdown.
        html = re.sub(r"\n\s*\n", "\n", data["text/html"])
        return f'<div class="output">\n{html}\n</div>'
    if "image/png" in data:
        png = data["image/png"].replace("\n", "")
        return f'<img alt="Output of the cell above" src="data:image/png;base64,{png}">'
    return fenced(data.get("text/plain", ""), PRINTED)


def fenced(text: str, language: str) -> str:
    """A block of code; its fence is longer than any in the text."""
    text = text.strip("\n")
    fence = "`" * max([3, *(len(ticks) + 1 for ticks in re.findall("`{3,}", text))])
    return f"{fence} {language}\n{text}\n{fence}" if text else ""
