"""A forked child has connections of its own, and its parent's stay good."""

from __future__ import annotations

import pytest

from rank1.studies.storage import open_storage
from tests.studies.support import python

AFTER = """
import os, sys, threading
import rank1
from rank1.studies.storage import open_storage
from tests.studies.support import SPEC, append, suggested

storage = open_storage(sys.argv[1], patience=10)
study = storage.create("spring", SPEC)
with storage.reading(), storage.reading():
    pass  # two connections wait
for number in range(2):
    child = os.fork()
    append(storage, study, *suggested(2))
    if child == 0:
        assert storage.check() == []
        if number == 1:
            storage.close()
        sys.exit(0)  # which collects all that is left of the parent's
    assert os.waitpid(child, 0)[1] == 0
    append(storage, study, *suggested(2))
assert storage.check() == []
storage.close()
"""

WITHIN = """
import os, sys
import rank1
from rank1.studies.storage import open_storage
from tests.studies.support import SPEC, append, suggested

storage = open_storage(sys.argv[1], patience=10)
study = storage.create("spring", SPEC)
for fails in (False, True):
    try:
        with storage.transaction(study.id) as log:
            log.append(study.id, suggested(3))
            child = os.fork()
            if child == 0 and fails:
                raise KeyError("the child's")
            if child:
                assert os.waitpid(child, 0)[1] == 0
            log.now(study.id)
    except rank1.StorageError as error:
        assert child == 0 and "can't continue a transaction of its parent" in str(error), error
        try:
            with open_storage(sys.argv[1]).reading() as log:
                assert log.study("spring").name == "spring"
                assert sys.argv[1].startswith("postgresql"), "locks are lost"
        except rank1.StorageError as error:
            assert "was forked while its parent used a SQLite file" in str(error), error
        sys.exit(0)
    assert child
    append(storage, study, *suggested(3))
assert storage.check() == []
storage.close()
"""

THREADS = """
import os, sys, threading, time
from rank1.studies.storage import open_storage
from tests.studies.support import SPEC, append, suggested

storage = open_storage(sys.argv[1], patience=10)
study, other = storage.create("spring", SPEC), storage.create("other", SPEC)
holding = threading.Event()

def hold():
    with storage.transaction(other.id) as log:
        log.append(other.id, suggested(1))
        holding.set()
        time.sleep(0.5)

thread = threading.Thread(target=hold)
thread.start()
holding.wait()
child = os.fork()  # waits for the thread, where it must
if child == 0:
    append(storage, study, *suggested(3))
    os._exit(0)
thread.join()
assert os.waitpid(child, 0)[1] == 0
append(storage, study, *suggested(9))
assert storage.check() == []
storage.close()
"""


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(AFTER, id="after"),
        pytest.param(WITHIN, id="within"),
        pytest.param(THREADS, id="threads", marks=pytest.mark.validate),
    ],
)
def test_forks(place: str, script: str) -> None:
    run = python("-W", "ignore::DeprecationWarning", "-c", script, place)
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    storage = open_storage(place)
    with storage.reading() as log:
        assert log.study("spring").last_seq == 13
    storage.close()
