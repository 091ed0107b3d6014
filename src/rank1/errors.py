"""Everything that rank1 raises on purpose, under one roof.

Each class is also the built-in exception that fits, so that code which knows nothing of rank1 can
catch it; a service maps the classes to its own answers.
"""

from __future__ import annotations

__all__ = [
    "BackendError",
    "FileError",
    "InputError",
    "InputTypeError",
    "NoDigest",
    "Rank1Error",
    "SnapshotError",
]


class Rank1Error(Exception):
    """Anything that rank1 refuses or can't do; the message says what would be right."""


class InputError(Rank1Error, ValueError):
    """An argument has a value that can't be; the message names it, the value and what can."""


class InputTypeError(Rank1Error, TypeError):
    """An argument is of the wrong type."""


class FileError(Rank1Error, OSError):
    """A file can't be read or written."""


class BackendError(Rank1Error, ValueError, RuntimeError):
    """Where runs should be played, they can't be: a package, a cluster or a worker is missing."""


class NoDigest(Rank1Error, TypeError):  # noqa: N818
    """There is no telling what something depends on, so nothing made with it can be kept."""


class SnapshotError(Rank1Error, ValueError):
    """A snapshot of a policy's state can't be restored: damaged, of another layout or policy."""


for _cls in (
    Rank1Error, InputError, InputTypeError, FileError, BackendError, NoDigest, SnapshotError,
):  # fmt: skip
    _cls.__module__ = "rank1"  # where people find them, and what a traceback shows
