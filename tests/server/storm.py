"""Clients that keep asking and telling a service; their answers are compared with the log."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import rank1
from rank1.server.tokens import Tokens
from rank1.studies.events import Kind
from tests.server.support import GRID, PATIENCE, Served, served, until


class Storm:
    """Clients that ask and tell until they are stopped, and note what was acknowledged."""

    def __init__(self, addresses: list[tuple[str, str]], clients: int, timeout: float) -> None:
        self.asked: list[tuple[str, str | None, str | None]] = []
        self.told: dict[str, float] = {}
        self.failed = 0
        self._end = threading.Event()
        self._threads = [
            threading.Thread(
                target=self._run,
                args=(*addresses[k % len(addresses)], timeout, k),
                daemon=True,  # else a failing test would never end
            )
            for k in range(clients)
        ]
        for thread in self._threads:
            thread.start()

    def _run(self, url: str, token: str, timeout: float, number: int) -> None:
        step = 0
        with rank1.Client(url, token, timeout) as client:
            study = rank1.client.RemoteStudy(client, "storm")
            while not self._end.is_set():
                step += 1
                with contextlib.suppress(rank1.StorageError):
                    given = study.ask(count=3) if step % 4 == 0 else [study.ask()]
                    self.asked += [(each.id, each.row, each.column) for each in given]
                    for each in given:
                        reward = float((step + number) % 2)
                        study.tell(each.id, reward)
                        if step % 5 == 0:
                            study.tell(each.id, reward)  # a duplicate report has no effect
                        self.told[each.id] = reward
                    continue
                self.failed += 1

    def more(self, reports: int = 40) -> None:
        """Wait until this many more reports are acknowledged."""
        enough = len(self.told) + reports
        until(lambda: len(self.told) >= enough)

    def stop(self) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join(PATIENCE)


def lines_of_study(study: rank1.Study) -> list[Any]:
    """Return the lines of an export."""
    return study.lines(limit=10**6)[0]


def check(storm: Storm, place: str, exact: bool = False) -> None:
    """Everything acknowledged is stored once; anything else stored was never answered."""
    with rank1.Study.open("storm", place) as study:
        assert study.verify().ok
        events = study.look(lambda state, log: log.page(study.access.study.id, limit=10**6))
        lines = lines_of_study(study)
    stored = {line["id"]: line for line in lines}
    assert len(stored) == len(lines)
    ids = [id for id, _, _ in storm.asked]
    assert len(set(ids)) == len(ids), "a suggestion was given to two"
    for id, row, column in storm.asked:
        assert (stored[id]["row"], stored[id]["column"]) == (row, column)
    for id, reward in storm.told.items():
        assert stored[id]["reward"] == reward
    reports = [event.suggestion for event in events if event.kind == Kind.REPORTED]
    assert len(set(reports)) == len(reports), "a report counts twice"
    places = [(event.key, event.position) for event in events if event.kind == Kind.SUGGESTED]
    assert len(set(places)) == len(places), "a request was answered by two suggestions"
    if exact:
        assert set(stored) == set(ids)
        assert len(reports) == len(storm.told)
        assert storm.failed == 0


@contextlib.contextmanager
def stormy(folder: Path, *flags: str, **options: Any) -> Iterator[Served]:
    token = Tokens(folder / "rank1-tokens.json").create("admin")
    with served(folder, *flags, token=token, **options) as service:
        assert service.call("/v1/studies", {"name": "storm", **GRID})[0] == 201
        yield service
