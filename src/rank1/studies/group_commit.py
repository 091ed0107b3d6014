"""Work of many callers in one transaction: they share its commit."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from rank1.errors import Rank1Error, StorageError
from rank1.studies.desk import TRIES, Desk, Work

__all__ = ["transact_together"]

Job = tuple[Desk, Callable[[Work], Any]]


class _Apart(Exception):  # noqa: N818
    """One of the jobs failed half done, so that all have to be undone."""


def transact_together(jobs: Sequence[Job]) -> list[Any]:
    """What each job gives, or the exception it raises in its place; all is stored on return.

    All desks are of one storage. A job that is refused before it has changed anything leaves the
    others alone. Where one fails later, each is tried in a transaction of its own.

    Examples
    --------
    >>> import tempfile, rank1
    >>> from rank1.studies import asking
    >>> study = rank1.Study.create("a", ["r"], ["c"], storage=tempfile.mkdtemp() + "/rank1.db")
    >>> def ask(work):
    ...     return asking.suggest(work, study.spec, 1, None, None)
    >>> [len(made) for made in transact_together([(study._desk, ask), (study._desk, ask)])]
    [1, 1]
    >>> study.close()
    """
    for left in reversed(range(TRIES)):
        try:
            return _together(jobs)
        except _Apart:
            return [_alone(desk, work) for desk, work in jobs]
        except StorageError as error:
            if not error.again or error.waited or left == 0:
                return [error] * len(jobs)
        except Rank1Error:  # of the storage, when it was about to commit
            return [_alone(desk, work) for desk, work in jobs]
    raise AssertionError


def _alone(desk: Desk, work: Callable[[Work], Any]) -> Any:
    try:
        return desk.transact(work)
    except Exception as error:
        return error


def _together(jobs: Sequence[Job]) -> list[Any]:
    desks = {desk.study.id: desk for desk, _ in jobs}
    with contextlib.ExitStack() as locks:
        for _, desk in sorted(desks.items()):
            locks.enter_context(desk.turn)
        begun: dict[int, Work] = {}
        try:
            with desks[min(desks)].storage.transaction(*sorted(desks)) as log:
                for key, desk in desks.items():
                    begun[key] = desk.begin(log)
                answers = [_answer(begun[desk.study.id], work) for desk, work in jobs]
        except BaseException:
            for desk in desks.values():
                desk.forget()
            raise
        for key, desk in desks.items():
            if begun[key].ahead:
                desk.snapshot_if_due(begun[key])
        return answers


def _answer(work: Work, job: Callable[[Work], Any]) -> Any:
    before = work.memory.seq
    was_ahead, work.ahead = work.ahead, False
    try:
        return job(work)
    except Rank1Error as error:
        if work.ahead or work.memory.seq != before:
            raise _Apart from error
        return error
    except Exception as error:
        raise _Apart from error
    finally:
        work.ahead = work.ahead or was_ahead
