"""Tests run side by side: each with one thread for linear algebra, or they wait for each other."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# The same examples in every run, however slow the machine is.
settings.register_profile(
    "tests", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("tests")

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((found for found in map(shutil.which, NAMES) if found), None)
#: Why the tests of the pages are skipped.
BROWSER_MISSING = "there is no chromium (apt install chromium)"


@pytest.hookimpl(trylast=True)  # when those that aren't wanted have gone
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """First all tests of one policy, then all of the next: they compile the same functions."""
    from rank1.policies import POLICIES  # brings NumPy, for which the threads were set above

    here = Path(__file__).parent

    def policy(item: pytest.Item) -> str:
        place = item.path.relative_to(here) if item.path.is_relative_to(here) else Path()
        if place.parts[:1] not in (("policies",), ("studies",), ("test_golden.py",)):
            return ""
        parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
        names = [str(getattr(value, "name", value)).partition(":")[0] for value in parameters]
        names.append(place.stem.removeprefix("test_"))
        return next((name for name in names if name in POLICIES), "")

    groups: dict[str, list[pytest.Item]] = {}
    for item in items:
        groups.setdefault(policy(item), []).append(item)
    others = groups.pop("", [])
    # Of several processes each takes one part of the list, and begins with its share of policies.
    count = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    size, items[:] = len(items) // count, []
    for k in range(count):
        items += (item for name in sorted(groups)[k::count] for item in groups[name])
        missing = len(others) if k == count - 1 else max((k + 1) * size - len(items), 0)
        items += others[:missing]
        del others[:missing]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say by name what was left out for want of a browser."""
    left_out = [
        report.nodeid
        for report in terminalreporter.stats.get("skipped", [])
        if BROWSER_MISSING in str(report.longrepr)
    ]
    if left_out:
        terminalreporter.write_line(f"Left out, as {BROWSER_MISSING}: {', '.join(left_out)}")
