"""The pages, driven in a real browser."""

from __future__ import annotations

import http.server
import json
import re
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

import rank1
from tests.conftest import BROWSER_MISSING, CHROMIUM
from tests.server.support import GRID, PATIENCE, Served, at, until
from tests.support import few

# What a page shows is waited for, on however busy a machine.
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
    """What the pages share: the files that are kept, but no token."""
    context = browser.new_context(viewport={"width": 1100, "height": 900})
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext, service: Served) -> Iterator[Page]:
    """A page with the token; nothing may go wrong in it, and nothing may come from elsewhere."""
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


def open_study(page: Page, service: Served, name: str) -> None:
    page.goto(f"{service.url}/study?name={quote(name, safe='')}")
    expect(page.locator("#about")).to_contain_text("row × column")


def make(service: Served, name: str, reports: int = 0, **fields: Any) -> None:
    assert service.call("/v1/studies", {"name": name, **GRID, "seed": 1, **fields})[0] == 201
    if reports:
        given = service.call(at(name, "/ask/batch"), {"count": reports})[1]["results"]
        told = [
            {"id": each["suggestion"]["id"], "reward": float(k % 3 == 0)}
            for k, each in enumerate(given)
        ]
        assert service.call(at(name, "/tell/batch"), {"reports": told})[0] == 200


def test_create_ask_tell_and_see_the_number_change(page: Page, service: Served) -> None:
    expect(page).not_to_have_url(re.compile("token"))  # it doesn't stay in the address
    page.get_by_label("Name").fill("by hand")
    page.get_by_label("Rows, one a line").fill("a\nb\n\nc")
    page.get_by_label("Columns, one a line").fill("x\ny")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("by hand")
    expect(page.locator("#leader")).to_have_text("Nothing is reported yet.")
    expect(page.locator("#n-reports")).to_have_text("0")
    page.get_by_role("button", name="Ask for a suggestion").click()
    expect(page.locator("#asked")).to_have_text("a × x")
    expect(page.locator("#n-pending")).to_have_text("1")
    page.get_by_label("Its reward").fill("1")
    page.keyboard.press("Enter")
    expect(page.locator("#n-reports")).to_have_text("1")
    expect(page.locator("#n-pending")).to_have_text("0")
    expect(page.locator("#leader")).to_contain_text("Keep going: a × x leads")
    expect(page.locator("#try-status")).to_have_text("a × x brought 1.")
    expect(page.locator("#log tbody tr").first).to_contain_text("reported")
    assert service.call(at("by hand"))[1]["totals"]["reports"] == 1
    # It updates while one looks.
    service.call(at("by hand", "/ask/batch"), {"count": 7})
    expect(page.locator("#n-suggestions")).to_have_text("8")


def test_retire_a_row_by_keyboard_and_take_the_log_along(page: Page, service: Served) -> None:
    make(service, "rows", 30)
    open_study(page, service, "rows")
    page.get_by_label("Retire a level").select_option(label="b")
    page.get_by_role("button", name="Retire", exact=True).first.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_contain_text("Retire b?")
    page.keyboard.press("Escape")
    assert service.call(at("rows"))[1]["rows"] == ["a", "b", "c"]
    page.get_by_role("button", name="Retire", exact=True).first.press("Enter")
    page.get_by_role("dialog").get_by_role("button", name="Retire").press("Enter")
    expect(page.locator("#grid-words")).to_contain_text("Retired, and grey: b.")
    expect(page.locator("#grid")).to_contain_text("b (retired)")
    assert service.call(at("rows"))[1]["rows"] == ["a", "c"]
    page.get_by_label("Kind").select_option("revised")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator("#log tbody tr")).to_have_count(1)
    expect(page.locator("#log tbody tr")).to_contain_text("retire row: b")
    with page.expect_download() as waiting:
        page.get_by_role("button", name="CSV").click()
    assert waiting.value.suggested_filename == "rank1-rows.csv"
    assert len(waiting.value.path().read_text().splitlines()) == 31


def test_three_sides(page: Page, service: Served) -> None:
    page.get_by_label("Name").fill("three")
    page.get_by_text("More settings").click()
    page.get_by_label("Any number of sides").fill("headline: A, B\nimage: x, y, z\nbutton: buy")
    page.get_by_role("button", name="Create").click()
    expect(page.locator("#about")).to_contain_text("headline × image × button: 2 × 3 × 1")
    page.get_by_role("button", name="Ask for a suggestion").click()
    expect(page.locator("#asked")).to_have_text("A × x × buy")
    page.get_by_role("button", name="Tell").click()
    expect(page.locator("#leader")).to_contain_text("A × x × buy leads")
    expect(page.locator("#arms thead")).to_contain_text("image")
    expect(page.locator("#effects .main-svg").first).to_be_visible()
    expect(page.locator("#effects h2")).to_have_count(3)
    expect(page.locator("#heat-map")).to_be_hidden()
    page.get_by_label("Side", exact=True).select_option("image")
    page.get_by_label("Add one").fill("w")
    page.get_by_role("button", name="Add").click()
    expect(page.locator("#log tbody tr").first).to_contain_text("add image: w")
    expect(page.locator("#about")).to_contain_text("2 × 4 × 1")


def test_a_wrong_token(page: Page, service: Served) -> None:
    page.get_by_role("button", name="Forget token").click()
    page.get_by_label("A token for this service").fill("r1_wrong_token")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert").first).to_have_text("This token isn't known here.")
    expect(page.locator("main")).to_be_hidden()
    page.get_by_label("A token for this service").fill(service.token)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_be_visible()


def test_what_is_wrong_is_said(page: Page, service: Served) -> None:
    make(service, "twice")
    page.get_by_label("Name").fill("twice")
    page.get_by_label("Rows, one a line").fill("a")
    page.get_by_label("Columns, one a line").fill("x")
    page.get_by_role("button", name="Create").click()
    expect(page.locator("#create-why")).to_contain_text("there is a study 'twice'")
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
    assert took < 3000  # a fraction of it on a machine that has nothing else to do
    expect(page.locator("#arms tbody tr")).to_have_count(10)


def test_hostile_labels_are_only_text(page: Page, service: Served) -> None:
    evil = "<img src=x onerror=alert(1)>"
    link = "<a href='javascript:alert(1)'>x</a>"
    make(service, evil, 30, rows=[evil, "<script>alert(1)</script>"], columns=[link, "=1+1"])
    page.goto(f"{service.url}/")
    page.get_by_role("link", name=evil).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(evil)
    expect(page.locator("#leader")).to_contain_text("×")
    expect(page.locator("#grid .main-svg").first).to_be_visible()
    assert page.locator("main img, main a, main script").count() == 0


@pytest.mark.parametrize("scheme", few(["dark", "light"], 1))
def test_phone_width(browser: Browser, service: Served, scheme: Any) -> None:
    name = f"phone {scheme}"
    make(service, name, 40)
    context = browser.new_context(
        viewport={"width": 400, "height": 800}, color_scheme=scheme, has_touch=True
    )
    page = context.new_page()
    page.set_default_timeout(1000 * PATIENCE)
    page.goto(f"{service.url}/#token={service.token}")
    expect(page.get_by_role("link", name=name)).to_be_visible()
    open_study(page, service, name)
    expect(page.locator("#curve .main-svg").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == {"light": "rgb(247, 248, 250)", "dark": "rgb(20, 23, 28)"}[scheme]
    context.close()


def test_every_control_has_a_name(page: Page, service: Served) -> None:
    make(service, "named", 10)
    for address in ("/", "/study?name=named", "/docs"):
        page.goto(service.url + address)
        page.wait_for_load_state("networkidle") if address == "/docs" else None
        nameless = page.evaluate(
            """() => [...document.querySelectorAll("input, select, textarea, button")]
              .filter((e) => !(e.labels?.length || e.textContent.trim() || e.ariaLabel))
              .map((e) => e.outerHTML)"""
        )
        assert nameless == []
        assert page.locator("h1").count() == 1


def test_a_study_that_finds_shows_verdict_levels_and_snippet(page: Page, service: Served) -> None:
    make(service, "finds", goal="find")
    open_study(page, service, "finds")
    expect(page.locator("#snippet-html")).to_contain_text(f"{service.url}/rank1.js")
    expect(page.locator("#snippet-curl")).to_contain_text("/v1/studies/finds/ask")
    given = service.call(at("finds", "/ask/batch"), {"count": 400})[1]["results"]
    told = [
        {"id": each["suggestion"]["id"], "reward": float(each["suggestion"]["row"] == "a")}
        for each in given
    ]
    assert service.call(at("finds", "/tell/batch"), {"reports": told})[0] == 200
    expect(page.locator("#snippet")).to_be_hidden()
    expect(page.locator("#leader")).to_contain_text("a × ")
    expect(page.locator("#progress")).to_be_visible()
    expect(page.locator("#levels-0 tbody tr")).to_have_count(3)
    expect(page.locator("#levels-0")).to_contain_text("in the running")
    page.get_by_text("What this rests on").click()
    expect(page.locator("#assumes")).to_contain_text("One order")
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Report").click()
    assert "What was tried" in waiting.value.path().read_text()


class _Shop(http.server.BaseHTTPRequestHandler):
    """A page of another origin, which uses the client."""

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
        # what is queued when the page goes away is sent by a beacon, or when it comes back
        seen = "{unit: 'v2', levels: {row: 'a', column: 'x'}, version: 0}"
        page.evaluate(f"study.record({seen})")
        page.goto("about:blank")
        until(lambda: service.call(at("shop"))[1]["totals"]["suggestions"] == 2)
        context.close()
        shop.shutdown()
