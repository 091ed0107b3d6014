"""What the site has beyond docs/, for MkDocs (`hooks` in mkdocs.yml).

Links in docs/ are those that work in the repository. What they name outside docs/ comes along, so that
they work on the site, too: a page as a page, any other file as it is. Notebooks become pages.
"""

from __future__ import annotations

import json
import os
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
#: Pages that don't lie in docs/.
PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md", "README.md": "index.md"}
#: Folders whose files readers get.
FOLDERS = ("examples",)

LINK = re.compile(r"(?<=\]\()([^)#:\s]+)(?=[)#])")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what lies outside docs/, and a page for every notebook."""
    for source, uri in PAGES.items():
        if files.get_file_from_path(uri) is None:
            files.append(File.generated(config, uri, abs_src_path=str(ROOT / source)))
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).iterdir()):
            if path.is_file():
                uri = f"{folder}/{path.name}"
                files.append(File.generated(config, uri, abs_src_path=str(path)))
    for file in list(files):
        if file.src_uri.endswith(".ipynb"):
            text = notebook_page(json.loads(file.content_string))
            uri = file.src_uri.removesuffix("ipynb") + "md"
            files.append(File.generated(config, uri, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links of the repository into links of the site."""
    uri = page.file.src_uri
    sources = {site: source for source, site in PAGES.items() if source != "README.md"}
    home = posixpath.dirname(sources.get(uri, f"docs/{uri}"))

    def on_site(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(home, match[1]))
        if target.startswith("docs/"):
            target = target.removeprefix("docs/")
        elif target in PAGES:
            target = PAGES[target]
        elif target in FOLDERS:
            return match[1]
        if target.endswith(".ipynb"):
            target = target.removesuffix("ipynb") + "md"
        return os.path.relpath(target, posixpath.dirname(uri) or ".")

    return LINK.sub(on_site, markdown)


def notebook_page(notebook: dict[str, Any]) -> str:
    """A notebook as Markdown, with the outputs that are stored in it."""
    parts = []
    for cell in notebook["cells"]:
        text = "".join(cell["source"]).strip("\n")
        if cell["cell_type"] == "markdown":
            parts.append(text)
        elif cell["cell_type"] == "code" and text:
            parts.append(fenced(text, "python"))
            parts += [shown(output) for output in cell["outputs"]]
    return "\n\n".join(part for part in parts if part) + "\n"


def shown(output: dict[str, Any]) -> str:
    """One output of a cell: the richest form that it has."""
    kind, data = output["output_type"], output.get("data", {})
    if kind == "stream":
        return fenced("".join(output["text"]), "text") if output["name"] == "stdout" else ""
    if kind == "error":
        return fenced("\n".join(re.sub(r"\x1b\[[\d;]*m", "", line) for line in output["traceback"]), "text")
    if "image/png" in data:
        png = "".join(data["image/png"]).replace("\n", "")
        return f'<img alt="Output of the cell above" src="data:image/png;base64,{png}">'
    if "text/html" in data:
        # A blank line would end the block for Markdown.
        html = re.sub(r"\n\s*\n", "\n", "".join(data["text/html"]))
        return f'<div class="output">\n{html}\n</div>'
    return fenced("".join(data.get("text/plain", "")), "text")


def fenced(text: str, language: str) -> str:
    """A block of code; its fence is longer than any in the text."""
    text = text.strip("\n")
    if not text:
        return ""
    fence = "`" * max([3, *(len(ticks) + 1 for ticks in re.findall("`{3,}", text))])
    return f"{fence} {language}\n{text}\n{fence}"
