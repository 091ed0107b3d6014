"""Large studies and large bodies: summaries, pages, and limits on memory."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from rank1.documents import Best
from rank1.server import middleware, registry, study_view
from tests.server.in_process import InProcess, in_process
from tests.server.support import GRID, at, served


@pytest.fixture
def service(tmp_path: Path) -> Iterator[InProcess]:
    with in_process(tmp_path) as service:
        service.call("/v1/studies", {"name": "large", **GRID, "seed": 1})
        for k in range(9):
            asked = service.call("/v1/studies/large/ask", {}).document
            if k:
                service.call("/v1/studies/large/tell", {"id": asked["id"], "reward": k % 2})
        yield service


def test_a_large_study_answers_with_summaries_and_pages(
    service: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Best.from_dict(service.call("/v1/studies/large/best").document)
    view = service.call("/v1/studies/large/view").document
    monkeypatch.setattr(study_view, "MAX_ARMS", 5)
    best = Best.from_dict(service.call("/v1/studies/large/best").document)
    assert best.counts.size == best.out.size == 0
    assert (best.leader, best.reason, best.totals) == (whole.leader, whole.reason, whole.totals)
    assert service.call("/v1/studies/large/report").status == 200
    service.registry._views.clear()
    assert set(view) - set(service.call("/v1/studies/large/view").document) == {
        "means", "counts", "share", "out", "lower", "upper",
    }  # fmt: skip
    fit = service.call("/v1/studies/large/fit?repetitions=19")
    assert (fit.status, fit.document["field"]) == (422, "name")
    assert "rank1 study fit" in fit.document["remedy"]
    pages, after = [], 0
    while after is not None:
        page = service.call(f"/v1/studies/large/arms?after={after}&limit=4").document
        assert page["size"] == 6
        pages += page["arms"]
        after = page["next"]
    assert [tuple(arm["levels"].values()) for arm in pages] == [
        (row, column) for row in GRID["rows"] for column in GRID["columns"]
    ]
    assert [arm["reports"] for arm in pages] == whole.counts.ravel().tolist()
    assert sum(arm["pending"] for arm in pages) == 1
    for arm, mean in zip(pages, whole.means.ravel(), strict=True):
        assert arm["mean"] == pytest.approx(mean) or (arm["mean"] is None and math.isnan(mean))
    assert service.call("/v1/studies/large/arms?after=6").document["arms"] == []


def test_studies_kept_in_memory_are_limited_by_their_size(
    service: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = registry._size(service.registry.study("large"))
    assert size > 6 * 16
    monkeypatch.setattr(registry, "MAX_BYTES", 2 * size)
    for name in ("one", "two", "three"):
        service.call("/v1/studies", {"name": name, **GRID})
        service.call(f"/v1/studies/{name}/ask", {})
        service.call(f"/v1/studies/{name}/view")
    kept = service.registry
    for cache in (kept._writing, kept._reading, kept._views):
        assert list(cache) == ["two", "three"]
    assert service.call("/v1/studies/large/best").document["totals"]["reports"] == 8


@pytest.mark.validate
def test_memory_of_studies_that_are_not_kept_is_returned(tmp_path: Path) -> None:
    labels = [f"level {k}" for k in range(1000)]
    taken = []
    with served(tmp_path, fresh=True) as service:
        process = psutil.Process(service.process.pid)
        for k in range(10):
            body = {"name": str(k), "rows": labels, "columns": labels, "policy": "uts"}
            assert service.call("/v1/studies", body)[0] == 201
            assert service.call(at(str(k), "/ask"), {})[0] == 201
            assert service.call(at(str(k), "/view"))[0] == 200
            taken.append(process.memory_info().rss / 2**20)
    assert taken[-1] < taken[3] + 100  # tables of two studies fit into each cache


def test_bodies_in_flight_are_limited(service: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(middleware, "MAX_HELD", 1000)
    service.app.max_body = 500
    body = {"unit": 300 * "u"}

    async def five() -> list[int]:
        asks = (service.request("/v1/studies/large/ask", body) for _ in range(5))
        return [answer.status for answer in await asyncio.gather(*asks)]

    assert sorted(asyncio.run(five())) == [422, 422, 422, 503, 503]
    assert service.app.held == 0
    assert service.call("/v1/studies/large/ask", {}).status == 201
