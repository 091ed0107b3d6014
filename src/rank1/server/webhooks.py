"""Webhooks: notify another service of dropped levels, tripped guardrails and verdicts.

Messages are signed according to the Standard Webhooks specification: `webhook-signature` is `v1,`
and the base64 of an HMAC-SHA256 over `id.timestamp.body`. A message is retried for three days, with
pauses that double, until the receiver answers 2xx. A file keeps what was noticed and which messages
are pending, so a restart loses nothing; a receiver may get a duplicate, with the same id.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import random
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rank1 import atomic
from rank1.errors import FileError, Rank1Error
from rank1.server.metrics import Metrics
from rank1.server.middleware import log
from rank1.server.registry import StudyRegistry

__all__ = ["Webhooks", "signature"]

#: The shortest pause between two checks of the studies, in seconds.
EVERY = 1.0
#: Checking a study takes at most one part in this many of the time.
SHARE = 10
#: Seconds before the first retry, doubled for each further one, and the longest pause.
PAUSE, LONGEST = 2.0, 3600.0
#: Seconds after which a message is dropped.
GIVE_UP = 3 * 86400.0
#: Seconds that a receiver may take to answer.
TIMEOUT = 10.0


def signature(secret: str, id: str, timestamp: int, body: bytes) -> str:
    """Return a message's signature; a secret that begins with whsec_ is decoded as base64.

    >>> signature("secret", "msg_1", 1700000000, b"{}")
    'v1,A5oIrJxXPB/PkULSoVu0e4khvPiqpF9vljmhkSKg0FI='
    """
    kind, _, rest = secret.partition("whsec_")
    key = base64.b64decode(rest) if rest and not kind else secret.encode()
    signed = hmac.new(key, f"{id}.{timestamp}.".encode() + body, hashlib.sha256)
    return "v1," + base64.b64encode(signed.digest()).decode()


class Webhooks:
    """A thread that checks the studies after commits and sends messages about what is new.

    The file at `path` keeps what was noticed and what is pending. If it doesn't exist yet, earlier
    events aren't sent.
    """

    def __init__(
        self, registry: StudyRegistry, metrics: Metrics, url: str, secret: str, path: str
    ) -> None:
        self._registry, self._metrics = registry, metrics
        self._url, self._secret, self._path = url, secret, Path(path)
        #: For each study's uid: the last event that was checked, and the last verdict sent.
        self._seen: dict[str, dict[str, Any]] = {}
        #: Pending messages: `id`, `body`, `since`, `tries` and `next`.
        self._waiting: list[dict[str, Any]] = []
        #: When each study may be checked again, by uid.
        self._not_before: dict[str, float] = {}
        self._new = not self._read()
        self._wake, self._ending = threading.Event(), threading.Event()
        self._wake.set()
        self._thread = threading.Thread(target=self._run, name="rank1-webhooks", daemon=True)
        self._thread.start()

    def committed(self) -> None:
        """Wake the thread after a commit."""
        self._wake.set()

    def close(self) -> None:
        """Stop the thread; pending messages are sent after the next start."""
        self._ending.set()
        self._wake.set()
        self._thread.join(TIMEOUT / 2)

    def _run(self) -> None:
        while not self._ending.is_set():
            # Commits of other processes are noticed within a minute.
            due = min([each["next"] for each in self._waiting], default=time.time() + 60)
            self._wake.wait(max(0.0, min(60.0, due - time.time())))
            self._wake.clear()
            if self._ending.is_set():
                return
            try:
                self._look()
                self._send()
            except Exception as error:  # of the storage, for example: the next check may succeed
                log.error("webhooks: %r", error, exc_info=not isinstance(error, Rank1Error))
            self._ending.wait(EVERY)

    # Finding what is new

    def _look(self) -> None:
        rows = self._registry.rows()
        changed, first = False, self._new
        for row in rows:
            seen = self._seen.setdefault(row.uid, {"seq": 0, "verdict": None})
            if seen["seq"] >= row.last_seq or self._not_before.get(row.uid, 0) > time.monotonic():
                continue
            began = time.monotonic()
            try:
                for kind, data in self._news(row.name, row.last_seq, seen):
                    if not first:
                        self._add(kind, row.uid, {"study": row.name, **data})
            except Rank1Error as error:
                log.error("webhooks: a look at %r failed: %s", row.name, error)
            self._not_before[row.uid] = time.monotonic() + SHARE * (time.monotonic() - began)
            changed = True
        uids = {row.uid for row in rows}
        self._seen = {uid: seen for uid, seen in self._seen.items() if uid in uids}
        if changed or first:
            self._write()
            self._new = False

    def _news(
        self, name: str, last: int, seen: dict[str, Any]
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield what has happened in a study since the last check, and update `seen`."""
        best = self._registry.study(name).best(tables=False)
        before, seen["seq"] = seen["seq"], max(seen["seq"], last)
        for side, levels in best.levels.items():
            for level in levels:
                gone = level.get("gone_at") or {"seq": 0}
                if gone["seq"] <= before or level["why"] == "retired":
                    continue
                seen["seq"] = max(seen["seq"], gone["seq"])
                about = {"side": side, "level": level["label"], **gone}
                if level["why"] in (None, "refuted"):
                    yield "level.dropped", about
                else:
                    yield "guardrail.tripped", {**about, "why": level["why"]}
        verdict = list(best.leader or ()) if best.stop else None
        if verdict != seen["verdict"] and verdict is not None:
            leader = dict(zip(best.sides, verdict, strict=True))
            yield "verdict.reached", {
                "seq": last, "leader": leader, "statement": best.statement, "reason": best.reason,
            }  # fmt: skip
        seen["verdict"] = verdict

    def _add(self, kind: str, uid: str, data: dict[str, Any]) -> None:
        now = time.time()
        what = json.dumps([kind, uid, data["seq"], data.get("side"), data.get("level")])
        mark = hashlib.blake2b(what.encode(), digest_size=12).hexdigest()
        body = json.dumps({"type": kind, "timestamp": now, "data": data}, allow_nan=False)
        self._waiting.append(
            {"id": f"rank1_{mark}", "body": body, "since": now, "tries": 0, "next": now}
        )

    # Sending

    def _send(self) -> None:
        for message in [each for each in self._waiting if each["next"] <= time.time()]:
            if self._ending.is_set():
                return
            problem = self._post(message)
            message["tries"] += 1
            pause = min(LONGEST, PAUSE * 2 ** min(message["tries"] - 1, 20))
            message["next"] = time.time() + pause * random.uniform(0.75, 1.25)
            late = time.time() - message["since"] > GIVE_UP
            result = "sent" if problem is None else "dropped" if late else "failed"
            self._metrics.webhooks.labels(result).inc()
            about = {"id": message["id"], "tries": message["tries"], "problem": problem}
            level = log.info if problem is None else log.warning
            level("webhook %s", result, extra={"about": about})
            if problem is None or late:
                self._waiting.remove(message)
            self._write()

    def _post(self, message: dict[str, Any]) -> str | None:
        """Send a message; returns what went wrong, or None."""
        body, now = message["body"].encode(), int(time.time())
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "rank1",
            "webhook-id": message["id"],
            "webhook-timestamp": str(now),
            "webhook-signature": signature(self._secret, message["id"], now, body),
        }
        request = urllib.request.Request(self._url, body, headers, method="POST")
        try:
            with _OPENER.open(request, timeout=TIMEOUT) as answer:
                return None if 200 <= answer.status < 300 else f"status {answer.status}"
        except urllib.error.HTTPError as error:
            with error:
                return f"status {error.code}"
        except (OSError, ValueError) as error:
            return str(error) or type(error).__name__

    # The file

    def _read(self) -> bool:
        """Read the file; returns whether it exists."""
        try:
            found = json.loads(self._path.read_text(encoding="utf-8"))
            self._seen, self._waiting = dict(found["seen"]), list(found["waiting"])
        except FileNotFoundError:
            return False
        except (OSError, ValueError, KeyError, TypeError) as error:
            problem, where = f"the webhooks in {str(self._path)!r} can't be read", str(self._path)
            raise FileError(problem, repr(error), where=where) from None
        return True

    def _write(self) -> None:
        with atomic.whole_file(self._path) as temporary:
            temporary.chmod(0o600)
            text = json.dumps({"seen": self._seen, "waiting": self._waiting})
            temporary.write_text(text, encoding="utf-8")


class _Stay(urllib.request.HTTPRedirectHandler):
    """Treats a redirect as an answer, so that signed messages go to no other address."""

    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_Stay, urllib.request.ProxyHandler())
