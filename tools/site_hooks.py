"""MkDocs hooks that add to the site what is outside docs/ (`hooks` in mkdocs.yml).

Links in docs/ are written to work in the repository. The files outside docs/ that they refer to are
added, so that the links also work on the site. Notebooks become pages.
"""

from __future__ import annotations

import json
import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from tools.notebooks import notebook_page

ROOT = Path(__file__).resolve().parent.parent
#: Where the repository's files are on the site.
OUTSIDE = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    **{f"examples/{path.name}": f"examples/{path.name}" for path in ROOT.glob("examples/*.py")},
}
#: The address in a Markdown link, without its anchor; addresses with a scheme don't match.
ADDRESS = re.compile(r"(?<=\]\()[^)#:\s]+(?=[)#])")
#: An image, with its text and its address.
IMAGE = re.compile(r"!\[([^]]*)\]\(([^)]+)\.png\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add files from outside docs/, and a page for every notebook."""
    for source, uri in OUTSIDE.items():
        files.append(File.generated(config, uri, abs_src_path=str(ROOT / source)))
    for file in list(files):
        if file.src_uri.endswith(".ipynb"):
            text = notebook_page(json.loads(file.content_string))
            files.append(File.generated(config, page_uri(file.src_uri), content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Convert links for the repository to links for the site."""
    uri = page.file.src_uri
    sources = {site: source for source, site in OUTSIDE.items()}
    home = posixpath.dirname(sources.get(uri, f"docs/{uri}"))

    def on_site(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(home, match[0]))
        target = page_uri(OUTSIDE.get(target, target.removeprefix("docs/")))
        return posixpath.relpath(target, posixpath.dirname(uri) or ".")

    def schemes(match: re.Match[str]) -> str:
        """Show a picture that has a dark version only in its own colour scheme."""
        text, path = match[1], match[2]
        if not (ROOT / "docs" / posixpath.dirname(uri) / f"{path}-dark.png").exists():
            return match[0]
        light = f"![{text}]({path}.png#only-light)"
        return f"{light}![{text}]({path}-dark.png#only-dark)"

    markdown = IMAGE.sub(schemes, markdown)
    # A block with prompts is a session: its output isn't Python.
    return ADDRESS.sub(on_site, markdown).replace("```python\n>>>", "```pycon\n>>>")


def page_uri(uri: str) -> str:
    """Return where a notebook's page is; other addresses don't change."""
    return re.sub(r"\.ipynb$", ".md", uri)
