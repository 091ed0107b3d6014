"""Take the picture of docs/service.md: the demo in Chromium, after a minute and a half.

python docs/service_figure.py
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

from first_test_figures import picture
from playwright.sync_api import sync_playwright

from rank1.server.demo import NAME


def main() -> None:
    """Take the picture."""
    command = [sys.executable, "-m", "rank1", "serve", "--demo", "--port", "0"]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process,
        sync_playwright() as playwright,
    ):
        assert process.stdout is not None
        address = "http://" + process.stdout.readline().split("http://")[1].split(" ")[0]
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1000, "height": 1180})
        page.goto(address)
        page.wait_for_selector("#studies:not([hidden])")
        page.goto(f"{address.partition('#')[0]}study?name={quote(NAME, safe='')}")
        page.wait_for_timeout(90_000)
        picture(page, "#title, #verdict, #levels", Path(__file__).parent / "figures" / "service")
        browser.close()
        process.terminate()


if __name__ == "__main__":
    main()
