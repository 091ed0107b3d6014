"""Tests run in parallel, so each uses one thread for linear algebra; else they would compete."""

from __future__ import annotations

import functools
import gc
import os
import shutil
import signal
from typing import Any

import pytest
import typer
from hypothesis import HealthCheck, settings

from rank1.compiled import kernels

# The same examples in every run, even on a slow machine. `make validate` runs more of them, except
# in tests that set their own number.
for profile, examples in (("few", 30), ("many", 300)):
    settings.register_profile(
        profile,
        derandomize=True,
        deadline=None,
        max_examples=examples,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "few"))

# Processes that a shell starts in the background ignore Ctrl-C, and so would their children.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

build = functools.cache(lambda app, registered, build=typer.main.get_command: build(app))


def build_once(app: typer.Typer) -> Any:
    """Build the command line again only if commands were added: tests call hundreds of them."""
    apps = [app, *(group.typer_instance for group in app.registered_groups)]
    return build(app, tuple(len(each.registered_commands) for each in apps if each))


typer.main.get_command = build_once  # type: ignore[assignment]

#: The first of these that is there: the shell has no window, and takes a third less time.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((found for found in map(shutil.which, NAMES) if found), None)
#: Why tests of the pages are skipped.
BROWSER_MISSING = "there is no chromium (apt install chromium-headless-shell)"

#: Of two processes, the first begins with the first of these, which compile most, and the other in
#: the middle, with those that compile little. A process compiles each function once, but can't take
#: compiled code from another process, except from the cache. Tests of servers run in their own
#: processes, so they come late; those of commands find the kernels that other tests have compiled.
ORDER = (
    "tests/test_docs", "tests/test_advice", "tests/test_grids", "tests/test_gallery",
    "tests/plots/test_regret", "tests/compiled/test_generators", "tests/problems/test_shuffled",
    "tests/simulation/test_stages", "tests/policies", "tests/compiled/test_twins",
    "tests/simulation", "tests/problems", "tests/compiled", "tests/stopping", "tests/theory",
    "tests/studies", "tests/sweeps", "", "tests/paper", "tests/test_", "src",
    "tests/server", "tests/test_cli",
)  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    """Of two processes, let one begin with the tests and the other with the doctests of `src`.

    pytest rewrites each file of tests once. Processes that go through them side by side would each
    rewrite them all; this way the second finds most of them done.
    """
    if os.environ.get("PYTEST_XDIST_WORKER", "").endswith(("1", "3")):
        config.args.reverse()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def place(item: pytest.Item) -> int:
        return ORDER.index(max(filter(item.nodeid.startswith, ORDER), key=len))

    order = {item: (item.path, k) for k, item in enumerate(items)}
    items.sort(key=lambda item: (place(item), *order[item]))


def pytest_collection_finish() -> None:
    """Exclude modules and tests from garbage collection, which slowed down compiling."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture(autouse=True)
def _marked(request: pytest.FixtureRequest) -> None:
    """Apply fixtures to single parameters: they can't request fixtures, but they can have marks."""
    if request.node.get_closest_marker("uncompiled"):
        request.getfixturevalue("uncompiled")


@pytest.fixture
def uncompiled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run compiled code as plain Python, which takes less time for a few thousand steps.

    `tests/policies/test_contract.py` checks that compiled code makes the same choices, and tests
    that only `make validate` runs are compiled.
    """
    if request.node.get_closest_marker("validate"):
        return
    compiled = kernels._new_kernel
    monkeypatch.setattr(kernels, "_kernels", {})
    monkeypatch.setattr(
        kernels,
        "_new_kernel",
        lambda function, given: (
            kernels.as_written(function) if given else compiled(function, given)
        ),
    )


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """List the tests that were skipped because there is no browser."""
    left_out = [
        report.nodeid
        for report in terminalreporter.stats.get("skipped", [])
        if BROWSER_MISSING in str(report.longrepr)
    ]
    if left_out:
        terminalreporter.write_line(f"Left out, as {BROWSER_MISSING}: {', '.join(left_out)}")
