"""The e-mails of docs/segments.md: does it pay to choose the campaign by past spending?

python docs/segments_example.py
"""

from __future__ import annotations

import tempfile

import numpy as np

import rank1
from rank1 import datasets

TABLE = datasets.hillstrom("history")
#: The first class whose two e-mails are swapped, to see whether the study would notice.
SWAPPED = {"as sent": 7, "swapped above $200": 2, "swapped above $500": 4}


def main() -> None:
    """Record all customers in a random order, in batches of 4,000."""
    customers = [
        (row, column, reward)
        for row, column in np.ndindex(TABLE.rates.shape)
        for reward, count in ((1.0, TABLE.successes), (0.0, TABLE.failures))
        for _ in range(int(count[row, column]))
    ]
    order = np.random.default_rng(1).permutation(len(customers))
    sides = {"history": list(TABLE.rows), "campaign": list(TABLE.columns)}
    for name, first in SWAPPED.items():
        with rank1.Study.create(
            name, sides=sides, given=["history"], goal="find", seed=1,
            storage=tempfile.mkdtemp() + "/mail.db",
        ) as study:  # fmt: skip
            for part in np.array_split(order, len(order) // 4000):
                study.record_many([record(f"c{k}", *customers[k], first) for k in part])
            print(f"{name}: {study.personalise('campaign', by='history').statement}")


def record(
    unit: str, row: int, column: int, reward: float, first: int
) -> tuple[str, int, dict[str, str], float]:
    """Make a customer's record, with the e-mails swapped in the classes from `first` on."""
    shown = 2 - column if row >= first else column
    levels = {"history": TABLE.rows[row], "campaign": TABLE.columns[shown]}
    return unit, 0, levels, reward


if __name__ == "__main__":
    main()
