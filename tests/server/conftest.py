from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.server.support import Served, served


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One service for the tests of a file; each takes studies of its own names."""
    folder: Path = tmp_path_factory.mktemp("service")
    with served(folder) as found:
        yield found


BROWSER_MISSING = "no browser: tests/server/test_page.py needs chromium (apt install chromium)"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say by name what wasn't looked at for want of a browser."""
    skipped = [
        report.nodeid
        for report in terminalreporter.stats.get("skipped", [])
        if BROWSER_MISSING in str(report.longrepr)
    ]
    if skipped:
        terminalreporter.write_line(f"Not run, as there is no chromium: {', '.join(skipped)}")
