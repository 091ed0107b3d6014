"""The site: its reference has every public name, and it loads nothing from other servers."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect, sync_playwright
from tools.notebooks import notebook_page

import rank1
from rank1.policies import POLICIES
from tests.conftest import BROWSER_MISSING, CHROMIUM

ROOT = Path(__file__).parent.parent
#: Public modules whose names aren't in rank1 itself.
MODULES = (
    *("optuna", "paper", "paper.movielens", "paper.completion", "server.config"),
    "testing.storages",
)


ENTRY = re.compile(r"^::: rank1\.(\S+)\n(?: {4}options: \{heading: rank1\.([\w.]+))?", re.M)


def public_names() -> set[str]:
    names = {name for name in dir(rank1) if not name.startswith("_")}
    modules = {name for name in names if inspect.ismodule(getattr(rank1, name))}
    own = names - modules
    for module in [*MODULES, *modules]:
        exported = getattr(importlib.import_module(f"rank1.{module}"), "__all__", ())
        names |= {f"{module}.{name}" for name in exported if name not in own}
    return names - modules


def test_every_public_name_is_on_the_reference() -> None:
    modules = {"testing", "testing.storages", "literal"}  # their docstrings are included, too
    text = "".join(page.read_text() for page in (ROOT / "docs/reference").glob("*.md"))
    names = []
    for name, heading in ENTRY.findall(text):
        # If a module has the same name as a function in it, the entry says which one is meant.
        file = ROOT / "src/rank1" / name.replace(".", "/")
        assert name in modules or not file.with_suffix(".py").exists(), name
        names.append(heading or name)
    assert set(names) == public_names() | modules
    assert len(names) == len(set(names))


def test_policies_and_bounds_name_their_papers() -> None:
    own = {"uniform", "oracle"}
    things: list[object] = [policy for name, policy in POLICIES.items() if name not in own]
    theory, stopping = rank1.theory, rank1.stopping
    things += [theory.upper_bound, theory.lower_bound, theory.graves_lai, theory.relaxed]
    things += [theory.characteristic_time, stopping.verdict]
    things += [stopping.log_e_value, stopping.mean_intervals]
    for thing in things:
        _, found, papers = (inspect.getdoc(thing) or "").partition("References\n----------\n")
        assert found, thing
        assert re.search(r"https://(arxiv\.org|doi\.org|papers\.nips\.cc)/\S+", papers), thing


class Loads(HTMLParser):
    """Collect what a page loads."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if "src" in given:
            self.found.append(given["src"])
        if tag == "link" and given["rel"] not in ("next", "prev", "canonical"):
            self.found.append(given["href"])


@pytest.mark.validate
def test_the_site_is_built_strictly_and_needs_nothing_from_elsewhere() -> None:
    subprocess.run(["make", "docs"], cwd=ROOT, check=True)  # fails on any warning
    docs, site = ROOT / "docs", ROOT / "site"
    pages = sorted(page for page in site.rglob("*.html") if page.name != "404.html")
    for source in [*docs.rglob("*.md"), *docs.rglob("*.ipynb")]:
        assert site / source.relative_to(docs).with_suffix(".html") in pages
    for page in pages:
        assert re.search(r"<title>[^<]+</title>", page.read_text()), page
        for address in Loads(page).found:
            if not address.startswith("data:"):
                assert (page.parent / re.sub(r"[?#].*", "", address)).exists(), (page, address)
    for style in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", style.read_text()), style
    index = json.loads((site / "search/search_index.json").read_text())
    found = {entry["location"] for entry in index["docs"]}
    assert "reference/policies.html#rank1.Rank1Elim" in found
    if CHROMIUM is None:
        pytest.skip(BROWSER_MISSING)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for width in (390, 1280):
            look_at(browser.new_page(viewport={"width": width, "height": 800}), pages)
        browser.close()


def look_at(screen: Page, pages: list[Path]) -> None:
    """Open pages as files: there is no overflow and no error, and the search works."""
    faults: list[str] = []
    screen.on("pageerror", lambda error: faults.append(str(error)))
    screen.on("request", lambda sent: faults.extend(re.findall(r"^(?:http|ws).*", sent.url)))
    for page in pages:
        screen.goto(page.as_uri())
        width = "document.documentElement.{}Width"
        assert screen.evaluate(width.format("scroll")) == screen.evaluate(width.format("client"))
    searches = {"graves_lai": "reference/theory", "install": "index", "A/B test": "index"}
    for words, found in searches.items():
        screen.keyboard.press("/")
        screen.locator("input.md-search__input").fill("")
        screen.locator("input.md-search__input").press_sequentially(words)
        expect(screen.locator(".md-search-result__link").first).to_have_attribute(
            "href", re.compile(f"{found}.html")
        )
        screen.keyboard.press("Escape")
    assert faults == []


def test_a_notebook_becomes_a_page() -> None:
    """The page includes its outputs, each in its richest form."""

    def cell(source: str, *outputs: dict[str, Any]) -> dict[str, Any]:
        return {"cell_type": "code", "source": [source], "outputs": outputs}

    def result(**data: str) -> dict[str, Any]:
        kinds = {"text": "text/plain", "html": "text/html", "png": "image/png"}
        shown = {kinds[kind]: value for kind, value in data.items()}
        return {"output_type": "execute_result", "data": shown}

    printed = {"output_type": "stream", "name": "stdout", "text": ["one\n", "two\n"]}
    progress = {"output_type": "stream", "name": "stderr", "text": ["99%"]}
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "\n", "[a page](../model.md)"]},
        cell("print(…)", printed, progress),
        cell("table", result(text="<Table>", html="<table>\n\n</table>")),
        cell("figure", result(text="<Figure>", png="iVBORw0KGgo=\n")),
        cell("1 + 1", result(text="2")),
    ]
    blocks = re.split(r"\n\n(?=[`<])", notebook_page({"cells": cells}).strip())
    text = "``` { .text .no-copy .printed }\n"
    assert blocks == [
        "# Title\n\n[a page](../model.md)",
        "``` python\nprint(…)\n```",
        f"{text}one\ntwo\n```",
        "``` python\ntable\n```",
        '<div class="output">\n<table>\n</table>\n</div>',
        "``` python\nfigure\n```",
        '<img alt="Output of the cell above" src="data:image/png;base64,iVBORw0KGgo=">',
        "``` python\n1 + 1\n```",
        f"{text}2\n```",
    ]
