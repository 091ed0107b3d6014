"""Client for a service: remote studies with the same methods as `Study`."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from typing import Any

from rank1.client.assigning import Assignment, Recorder
from rank1.client.study import RemoteFit, RemoteStudy, study_path
from rank1.client.transport import Transport, without_none

__all__ = ["Assignment", "Client", "Recorder", "RemoteFit", "RemoteStudy"]


class Client(Transport):
    """A client for a service that `rank1 serve` runs.

    Requests that are safe to repeat are retried, after random pauses that get longer. Ids and keys
    make sure that nothing counts twice. Threads may share a client.

    Parameters
    ----------
    url
        The service's URL, such as "http://127.0.0.1:8000".
    token
        The token that `rank1 serve token create` printed.
    timeout
        Seconds that a call may take, including all retries and pauses.

    Examples
    --------
    >>> client = Client("http://127.0.0.1:8000", "r1_…")  # doctest: +SKIP
    >>> study = client.open("spring")  # doctest: +SKIP
    >>> shown = study.ask(unit="visitor 7", fallback=("18-24", "email"))  # doctest: +SKIP
    >>> study.tell(shown.id, reward=1.0)  # doctest: +SKIP
    """

    def studies(self) -> list[str]:
        """Return the names of the studies that the token can read."""
        return [each["name"] for each in self.get("/v1/studies")["studies"]]

    def create(
        self,
        name: str,
        rows: Iterable[str] | None = None,
        columns: Iterable[str] | None = None,
        *,
        sides: Mapping[str, Iterable[str]] | None = None,
        **settings: Any,
    ) -> RemoteStudy:
        """Create a study; see `Study.create` for the settings. Requires an admin's token."""
        told = without_none(name=name, rows=rows, columns=columns, sides=sides, **settings)
        self.post("/v1/studies", told, key=secrets.token_hex(16))
        return RemoteStudy(self, name)

    def delete(self, name: str, *, confirm: str) -> None:
        """Delete a study and its log; `confirm` must repeat the name. Requires an admin's token."""
        self._delete(study_path(name), confirm=confirm)

    def open(self, name: str, *, look: bool = True) -> RemoteStudy:
        """Open a study; raises UnknownStudyError if it doesn't exist.

        With `look=False` no request is sent, so the service may be down. Use it for a page that
        must start in any case and shows its fallback until the service answers.
        """
        study = RemoteStudy(self, name)
        if look:
            study.about()
        return study
