"""What tests and doctests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rank1.compiled import kernels


@pytest.fixture(autouse=True)
def _own_compiler(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Stop a test's background compilation when the test ends; never start it automatically.

    The work of all tests together could start the thread in any of them. It would then see what
    that test has patched, and reset its warning filters (Numba's filters are process-wide).
    """
    monkeypatch.setattr(kernels, "in_background", lambda: None)
    monkeypatch.setattr(kernels._Background, "current", None)
    yield
    if kernels._Background.current is not None:
        kernels._Background.current.end()
