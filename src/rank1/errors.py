"""Everything that rank1 raises on purpose, under one roof.

Each class is also the built-in exception that fits, so that code which knows nothing of rank1 can
catch it; a service maps the classes to its own answers.
"""

from __future__ import annotations

__all__ = [
    "BackendError",
    "CancelledError",
    "ConflictError",
    "DamagedError",
    "FileError",
    "FormatError",
    "InputError",
    "InputTypeError",
    "MissingPackageError",
    "NoDigest",
    "OtherStudyError",
    "Rank1Error",
    "SnapshotError",
    "StorageError",
    "StudyExistsError",
    "UnknownStudyError",
    "UnknownSuggestionError",
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


class MissingPackageError(Rank1Error, ImportError):
    """A part of rank1 needs a package that isn't installed; the message says how to get it."""


class NoDigest(Rank1Error, TypeError):  # noqa: N818
    """There is no telling what something depends on, so nothing made with it can be kept."""


class SnapshotError(Rank1Error, ValueError):
    """A snapshot of a policy's state can't be restored: damaged, of another layout or policy."""


class StorageError(FileError):
    """What a study is kept in can't be read or written; nothing was acknowledged.

    Attributes
    ----------
    again
        Whether the same call may succeed: the connection was lost, and nothing was stored.
    waited
        Whether the server was waited for in vain, so that another try at once is of no use.
    """

    again: bool = False
    waited: bool = False


class DamagedError(StorageError):
    """What a study is kept in is damaged, or is something else: a backup is to be put there."""


class FormatError(StorageError):
    """What a study is kept in was written by a later version of rank1."""


class UnknownStudyError(Rank1Error, LookupError):
    """There is no study of this name."""


class StudyExistsError(Rank1Error, ValueError):
    """There is a study of this name already."""


class UnknownSuggestionError(Rank1Error, LookupError):
    """No suggestion has this id."""


class OtherStudyError(Rank1Error, LookupError):
    """The id belongs to a suggestion of another study."""


class CancelledError(Rank1Error, ValueError):
    """The suggestion was cancelled: it was never shown, so nothing can be reported of it."""


class ConflictError(Rank1Error, ValueError):
    """Something else is on record already: another reward of the same suggestion, for one."""


for _name in __all__:
    globals()[_name].__module__ = "rank1"  # where people find them, and what a traceback shows
