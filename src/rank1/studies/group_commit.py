"""Run the work of many callers in one transaction, so that they share its commit."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from rank1.errors import Rank1Error, StorageError
from rank1.studies.unit_of_work import TRIES, StudyAccess, UnitOfWork

__all__ = ["transact_group"]

Job = tuple[StudyAccess, Callable[[UnitOfWork], Any]]


class _HalfDone(Exception):  # noqa: N818
    """A job failed half done, so all jobs must be rolled back."""


def transact_group(jobs: Sequence[Job]) -> list[Any]:
    """Return each job's result, or the exception it raised; results are stored on return.

    All studies must be in one storage. A job that is refused before it changes anything doesn't
    affect the others. If a job fails later, each job is retried in its own transaction.

    Examples
    --------
    >>> import tempfile, rank1
    >>> from rank1.studies import suggestions
    >>> study = rank1.Study.create("a", ["r"], ["c"], storage=tempfile.mkdtemp() + "/rank1.db")
    >>> jobs = [(study.access, suggestions.suggest)] * 2
    >>> [len(made) for made in transact_group(jobs)]
    [1, 1]
    >>> study.close()
    """
    for left in reversed(range(TRIES)):
        try:
            return _in_group(jobs)
        except _HalfDone:
            return [_alone(access, work) for access, work in jobs]
        except StorageError as error:
            if not error.again or error.waited or left == 0:
                return [error] * len(jobs)
        except Rank1Error:  # from the storage, on commit
            return [_alone(access, work) for access, work in jobs]
    raise AssertionError


def _alone(access: StudyAccess, work: Callable[[UnitOfWork], Any]) -> Any:
    try:
        return access.transact(work)
    except Exception as error:
        return error


def _in_group(jobs: Sequence[Job]) -> list[Any]:
    studies = {access.study.id: access for access, _ in jobs}
    with contextlib.ExitStack() as locks:
        for _, access in sorted(studies.items()):
            locks.enter_context(access.turn)
        far = [access for access in studies.values() if access.known is None]
        for left in (2, 1, 0):
            for access in far:
                access.catch_up()
            begun: dict[int, UnitOfWork] = {}
            try:
                with studies[min(studies)].storage.transaction(*sorted(studies)) as log:
                    far = [each for each in studies.values() if left and each.is_far_behind(log)]
                    if not far:
                        begun = {key: access.begin(log) for key, access in studies.items()}
                        answers = [_answer(begun[access.study.id], work) for access, work in jobs]
            except BaseException:
                for access in studies.values():
                    access.forget()
                raise
            if not far:
                for key, access in studies.items():
                    access.committed(begun[key])
                return answers
        raise AssertionError


def _answer(work: UnitOfWork, job: Callable[[UnitOfWork], Any]) -> Any:
    try:
        return work.attempt(job)
    except Exception as error:
        raise _HalfDone from error
