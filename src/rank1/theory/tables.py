"""Everything known about a problem, as plain values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from rank1 import checks
from rank1.documents import to_document
from rank1.errors import InputError, InputTypeError
from rank1.problems import Gaussian, Means, Problem, Product, RankOne
from rank1.theory.bounds import lower_bound, unimodal_bound, upper_bound
from rank1.theory.characteristic import characteristic_time
from rank1.theory.gaps import hardness
from rank1.theory.graves_lai import graves_lai
from rank1.theory.rank_one_time import MAX_DIFFERENT, is_quickly_solved

__all__ = ["Note", "table"]

#: Grids with more arms than this get no numerical solution in a table.
MAX_SOLVED = 128 * 128


class Note(str):
    """A sentence that begins with the entry it is about; both are attributes as well.

    >>> note = Note("mu", "is of the averages")
    >>> note, note.entry, note.text
    ('mu: is of the averages', 'mu', 'is of the averages')
    """

    entry: str
    text: str

    def __new__(cls, entry: str, text: str) -> Note:
        """Make the sentence."""
        note = super().__new__(cls, f"{entry}: {text}")
        note.entry, note.text = entry, text
        return note


def table(problem: Problem, n: int) -> dict[str, Any]:
    """Hardness, upper and lower bounds of a problem, ready to print or to write as JSON.

    Parameters
    ----------
    problem
        Any problem. What no theorem covers is None, and a note says why.
    n
        Number of steps, for the upper bound.

    Returns
    -------
    dict
        - `gaps`: `sides` and `min_sides`, for each side; for two sides also `rows`, `columns`,
          `min_row`, `min_column`
        - `mu`
        - `upper`: `theorem1`, a bound on Rank1Elim's regret in n steps, for two sides
        - `lower_slope`: `theorem2`, `theorem3`, for two sides, and `graves_lai`, the same
          programme without the relaxation; factors of log n
        - `upper_slope`: `uts` and `osub`, the factors of log n in these policies' proven regret:
          both attain Theorem 2, see `unimodal_bound`
        - `identification`: `characteristic_time`, T*: naming the best arm with error α takes at
          least about T*·log(1/α) pulls if the grid is known to be unimodal; `rank_one` and `any`,
          the same if it is known to have rank one, and if nothing is known about it
        - `n`
        - `notes`: sentences that begin with the entry they are about, see `Note`

        No number is infinite or NaN.

    Examples
    --------
    >>> import rank1
    >>> from rank1 import theory
    >>> facts = theory.table(rank1.Gaussian([0.75, 0.5], [0.75, 0.25], sigma=1.0), n=1000)
    >>> facts["gaps"]
    {'sides': [[0.0, 0.25], [0.0, 0.5]], 'min_sides': [0.25, 0.5], 'rows': [0.0, 0.25], 'columns': [0.0, 0.5], 'min_row': 0.25, 'min_column': 0.5}
    >>> {name: value and round(value, 6) for name, value in facts["lower_slope"].items()}
    {'theorem2': None, 'theorem3': 16.0, 'graves_lai': 16.0}
    >>> facts["notes"][1]
    'lower_slope.theorem2: is for Bernoulli rewards'

    References
    ----------
    Those of the functions that compute the entries, and:

    Trinh, Kaufmann, Vernade, Combes: Solving Bernoulli Rank-One Bandits with Unimodal Thompson
    Sampling. ALT 2020. (UTS attains Theorem 2; rank-one grids are unimodal.)
    https://arxiv.org/abs/1912.03074
    """  # noqa: E501
    hard = hardness(problem)
    n = checks.integer("n", n, 1)
    notes: list[Note] = []
    infinite = "mu = 0, and 1/mu² is a factor" if hard.mu == 0 else "too large for a double"

    def entry(name: str, compute: Callable[[], float], inapplicable: str | None = None) -> Any:
        """A finite value, or None and a note."""
        try:
            value = compute() if inapplicable is None else None
        except (TypeError, ValueError, RuntimeError) as reason:
            value, inapplicable = None, str(reason)
            if isinstance(reason, InputError | InputTypeError) and reason.value is problem:
                inapplicable = reason.remedy
        if value is not None and not math.isfinite(value):
            value, inapplicable = None, f"infinite: {infinite}"
        if inapplicable is not None:
            notes.append(Note(name, inapplicable))
        return value

    if not isinstance(problem, RankOne):
        text = "of the averages over each level's arms; this grid has no factors"
        notes.append(Note("gaps, mu", text))
    sides, least = [side.tolist() for side in hard.gaps], to_document(hard.min_gaps)
    gaps: dict[str, Any] = {"sides": sides, "min_sides": least}
    if len(sides) == 2:
        gaps |= {"rows": sides[0], "columns": sides[1], "min_row": least[0], "min_column": least[1]}
    for side, value in enumerate(least):
        if value is None and len(sides) == 2:
            name = ("row", "column")[side]
            notes.append(Note(f"gaps.min_{name}", f"no {name} has a positive gap"))
        elif value is None:
            notes.append(Note("gaps.min_sides", f"side {side} has no positive gap"))

    theorem1 = entry("upper.theorem1", lambda: upper_bound(problem, n))
    trivial = n * (problem.best_mean - problem.lowest_mean)
    if theorem1 is not None and theorem1 > trivial:
        text = f"above the trivial bound, n times the largest gap: {trivial:.6g}"
        notes.append(Note("upper.theorem1", text))

    not_bernoulli = not_proven = None
    if isinstance(problem, Means):
        not_bernoulli = not_proven = "is for grids of rank one, of products of factors"
    elif not isinstance(problem, Product):
        not_bernoulli, not_proven = "is for Bernoulli rewards", "is proven for Bernoulli rewards"
    unmet = {
        "theorem2": not_bernoulli,
        "theorem3": None if isinstance(problem, Gaussian) else "is for Gaussian rewards",
    }
    if isinstance(problem, Means) and len(sides) != 2:
        unmet["theorem2"] = f"{not_bernoulli}, and for two sides"
    slopes = {
        name: entry(f"lower_slope.{name}", lambda: lower_bound(problem), reason)
        for name, reason in unmet.items()
    }
    if isinstance(problem, Gaussian) and problem.best_mean == 1:
        text = (
            "no model with factors in [0, 1] has a mean above 1, so the theorem's proof needs "
            "models with larger means here"
        )
        notes.append(Note("lower_slope.theorem3", text))

    def solve() -> float:
        unimodal_bound(problem)  # raises if it doesn't apply
        if problem.arms <= MAX_SOLVED:
            return graves_lai(problem).value
        asked = f"one of at most {MAX_SOLVED:,} arms to be solved numerically"
        raise InputError("problem", problem, asked, "the closed form gives the same value")

    def solve_time() -> float:
        if isinstance(problem, RankOne) and not is_quickly_solved(problem):
            asked = f"one of at most {MAX_DIFFERENT:,} different arms to be solved numerically"
            raise InputError("problem", problem, asked)
        return characteristic_time(problem, "rank_one").value

    solved = entry("lower_slope.graves_lai", solve)
    time = entry("identification.characteristic_time", lambda: characteristic_time(problem).value)
    return {
        "gaps": gaps,
        "mu": hard.mu,
        "upper": {"theorem1": theorem1},
        "lower_slope": {**slopes, "graves_lai": solved},
        "upper_slope": {
            name: entry(f"upper_slope.{name}", lambda: unimodal_bound(problem), not_proven)
            for name in ("uts", "osub")
        },
        "identification": {
            "characteristic_time": time,
            "rank_one": entry("identification.rank_one", solve_time),
            "any": entry("identification.any", lambda: characteristic_time(problem, "any").value),
        },
        "n": n,
        "notes": notes,
    }
