"""The pages, in a real browser."""

from __future__ import annotations

import http.server
import itertools
import json
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

import rank1
from tests.conftest import BROWSER_MISSING, CHROMIUM
from tests.server.support import GRID, PATIENCE, Served, at, until
from tests.support import few

# Wait for what a page shows, even on a busy machine.
expect.set_options(timeout=1000 * PATIENCE)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=BROWSER_MISSING)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def context(browser: Browser) -> Iterator[BrowserContext]:
    """Yield a context that the pages share: cached files, but no token."""
    context = browser.new_context(viewport={"width": 1100, "height": 900})
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext, service: Served) -> Iterator[Page]:
    """Yield a page with the token; it must have no errors, and load nothing from elsewhere."""
    page = context.new_page()
    page.set_default_timeout(1000 * PATIENCE)
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("dialog", lambda dialog: faults.append(f"alert {dialog.message}"))
    page.on("request", lambda request: faults.extend(_elsewhere(request.url, service.url)))
    page.goto(f"{service.url}/#token={service.token}")
    yield page
    page.close()
    assert not faults


def _elsewhere(url: str, home: str) -> list[str]:
    return [] if url.startswith((home, "data:", "blob:")) else [url]


#: The words of a page that are broken over two lines.
BROKEN_WORDS = """() => [...document.querySelectorAll("thead th, td.figure")].flatMap((cell) => {
    const walk = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), found = [];
    while (walk.nextNode())
        for (const word of walk.currentNode.data.matchAll(/\\S+/g)) {
            const range = document.createRange();
            range.setStart(walk.currentNode, word.index);
            range.setEnd(walk.currentNode, word.index + word[0].length);
            if (range.getClientRects().length > 1) found.push(word[0]);
        }
    return found;
})"""


@pytest.mark.parametrize("width", [390, 700, 1280])
def test_a_report_breaks_no_words_and_fits_the_page(
    context: BrowserContext, tmp_path: Path, width: int
) -> None:
    long = "A headline that is rather long, as marketing departments seem to like them"
    with rank1.Study.create(
        "spring", sides={"headline": [long, "B"]}, goal="find", storage=tmp_path / "db", seed=1
    ) as study:
        study.tell_many([(each.id, float(k % 2)) for k, each in enumerate(study.ask(count=3000))])
        study.report(tmp_path / "report.html")
    page = context.new_page()
    page.set_viewport_size({"width": width, "height": 900})
    page.goto((tmp_path / "report.html").as_uri())
    assert page.evaluate(BROKEN_WORDS) == []
    root = "document.documentElement"
    assert page.evaluate(f"{root}.scrollWidth - {root}.clientWidth") == 0
    page.close()


def open_study(page: Page, service: Served, name: str) -> None:
    page.goto(f"{service.url}/study?name={quote(name, safe='')}")
    expect(page.locator("#about")).to_contain_text("Running since")


def unfold(page: Page) -> None:
    """Open everything that is collapsed."""
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")


def make(service: Served, name: str, reports: int = 0, **fields: Any) -> None:
    grid = {} if "sides" in fields else GRID
    assert service.call("/v1/studies", {"name": name, **grid, "seed": 1, **fields})[0] == 201
    if reports:
        given = service.call(at(name, "/ask/batch"), {"count": reports})[1]["results"]
        told = [
            {"id": each["suggestion"]["id"], "reward": float(k % 3 == 0)}
            for k, each in enumerate(given)
        ]
        assert service.call(at(name, "/tell/batch"), {"reports": told})[0] == 200


def test_start_a_study_ask_tell_and_see_the_number_change(page: Page, service: Served) -> None:
    expect(page).not_to_have_url(re.compile("token"))  # it is removed from the address
    page.get_by_role("link", name="New study").first.click()
    page.get_by_label("Name of the study", exact=True).fill("by hand")
    page.get_by_label("Side 1", exact=True).fill("headline")
    page.locator("#levels-0").fill("A\nB\n\n C ")
    page.get_by_label("Side 2", exact=True).fill("headline")
    page.locator("#levels-1").fill("x\ny")
    page.get_by_role("button", name="Create").click()
    expect(page.locator("#create-why")).to_have_text("Give each side a different name.")
    page.get_by_label("Side 2", exact=True).fill("image")
    page.get_by_role("button", name="Add a side").click()
    page.get_by_label("Side 3", exact=True).fill("age")
    page.locator("#levels-2").fill("young\nold")
    page.get_by_label("It comes with the visitor").nth(2).check()
    expect(page.locator("#size")).to_have_text("3 × 2 × 2 = 12 combinations")
    # What the browser finds wrong is shown, in the units of the form, and nothing is sent.
    page.get_by_label("Today's success rate").fill("100")
    page.get_by_role("button", name="Estimate").click()
    expect(page.locator("#rate:focus:invalid")).to_have_count(1)
    page.get_by_label("Today's success rate").fill("5")
    # Even if it is in a section that is folded; fields of the other goal don't count.
    page.locator("#holdout").evaluate("(field) => { field.value = 95; }")
    page.get_by_role("button", name="Create").click()
    expect(page.locator("#holdout:focus:invalid")).to_be_visible()
    page.get_by_label("Earn as much").check()
    assert page.locator("#create").evaluate("(form) => form.checkValidity()")
    page.get_by_label("Find the best").check()
    page.locator("#holdout").fill("")
    page.get_by_role("button", name="Estimate").click()
    expect(page.locator("#long")).to_contain_text(
        re.compile(r"About [\d,]+ visitors, or [\d,.]+ days")
    )
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("by hand")
    expect(page.locator("#leader")).to_have_text("No results yet.")
    assert service.call(at("by hand"))[1]["control"] == {"headline": "A", "image": "x"}
    # The snippets have the service's address, and a key made for the shop's page.
    expect(page.locator("#snippet-curl")).to_contain_text(f"{service.url}/v1/studies/by%20hand/ask")
    page.get_by_label("The address of your page").fill("localhost:8080")
    page.get_by_role("button", name="Make a key").click()
    expect(page.locator("#key-why")).to_contain_text("got 'localhost:8080'")
    page.get_by_label("The address of your page").fill("https://shop.example/home")
    page.get_by_role("button", name="Make a key").click()
    expect(page.locator("#snippet-html")).to_contain_text(re.compile(r"r1_\w+_.*"))
    keys = service.call("/v1/tokens")[1]["tokens"]
    assert [each["origins"] for each in keys] == [["https://shop.example"]]

    unfold(page)
    page.locator("#given select").select_option("old")
    page.get_by_role("button", name="What would the next visitor see?").click()
    expect(page.locator("#asked")).to_contain_text("× old")
    expect(page.locator("#n-pending")).to_have_text("1")
    expect(page.locator("#snippet")).to_be_hidden()
    page.get_by_label("Its result").fill("1")
    page.keyboard.press("Enter")
    expect(page.locator("#n-reports")).to_have_text("1")
    expect(page.locator("#n-pending")).to_have_text("0")
    expect(page.locator("#leader")).to_contain_text("Keep going:")
    expect(page.locator("#try-status")).to_contain_text("brought 1.")
    # The numbers and the log update while the page is open.
    service.call(at("by hand", "/ask/batch"), {"count": 7, "given": {"age": "young"}})
    expect(page.locator("#n-suggestions")).to_have_text("8")
    expect(page.locator("#log tbody tr").first).to_contain_text("young")


def test_change_a_study_by_keyboard_and_take_the_log_along(page: Page, service: Served) -> None:
    make(service, "rows", 30)
    open_study(page, service, "rows")
    page.get_by_role("button", name="Drop a level").click()
    page.get_by_label("Drop a level").select_option(label="b")
    drop = page.get_by_role("button", name="Drop", exact=True)
    drop.first.press("Enter")
    expect(page.get_by_role("dialog")).to_contain_text("Drop b of row?")
    page.keyboard.press("Escape")
    assert service.call(at("rows"))[1]["rows"] == ["a", "b", "c"]
    drop.first.press("Enter")
    page.get_by_role("dialog").get_by_role("button", name="Drop").press("Enter")
    expect(page.locator("#levels-0 tbody tr").nth(1)).to_contain_text("dropped by hand")
    expect(page.locator("#grid")).to_contain_text("b\u2069 (dropped)")  # an isolated label
    assert service.call(at("rows"))[1]["rows"] == ["a", "c"]
    page.get_by_label("Add a note").fill("new prices")
    page.keyboard.press("Enter")
    expect(page.locator("#changes li").first).to_contain_text("Note: new prices")
    expect(page.locator("#changes")).to_contain_text("b of row was dropped by hand")
    # Import results from a file whose columns have other names.
    file = '\ufeffpaid;where;who\n1;x;a\n0;y;"c"\n'
    page.get_by_label("File").set_input_files(
        {"name": "r.csv", "mimeType": "text/csv", "buffer": file.encode()}
    )
    for column, heading in (("row", "who"), ("column", "where"), ("result", "paid")):
        page.get_by_label(f"Column of {column}", exact=True).select_option(heading)
    page.get_by_role("button", name="Import").click()
    expect(page.locator("#import-status")).to_have_text("2 results were imported.")
    counted = service.call(at("rows", "/best"))[1]["counts"]
    page.get_by_role("button", name="Import").click()  # by mistake
    expect(page.locator("#import-status")).to_have_text(
        "0 results were imported. 2 were imported before, and count once."
    )
    uid = service.call(at("rows"))[1]["uid"]
    for lines, said in (
        ("a,x,1,\na,x,1,\na,x,,\nz,x,1,", "line 5: row must be one of the study's, got 'z'"),
        (f"a,x,1,{uid}-3-0000", "Line 2 is a result of this study, which counts it already"),
    ):
        table = f"row,column,result,id\n{lines}\n".encode()
        page.get_by_label("File").set_input_files(
            {"name": "r.csv", "mimeType": "text/csv", "buffer": table}
        )
        page.get_by_role("button", name="Import").click()
        expect(page.locator("#import-why")).to_contain_text(said)
    assert service.call(at("rows", "/best"))[1]["counts"] == counted
    page.get_by_text("Log and export").click()
    expect(page.locator("#log tbody tr").first).to_contain_text("history")
    page.get_by_label("Kind").select_option("revised")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator("#log tbody tr")).to_have_count(1)
    expect(page.locator("#log tbody tr")).to_contain_text("retire row: b")
    with page.expect_download() as waiting:
        page.get_by_role("button", name="CSV").click()
    assert waiting.value.suggested_filename == "rank1-rows.csv"
    assert len(waiting.value.path().read_text().splitlines()) == 31
    # An archived study is listed in the archive; a deleted one is gone.
    page.get_by_role("button", name="Archive it").click()
    page.get_by_label("Show archived studies").check()
    page.get_by_label("Search").fill("ROW")
    page.get_by_role("link", name="rows").click()
    expect(page.locator("#about")).to_contain_text("archived")
    page.get_by_text("Change the study").click()
    page.get_by_role("button", name="Delete it").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.locator("#lines-why")).to_have_text("Nothing was deleted.")
    page.get_by_role("button", name="Delete it").click()
    page.get_by_label("type the name of the study").fill("rows")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Studies")
    assert service.call(at("rows"))[0] == 404


def test_nothing_can_be_sent_before_the_script_is_there(browser: Browser, service: Served) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    for path in ("", "new", "tokens", "study?name=any"):
        page.goto(f"{service.url}/{path}")
        expect(page.get_by_role("link", name="rank1")).to_be_visible()
        expect(page.locator("form:visible")).to_have_count(0)
    page.goto(f"{service.url}/docs")
    expect(page.get_by_role("heading", name="API")).to_be_visible()
    context.close()


def test_tokens_and_what_they_allow(page: Page, service: Served) -> None:
    make(service, "seen", 5)
    page.get_by_role("button", name="Forget token").click()
    page.get_by_label("A token for this service").fill("r1_wrong_token")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert").first).to_have_text("This token isn't valid for this service.")
    expect(page.locator("#main")).to_be_hidden()
    # Pasting the address with the token over an open page works.
    page.goto(f"{service.url}/#token={service.token}")
    page.get_by_role("link", name="Keys").click()
    page.get_by_label("Note").fill("for reading")
    page.get_by_role("button", name="Make it").click()
    expect(page.locator("#made-text")).to_contain_text("r1_")
    reader = page.locator("#made-text").text_content() or ""
    line = page.get_by_role("row").filter(has_text="for reading")
    expect(line).to_be_visible()
    # A shared link is for one study, read-only, until it is revoked.
    page.goto(f"{service.url}/study?name=seen")
    page.get_by_role("button", name="Share a link").click()
    page.get_by_label("Who it is for").fill("<b>board</b>")
    page.keyboard.press("Enter")
    expect(page.locator("#link-text")).to_contain_text(f"{service.url}/study?name=seen#token=r1_")
    shared = page.locator("#link-text").text_content() or ""
    expect(page.locator("#links li")).to_contain_text("<b>board</b>")
    page.goto(shared)
    expect(page.get_by_text("Change the study")).to_be_hidden()
    expect(page.locator("#leader")).to_contain_text("Keep going")
    key = shared.partition("#token=")[2]
    assert service.call(at("seen", "/notes"), {"text": "x"}, token=key)[0] == 403
    page.goto(f"{service.url}/study?name=seen#token={service.token}")
    page.get_by_text("Change the study").click()
    page.locator("#links").get_by_role("button").click()
    expect(page.locator("#links li")).to_have_count(0)
    assert service.call(at("seen"), token=key)[0] == 401
    page.goto(f"{service.url}/study?name=seen#token={reader}")
    expect(page.locator("#leader")).to_contain_text("Keep going")
    for name in ("Drop a level", "Change the study", "Add a note", "New study", "Keys"):
        expect(page.get_by_text(name, exact=True).first).to_be_hidden()
    expect(page.get_by_role("button", name="Download the report")).to_be_visible()
    page.goto(f"{service.url}/tokens#token={service.token}")
    line.get_by_role("button").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(line).to_have_count(0)
    assert service.call("/v1/studies", token=reader)[0] == 401
    page.goto(f"{service.url}/study?name=nowhere")
    expect(page.locator("#status")).to_contain_text("there is no study 'nowhere'")


@pytest.mark.validate
def test_a_study_of_128_rows_and_columns(page: Page, service: Served) -> None:
    lines = [f"line {k}" for k in range(128)]
    make(service, "large", 2000, rows=lines, columns=lines)
    open_study(page, service, "large")
    expect(page.locator("#grid .main-svg").first).to_be_visible()
    took = page.evaluate(
        """async () => {
          const began = performance.now(), select = document.getElementById("quantity");
          select.value = "share";
          select.dispatchEvent(new Event("change"));
          await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
          return performance.now() - began;
        }"""
    )
    assert took < 3000  # much less on an idle machine
    expect(page.locator("#arms tbody tr")).to_have_count(10)


EVIL = "<img src=x onerror=alert(1)>\u202e"
LINK = "<a href='javascript:alert(1)'>x</a>"


# Text in which a label could turn around what stands beside it.
UNISOLATED = """() => {
  const main = document.getElementById("main"), found = [];
  const walker = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const { parentElement, data } = walker.currentNode;
    const apart = parentElement.closest("bdi, textarea, option, pre, code");
    if (/\\u202e/.test(data) && !apart) found.push(data);
  }
  return found;
}"""


@pytest.mark.parametrize(
    "look", few([(390, "dark"), (1280, "light"), (1280, "dark"), (390, "light")], 1)
)
def test_every_view_is_for_everybody_and_labels_are_only_text(
    browser: Browser, service: Served, look: tuple[int, Any]
) -> None:
    width, scheme = look
    name = f"{EVIL} {width} {scheme}"
    sides = {EVIL: [EVIL, "<script>alert(1)</script>"], "=1": [LINK, "👩‍👩‍👧‍👦" * 20]}
    make(service, name, 30, sides=sides, goal="find")
    for verdict, tried in (("only", 3), ("stop", 4)):
        make(service, f"{name} {verdict}", sides=sides)
        arms = itertools.islice(itertools.product(*sides.values()), tried)
        rewards = [
            [*arm, float(j < (540 if k == 0 else 60))]
            for k, arm in enumerate(arms)
            for j in range(600)
        ]
        body = {"rewards": rewards}
        assert service.call(at(f"{name} {verdict}", "/imports"), body)[0] == 201
    make(service, f"{name} empty", sides=sides, goal="find", given=[EVIL])
    service.call(at(name, "/notes"), {"text": EVIL})
    service.call("/v1/tokens", {"role": "reader", "studies": [name], "note": EVIL})
    # The checker is injected, which the page's security policy forbids.
    context = browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme=scheme, bypass_csp=True
    )
    page = context.new_page()
    page.set_default_timeout(1000 * PATIENCE)
    alerts: list[str] = []
    page.on("dialog", lambda dialog: alerts.append(dialog.message))
    page.goto(f"{service.url}/#token={service.token}")
    shown = {
        "/": "#studies .mark:has-text('Keep going')",
        "/new": "#sides textarea",
        "/tokens": "#tokens tbody tr",
        "/docs": "#routes details",
        f"/study?name={quote(name, safe='')}": "#shares .main-svg",
        f"/study?name={quote(f'{name} only', safe='')}": "#leader:has-text('Stop only if')",
        f"/study?name={quote(f'{name} stop', safe='')}": "#leader:has-text('Stop: ship')",
        f"/study?name={quote(f'{name} empty', safe='')}": "#snippet-html",
    }
    for address, sign in shown.items():
        page.goto(service.url + address)
        expect(page.locator(sign).first).to_be_visible()
        unfold(page)
        found = Axe().run(page).response["violations"]
        assert not [(each["id"], each["nodes"][0]["html"]) for each in found], address
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        assert page.evaluate(UNISOLATED) == [], address
        assert "dropped: dropped" not in page.locator("#main").inner_text()
        if address.endswith("only"):  # its policy drops nothing
            for part in ("#levels", "#arms", "#grid"):
                expect(page.locator(part)).to_contain_text("behind")
                expect(page.locator(part)).not_to_contain_text("dropped")
        assert page.locator("main img, main script, main [href^=javascript]").count() == 0
    expect(page.locator("#title")).to_have_text(f"{name} empty")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == {"light": "rgb(247, 248, 250)", "dark": "rgb(20, 23, 28)"}[scheme]
    assert not alerts
    context.close()


def test_a_study_that_finds_says_when_to_stop(page: Page, service: Served) -> None:
    make(service, "finds", goal="find", control={"row": "b", "column": "x"})
    open_study(page, service, "finds")
    expect(page.locator("#leader")).to_have_text("No results yet.")
    expect(page.locator("#numbers")).to_be_hidden()
    expect(page.locator("#steps")).to_be_hidden()

    def play(count: int, reward: Callable[[dict[str, str]], bool]) -> None:
        given = service.call(at("finds", "/ask/batch"), {"count": count})[1]["results"]
        told = [
            {"id": each["suggestion"]["id"], "reward": float(reward(each["suggestion"]["levels"]))}
            for each in given
        ]
        assert service.call(at("finds", "/tell/batch"), {"reports": told})[0] == 200

    play(120, lambda levels: levels["row"] == "a")
    expect(page.locator("#leader")).to_contain_text("Keep going: a × ")
    expect(page.locator("#progress")).to_be_visible()
    expect(page.locator("#forecast")).to_contain_text("more visitors")
    expect(page.locator("#levels-0 tbody tr")).to_have_count(3)
    expect(page.locator("#levels-0 tbody tr").nth(1)).to_contain_text("today")
    expect(page.locator("#numbers")).to_be_visible()
    play(300, lambda levels: levels["row"] == "a")
    # The control is still shown, to measure lifts.
    expect(page.locator("#changes")).to_contain_text("b of row fell behind: another is better")
    expect(page.locator("#grid-words")).to_contain_text("behind or dropped")
    page.get_by_text("The ten best so far").click()
    expect(page.locator("#arms")).to_contain_text("behind")
    for _ in range(4):
        play(500, lambda levels: levels == {"row": "a", "column": "y"})
    expect(page.locator("#leader")).to_have_text("Stop: ship a × y")
    expect(page.locator("#by")).to_contain_text("over b × x, which you show today. On average: ")
    expect(page.locator("#levels-0")).to_contain_text("another is better")
    expect(page.locator("#changes")).to_contain_text("c of row was dropped")
    said = page.locator("#main").inner_text()
    assert not re.search(r"log E|p =|K \+ L|bet_elim|rank.one", said)  # outside a collapsed part
    page.get_by_text("What this rests on").click()
    expect(page.locator("#assumes")).to_contain_text("One order")
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download the report").click()
    assert "What was tried" in waiting.value.path().read_text()
    page.get_by_role("button", name="Ship a × y").click()
    page.get_by_role("dialog").get_by_role("button", name="End the study").click()
    expect(page.locator("#about")).to_contain_text("Ran from ")
    expect(page.locator("#leader")).to_have_text("Stop: ship a × y")
    expect(page.get_by_role("button", name="Drop a level")).not_to_be_visible()
    assert service.call(at("finds"))[1]["retired"]


def test_a_study_that_has_ended_without_a_verdict(page: Page, service: Served) -> None:
    """It doesn't say "Keep going", and forecasts nothing."""
    make(service, "ended early", 12, goal="find")
    assert service.call(at("ended early", "/retire"), {})[0] == 200
    ended = service.call(at("ended early"))[1]["retired"]
    page.goto(f"{service.url}/study?name=ended%20early")
    expect(page.locator("#leader")).to_contain_text("Ended without a verdict: ")
    expect(page.locator("#next-step")).to_have_text("The study has ended.")
    expect(page.locator("#forecast")).to_be_empty()
    expect(page).to_have_title("Ended: ended early · rank1")
    day = page.evaluate("(t) => new Date(1000 * t).toLocaleString('sv').slice(0, 16)", ended)
    expect(page.locator("#about")).to_contain_text(f" to {day} · ")


class _Shop(http.server.BaseHTTPRequestHandler):
    """A page of another origin that uses the client."""

    html = ""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(self.html.encode())

    def log_message(self, *_: Any) -> None:
        pass


def test_a_shops_page_assigns_records_and_rewards(browser: Browser, service: Served) -> None:
    make(service, "shop", goal="find")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Shop) as shop:
        origin = f"http://127.0.0.1:{shop.server_port}"
        body = {"role": "browser", "studies": ["shop"], "origins": [origin]}
        token = service.call("/v1/tokens", body)[1]["token"]
        _Shop.html = f"""<script src="{service.url}/rank1.js"></script>
          <button id="buy">Buy</button><script>
          const study = new rank1.Study("{service.url}", "shop", "{token}");
          study.assign("visitor").then(async (seen) => {{
            study.record(seen);
            await study.flush();
            document.title = JSON.stringify(seen.levels);
          }});
          document.getElementById("buy").onclick = () => study.reward("visitor", 1);
        </script>"""
        threading.Thread(target=shop.serve_forever, daemon=True).start()
        context = browser.new_context()
        page = context.new_page()
        page.goto(origin)
        expect(page).to_have_title(re.compile("row"))
        shares = service.call(at("shop", "/shares"))[1]
        assert json.loads(page.title()) == rank1.assign(shares, "visitor")
        page.get_by_role("button").click()
        until(lambda: service.call(at("shop"))[1]["totals"]["reports"] == 1)
        # what is queued when the page closes is sent by a beacon, or when the page comes back
        seen = "{unit: 'v2', levels: {row: 'a', column: 'x'}, version: 0}"
        page.evaluate(f"study.record({seen})")
        page.goto("about:blank")
        until(lambda: service.call(at("shop"))[1]["totals"]["suggestions"] == 2)
        context.close()
        shop.shutdown()
