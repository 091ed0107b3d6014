from __future__ import annotations

from typing import Any

import pytest

from rank1 import Study
from rank1.errors import ConflictError, InputError, StorageError
from rank1.studies import suggestions
from rank1.studies.events import Event, Kind
from rank1.studies.group_commit import transact_group
from rank1.studies.storage import open_storage
from rank1.studies.unit_of_work import UnitOfWork

pytestmark = pytest.mark.usefixtures("uncompiled")


def ask(work: UnitOfWork, key: str | None = None) -> Any:
    return suggestions.suggest(work, key=key)[0]


@pytest.fixture
def studies(place: str) -> Any:
    storage = open_storage(place)
    made = [
        Study.create(name, ["a", "b"], ["x", "y"], storage=storage, seed=1)
        for name in ("one", "two")
    ]
    yield made
    storage.close()


def test_jobs_of_several_studies_share_a_transaction(
    studies: list[Study], monkeypatch: pytest.MonkeyPatch
) -> None:
    accesses = [study.access for study in studies]
    storage = accesses[0].storage
    begun: list[tuple[int, ...]] = []
    transaction = storage.transaction

    def counted(*ids: int) -> Any:
        begun.append(ids)
        return transaction(*ids)

    with monkeypatch.context() as patch:
        patch.setattr(storage, "transaction", counted)
        found = transact_group([(accesses[k % 2], ask) for k in range(6)])
    assert begun == [tuple(sorted(access.study.id for access in accesses))]
    assert len({each.id for each in found}) == 6
    plain = Study.open("one", storage)
    assert plain.counts()["suggestions"] == 3
    assert all(study.verify().ok for study in studies)


def test_who_is_refused_leaves_the_others_alone(studies: list[Study]) -> None:
    access = studies[0].access

    def refused(work: UnitOfWork) -> None:
        raise InputError("count", 2, "1")

    first, error, last = transact_group([(access, ask), (access, refused), (access, ask)])
    assert isinstance(error, InputError)
    assert first.id != last.id
    assert studies[0].counts()["suggestions"] == 2
    assert studies[0].verify().ok


def test_who_fails_half_done_is_undone_alone(studies: list[Study]) -> None:
    access = studies[0].access

    def half(work: UnitOfWork) -> None:
        ask(work)
        raise ConflictError("after something was written")

    def broken(work: UnitOfWork) -> None:
        raise ZeroDivisionError

    def duplicate(work: UnitOfWork) -> None:
        event = Event(Kind.SUGGESTED, key="k")
        work.append([event, event])

    jobs = [ask, half, broken, duplicate, ask]
    found = transact_group([(access, job) for job in jobs])
    kinds = [type(each).__name__ for each in found]
    assert kinds == [
        "Suggestion", "ConflictError", "ZeroDivisionError", "ConflictError", "Suggestion"
    ]  # fmt: skip
    assert studies[0].counts()["suggestions"] == 2
    assert studies[0].verify().ok


def test_an_attempt_that_fails_half_done_fails_its_whole_job(studies: list[Study]) -> None:
    """Otherwise what it wrote would be committed, though its caller was refused."""
    access = studies[0].access

    def refused(work: UnitOfWork) -> None:
        raise ConflictError("before anything was written")

    def half(work: UnitOfWork) -> None:
        ask(work)
        raise ConflictError("after something was written")

    def batch(*parts: Any) -> Any:
        return access.transact(lambda work: [work.attempt(part) for part in parts])

    error, done = batch(refused, ask)
    assert isinstance(error, ConflictError)
    assert done.id
    with pytest.raises(ConflictError, match="after something was written"):
        batch(ask, half)
    assert studies[0].counts()["suggestions"] == 1


def test_a_storage_that_fails_tells_everybody(studies: list[Study]) -> None:
    access = studies[0].access

    def full(work: UnitOfWork) -> None:
        ask(work)
        raise StorageError("no room")

    found = transact_group([(access, ask), (access, full)])
    assert not isinstance(found[0], Exception)
    assert isinstance(found[1], StorageError)
    assert studies[0].counts()["suggestions"] == 1


@pytest.mark.parametrize(
    ("again", "waited", "tries"), [(False, False, 1), (True, False, 3), (True, True, 1)]
)
@pytest.mark.parametrize("together", [True, False])
def test_a_storage_that_fails_is_tried_again_where_that_may_help(
    studies: list[Study],
    monkeypatch: pytest.MonkeyPatch,
    again: bool,
    waited: bool,
    tries: int,
    together: bool,
) -> None:
    """But not after a timeout, because each of many jobs would wait for another timeout."""
    access, begun = studies[0].access, list[tuple[int, ...]]()
    error = StorageError("away")
    error.again, error.waited = again, waited

    def away(*ids: int) -> Any:
        begun.append(ids)
        raise error

    monkeypatch.setattr(access.storage, "transaction", away)
    if together:
        assert transact_group([(access, ask)] * 5) == [error] * 5
    else:
        with pytest.raises(StorageError, match="away"):
            access.transact(ask)
    assert len(begun) == tries


def test_the_same_key_in_one_transaction(studies: list[Study]) -> None:
    access = studies[0].access
    found = transact_group([(access, lambda work: ask(work, "k"))] * 3)
    assert len({each.id for each in found}) == 1
    assert studies[0].counts()["suggestions"] == 1
