"""Settings of the service. Flags override environment variables, which override a TOML file."""

from __future__ import annotations

import dataclasses
import difflib
import ipaddress
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rank1 import checks
from rank1.errors import FileError, InputError, InputTypeError
from rank1.studies.storage import without_password

__all__ = ["Config", "is_loopback", "read_config"]


@dataclasses.dataclass(frozen=True)
class Config:
    """The settings of the service."""

    host: str = "127.0.0.1"
    port: int = 8000
    #: A file path, or postgresql://…
    storage: str = "rank1.db"
    #: The file that holds the tokens.
    tokens: str = "rank1-tokens.json"
    #: The largest request body, in bytes.
    max_body: int = 4 * 2**20
    #: Requests per second for each token.
    rate: float = 5000.0
    #: Seconds that a request body may take to arrive.
    patience: float = 10.0
    #: Seconds that running requests get to finish after the service is asked to stop.
    drain: float = 10.0
    #: The most open connections; further ones get a 503.
    connections: int = 2000
    #: Worker processes; more than one only pays off with PostgreSQL and that many cores.
    workers: int = 1
    #: Whether to log a line for each request.
    access_log: bool = False
    #: Where to send webhooks; empty for none.
    webhook: str = ""
    #: The secret that signs webhooks.
    webhook_secret: str = dataclasses.field(default="", repr=False)
    #: The file of webhooks that are still to be sent.
    webhook_state: str = "rank1-webhooks.json"

    def shown(self) -> dict[str, Any]:
        """Return all settings, without the database's password and the webhook secret."""
        storage, secret = without_password(self.storage), "***" if self.webhook_secret else ""
        return dataclasses.asdict(self) | {"storage": storage, "webhook_secret": secret}


_FIELDS = {field.name: field for field in dataclasses.fields(Config)}
_PREFIX = "RANK1_SERVE_"
_LIMITS = {
    "port": (0, 65535), "max_body": (1024, 2**30), "connections": (1, 10**6), "workers": (1, 64),
}  # fmt: skip


def read_config(
    flags: Mapping[str, Any],
    file: str | os.PathLike[str] | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Config:
    """Read the configuration. Flags override the environment, which overrides the file.

    A flag that wasn't given is None. A variable is RANK1_SERVE_ and the name of a setting in
    capitals; RANK1_SERVE_CONFIG is the path of a TOML file, unless `file` is.

    Examples
    --------
    >>> read_config({"port": 9000}, environment={"RANK1_SERVE_PORT": "1", "RANK1_SERVE_RATE": "9"})
    ... # doctest: +ELLIPSIS
    Config(host='127.0.0.1', port=9000, ..., rate=9.0, ...)
    """
    _refuse_slips(environment)
    file = file or environment.get(f"{_PREFIX}CONFIG")
    values: dict[str, Any] = {}
    if file:
        values.update(_from_file(Path(file)))
    for name in _FIELDS:
        text = environment.get(_PREFIX + name.upper())
        if text is not None:
            values[name] = _from_text(name, text)
    values.update({name: value for name, value in flags.items() if value is not None})
    return _checked(values)


def _refuse_slips(environment: Mapping[str, str]) -> None:
    """Raise an error if a variable's name looks like a misspelt setting.

    Other names with this prefix are ignored: Kubernetes, for example, sets variables such as
    RANK1_SERVE_SERVICE_HOST in every container beside a service called rank1-serve.
    """
    known = [_PREFIX + name.upper() for name in (*_FIELDS, "config")]
    for name in environment:
        if not name.startswith(_PREFIX) or name in known:
            continue
        if close := difflib.get_close_matches(name.upper(), known, 1, cutoff=0.9):
            hint = f"did you mean {close[0]}?"
            raise InputError("the environment", name, "settings of the service", hint, got=name)


def _from_file(path: Path) -> dict[str, Any]:
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        problem = f"the configuration {str(path)!r} can't be read"
        raise FileError(problem, str(error), where=str(path)) from None
    try:
        for name in found:
            checks.one_of("a setting", name, _FIELDS)
    except InputError as error:
        raise error.within(str(path)) from None
    return found


def _from_text(name: str, text: str) -> Any:
    kind = type(getattr(Config, name))
    if kind is bool:
        return checks.one_of(_PREFIX + name.upper(), text.lower(), ("true", "false")) == "true"
    try:
        return kind(text)
    except ValueError:
        raise InputError(_PREFIX + name.upper(), text, "a number") from None


def _checked(values: dict[str, Any]) -> Config:
    for name, value in values.items():
        kind = type(getattr(Config, name))
        if kind is str and not isinstance(value, str):
            raise InputTypeError(name, value, "text")
        if kind is bool:
            checks.boolean(name, value)
        if kind is int:
            values[name] = checks.integer(name, value, *_LIMITS[name])
        if kind is float:
            values[name] = checks.number(name, value, 0, 1e9, above=True)
    if values.get("webhook"):
        parts = urlsplit(values["webhook"])
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
            raise InputError("webhook", values["webhook"], "an address like https://shop.example/x")
        if not values.get("webhook_secret"):
            hint = f"set {_PREFIX}WEBHOOK_SECRET, or webhook_secret in the file"
            raise InputError("webhook_secret", "", "given if there is a webhook", hint)
    return Config(**values)


def is_loopback(host: str) -> bool:
    """Whether an address can only be reached from this machine.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
