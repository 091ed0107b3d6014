"""Follow docs/first-test.md in Chromium and take its pictures: python docs/first_test_figures.py.

The shop's page is the one that first-test.md shows. Visitors come from a fixed seed, but the number
of visitors in a picture depends on the machine.
"""

from __future__ import annotations

import functools
import http.server
import json
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect, sync_playwright

expect.set_options(timeout=120_000)
DOCS = Path(__file__).parent
SIDES = {
    "headline": ["Welcome back", "Free shipping"],
    "image": ["product", "people", "places"],
    "button": ["Add to basket", "Buy now"],
}
#: What the page says at the time of its pictures.
VERDICTS = {
    "go": r"Keep going.*leads by \d+% \(-?1?\d% to \d\d\d%\)",
    "only": "Stop only if",
    "stop": "Stop: ship",
}
#: Random numbers and visitor names that are the same each time (mulberry32).
SEEDED = """
  let state = 7;
  Math.random = () => {
    let t = (state += 0x6d2b79f5);
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  let made = 0;
  crypto.randomUUID = () => `visitor-${made++}`;
"""


def main(folder: Path = DOCS / "figures") -> None:
    """Follow the page and take the pictures."""
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        command = [sys.executable, "-m", "rank1", "serve", "--port", "0"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=place)
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        try:
            assert process.stdout is not None
            address = "http://" + process.stdout.readline().split("http://")[1].split(" ")[0]
            follow(browser, address, Path(place) / "shop", folder)
        finally:
            browser.close()
            process.terminate()
            process.wait()


def follow(browser: Browser, address: str, shop: Path, folder: Path) -> None:
    """Go from the form to the verdict."""
    home = address.partition("#")[0]
    context = browser.new_context(viewport={"width": 1040, "height": 1400})
    context.set_default_timeout(120_000)
    page = context.new_page()
    page.goto(address)
    page.click("nav >> text=New study")
    page.fill("#name", "home")
    page.click("#add-side")
    for k, (side, levels) in enumerate(SIDES.items()):
        page.fill(f"#side-{k}", side)
        page.fill(f"#levels-{k}", "\n".join(levels))
    for field, value in {"per_day": "5000", "rate": "10", "lift": "20"}.items():
        page.fill(f"#{field}", value)
    page.click("#estimate")
    expect(page.locator("#long")).to_contain_text("About")
    print(page.inner_text("#long"))
    picture(page, "#create > section:nth-of-type(1)", folder / "first-test-form")
    picture(page, "#create > section:nth-of-type(3)", folder / "first-test-estimate")

    page.route("**/v1/studies", with_seed)
    page.click("text=Create the study")
    page.wait_for_selector("#snippet:not([hidden])")
    server = serve_shop(shop)
    page.fill("#origin", f"http://localhost:{server.server_port}")
    page.click("text=Make a key for it")
    expect(page.locator("#snippet-html")).to_contain_text(re.compile(r"r1_\w"))
    snippet = page.inner_text("#snippet-html")
    key = re.search(r"r1_[\w-]+", snippet)
    assert key is not None
    shown = {key[0]: "r1_4f0c…", home.rstrip("/"): "http://127.0.0.1:8000"}
    page.fill("#origin", "http://localhost:8080")
    picture(page, "#snippet", folder / "first-test-snippet", instead=shown)

    text = (DOCS / "first-test.md").read_text()
    block = re.search(r"```html\n(.*?)```", text, re.S)
    assert block is not None
    filled = block[1].replace("r1_…", key[0]).replace("http://127.0.0.1:8000/", home)
    (shop / "index.html").write_text(filled.replace("http://127.0.0.1:8000", home.rstrip("/")))
    visit(context, page, f"http://localhost:{server.server_port}")
    for name, words in VERDICTS.items():
        expect(page.locator("#leader")).to_have_text(re.compile(words))
        if name == "go":
            expect(page.locator("#forecast")).to_contain_text("About")
        print(page.inner_text("#verdict"))
        picture(page, "#verdict, #levels", folder / f"first-test-{name}")
    server.shutdown()


def visit(context: BrowserContext, page: Page, address: str) -> None:
    """Look at the shop, buy, and pretend to be other visitors."""
    shop = context.new_page()
    shop.add_init_script(SEEDED)
    shop.goto(address)
    expect(shop.locator("#button")).not_to_have_text("Buy")
    print({side: shop.inner_text(f"#{side}") for side in SIDES})
    shop.click("#button")
    page.bring_to_front()
    expect(page.locator("#n-reports")).to_have_text("1")
    shop.click("#pretend")


def serve_shop(shop: Path) -> http.server.ThreadingHTTPServer:
    """Serve the shop as python3 -m http.server does."""
    shop.mkdir()
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(shop))
    server = http.server.ThreadingHTTPServer(("localhost", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def with_seed(route: Route) -> None:
    """Create the study with a seed, which the form has no field for."""
    if route.request.method == "POST":
        body = {**json.loads(route.request.post_data or "{}"), "seed": 1}
        route.continue_(post_data=json.dumps(body))
    else:
        route.continue_()


def picture(page: Page, selector: str, path: Path, instead: dict[str, str] | None = None) -> None:
    """Take pictures of what a selector finds, in light and in dark mode."""
    page.evaluate(
        "(instead) => { for (const at of document.querySelectorAll('pre'))"
        " for (const [old, now] of Object.entries(instead))"
        " at.textContent = at.textContent.replaceAll(old, now); }",
        instead or {},
    )
    page.evaluate("window.scrollTo(0, 0)")
    boxes = [each.bounding_box() for each in page.query_selector_all(selector)]
    found = [box for box in boxes if box is not None]
    top, left = min(box["y"] for box in found), min(box["x"] for box in found)
    bottom = max(box["y"] + box["height"] for box in found)
    right = max(box["x"] + box["width"] for box in found)
    clip = {"x": left - 8, "y": top - 8, "width": right - left + 16, "height": bottom - top + 16}
    for scheme, end in (("light", ""), ("dark", "-dark")):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_timeout(300)  # until the charts are redrawn
        file = f"{path}{end}.png"
        page.screenshot(path=file, clip=clip, full_page=True)
        Image.open(file).convert("RGB").quantize(128).save(file, optimize=True)
    page.emulate_media(color_scheme="light")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
