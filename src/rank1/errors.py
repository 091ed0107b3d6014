"""Everything that rank1 raises on purpose. Errors are data; the sentence is made from the fields.

Each class also derives from the built-in exception that fits, so code that knows nothing about
rank1 can catch it. A service or a command line reads the fields (`argument`, `value`, `expected`,
`hint`, `context`, `problem`) and never parses a sentence.
"""

from __future__ import annotations

import copy
from collections.abc import Collection
from itertools import islice
from typing import Any, Self

__all__ = [
    "BackendError",
    "CancelledError",
    "ConflictError",
    "DamagedError",
    "EndedError",
    "FileError",
    "FormatError",
    "InputError",
    "InputTypeError",
    "MissingPackageError",
    "NoDigest",
    "OtherStudyError",
    "PolicyError",
    "Rank1Error",
    "SnapshotError",
    "StorageError",
    "StudyExistsError",
    "UnknownStudyError",
    "UnknownSuggestionError",
]


def reason(error: Exception) -> str:
    """Why a file can't be read, without the file's name, which the message has already.

    >>> reason(FileNotFoundError(2, "No such file or directory", "a.csv"))
    'No such file or directory'
    >>> reason(FileNotFoundError("No such file or directory (os error 2): a.csv"))
    'No such file or directory'
    """
    text = str(getattr(error, "strerror", None) or error)
    return text.partition(" (os error ")[0].partition("\n")[0]


def shown(value: Any) -> str:
    """A value as shown in an error message, shortened if it is long."""
    if type(value) in (list, tuple, str, bytes):
        value = value[:80]  # the text of a whole request body would take long
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def listed(names: Collection[str], most: int = 10) -> str:
    """Names as listed in an error message, shortened if there are many.

    >>> listed(["A", "B"]), listed([*"ABCDE"], 2)
    ('A, B', 'A, B, … (5 in all)')
    """
    text = ", ".join(islice(names, most))
    return text if len(names) <= most else f"{text}, … ({len(names)} in all)"


def extra(name: str) -> str:
    """The hint that names the extra to install."""
    return f"pip install 'rank1[{name}]' (in a checkout: pip install '.[{name}]')"


class Rank1Error(Exception):
    """Anything that rank1 rejects or can't do.

    Parameters
    ----------
    problem
        What is wrong, as a sentence without a full stop.
    hint
        How to fix it.
    facts
        Anything else a caller may want to read, stored as attributes: `where`, `study`, `id`.

    Examples
    --------
    >>> error = StorageError("there is no file 'a.db'", "create a study first", where="a.db")
    >>> str(error), error.where
    ("there is no file 'a.db': create a study first", 'a.db')
    """

    problem: str = ""
    hint: str | None = None
    #: Where the error occurred, such as "line 3 of the history"; see `within`.
    context: str | None = None

    def __init__(self, problem: str, hint: str | None = None, **facts: Any) -> None:
        super().__init__()
        self.problem, self.hint = problem, hint
        vars(self).update(facts)

    @property
    def sentence(self) -> str:
        """What is wrong, without the context."""
        return f"{self.problem}: {self.hint}" if self.hint else self.problem

    def within(self, context: str) -> Self:
        """The same error, with this context.

        >>> str(InputError("n", 0, "a whole number").within("line 3"))
        'line 3: n must be a whole number, got 0'
        """
        outer = copy.copy(self)
        outer.context = f"{context}: {self.context}" if self.context else context
        return outer

    def __str__(self) -> str:
        return f"{self.context}: {self.sentence}" if self.context else self.sentence

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), vars(self))


def _restored(cls: type[Rank1Error], fields: dict[str, Any]) -> Rank1Error:
    """Restore a pickled or copied error."""
    error = cls.__new__(cls)
    vars(error).update(fields)
    return error


class _ArgumentError(Rank1Error):
    """An argument that can't be accepted.

    Parameters
    ----------
    argument
        Its name.
    value
        Its value.
    expected
        What it must be: "a whole number of at least 1".
    hint
        How to fix it, if `expected` isn't enough.
    got
        How the sentence shows the value; default: its `repr`, shortened.
    """

    argument: str
    value: Any
    expected: str
    got: str
    #: The argument that it is a setting of: "policy" for a policy's setting.
    part_of: str | None = None

    def __init__(
        self,
        argument: str,
        value: Any,
        expected: str,
        hint: str | None = None,
        *,
        got: str | None = None,
        **facts: Any,
    ) -> None:
        Exception.__init__(self)
        self.argument, self.value, self.expected, self.hint = argument, value, expected, hint
        self.got = shown(value) if got is None else got
        vars(self).update(facts)

    @property
    def field(self) -> str:
        """Where the value is in what the caller gave: "policy.confidence"."""
        return f"{self.part_of}.{self.argument}" if self.part_of else self.argument

    @property
    def requirement(self) -> str:
        """What the argument must be, without what was given."""
        return f"{self.argument} must be {self.expected}"

    @property
    def remedy(self) -> str:
        """The requirement and the hint."""
        return f"{self.requirement}: {self.hint}" if self.hint else self.requirement

    @property
    def sentence(self) -> str:
        """What was expected, what was given, and the hint."""
        text = f"{self.requirement}, got {self.got}"
        return f"{text}: {self.hint}" if self.hint else text


class InputError(_ArgumentError, ValueError):
    """An argument has a value that can't be accepted.

    >>> error = InputError("runs", 0, "a whole number of at least 1")
    >>> error.argument, error.value, error.expected, error.hint
    ('runs', 0, 'a whole number of at least 1', None)
    >>> str(error)
    'runs must be a whole number of at least 1, got 0'
    """


class InputTypeError(_ArgumentError, TypeError):
    """An argument has the wrong type."""


class PolicyError(Rank1Error, TypeError):
    """A mistake in a policy's code: which policy, method, file and line, and what is wrong."""


class FileError(Rank1Error, OSError):
    """A file can't be read or written."""


class BackendError(Rank1Error, ValueError, RuntimeError):
    """Runs can't be played on this backend: a package, a cluster or a worker is missing."""


class MissingPackageError(Rank1Error, ImportError):
    """A part of rank1 needs a package that isn't installed; the hint says how to install it."""


class NoDigest(Rank1Error, TypeError):  # noqa: N818
    """The dependencies of something can't be determined, so nothing made with it can be stored."""


class SnapshotError(Rank1Error, ValueError):
    """A snapshot can't be restored: it is damaged, or has another layout or policy."""


class StorageError(FileError):
    """A study's storage can't be read or written; nothing was acknowledged.

    Attributes
    ----------
    again
        Whether a retry may succeed: the connection was lost, and nothing was stored, or only what
        can safely be repeated.
    waited
        Whether a timeout has already passed, so that an immediate retry won't help.
    """

    again: bool = False
    waited: bool = False


class DamagedError(StorageError):
    """A study's storage is damaged, or isn't a storage: restore a backup."""


class FormatError(StorageError):
    """A study's storage was written by a later version of rank1."""


class UnknownStudyError(Rank1Error, LookupError):
    """There is no study with this name."""


class StudyExistsError(Rank1Error, ValueError):
    """There already is a study with this name."""


class UnknownSuggestionError(Rank1Error, LookupError):
    """No suggestion has this id."""


class OtherStudyError(Rank1Error, LookupError):
    """The id belongs to a suggestion of another study."""


class CancelledError(Rank1Error, ValueError):
    """The suggestion was cancelled: it was never shown, so it can't have a reward."""


class ConflictError(Rank1Error, ValueError):
    """A conflict with what is already stored, such as another reward of the same suggestion.

    Attributes
    ----------
    again
        Whether another process stored the same event just now, so that a retry will see it.
    """

    again: bool = False


class EndedError(ConflictError):
    """The study was retired, so it gives no more suggestions."""


for _name in __all__:
    globals()[_name].__module__ = "rank1"  # the public name, shown in tracebacks
