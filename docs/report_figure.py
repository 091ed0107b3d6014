"""Take the picture of docs/report.md: the introduction of a report, in Chromium.

python docs/report_figure.py report/index.html
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from first_test_figures import picture
from playwright.sync_api import sync_playwright


def main(report: Path) -> None:
    """Take the picture."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 960, "height": 1100})
        page.goto(report.resolve().as_uri())
        page.fill("#slider", "3")
        picture(page, "#introduction", Path(__file__).parent / "figures" / "report")
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
