"""The golden record: seeded outcomes of every policy, to detect changes in behaviour.

After an intended change: python -m tests.golden
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import rank1
from rank1.policies import POLICIES

FILE = Path(__file__).with_name("golden.json")

PROBLEMS = {
    "spike": rank1.spike(4, 3, 0.3, 0.4, 0.5, 0.5),
    "stars": rank1.Categorical([0, 0.5, 1], [[[0.2, 0.3, 0.5], [0.5, 0.3, 0.2]]] * 2),
    "product": rank1.Product([[0.9, 0.5], [0.3, 0.8, 0.4], [0.6, 0.9]]),
    "gaussian": rank1.Gaussian([0.9, 0.2], [0.3, 0.8], sigma=0.2),
}


def outcomes(name: str, title: str) -> dict[str, Any]:
    """Return regret and recommended arms of a policy on a problem, if it can play it."""
    policy, problem = POLICIES[name](), PROBLEMS[title]
    found: dict[str, Any] = {}
    methods = ("steps", "stages") if policy.leaps else ("steps",)
    for method in methods:
        try:
            result = rank1.simulate(policy, problem, 2000, 3, seed=1, checkpoints=2, method=method)
        except ValueError:  # not every policy supports rewards outside [0, 1]
            continue
        outcome = result.outcomes[0]
        found[f"{title}, {method}"] = {
            "expected": outcome.expected.tolist(),
            "realised": outcome.realised.tolist(),
            "best_arms": [list(levels) for levels in outcome.best_arms],
        }
    return found


def main() -> None:
    """Rewrite the record."""
    now: dict[str, Any] = {name: {} for name in POLICIES}
    for name, title in itertools.product(POLICIES, PROBLEMS):
        now[name] |= outcomes(name, title)
    FILE.write_text(json.dumps({"policies": now}, indent=1) + "\n")


if __name__ == "__main__":
    main()
