"""The SQLite file: what may happen to it, and what is refused."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

import rank1
from rank1.errors import extra
from rank1.studies.events import Event, Kind
from rank1.studies.storage import Snapshot, open_storage, sqlite_file
from rank1.studies.storage.sqlite import SqliteReader, SqliteStorage
from rank1.studies.storage.tables import FORMAT, migration
from rank1.testing.storages import BECAME, EVERYTHING, same
from tests import forked
from tests.studies import old_logs
from tests.studies.support import SPEC, append, python, reported, suggested

PAGE = 4096


def filled(path: Path, events: int = 4000) -> Path:
    """A storage with a study, closed."""
    with SqliteStorage(path) as storage:
        study = storage.create("spring", SPEC)
        append(storage, study, *suggested(events // 2, unit="u"))
        append(storage, study, *[reported(seq) for seq in range(2, events // 2)])
    assert sorted(each.name for each in path.parent.iterdir()) == [path.name]
    return path


def uses(storage: SqliteStorage) -> list[Callable[[], object]]:
    """All the ways to use a storage."""

    def read() -> None:
        with storage.reading() as log:
            study = log.study("spring")
            log.read(study.id)
            log.pending(study.id)
            log.of_unit(study.id, "u")

    def write() -> None:
        with storage.transaction(1) as log:
            log.append(1, suggested())

    return [read, write, lambda: storage.create("autumn", SPEC), storage.prepare]


def refused(path: Path, message: str) -> None:
    """Every use is refused with the name of the file, and nothing is changed."""
    before = path.read_bytes() if path.is_file() else None
    for number in range(4):
        storage = SqliteStorage(path, patience=0.2)
        with pytest.raises(rank1.StorageError, match=message) as caught:
            uses(storage)[number]()
        assert str(path) in str(caught.value)
        found = storage.check()
        storage.close()
        assert str(path) in found[0]
        if before is not None:
            assert path.read_bytes() == before
    # Nothing is left beside it.
    assert [each.name for each in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "has 0 bytes, too few for a file of rank1.*rank1 study backup"),
        (b"id,row,column\n" * 1000, "damaged, or isn't a database.*rank1 study backup"),
        (b"SQLite format 3\0", "has 16 bytes, too few"),
        (b"SQLite format 3\0" + bytes(5000), "damaged, or isn't a database"),
        (random.Random(1).randbytes(20_000), "damaged, or isn't a database"),
    ],
)
def test_a_file_that_is_something_else(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "rank1.db"
    path.write_bytes(content)
    refused(path, message)


def test_a_database_of_another_program(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE studies (name TEXT)")
    other.close()
    refused(path, "is a SQLite database of another program")


def test_a_directory_or_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "rank1.db").mkdir()
    os.mkfifo(tmp_path / "b" / "rank1.db")
    refused(tmp_path / "a" / "rank1.db", "is a directory: name a file.*rank1 study backup")
    refused(tmp_path / "b" / "rank1.db", "is no regular file: name a file")


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path / "no" / "rank1.db")
    with pytest.raises(rank1.StorageError, match="name a file in a folder that exists"):
        storage.create("spring", SPEC)
    (tmp_path / "file").touch()
    storage = SqliteStorage(tmp_path / "file" / "rank1.db")
    with pytest.raises(rank1.StorageError, match="Not a directory"):
        storage.create("spring", SPEC)


@pytest.mark.parametrize("size", [1, 50, 100, PAGE, 3 * PAGE + 77, -PAGE, -1])
def test_a_truncated_file(tmp_path: Path, size: int) -> None:
    path = filled(tmp_path / "rank1.db")
    os.truncate(path, size if size > 0 else path.stat().st_size + size)
    refused(path, "(is damaged, or isn't a database|too few for a file of).*rank1 study backup")


def test_a_page_of_garbage(tmp_path: Path) -> None:
    """Each page once: a check sees it, and no use of the storage comes to a bad end."""
    whole = filled(tmp_path / "whole.db").read_bytes()
    rng = random.Random(1)
    refusals = 0
    for page in range(len(whole) // PAGE):
        (tmp_path / str(page)).mkdir()
        path = tmp_path / str(page) / "rank1.db"
        garbage = rng.choice([rng.randbytes(PAGE), bytes(PAGE), b"\xff" * PAGE])
        path.write_bytes(whole[: page * PAGE] + garbage + whole[(page + 1) * PAGE :])
        storage = SqliteStorage(path)
        assert storage.check(), f"page {page} of garbage isn't seen"
        told = [told_by(use) for use in uses(storage)[:2]]
        storage.close()
        assert all(f"'{path}' is damaged" in each for each in told if each)
        assert all("rank1 study backup" in each for each in told if each)
        refusals += any(told)
    assert refusals > len(whole) // PAGE / 2


def told_by(use: Callable[[], object]) -> str:
    try:
        use()
    except rank1.Rank1Error as error:
        return str(error)
    return ""


@pytest.mark.parametrize("seed", range(5))
def test_flipped_bits_come_to_no_bad_end(tmp_path: Path, seed: int) -> None:
    path = filled(tmp_path / "rank1.db", 500)
    raw = bytearray(path.read_bytes())
    rng = random.Random(seed)
    for _ in range(200):
        raw[rng.randrange(100, len(raw))] ^= 1 << rng.randrange(8)
    path.write_bytes(raw)
    storage = SqliteStorage(path, patience=0.2)
    assert storage.check()
    assert any(told_by(use) for use in uses(storage)[:2])
    storage.close()


def test_a_file_marked_read_only(tmp_path: Path) -> None:
    path = filled(tmp_path / "rank1.db")
    path.chmod(0o444)
    storage = SqliteStorage(path)
    read, write, create, _ = uses(storage)
    read()
    for use in (write, create):
        with pytest.raises(rank1.StorageError, match=r"isn't writable.*rank1 study backup"):
            use()
    path.chmod(0o644)
    write()
    storage.close()


STRANGER = """
import os, sys
import rank1
from rank1.studies.storage.sqlite import SqliteReader, SqliteStorage
from tests.studies.storage.test_sqlite import uses
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
storage = SqliteStorage(sys.argv[1], patience=0.2)
for use in uses(storage)[:3]:
    try:
        use()
        print("done")
    except rank1.StorageError as error:
        print(error)
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can reach."""
    folder = Path(tempfile.mkdtemp(prefix="rank1-test-"))
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def as_stranger(path: Path) -> tuple[str, str, str]:
    """The errors that other connections get when they read, write and create."""
    run = forked.python(STRANGER, str(path))
    assert run.returncode == 0, run.stderr
    read, write, create = run.stdout.splitlines()
    return read, write, create


def test_no_permission(open_folder: Path) -> None:
    path = filled(open_folder / "rank1.db")
    path.chmod(0o600 if os.getuid() == 0 else 0)
    for told in as_stranger(path):
        assert told.startswith(f"can't open '{path}'")
        assert "rank1 study backup" in told


def test_a_folder_that_may_not_be_written_to(open_folder: Path) -> None:
    path = filled(open_folder / "rank1.db")
    if os.getuid() != 0:
        open_folder.chmod(0o555)
    _, write, create = as_stranger(path)
    for told in (write, create):
        assert f"'{path}'" in told
        assert "isn't writable" in told or "in a folder that may be written to" in told
    create = as_stranger(open_folder / "new.db")[2]
    if os.getuid() == 0:  # a folder that may not even be looked into
        open_folder.chmod(0o700)
        assert all("Permission denied" in told for told in as_stranger(path))
    assert "name a file in a folder that exists and may be written to" in create


def test_somebody_holds_the_file(tmp_path: Path) -> None:
    path = filled(tmp_path / "rank1.db")
    storage = SqliteStorage(path, patience=0.3)
    read, write, create, _ = uses(storage)
    holder = apsw.Connection(str(path))
    holder.execute("BEGIN IMMEDIATE")
    for use in (write, create):
        begin = time.monotonic()
        with pytest.raises(
            rank1.StorageError, match=r"another process or thread has held .* for 0\.3 s"
        ):
            use()
        assert time.monotonic() - begin > 0.25
    read()  # waits for nobody
    holder.execute("ROLLBACK")
    write()
    holder.close()
    storage.close()


def test_a_thread_holds_the_file(tmp_path: Path) -> None:
    storage = SqliteStorage(filled(tmp_path / "rank1.db"), patience=0.3)
    _, write, _, _ = uses(storage)
    holding, done = threading.Event(), threading.Event()

    def hold() -> None:
        with storage.transaction(1):
            holding.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    holding.wait()
    with pytest.raises(
        rank1.StorageError, match=r"another process or thread has held .* for 0\.3 s"
    ):
        write()
    done.set()
    thread.join()
    write()
    storage.close()


FULL = """
import resource, sys
import rank1
from rank1.studies.storage.sqlite import SqliteReader, SqliteStorage
from tests.studies.support import SPEC, append, suggested
path, limit = sys.argv[1], sys.argv[2] == "limit"
storage = SqliteStorage(path)
study = storage.create("spring", SPEC)
append(storage, study, *suggested(10))
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
stored = 11
for attempt in range(10_000):
    try:
        stored = append(storage, study, *suggested(100)) + 99
    except rank1.StorageError as error:
        print(error)
        break
with storage.reading() as log:
    assert log.last(study.id)[0] == stored, (log.last(study.id), stored)
    assert log.read(study.id).size == stored
print("stored", stored)
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
else:
    import os
    os.unlink(os.path.join(os.path.dirname(path), "ballast"))
for k in range(100):
    assert append(storage, study, *suggested(100)) == stored + 100 * k + 1
assert storage.check() == []
storage.close()
print("goes on")
"""


def disk_full(path: Path, how: str) -> None:
    run = forked.python(FULL, str(path), how)
    assert run.returncode == 0, run.stderr
    told, stored, end = run.stdout.splitlines()
    if how == "disk":
        assert told.startswith(
            f"no disk space to write '{path}': the disk or the quota is full; nothing"
        )
    else:
        assert told.startswith(f"the disk failed under '{path}'")
        assert "it may be full, faulty or unmounted; nothing was acknowledged" in told
    assert int(stored.split()[1]) > 200
    assert end == "goes on"


def test_a_file_may_grow_no_more_and_then_may_again(tmp_path: Path) -> None:
    disk_full(tmp_path / "rank1.db", "limit")


def test_the_disk_is_full_and_then_is_not(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)],
        capture_output=True, check=False,
    )  # fmt: skip
    if mounted.returncode:
        pytest.skip("only root can make a small disk; a limit on the size of files is tested")
    try:
        (disk / "ballast").write_bytes(bytes(3_000_000))
        disk_full(disk / "rank1.db", "disk")
    finally:
        subprocess.run(["umount", str(disk)], check=True)


KILLED = """
import os, signal, sys
from rank1.studies.storage.sqlite import SqliteReader, SqliteStorage
from tests.studies.support import SPEC, append, suggested
storage = SqliteStorage(sys.argv[1])
study = storage.create("spring", SPEC)
for _ in range(20):
    append(storage, study, *suggested(10))
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def left_over(tmp_path: Path) -> Path:
    """The file of a process that was killed, with its -wal and -shm."""
    path = tmp_path / "rank1.db"
    assert forked.python(KILLED, str(path)).returncode == -9
    assert Path(f"{path}-wal").stat().st_size > 0
    return path


@pytest.mark.parametrize("shm", [True, False])
def test_what_a_killed_process_left_is_taken_up(left_over: Path, shm: bool) -> None:
    if not shm:
        os.unlink(f"{left_over}-shm")
    with SqliteStorage(left_over) as storage:
        assert storage.check() == []
        with storage.reading() as log:
            assert log.study("spring").last_seq == 201


def test_a_deleted_wal_leaves_a_log_that_is_whole(left_over: Path) -> None:
    """What was in it is lost; what is left is a log, or nothing at all, and is told as such."""
    os.unlink(f"{left_over}-wal")
    with SqliteStorage(left_over) as storage:
        assert storage.check() == []
        with pytest.raises(rank1.UnknownStudyError), storage.reading() as log:
            log.study("spring")


def test_a_wal_whose_file_is_gone(left_over: Path) -> None:
    os.unlink(left_over)
    storage = SqliteStorage(left_over)
    with pytest.raises(rank1.StorageError, match=r"rank1\.db-wal', but no .* to which it belongs"):
        storage.create("spring", SPEC)
    assert not left_over.exists()
    os.unlink(f"{left_over}-wal")
    storage.create("spring", SPEC)
    storage.close()


def test_a_wal_cut_short_keeps_what_came_before(left_over: Path) -> None:
    wal = Path(f"{left_over}-wal")
    os.unlink(f"{left_over}-shm")
    os.truncate(wal, wal.stat().st_size - 3 * PAGE)
    with SqliteStorage(left_over) as storage:
        assert storage.check() == []
        with storage.reading() as log:
            assert 1 < log.study("spring").last_seq < 201


def test_a_file_cut_short_beside_a_wal_is_left_as_it_is(tmp_path: Path) -> None:
    """SQLite would move the WAL into it, and fill it up with zeros on the way."""
    path = filled(tmp_path / "rank1.db")
    assert forked.python(KILLED.replace('"spring"', '"summer"'), str(path)).returncode == -9
    whole, wal = path.read_bytes(), Path(f"{path}-wal").read_bytes()
    os.truncate(path, len(whole) - 9 * PAGE)
    for _ in range(2):
        with (
            SqliteStorage(path) as storage,
            pytest.raises(rank1.DamagedError, match="cut short"),
            storage.reading(),
        ):
            pass
    assert path.read_bytes() == whole[: -9 * PAGE]
    assert Path(f"{path}-wal").read_bytes() == wal
    path.write_bytes(whole)
    with SqliteStorage(path) as storage:
        assert storage.check() == []


def test_newer_formats_are_refused(tmp_path: Path) -> None:
    path = filled(tmp_path / "rank1.db")
    with closing(apsw.Connection(str(path))) as connection:
        connection.pragma("user_version", 77)
    storage = SqliteStorage(path)
    for use in uses(storage):
        with pytest.raises(rank1.FormatError, match=rf"has format 77.*up to {FORMAT}.*upgrade"):
            use()
    storage.close()


def old_file(path: Path) -> Path:
    """A file of version 0.1."""
    path.write_bytes(old_logs.kept("log-0.1.db"))
    return path


def test_older_formats_are_migrated_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = old_file(tmp_path / "rank1.db")
    steps = [*migration(sqlite_file.DIALECT, frozenset({"row", "column"})), "CREATE TABLE wrong ("]
    monkeypatch.setattr(sqlite_file, "migration", lambda *_: steps)
    storage = SqliteStorage(path)
    with pytest.raises(rank1.StorageError, match=r"duplicate|incomplete"), storage.reading():
        pass
    with closing(apsw.Connection(str(path))) as connection:
        assert connection.pragma("user_version") == 1
        assert connection.column_metadata("main", "rank1_events", "row")
    monkeypatch.undo()
    with storage.reading() as log:
        assert log.rows("PRAGMA user_version") == [(FORMAT,)]
        study = log.study("uts")
        before = log.page(study.id, limit=1000)
    assert storage.check() == []
    append(storage, study, Event(Kind.SUGGESTED, arm=2**40 + 5, data='{"page": 7}'))
    with storage.reading() as log:
        *others, last = log.page(study.id, limit=1000)
        assert log.read(study.id).arm.tolist() == [event.arm for event in (*before, last)]
    assert list(map(repr, others)) == list(map(repr, before))
    assert (last.arm, last.data) == (2**40 + 5, '{"page": 7}')
    storage.close()


def test_a_process_of_the_older_version_fails_instead_of_misreading(tmp_path: Path) -> None:
    """One that has had the file open since before."""
    path = old_file(tmp_path / "rank1.db")
    with closing(apsw.Connection(str(path))) as older:
        read = 'SELECT "row", "column" FROM rank1_events WHERE study = 1'
        assert older.execute(read).fetchall()
        with SqliteStorage(path) as storage, storage.reading():
            pass
        with pytest.raises(apsw.SQLError, match="no such column"):
            older.execute(read.replace('"row", "column"', "[row], [column]"))
        with pytest.raises(apsw.SQLError, match="has no column"):
            older.execute('INSERT INTO rank1_events (study, seq, "row") VALUES (1, 999, 0)')


def test_an_older_file_that_may_not_be_written_is_read(tmp_path: Path) -> None:
    path = old_file(tmp_path / "rank1.db")
    path.chmod(0o444)
    before = path.read_bytes()
    with SqliteStorage(path) as storage:
        with storage.reading() as log:
            study = log.study("uts")
            events = log.page(study.id, limit=1000)
            assert log.read(study.id).arm.tolist() == [event.arm for event in events]
            assert {event.arm // 4096 for event in events} > {0, 1}
        with pytest.raises(rank1.StorageError, match="isn't writable"):
            append(storage, study, *suggested())
    assert path.read_bytes()[100:] == before[100:]


def test_a_column_that_came_later_has_its_default(tmp_path: Path) -> None:
    path = filled(tmp_path / "rank1.db")
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("ALTER TABLE rank1_events DROP COLUMN data")
        connection.pragma("user_version", FORMAT - 1)
    path.chmod(0o444)  # read as it is, ...
    with SqliteStorage(path) as storage, storage.reading() as log:
        assert {event.data for event in log.page(log.study("spring").id)} == {None}
    path.chmod(0o644)  # ... and with the column, once it may be written
    with SqliteStorage(path) as storage:
        with storage.reading() as log:
            study = log.study("spring")
            assert {event.data for event in log.page(study.id)} == {None}
        append(storage, study, Event(Kind.SUGGESTED, data="{}"))
        with storage.reading() as log:
            assert log.page(study.id, newest=True, limit=1)[0].data == "{}"


def test_an_old_library_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = filled(tmp_path / "rank1.db")
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.51.2")
    with pytest.raises(rank1.StorageError, match=r"SQLite 3\.51\.2 can lose commits"):
        SqliteStorage(path).prepare()
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.100.0")
    with SqliteStorage(path) as storage:
        storage.prepare()


def test_commits_are_forced_onto_the_disk(tmp_path: Path) -> None:
    path = filled(tmp_path / "rank1.db")
    with closing(apsw.Connection(str(path))) as other:
        assert other.pragma("journal_mode") == "wal"
        assert other.pragma("journal_mode", "delete") == "delete"
    with SqliteStorage(path) as storage, storage.transaction(1) as log:
        assert log.rows("PRAGMA journal_mode") == [("wal",)]
        assert log.rows("PRAGMA synchronous") == [(2,)]
        assert log.rows("PRAGMA foreign_keys") == [(1,)]


def test_lookups_go_through_indices(tmp_path: Path) -> None:
    """As SQLite plans the very statements that a reader runs."""
    plans: list[str] = []

    class Explaining(SqliteReader):
        def rows(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
            plan = [
                each[3] for each in super().rows(f"EXPLAIN QUERY PLAN {statement}", *parameters)
            ]
            plans.append("; ".join(step for step in plan if "json_each" not in step))
            return super().rows(statement, *parameters)

    key = "PRIMARY KEY (study=?"
    lookups: list[tuple[Callable[[Explaining], object], str]] = [
        (lambda log: log.page(1, 2, 3), f"{key} AND seq>?"),
        (lambda log: log.page(1, 9, 3, newest=True), f"{key} AND seq>? AND seq<?"),
        (lambda log: log.events(1, [2, 3]), f"{key} AND seq=?"),
        (lambda log: log.outcomes(1, [2, 3]), "rank1_outcomes (study=? AND suggestion=?"),
        (lambda log: log.with_key(1, "k"), "rank1_keys (study=? AND key=?"),
        (lambda log: log.of_unit(1, "u"), "rank1_units (study=? AND unit=?"),
        (lambda log: log.of_units(1, ["u", "v"]), "rank1_units (study=? AND unit=?"),
        (lambda log: log.last(1), key),
        (lambda log: log.study("spring"), key),
        (lambda log: log.pending(1), "rank1_outcomes (study=? AND suggestion=?"),
    ]
    with SqliteStorage(filled(tmp_path / "rank1.db")) as storage, storage.reading() as log:
        reader = Explaining(log._connection)
        for look_up, index in lookups:
            plans.clear()
            look_up(reader)
            (plan,) = plans
            assert index in plan, plan
            assert "SCAN" not in plan, plan


def test_a_backup_under_load(tmp_path: Path) -> None:
    storage = SqliteStorage(filled(tmp_path / "rank1.db"))
    study = log_of(storage)
    stop = threading.Event()
    stored = [study.last_seq]

    def write() -> None:
        while not stop.is_set():
            stored.append(append(storage, study, *suggested(5)) + 4)

    thread = threading.Thread(target=write)
    thread.start()
    seen = []
    try:
        for number in range(5):
            before = stored[-1]
            storage.backup(tmp_path / f"copy-{number}.db")
            with SqliteStorage(tmp_path / f"copy-{number}.db") as copy:
                assert copy.check() == []
                seen.append((before, log_of(copy).last_seq, stored[-1] + 5))
                append(copy, study, *suggested())  # it can be gone on with
    finally:
        stop.set()
        thread.join()
    storage.close()
    assert all(before <= copied <= after for before, copied, after in seen)
    assert len(stored) > 5
    names = {f"copy-{number}.db" for number in range(5)} | {"rank1.db"}
    assert {each.name for each in tmp_path.iterdir()} == names


def log_of(storage: SqliteStorage) -> Any:
    with storage.reading() as log:
        return log.study("spring")


def test_a_backup_replaces_nothing(tmp_path: Path) -> None:
    path = filled(tmp_path / "rank1.db")
    storage = SqliteStorage(path)
    with pytest.raises(rank1.StorageError, match="already exists: name a new file"):
        storage.backup(path)
    (tmp_path / "link.db").symlink_to(tmp_path / "new.db")
    storage.backup(tmp_path / "link.db")
    assert (tmp_path / "new.db").is_file()
    with pytest.raises(rank1.StorageError, match="already exists"):
        storage.backup(tmp_path / "link.db")
    with pytest.raises(rank1.StorageError, match="name a file in a folder that exists"):
        storage.backup(tmp_path / "no" / "copy.db")
    storage.close()


COPY = """
import resource, sys
import rank1
from rank1.studies.storage.sqlite import SqliteReader, SqliteStorage
storage = SqliteStorage(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
try:
    storage.backup(sys.argv[2])
except rank1.StorageError as error:
    print(error)
"""


def test_no_room_for_a_backup(tmp_path: Path) -> None:
    path = filled(tmp_path / "rank1.db")
    run = forked.python(COPY, str(path), str(tmp_path / "copy.db"))
    assert f"no disk space to write the copy '{tmp_path / 'copy.db'}'" in run.stdout, run.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["rank1.db"]


def test_a_damaged_file_gives_no_backup(tmp_path: Path) -> None:
    path = filled(tmp_path / "rank1.db")
    raw = path.read_bytes()
    path.write_bytes(raw[: 20 * PAGE] + b"\x11" * PAGE + raw[21 * PAGE :])
    with (
        SqliteStorage(path) as storage,
        pytest.raises(rank1.StorageError, match=r"rank1\.db.* (isn't complete|is damaged)"),
    ):
        storage.backup(tmp_path / "copy.db")
    path.write_bytes(raw)
    with SqliteStorage(path) as storage:
        with storage.transaction() as log:
            log.rows("DELETE FROM rank1_events WHERE seq = 2")
        with pytest.raises(rank1.StorageError, match=r"rank1\.db.* isn't complete: .* has gaps"):
            storage.backup(tmp_path / "copy.db")
    assert [each.name for each in tmp_path.iterdir()] == ["rank1.db"]


def test_a_file_that_is_replaced_or_moved_while_it_is_open(tmp_path: Path) -> None:
    path = filled(tmp_path / "rank1.db")
    storage = SqliteStorage(path)
    _, write, _, _ = uses(storage)
    write()
    storage.backup(tmp_path / "copy.db")
    for tail in ("", "-wal", "-shm"):
        os.rename(f"{path}{tail}", f"{tmp_path / 'old.db'}{tail}")
    with pytest.raises(rank1.StorageError, match="there is no file"):
        write()
    os.rename(tmp_path / "copy.db", path)
    write()  # a new connection, to what is there now
    with storage.reading() as log:
        assert log.study("spring").last_seq == 4001
    shutil.copy(path, tmp_path / "other.db")
    os.replace(tmp_path / "other.db", path)
    with pytest.raises(
        rank1.StorageError, match="was replaced by another file after it was opened"
    ):
        write()
    storage.close()


def test_a_link_leads_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to("real.db")
    with SqliteStorage(tmp_path / "link.db") as storage:
        storage.create("spring", SPEC)
        assert stat.S_ISREG((tmp_path / "real.db").lstat().st_mode)
    with SqliteStorage(tmp_path / "real.db") as storage, storage.reading() as log:
        assert log.study("spring").name == "spring"


def test_the_working_directory_may_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    with SqliteStorage("rank1.db") as storage:
        monkeypatch.chdir(tmp_path / "other")
        storage.create("spring", SPEC)
    assert (tmp_path / "rank1.db").is_file()


def test_a_half_made_file_is_in_nobodys_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file gets its name when it is whole: a process killed before has made nothing."""
    path = tmp_path / "rank1.db"
    seen = []

    def place(temporary: Path, target: Path) -> None:
        seen.append(target.exists())
        real(temporary, target)

    real = sqlite_file.place
    monkeypatch.setattr(sqlite_file, "place", place)
    with SqliteStorage(path) as storage:
        storage.create("spring", SPEC)
    assert seen == [False]
    with SqliteStorage(path) as storage:
        with monkeypatch.context() as patch:  # as if both had looked at once
            patch.setattr(os.path, "exists", lambda path: False)
            storage.create("autumn", SPEC)
        assert len(uses(storage)) == 4
        with storage.reading() as log:
            assert [study.name for study in log.studies()] == ["autumn", "spring"]


def test_missing_packages() -> None:
    code = """
import sys
sys.modules["psycopg"] = None
import rank1
from rank1.studies.storage import open_storage
try:
    open_storage("postgresql://host/base")
except rank1.MissingPackageError as error:
    print(error)
"""
    run = python("-c", code)
    assert run.stdout.strip() == f"this storage needs psycopg: {extra('postgres')}", run.stderr


def test_storages_of_other_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """By an entry point of the group rank1.storages, whose name is the scheme."""
    from importlib.metadata import EntryPoint, EntryPoints

    point = EntryPoint("mine", f"{__name__}:mine", "rank1.storages")
    monkeypatch.setattr(
        "rank1.studies.storage.entry_points", lambda **given: EntryPoints([point]).select(**given)
    )
    made: Any = open_storage("mine://there", patience=3.0)
    assert made == ("mine://there", 3.0)
    with pytest.raises(rank1.InputError, match="storage must be a file"):
        open_storage("yours://there")


def mine(address: str, patience: float) -> Any:
    return address, patience


def test_an_event_of_an_unknown_kind_is_refused(tmp_path: Path) -> None:
    with SqliteStorage(tmp_path / "rank1.db") as storage:
        study = storage.create("spring", SPEC)
        append(storage, study, Event(99))
        with (
            pytest.raises(rank1.FormatError, match=r"event 2 .* kind 99"),
            storage.reading() as log,
        ):
            log.read(study.id)


FORMAT_1 = Path(__file__).with_name("format-1.sql")


def test_a_file_of_the_first_format(tmp_path: Path) -> None:
    """What was written once can be read for ever."""
    with closing(apsw.Connection(str(tmp_path / "rank1.db"))) as connection:
        connection.execute(FORMAT_1.read_text(encoding="utf-8")).fetchall()
    with SqliteStorage(tmp_path / "rank1.db") as storage:
        assert storage.check() == []
        with storage.reading() as log:
            zoe, spring = log.studies()
            assert (spring.name, spring.uid, spring.last_seq) == ("spring", "cacq2e", 12)
            assert (zoe.name, zoe.last_seq, zoe.retired) == ("Zoë", 1, None)
            events = log.page(spring.id)
            assert log.snapshot(spring.id, "one") == Snapshot(7, "one", b"state")
            assert log.pending(spring.id).tolist() == [7]
        pairs = [(4095, 7), (2, 4095), (1, 1), (0, 0), (0, 0), (0, 0)]
        before = [
            event._replace(arm=4096 * row + column, data=event.data if event.kind == 6 else None)
            for event, (row, column) in zip(EVERYTHING, pairs, strict=True)
        ]
        expected = [*before, *BECAME, Event(Kind.RETIRED, nonce=events[-1].nonce)]
        assert events[0].data == '{"rows": ["a", "b"], "columns": ["\\u65e5\\u672c"]}'
        for event, like in zip(events[1:], expected, strict=True):
            assert same(event, like._replace(seq=event.seq, at=event.at))
        assert spring.retired == events[-1].at == spring.last_at
        append(storage, zoe, *suggested(3))


def test_a_file_that_was_made_smaller_in_good_order(tmp_path: Path) -> None:
    """By SQLite's VACUUM; a file that was cut short is another matter."""
    path = tmp_path / "rank1.db"
    storage = SqliteStorage(path)
    storage.create("spring", SPEC)
    other = apsw.Connection(str(path))
    other.execute("CREATE TABLE more (x)")
    other.execute("INSERT INTO more VALUES (zeroblob(1000000))")
    other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = path.stat().st_size
    with storage.reading() as log:
        assert len(log.studies()) == 1
    other.execute("DROP TABLE more")
    other.execute("VACUUM")
    other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    other.close()
    assert path.stat().st_size < before
    storage.create("summer", SPEC)
    with storage.reading() as log:
        assert [study.name for study in log.studies()] == ["spring", "summer"]
    os.truncate(path, path.stat().st_size - 4096)
    with pytest.raises(rank1.DamagedError, match="cut short"), storage.reading():
        pass
    storage.close()


def test_only_sqlite_opens_the_file(tmp_path: Path) -> None:
    """Closing another descriptor of it would take the locks of the whole process away."""
    path = tmp_path / "rank1.db"
    code = f"""
import os, subprocess, sys
import apsw
from rank1.studies.storage.sqlite import SqliteReader, SqliteStorage
from rank1.testing.storages import SPEC, append, suggested

path = {str(path)!r}
storage = SqliteStorage(path)
study = storage.create("spring", SPEC)
append(storage, study, *suggested(3000))
opened = []
sys.addaudithook(lambda name, given: opened.append(given[0]) if name == "open" else None)
storage._size = os.stat(path).st_size + 2**30  # as if it had become smaller
with storage.transaction(study.id) as log:
    log.append(study.id, suggested())
    storage._size = os.stat(path).st_size + 2**30
    with storage.reading():
        pass
    other = "import apsw, sys; apsw.Connection(sys.argv[1]).execute('BEGIN IMMEDIATE')"
    done = subprocess.run([sys.executable, "-c", other, path], capture_output=True, text=True)
print([each for each in opened if str(each) == path], "BusyError" in done.stderr)
"""
    run = python("-c", code)
    assert run.stdout.strip() == "[] True", run.stderr
