"""Convert notebooks to pages of the site."""

from __future__ import annotations

import re
from typing import Any

#: Marks a block as output rather than code.
PRINTED = "{ .text .no-copy .printed }"


def notebook_page(notebook: dict[str, Any]) -> str:
    """Convert a notebook to Markdown, with its stored outputs."""
    parts = []
    for cell in notebook["cells"]:
        text = "".join(cell["source"]).strip("\n")
        if cell["cell_type"] == "markdown":
            parts.append(text)
        elif cell["cell_type"] == "code" and text:
            parts += [fenced(text, "python"), *map(shown, cell["outputs"])]
    return "\n\n".join(part for part in parts if part) + "\n"


def shown(output: dict[str, Any]) -> str:
    """Convert one output of a cell, in its richest form."""
    if output["output_type"] == "stream":  # standard error only has progress bars
        return fenced("".join(output["text"]), PRINTED) if output["name"] == "stdout" else ""
    if output["output_type"] == "error":
        return fenced(f"{output['ename']}: {output['evalue']}", PRINTED)
    data = {kind: "".join(text) for kind, text in output["data"].items() if "json" not in kind}
    if "text/html" in data:
        # In Markdown, a blank line would end the block.
        html = re.sub(r"\n\s*\n", "\n", data["text/html"])
        return f'<div class="output">\n{html}\n</div>'
    if "image/png" in data:
        png = data["image/png"].replace("\n", "")
        return f'<img alt="Output of the cell above" src="data:image/png;base64,{png}">'
    return fenced(data.get("text/plain", ""), PRINTED)


def fenced(text: str, language: str) -> str:
    """Make a code block with a fence longer than any in the text."""
    text = text.strip("\n")
    fence = "`" * max([3, *(len(ticks) + 1 for ticks in re.findall("`{3,}", text))])
    return f"{fence} {language}\n{text}\n{fence}" if text else ""
