"""Several processes behind one address."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from tests.server.support import GRID, PATIENCE, Served, at, served, until


@pytest.mark.validate
def test_workers_share_an_address_and_are_replaced(tmp_path: Path) -> None:
    with served(tmp_path, "--workers", "2", fresh=True) as service:

        def workers() -> list[psutil.Process]:
            found = psutil.Process(service.process.pid).children()
            alive = [each for each in found if each.status() != psutil.STATUS_ZOMBIE]
            return [each for each in alive if "spawn_main" in " ".join(each.cmdline())]

        before = workers()
        assert len(before) == 2
        assert service.call("/v1/studies", {"name": "a", **GRID})[0] == 201
        ids = {service.call(at("a", "/ask"), {})[1]["id"] for _ in range(20)}
        assert len(ids) == 20
        before[0].kill()
        until(lambda: len(workers()) == 2 and before[0] not in workers())
        for id in sorted(ids):
            until(lambda: _told(service, id))  # noqa: B023
        assert service.call(at("a"))[1]["totals"]["reports"] == 20
        left = workers()
        service.process.terminate()
        assert service.process.wait(PATIENCE) == 0
        assert not [each for each in left if each.is_running()]


def _told(service: Served, id: str) -> bool:
    try:
        status, _ = service.call(at("a", "/tell"), {"id": id, "reward": 1})
    except OSError:  # the connection was to the killed process
        return False
    return status == 200
