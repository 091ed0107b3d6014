"""How often `fit()` rejects rank-one grids, whatever happens in the study."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from rank1 import Study


class Case(NamedTuple):
    levels: int
    policy: str
    reports: int
    batch: int
    #: The number of suggestions that are always pending.
    pending: int = 0
    options: dict[str, Any] = {}  # noqa: RUF012
    #: Whether a level is added and another one retired during the study.
    revised: bool = False


CASES = {
    "batches": Case(8, "uts", 4000, 500),
    "top two in batches": Case(4, "top_two", 3000, 500),
    "pending": Case(4, "uts", 2000, 50, pending=200),
    "forgetting": Case(4, "uts", 2000, 100, options={"forgetting": 300.0}),
    "revisions": Case(4, "uts", 2000, 100, revised=True),
    "shares": Case(4, "", 3000, 500),
}
#: The number of studies in each case. In 300 studies of the first, 17 were rejected: 5.7%.
STUDIES = 60


def p_of(case: Case, place: Path, seed: int, B: int = 99) -> float:
    """Return the p-value of a study on a rank-one grid."""
    rng = np.random.default_rng([seed, 7])
    names = [[f"{side}{k}" for k in range(case.levels)] for side in "ab"]
    factors = {name: 0.7 if name.endswith("0") else 0.5 for side in names for name in side}
    factors["a9"] = 0.6
    waiting: list[Any] = []
    told: dict[str, Any] = {"goal": "find"} | ({"policy": case.policy} if case.policy else {})
    rows, columns = names
    with Study.create(
        f"s{seed}", rows, columns, storage=place, seed=seed, **told, **case.options
    ) as study:
        for done in range(0, case.reports, case.batch):
            waiting += study.ask(count=case.batch)
            rng.shuffle(waiting)
            now, waiting = waiting[case.pending :], waiting[: case.pending]
            study.tell_many(
                [(s.id, float(rng.random() < factors[s.row] * factors[s.column])) for s in now]
            )
            if case.revised and done == case.reports // 2:
                study.revise(add={"row": ["a9"]}, retire={"row": ["a1"]})
        found = study.fit(B=B, seed=seed).p_value
    assert found is not None
    return found


@pytest.mark.validate
@pytest.mark.parametrize("name", CASES)
def test_grids_of_rank_one_are_seldom_rejected(name: str, tmp_path: Path) -> None:
    """At most 5% at a level of 5%, plus three standard errors."""
    rejected = sum(p_of(CASES[name], tmp_path / "db", seed) <= 0.05 for seed in range(STUDIES))
    assert rejected <= STUDIES * 0.05 + 3 * math.sqrt(STUDIES * 0.05 * 0.95)
