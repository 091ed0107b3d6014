from __future__ import annotations

from pathlib import Path

from rank1.server.demo import NAME
from tests.server.support import at, served, until


def test_the_demo_plays_itself_and_leaves_nothing(tmp_path: Path) -> None:
    with served(tmp_path, "--demo") as service:
        until(lambda: service.call(at(NAME))[1]["totals"]["reports"] >= 40)
        _, view = service.call(at(NAME, "/view"))
        assert view["leader"] is not None
        assert sum(each["reports"] for each in view["traffic"])
    assert service.process.returncode == 0
    assert [file.name for file in tmp_path.iterdir()] == ["log.jsonl"]
