"""No request waits for a compiler."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.support import at, served

STUCK = """
import threading
from rank1.compiled import kernels
kernels._new_kernel = lambda *given: threading.Event().wait()
from rank1.__main__ import main
main()
"""


@pytest.mark.parametrize("goal", [pytest.param("earn", marks=pytest.mark.validate), "find"])
def test_a_compiler_that_never_ends_delays_nothing(tmp_path: Path, goal: str) -> None:
    """Neither the first ask, nor the page, nor the shutdown: all of it runs as plain Python."""
    labels = [f"{k}" for k in range(8)]
    with served(tmp_path, code=STUCK, compiled=True) as service:
        fields = {"name": "first", "rows": labels, "columns": labels, "goal": goal}
        assert service.call("/v1/studies", fields)[0] == 201
        status, asked = service.call(at("first", "/ask"), {})
        assert status == 201
        assert service.call(at("first", "/view"))[1]["totals"]["pending"] == 1
        assert service.call(at("first", "/tell"), {"id": asked["id"], "reward": 1})[0] == 200
        status, given = service.call(at("first", "/ask/batch"), {"count": 100})
        ids = [each["suggestion"]["id"] for each in given["results"]]
        reports = {"reports": [{"id": id, "reward": 0} for id in ids]}
        assert service.call(at("first", "/tell/batch"), reports)[0] == 200
        assert service.call(at("first", "/best"))[1]["totals"]["reports"] == 101
        assert service.call(at("first", "/ask"), {})[0] == 201
    assert service.process.returncode == 0
