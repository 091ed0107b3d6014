"""Segments and channels: which e-mail brings which customers back, on the Hillstrom data.

    python -m examples.marketer [--mails 200000]

64,000 customers of a real shop were sent one of two e-mails, or none. Their rates stand in for
live customers here. The marketer wants to know the best pair, and when to stop.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

import rank1
from rank1.datasets import hillstrom

BATCH = 1000


def play(study: rank1.Study, mails: int, seed: int = 1) -> int:
    """Send mails until the study may stop, checking after each thousand; return how many."""
    table, rng = hillstrom(), np.random.default_rng(seed)
    rows = {label: k for k, label in enumerate(table.rows)}
    columns = {label: k for k, label in enumerate(table.columns)}
    for sent in range(BATCH, mails + 1, BATCH):
        given = study.ask(count=BATCH)
        chances = [
            table.rates[rows[each.levels["row"]], columns[each.levels["column"]]] for each in given
        ]
        visits = rng.random(BATCH) < chances
        study.tell_many((each.id, float(visit)) for each, visit in zip(given, visits, strict=True))
        if study.best().stop:
            return sent
    return mails


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mails", type=int, default=200_000)
    given = parser.parse_args(arguments)
    table = hillstrom()
    with tempfile.TemporaryDirectory() as folder:
        study = rank1.Study.create(
            "mails", table.rows, table.columns, goal="find", min_lift=0.1, seed=1,
            storage=Path(folder, "rank1.db"),
        )  # fmt: skip
        with study:
            sent = play(study, given.mails)
            best, fit = study.best(), study.fit(B=49)
    assert best.leader is not None
    i, j = table.rows.index(best.leader[0]), table.columns.index(best.leader[1])
    print(f"{sent:,} mails: {' × '.join(best.leader)} leads; {best.reason}.")
    print(
        f"In the data {100 * table.rates[i, j]:.1f}% of its customers came back, "
        f"{100 * table.rates.max():.1f}% of the best pair's, and {100 * table.rates.mean():.1f}% "
        "on average over all pairs."
    )
    print(fit.advice)


if __name__ == "__main__":
    main()
