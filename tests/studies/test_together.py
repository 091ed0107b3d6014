from __future__ import annotations

from typing import Any

import pytest

from rank1 import Study
from rank1.errors import ConflictError, InputError, StorageError
from rank1.studies import asking
from rank1.studies.desk import Work
from rank1.studies.log import Event, Kind
from rank1.studies.storage import open_storage
from rank1.studies.together import transact_together

pytestmark = pytest.mark.usefixtures("uncompiled")


def ask(work: Work, key: str | None = None) -> Any:
    return asking.suggest(work, work.spec, 1, key, None)[0]


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
    desks = [study._desk for study in studies]
    storage = desks[0].storage
    begun: list[tuple[int, ...]] = []
    transaction = storage.transaction

    def counted(*ids: int) -> Any:
        begun.append(ids)
        return transaction(*ids)

    with monkeypatch.context() as patch:
        patch.setattr(storage, "transaction", counted)
        found = transact_together([(desks[k % 2], ask) for k in range(6)])
    assert begun == [tuple(sorted(desk.study.id for desk in desks))]
    assert len({each.id for each in found}) == 6
    plain = Study.open("one", storage)
    assert plain.totals()["suggestions"] == 3
    assert all(study.verify().ok for study in studies)


def test_who_is_refused_leaves_the_others_alone(studies: list[Study]) -> None:
    desk = studies[0]._desk

    def refused(work: Work) -> None:
        raise InputError("count must be 1, got 2")

    first, error, last = transact_together([(desk, ask), (desk, refused), (desk, ask)])
    assert isinstance(error, InputError)
    assert first.id != last.id
    assert studies[0].totals()["suggestions"] == 2
    assert studies[0].verify().ok


def test_who_fails_half_done_is_undone_alone(studies: list[Study]) -> None:
    desk = studies[0]._desk

    def half(work: Work) -> None:
        ask(work)
        raise ConflictError("after something was written")

    def broken(work: Work) -> None:
        raise ZeroDivisionError

    def duplicate(work: Work) -> None:
        event = Event(Kind.SUGGESTED, 0, 0, key="k")
        work.append([event, event])

    jobs = [ask, half, broken, duplicate, ask]
    found = transact_together([(desk, job) for job in jobs])
    kinds = [type(each).__name__ for each in found]
    assert kinds == [
        "Suggestion", "ConflictError", "ZeroDivisionError", "ConflictError", "Suggestion"
    ]  # fmt: skip
    assert studies[0].totals()["suggestions"] == 2
    assert studies[0].verify().ok


def test_a_storage_that_fails_tells_everybody(studies: list[Study]) -> None:
    desk = studies[0]._desk

    def full(work: Work) -> None:
        ask(work)
        raise StorageError("no room")

    found = transact_together([(desk, ask), (desk, full)])
    assert not isinstance(found[0], Exception)
    assert isinstance(found[1], StorageError)
    assert studies[0].totals()["suggestions"] == 1


def test_the_same_key_in_one_transaction(studies: list[Study]) -> None:
    desk = studies[0]._desk
    found = transact_together([(desk, lambda work: ask(work, "k"))] * 3)
    assert len({each.id for each in found}) == 1
    assert studies[0].totals()["suggestions"] == 1
