"""What the site has beyond docs/, for MkDocs (`hooks` in mkdocs.yml).

Links in docs/ are those that work in the repository. What they name outside docs/ comes along, so
that they work on the site, too. Notebooks become pages.
"""

from __future__ import annotations

import json
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
#: Where files of the repository are on the site.
OUTSIDE = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    **{f"examples/{path.name}": f"examples/{path.name}" for path in ROOT.glob("examples/*.py")},
}
#: The address in a Markdown link, without its anchor; those with a scheme are left alone.
ADDRESS = re.compile(r"(?<=\]\()[^)#:\s]+(?=[)#])")

#: How an output is told from code.
PRINTED = "{ .text .no-copy .printed }"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what lies outside docs/, and a page for every notebook."""
    for source, uri in OUTSIDE.items():
        files.append(File.generated(config, uri, abs_src_path=str(ROOT / source)))
    for file in list(files):
        if file.src_uri.endswith(".ipynb"):
            text = notebook_page(json.loads(file.content_string))
            files.append(File.generated(config, page_uri(file.src_uri), content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links of the repository into links of the site."""
    uri = page.file.src_uri
    sources = {site: source for source, site in OUTSIDE.items()}
    home = posixpath.dirname(sources.get(uri, f"docs/{uri}"))

    def on_site(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(home, match[0]))
        target = page_uri(OUTSIDE.get(target, target.removeprefix("docs/")))
        return posixpath.relpath(target, posixpath.dirname(uri) or ".")

    # With prompts it is a session: what it prints isn't Python.
    return ADDRESS.sub(on_site, markdown).replace("```python\n>>>", "```pycon\n>>>")


def page_uri(uri: str) -> str:
    """Where a notebook's page is; anything else stays where it is."""
    return re.sub(r"\.ipynb$", ".md", uri)


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
