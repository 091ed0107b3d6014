"""Live studies: durable ask and tell, compared with Optuna; batches; a million events.

python -m benchmarks.bench_studies

On a busy machine a commit waits for a CPU rather than for the disk, for rank1 and Optuna alike. As
root, get the figures of an idle machine with `chrt -f 50 python -m benchmarks.bench_studies`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.bench_storage import MILLION, TRIALS, Cost, each, optuna, show, sync_cost
from benchmarks.timing import cpu_seconds
from rank1 import Study, assign, compiled
from rank1.compiled import kernels

NAMES = [f"line {k}" for k in range(64)]
MEANS = np.outer(np.linspace(0.9, 0.3, 64), np.linspace(0.8, 0.2, 64))


def single(study: Study) -> None:
    study.tell(study.ask().id, 1.0)


def batch(study: Study, count: int) -> None:
    given = study.ask(count=count)
    study.tell_many([(suggestion.id, 1.0) for suggestion in given])


def fill(study: Study, events: int) -> None:
    """Fill a study up to this number of events, with rewards of a rank-one grid."""
    rng, place = np.random.default_rng(1), {name: k for k, name in enumerate(NAMES)}
    while study.counts()["suggestions"] * 2 < events:
        given = study.ask(count=10_000)
        pairs = [[place[label] for label in each.levels.values()] for each in given]
        means = MEANS[tuple(np.array(pairs).T)]
        rewards = (rng.random(len(given)) < means).astype(float).tolist()
        study.tell_many(zip([s.id for s in given], rewards, strict=True))


def least(work: Callable[[], object], repeats: int) -> Cost:
    """Return the minimum cost of several calls."""
    costs = [each(work, 1) for _ in range(repeats)]
    return Cost(min(cost.wall for cost in costs), min(cost.cpu for cost in costs))


def compile_now(*works: Callable[[], object]) -> None:
    """Repeat calls until all code that they run is compiled."""
    compiled.in_background()
    background = kernels._Background.current
    assert background is not None
    for _ in range(2):  # compiled code may call other code that isn't yet
        each(lambda: [work() for work in works], 10)
        while not background.asked <= kernels._kernels.keys():
            time.sleep(0.1)


def alternately(works: Sequence[Callable[[], object]], rounds: int, times: int) -> list[Cost]:
    """Return the minimum cost of each call, measured in turn, so that all meet the same load."""
    costs = [[each(work, times) for work in works] for _ in range(rounds)]
    return [
        Cost(min(one.wall for one in own), min(one.cpu for one in own))
        for own in zip(*costs, strict=True)
    ]


def recorded(place: str) -> None:
    """Print the speed of a new study's records, in a process that has done nothing else."""
    sides = dict.fromkeys(("headline", "image"), NAMES[:4])
    study = Study.create("records", sides=sides, storage=place, goal="find", seed=1)
    for title, begin in (("first 100,000", 0), ("next 100,000", 100)):
        wall, cpu = records(study, 100, begin)
        print(
            f"  records in batches of 1,000, {title:<14} {wall:>10,.0f} records/s, "
            f"{wall / 50_000:.2f} of the target; {cpu / 50_000:.2f} in CPU time (to reach: 1)"
        )


def records(study: Study, batches: int, begin: int) -> tuple[float, float]:
    """Record batches of 1,000 rewarded exposures; returns records a second, by wall and by CPU."""
    rng, wall, cpu = np.random.default_rng(begin), 0.0, 0.0
    for b in range(begin, begin + batches):
        shares, some = study.shares(), []
        for k in range(1000):
            levels = assign(shares, f"{b} {k}")
            mean = 0.05 * 1.3 ** list(levels.values()).count(NAMES[0])
            some.append((f"{b} {k}", shares["version"], levels, float(rng.random() < mean)))
        cost = each(lambda some=some: study.record_many(some), 1)  # type: ignore[misc]
        wall, cpu = wall + cost.wall, cpu + cost.cpu
    return batches * 1000 / wall, batches * 1000 / cpu


def drawn(folder: Path, sync: Cost, uts: Study) -> None:
    """Studies that draw by shares: pairs beside UTS, records, and looks."""
    place = folder / "drawn.db"
    print("the same, goal find: levels drawn by shares")
    study = Study.create("pairs", NAMES, NAMES, storage=place, goal="find", seed=1)
    batch(study, 20_000)
    works = [lambda: single(study), lambda: single(uts)]
    compile_now(*works)
    ours, theirs = alternately(works, 10, TRIALS // 10)
    show("ask and tell, a commit each", ours, 1, sync)
    print(
        f"  find / UTS, in turn: {ours.wall / theirs.wall:.2f} on the clock, "
        f"{ours.cpu / theirs.cpu:.2f} in CPU time (to reach: 1.2)"
    )
    again = [sys.executable, "-m", "benchmarks.bench_studies", str(folder / "records.db")]
    print(subprocess.run(again, check=True, capture_output=True, text=True).stdout, end="")
    for goal, size, target in (
        ("find", 64, 0.05), ("find", 1000, 1.0), ("earn", 64, 0.05), ("earn", 1000, 1.0)
    ):  # fmt: skip
        names, name = [f"{k}" for k in range(size)], f"{goal} {size}"
        study = Study.create(name, names, names, storage=place, goal=goal, seed=1)
        batch(study, 20_000)
        took = cpu_seconds(study.best, 3)
        print(
            f"  best() at {size}×{size}, goal {goal}: {took * 1e3:,.0f} ms of CPU, "
            f"{took / target:.2f} of the target (to reach: 1)"
        )


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        place = folder / "rank1.db"
        sync = sync_cost(folder)
        print(f"a page forced onto this disk: {sync.wall * 1e3:.2f} ms (a sync)")
        print("64×64 pairs, UTS, SQLite, one process")
        study = Study.create("bench", NAMES, NAMES, storage=place, policy="uts", seed=1)
        each(lambda: single(study), 50)
        show("ask and tell as written, a commit each", each(lambda: single(study), 500), 1, sync)
        batch(study, 20_000)
        compile_now(lambda: single(study))
        ours = each(lambda: single(study), TRIALS)
        show("the same, compiled", ours, 1, sync)
        optuna(folder, sync, ours, (" (to reach: 20)", " (to reach: 2)"))
        hundred = each(lambda: batch(study, 100), 100)
        show("the same, in batches of 100", hundred, 100, sync)

        drawn(folder, sync, study)
        few = Study.create("few", NAMES, NAMES, storage=place, policy="uts", seed=1)
        fill(few, 1000)
        many = Study.create("many", NAMES, NAMES, storage=place, policy="uts", seed=1)
        fill(many, MILLION)
        asks = {}
        for title, one in (("1,000", few), (f"{MILLION:,}", many)):
            one.ask()
            asks[title] = least(lambda one=one: each(one.ask, 20), 20)  # type: ignore[misc]
            print(
                f"  an ask at {title:>9} events {asks[title].wall / 20 * 1e3:10.3f} ms"
                f"   (CPU {asks[title].cpu / 20 * 1e6:.0f} µs)"
            )
        small, large = asks.values()
        print(
            f"  ratio {large.wall / small.wall:.2f} on the clock, {large.cpu / small.cpu:.2f} in "
            f"CPU time (to reach: 1.2)"
        )

        def opened() -> None:
            Study.open("many", place).ask()

        many.snapshot()
        with_snapshot = least(opened, 3)
        with many.access.storage.transaction() as log:
            log.rows("DELETE FROM rank1_snapshots")  # type: ignore[attr-defined]
        without = least(opened, 2)
        print(
            f"  opening {MILLION:,} events: {with_snapshot.wall:.2f} s with a snapshot (to reach: "
            f"1), {without.wall:.2f} s without (to reach: 8)"
        )
        begin = time.perf_counter()
        assert many.verify().ok
        print(f"  verifying them: {time.perf_counter() - begin:.1f} s")
        for ending in ("csv", "jsonl", "parquet"):
            with tempfile.TemporaryDirectory() as other:
                module = [sys.executable, "-m", "benchmarks.import_memory"]
                run = subprocess.run(
                    [*module, ending, other, str(MILLION)],
                    check=True, capture_output=True, text=True,
                )  # fmt: skip
            found = json.loads(run.stdout)
            print(
                f"  importing {MILLION:,} distinct rewards, {ending:<7} {found['peak_mb']:>6,} MB "
                f"(to reach: 300), {found['cpu_s']:.1f} s of CPU"
            )


if __name__ == "__main__":
    recorded(sys.argv[1]) if len(sys.argv) > 1 else main()
