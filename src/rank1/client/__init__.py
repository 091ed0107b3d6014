"""Studies of a service, with the methods that a `Study` has."""

from __future__ import annotations

import datetime
import secrets
from collections.abc import Sequence
from typing import Any

from rank1.client.study import RemoteFit, RemoteStudy
from rank1.client.transport import Transport

__all__ = ["Client", "RemoteFit", "RemoteStudy"]


class Client(Transport):
    """A service that `rank1 serve` runs.

    Requests are tried again where that is safe, with pauses that grow and are random: ids and keys
    make sure that nothing counts twice. Threads may share a client.

    Parameters
    ----------
    url
        Of the service, as in "http://127.0.0.1:8000".
    token
        As `rank1 serve token create` printed it.
    timeout
        Seconds that a call may take in all, with every try and pause.

    Examples
    --------
    >>> client = Client("http://127.0.0.1:8000", "r1_…")  # doctest: +SKIP
    >>> study = client.open("spring")  # doctest: +SKIP
    >>> shown = study.ask(unit="visitor 7", fallback=("18-24", "email"))  # doctest: +SKIP
    >>> study.tell(shown.id, reward=1.0)  # doctest: +SKIP
    """

    def studies(self) -> list[str]:
        """The names of the studies that the token is for."""
        return [each["name"] for each in self.get("/v1/studies")["studies"]]

    def create(
        self, name: str, rows: Sequence[str], columns: Sequence[str], **settings: Any
    ) -> RemoteStudy:
        """A new study; see `Study.create` for the settings. The token must be an admin's."""
        window = settings.get("reward_window")
        if isinstance(window, datetime.timedelta):
            settings["reward_window"] = window.total_seconds()
        body = {"name": name, "rows": list(rows), "columns": list(columns), **settings}
        self.post("/v1/studies", body, key=secrets.token_hex(16))
        return RemoteStudy(self, name)

    def open(self, name: str, *, look: bool = True) -> RemoteStudy:
        """A study that is there; UnknownStudyError if it isn't.

        With `look=False` it isn't looked for, and the service may be down: for a page that must
        start all the same, and shows its fallback until the service is there.
        """
        study = RemoteStudy(self, name)
        if look:
            study.about()
        return study
