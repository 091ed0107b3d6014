"""What doctests share."""

from __future__ import annotations

import pytest

from rank1.compiled import kernels


@pytest.fixture(autouse=True)
def _not_in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile only what an example waits for, as in tests: see `_own_compiler` there.

    The work of all tests together started the thread, which then compiled for seconds.
    """
    monkeypatch.setattr(kernels, "in_background", lambda: None)
