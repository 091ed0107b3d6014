"""The page: well-formed, needs nothing from outside, and everything is on it."""

from __future__ import annotations

import copy
import itertools
import json
import re
import sys
import types
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from markupsafe import escape

from rank1 import cli, paper
from rank1.paper import Options, artefact, introduction, report
from rank1.paper.artefact import Computing
from rank1.paper.claims import claim, combined, figures_of

Documents = dict[str, dict[str, Any]]

VOID = {"meta", "link", "input", "br", "hr", "img"}


class Page(HTMLParser):
    """All elements of a page with what encloses them; an error where tags don't match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text
        self.open: list[str] = []
        #: Name, attributes, names of the enclosing elements, and the text within.
        self.elements: list[tuple[str, dict[str, str], list[str], list[str]]] = []
        self._within: list[list[str]] = []
        self.feed(text)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), (tag, names)
        words: list[str] = []
        found = {name: value or "" for name, value in attrs}
        self.elements.append((tag, found, list(self.open), words))
        if tag not in VOID:
            self.open.append(tag)
            self._within.append(words)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {n: v or "" for n, v in attrs}, list(self.open), []))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag
        self._within.pop()

    def handle_data(self, data: str) -> None:
        for words in self._within:
            words.append(data)

    def all(self, tag: str) -> list[tuple[dict[str, str], str]]:
        """Attributes and text of every element of that name."""
        return [(found, "".join(words)) for name, found, _, words in self.elements if name == tag]


def section(page: Page, name: str) -> str:
    """The source of a section."""
    found = re.search(rf'<section id="{name}".*?</section>', page.text, re.DOTALL)
    assert found
    return found[0]


@pytest.fixture(scope="module")
def page(documents: Documents, options: Options) -> Page:
    return Page(report.page(documents, options))


def test_it_loads_nothing(page: Page) -> None:
    for _, found, _, _ in page.elements:
        for name in ("src", "href", "xlink:href", "srcset", "data", "action"):
            assert found.get(name, "#").startswith(("#", "data:")), found
    assert not re.search(r"url\((?!#)|@import|fetch\(|XMLHttpRequest|import\(", page.text)
    assert len(page.text) < 6e6


def test_ids_are_unique_and_links_lead_somewhere(page: Page) -> None:
    ids = [found["id"] for _, found, _, _ in page.elements if "id" in found]
    assert len(ids) == len(set(ids))
    links = [
        found[name]
        for _, found, _, _ in page.elements
        for name in ("href", "xlink:href")
        if found.get(name, "").startswith("#")
    ]
    assert len(links) > 10
    links += [f"#{name}" for name in re.findall(r"url\(#([^)]+)\)", page.text)]
    named = [v for _, found, _, _ in page.elements if (v := found.get("aria-labelledby"))]
    assert {link[1:] for link in links} | set(named) <= set(ids)


def test_it_can_be_read_without_seeing_it(page: Page) -> None:
    assert all("alt" in found for found, _ in page.all("img"))
    pictures = [(f, o) for name, f, o, _ in page.elements if name == "svg" and "svg" not in o]
    assert len(pictures) >= 9
    for found, _ in pictures:
        assert found["role"] == "img"
        assert len(found["aria-label"]) > 40
    for found, _ in page.all("th"):
        assert found["scope"] in ("row", "col", "rowgroup")
    assert len(page.all("table")) == len(page.all("caption")) >= 8
    assert all(text.strip() for _, text in page.all("caption"))
    levels = [int(name[1]) for name, _, _, _ in page.elements if re.fullmatch("h[1-6]", name)]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(b <= a + 1 for a, b in itertools.pairwise(levels))
    assert page.all("html")[0][0] == {"lang": "en"}
    for name in ("button", "input"):
        assert all(text or found["aria-label"] for found, text in page.all(name))


def test_every_artefact_is_there(page: Page, documents: Documents) -> None:
    for name in documents:
        assert escape(artefact.heading(name)) in section(page, name)
        assert f'href="#{name}"' in page.text
    captions = [text for _, text in page.all("caption")]
    for settings in ("p_u = p_v = 0.7, Δ_u", "K = L = 8, Δ_u", "K = L = 8, p_u"):
        assert sum(settings in caption for caption in captions) == 1
    assert "95,586 ± 99" in section(page, "table1")
    best = documents["figure3"]["policies"][0]["pairs"][0]
    assert best["group"] in section(page, "figure3")
    assert escape(best["title"]) in section(page, "figure3")


def test_every_claim_is_in_the_list(page: Page, documents: Documents) -> None:
    claims = [(name, each) for name in documents for each in documents[name]["claims"]]
    assert len(claims) >= 10
    for name, each in claims:
        (own,) = (text for text in bodies(page) if f">{escape(each['claim'])}</th>" in text)
        of_this = [row for row in own.split("</tr>") if f'href="#{name}"' in row]
        (row,) = (row for row in of_this if f">{escape(figures_of(each))}</td>" in row)
        assert "quick run" in row
        assert ("not judged" in row) == (each["holds"] is None)
        assert ("on stand-in data" in row) == (name == "figure3")


def bodies(page: Page) -> list[str]:
    """The list of claims: what is said of each."""
    inside = section(page, "claims")
    return re.findall("<tbody>(.*?)</tbody>", inside, re.DOTALL)


def test_a_claim_is_counted_once_whoever_judges_it(page: Page) -> None:
    shown = bodies(page)
    assert len(shown) == 3 + 5  # Table 1 and scaling bear on the same three
    lines = [body.count("<tr>") for body in shown]
    assert lines == [1, 3, 2, 1, 1, 1, 1, 1]
    assert [found[1] for found in re.finditer(r'rowspan="(\d)"', "".join(shown))] == [
        str(count) for count in lines
    ]
    caption = section(page, "claims").partition("</caption>")[0]
    assert "8 claims of the paper." in caption
    counted = [int(count) for count in re.findall(r"(\d) (?:hold|do|not judged)", caption)]
    assert sum(counted) == 8
    assert "not judged (a short run, generated data)" in caption
    assert "counted once" in caption


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        (["holds", "holds"], "holds"),
        (["not judged", "not judged"], "not judged"),
        (["not judged", "doesn't hold"], "doesn't hold"),
        (["holds", "doesn't hold", "not judged"], "holds in part"),
        (["holds", "holds in part"], "holds in part"),
        (["doesn't hold", "holds under a reading"], "holds in part"),
        (["holds", "holds under a reading"], "holds under a reading"),
    ],
)
def test_several_verdicts_on_a_claim(verdicts: list[str], expected: str) -> None:
    assert combined(verdicts) == combined(verdicts[::-1]) == expected


def test_every_table_and_figure_scrolls_by_itself(page: Page) -> None:
    """On a phone nothing is cut: what is too wide has a box of its own, with a hint."""
    scrolled = [f for name, f, _, _ in page.elements if f.get("class") == "scroll"]
    hints = [words for name, f, _, words in page.elements if f.get("class") == "hint"]
    wide = len(page.all("table")) + len(re.findall("<figure><div", page.text))
    assert len(scrolled) == len(hints) == wide
    assert all(f["tabindex"] == "0" and f["aria-label"] for f in scrolled)
    assert all("".join(words) == "← scroll sideways →" for words in hints)


def test_what_disagrees_with_the_paper_is_marked(documents: Documents, options: Options) -> None:
    documents = copy.deepcopy(documents)
    z = [0.5, -2.99, 3.0, 3.01, -3.5, *[0.0] * 22]
    for cell, value in zip(documents["table1"]["cells"], z, strict=True):
        cell["z"] = value
    page = Page(report.page({"table1": documents["table1"]}, options))
    cells = [(found.get("class", ""), text) for found, text in page.all("td")]
    assert [text for kind, text in cells if "far" in kind.split()] == ["* +3.01", "* -3.50"]
    assert ("right", "+3.00") in cells
    assert "25 within 3 (the others are marked *)" in section(page, "table1")


def test_the_labels_are_everywhere(page: Page, documents: Documents) -> None:
    label = "uick run: n = 20,000, 2 runs"
    for name in documents:
        inside = section(page, name)
        heading = re.search("<h2.*?</h2>", inside)
        assert heading
        assert label in heading[0]
        assert all(label in text for text in re.findall("<caption>(.*?)</caption>", inside))
        assert ("stand-in data" in heading[0]) == (name == "figure3")
    inside = section(page, "figure3")
    captions = re.findall("<caption>(.*?)</caption>", inside)
    assert len(captions) == 4
    assert all("stand-in data" in text for text in captions)
    picture = re.search("<svg.*?</svg>", inside, re.DOTALL)
    assert picture
    assert "Figure 3: stand-in data" in picture[0]
    assert label in picture[0]
    notes = re.findall('<p class="note">(.*?)</p>', page.text, re.DOTALL)
    assert label in notes[0]
    assert "stand-in data" in notes[1]


def test_a_whole_run_on_real_data_has_no_labels(documents: Documents) -> None:
    documents = copy.deepcopy(documents)
    for document in documents.values():
        document["made"]["label"] = ""
    documents["figure3"]["data"] |= {"label": "MovieLens 1M", "stand_in": False}
    titles = documents["figure3"]["titles"]
    documents["figure3"]["titles"] = [title.replace("Stand-in", "Film") for title in titles]
    for each in documents["figure3"]["claims"]:
        each |= {"data": "MovieLens 1M", "meaning": "a figure"}
    text = report.page(documents, Options())
    assert "uick run" not in text
    assert 'class="note"' not in text
    assert "on MovieLens 1M" in text
    assert "stand-in data" not in text


def test_what_it_was_made_with(page: Page) -> None:
    import platform

    import numpy

    import rank1

    made = page.text[page.text.index('<footer id="made">') :]
    assert f"rank1 {rank1.__version__}, Python {platform.python_version()}" in made
    assert f"numpy {numpy.__version__}" in made
    assert "2 runs of 20,000 steps, seed 1" in made
    assert "<code>rank1 &lt;quick&gt;</code>" in made
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", made)
    assert re.search(r"\d+ cores?, \w+", made)


def test_names_from_data_can_not_break_the_page(documents: Documents, options: Options) -> None:
    document = copy.deepcopy(documents["figure3"])
    for entry in document["policies"]:
        entry["pairs"][0]["title"] = '<script>alert("1")</script> & "Co"'
    text = report.page({"figure3": document}, options)
    Page(text)
    assert text.count("<script>") == 1
    assert "&lt;script&gt;" in text


def test_the_same_documents_give_the_same_page(
    documents: Documents, options: Options, page: Page
) -> None:
    assert report.page(documents, options) == page.text


def test_one_artefact_alone_gives_a_page(documents: Documents, options: Options) -> None:
    alone = Page(report.page({"table1": documents["table1"]}, options))
    assert escape(artefact.heading("table1")) in alone.text
    assert "figure3" not in alone.text
    assert "stand-in" not in alone.text


def test_a_new_artefact_appears_by_itself(
    options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever has compute, show and draw, and claims with or without a verdict."""
    from rich.table import Table

    from rank1.plots import new_figure

    def show(document: dict[str, Any]) -> list[Any]:
        table = Table("K", "regret")
        table.add_row("8", "1 < 2")
        return [table, "A remark."]

    def draw(document: dict[str, Any]) -> dict[str, Any]:
        figure, ax = new_figure(4, 3)
        ax.plot([1, 2], [3, 4], color="0.2")
        return {"first": figure, "second": draw_one()}

    def draw_one() -> Any:
        figure, ax = new_figure(4, 3)
        ax.plot([1, 2], [3, 4])
        return figure

    claims = [
        claim("It grows.", [True], [3.14159], "π"),
        claim("It shrinks.", [True], [2.5], "factor") | {"holds": None},
        claim("It does both.", [True, False], [1, 0], "parts"),
    ]
    module: Any = types.ModuleType("rank1.paper.novel", "Novel things: how they grow.\n\nMore.")

    def compute(options: Options) -> Computing:
        yield []
        return {"claims": claims}

    module.compute = compute
    module.show, module.draw = show, draw
    monkeypatch.setitem(sys.modules, "rank1.paper.novel", module)
    monkeypatch.setattr(artefact, "ARTEFACTS", (*paper.ARTEFACTS, "novel"))
    whole = options._replace(n=2_000_000, quick=False)
    assert artefact.make("novel", whole)["claims"] == claims
    page = Page(report.page(artefact.read_all(whole), whole))
    assert "Novel things: how they grow</h2>" in section(page, "novel")
    assert "1 &lt; 2" in section(page, "novel")
    assert "A remark." in section(page, "novel")
    assert section(page, "novel").count("<svg") == 2
    assert "#333333" not in page.text
    for words in (
        "✓ holds",
        "– not judged",
        "◐ holds in part",
        "3.14: π",
        "2.5: factor",
    ):
        assert words in page.text
    assert ">Novel things</a>" in page.text
    short = options._replace(seed=7)
    assert [each["holds"] for each in artefact.make("novel", short)["claims"]] == [None] * 3


def test_only_documents_of_these_options_are_on_the_page(
    documents: Documents, options: Options
) -> None:
    assert list(artefact.read_all(options)) == ["table1", "scaling", "figure3"]
    assert artefact.read_all(options) == documents
    others = (
        {"n": 5},
        {"runs": 3},
        {"seed": 2},
        {"quick": False},
        {"scale": "stars"},
        {"sigma": 2.0},
    )
    for change in others:
        assert artefact.read_all(options._replace(**change)) == {}
    path = options.out / "table1.json"
    whole = path.read_text()
    for damaged in (whole[:-5], "[]", "{}"):
        path.write_text(damaged)
        assert list(artefact.read_all(options)) == ["scaling", "figure3"]
    path.write_text(whole)


def test_the_introduction_tells_a_real_run() -> None:
    import rank1

    campaign = rank1.Campaign(introduction.SEGMENTS, introduction.CHANNELS)
    result = rank1.simulate(rank1.Rank1Elim(), campaign, introduction.STEPS, 1, seed=1)
    trace = result.trace()
    told = introduction.introduction()
    frames = [f"{frame['title']}. {frame['words']}" for frame in told["frames"]]
    assert len(frames) >= 5
    alive = {*introduction.SEGMENTS, *introduction.CHANNELS}
    for stage, text in zip(trace.stages, frames[1:], strict=False):
        assert f"Stage {stage.number} ends after {stage.step:,} steps" in text
        out = {list(introduction.SEGMENTS)[i] for i in stage.rows.eliminated}
        out |= {list(introduction.CHANNELS)[j] for j in stage.columns.eliminated}
        named = re.search(r"Eliminated: ([^.]*)\.", text)
        assert out == (set(named[1].split(", ")) if named else set())
        alive -= out
    # The last frame is the one in which a single pair is left, and that is the best one.
    assert alive == set(campaign.best_labels)
    assert f"Left: {' by '.join(campaign.best_labels)}, the best pair." in frames[-1]
    cells = [sum(cell.kind == "cell" for cell in frame["cells"]) for frame in told["frames"]]
    assert cells[0] == 36
    assert cells == sorted(cells, reverse=True)
    assert cells[-1] == 1
    assert told["lost"] == f"{result.outcomes[0].expected[0, -1]:,.0f}"
    # Intervals lie where their numbers are, and those of the eliminated end before the limit.
    stage, frame = trace.stages[2], told["frames"][3]
    rows = [line for line in frame["lines"] if line.y1 == line.y2 and line.kind in ("kept", "out")]
    (limit,) = (line for line in frame["lines"] if line.kind == "limit" and line.x1 == line.x2)
    (axis,) = (line for line in frame["lines"] if line.kind == "axis" and line.x1 == line.x2)
    assert len(rows) == len(stage.rows.lines)
    for line, lower, upper in zip(rows, stage.rows.lower, stage.rows.upper, strict=True):
        ends = np.clip([lower, upper], 0, 1) * introduction.PANEL
        assert [line.x1 - axis.x1, line.x2 - axis.x1] == pytest.approx(ends, abs=0.06)
        assert (line.kind == "out") == (line.x2 < limit.x1)


def test_two_figures_share_no_id() -> None:
    from rank1.plots import new_figure
    from rank1.plots.html import svg_element, svg_file

    drawn = []
    for name in ("one", "two"):
        figure, ax = new_figure(4, 3)
        ax.plot([1, 2, 3])
        drawn.append(svg_element(svg_file(figure, name), name, 'a "figure" <here>'))
    ids = [set(re.findall(r'\bid="([^"]+)"', text)) for text in drawn]
    assert ids[0]
    assert not ids[0] & ids[1]
    assert 'aria-label="a &#34;figure&#34; &lt;here&gt;"' in drawn[0]
    assert "#000000" not in drawn[0]


def test_the_command_writes_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["rank1", "paper", "table1", "--quick"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 0
    out = capsys.readouterr().out
    assert out.count("Quick run: n = 200,000, 5 runs") == 3
    assert "not judged: “the regret doubles" in out
    assert sorted(path.name for path in (tmp_path / "report-quick").iterdir()) == [
        "cells",
        "index.html",
        "table1.json",
    ]
    page = Page((tmp_path / "report-quick" / "index.html").read_text(encoding="utf-8"))
    assert "<code>rank1 paper table1 --quick</code>" in page.text
    document = json.loads((tmp_path / "report-quick" / "table1.json").read_text())
    assert document["made"]["label"] == "quick run: n = 200,000, 5 runs"
    assert (document["made"]["n"], document["made"]["runs"]) == (200_000, 5)
