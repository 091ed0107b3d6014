"""Levels that aren't recorded as often as their shares say."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rank1
from rank1.design import Design, Version, first_shares, first_version, judge, uneven
from rank1.design.absences import RARE, evidence
from rank1.studies.storage.sqlite import SqliteReader

DESIGN = Design([2, 3])
EQUAL = first_version(DESIGN)
SHARES = (
    ((0.5, 0.5), (1 / 3, 1 / 3, 1 / 3)),
    ((0.8, 0.2), (0.1, 0.6, 0.3)),
    ((0.98, 0.02), (0.0, 0.5, 0.5)),  # one level is no longer drawn
)
VERSIONS = {
    number: Version(number, tuple(map(np.array, shares)), (0, 0), EQUAL.fit, EQUAL.living)
    for number, shares in enumerate(SHARES)
}


def found(version: Any, arm: Any, pulls: Any = None) -> Any:
    version, arm = np.asarray(version), np.asarray(arm)
    pulls = np.ones(len(arm)) if pulls is None else np.asarray(pulls, float)
    return uneven(DESIGN, VERSIONS, version, arm, pulls)


def drawn(rng: np.random.Generator, version: int, count: int) -> Any:
    """Draw arms by the shares of a version."""
    first, second = (rng.choice(len(s), count, p=s) for s in SHARES[version])
    return first * 3 + second


def test_the_evidence_is_fair() -> None:
    """Its expectation is 1 if nobody is missing, even if the next version depends on the draws."""
    total = 0.0
    for arms in itertools.product(range(6), repeat=3):
        versions = [0, 1 + arms[0] % 2, 1 + (arms[0] + arms[1]) % 2]
        chances = [
            SHARES[v][0][arm // 3] * SHARES[v][1][arm % 3]
            for v, arm in zip(versions, arms, strict=True)
        ]
        sides = evidence(DESIGN, VERSIONS, np.array(versions), np.array(arms), np.ones(3))
        every = np.exp(np.concatenate([each.log_e for each in sides]))
        total += math.prod(chances) * every
    assert total == pytest.approx(1.0)


def test_nobody_is_missing() -> None:
    """150 tests of 8,000 visitors, with 40 looks at each; 0.15 false alarms are the limit."""
    rng, alarms = np.random.default_rng(1), 0
    for _ in range(150):
        counts: dict[tuple[int, int], int] = {}
        alarm = False
        for look in range(40):
            version = look % 3
            for arm, n in enumerate(np.bincount(drawn(rng, version, 200), minlength=6)):
                counts[version, arm] = counts.get((version, arm), 0) + int(n)
            keys = np.array(list(counts))
            alarm |= found(keys[:, 0], keys[:, 1], list(counts.values())) is not None
        alarms += alarm
    assert alarms <= 1  # two have a probability of 0.01 at most
    assert RARE == 1000


@pytest.mark.parametrize(("missing", "visitors"), [(0.3, 2_000), (0.1, 8_000), (0.03, 90_000)])
def test_visitors_of_one_level_are_missing(missing: float, visitors: int) -> None:
    rng = np.random.default_rng(2)
    version = np.repeat([0, 1], visitors // 2)
    arm = np.concatenate([drawn(rng, each, visitors // 2) for each in (0, 1)])
    seen = (arm % 3 != 1) | (rng.random(len(arm)) >= missing)
    alarm = found(version[seen], arm[seen])
    assert (alarm.side, alarm.level) == (1, 1)
    assert alarm.recorded == (arm[seen] % 3 == 1).sum() < alarm.expected
    assert alarm.total == seen.sum()
    warning = alarm.warning("image", "y")
    assert warning.startswith(f"image y was recorded {alarm.recorded:,} times in {alarm.total:,}, ")
    assert "fewer than" in warning
    assert found(version, arm) is None


def test_no_exposures() -> None:
    assert found(np.zeros(0, int), np.zeros(0, int)) is None


@pytest.mark.parametrize("window", [None, 100.0])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_a_study_warns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: float, window: float | None
) -> None:
    """Of level y, some visitors who don't buy are never recorded, so that it seems better.

    With a window, purchases are reported at once and the others when their windows close, so the
    reports alone are never in proportion to the shares.
    """
    now = [1e9]
    monkeypatch.setattr(SqliteReader, "clock", lambda self: now[0])
    default = {"reward_window": window, "on_expiry": "default"}
    waiting: dict[str, Any] = {} if window is None else default
    rng, warnings = np.random.default_rng(3), set()
    with rank1.Study.create(
        "shop", sides={"image": ["x", "y"]}, goal="find", storage=tmp_path / "db", seed=1, **waiting
    ) as study:
        for begin in range(0, 6000, 1000):
            shares, records, rewards = study.shares(), [], []
            for k in range(begin, begin + 1000):
                levels = rank1.assign(shares, f"u{k}")
                better = levels["image"] == "y" and not missing
                bought = rng.random() < (0.5 if better else 0.2)
                if levels["image"] == "y" and not bought and rng.random() < missing:
                    continue
                reward = 1.0 if bought else 0.0 if window is None else None
                records.append((f"u{k}", shares["version"], levels, reward))
                if bought:
                    rewards.append((f"u{k}", 1.0))
            study.record_many(records)
            if window is not None:
                study.reward_many(rewards)
            now[0] += 60
            best = study.best()
            warnings |= {each.partition(" times")[0] for each in best.warnings}
    assert (best.totals["expired"] > 1000) == (window is not None)
    assert (best.totals["pending"] > 100) == (window is not None)
    assert bool(warnings) == (missing > 0)
    assert all(each.startswith("image y was recorded") for each in warnings)


def test_a_judgement_warns() -> None:
    shares = first_shares({"image": ["x", "y"]}, salt="s")
    table = [
        {"version": 1, "image": level, "reward": reward, "count": n}
        for level, reward, n in [("x", 1, 400), ("x", 0, 1600), ("y", 1, 400), ("y", 0, 1200)]
    ]
    (warning,) = judge(shares, table).warnings
    assert warning.startswith("image y was recorded 1,600 times in 3,600, fewer than the 1,800 ")
    table[-1]["count"] = 1600
    assert judge(shares, table).warnings == []
