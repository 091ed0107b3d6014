"""rank1 bounds."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

from rank1.cli.app import app, print_json, show
from rank1.cli.options import Json, ProblemName, Set, integer, number, option, problem_of

if TYPE_CHECKING:
    from rank1.theory.tables import Note

#: Entries of the document in words; a note begins with its entry.
WORDS = {
    "gaps.min_row": "Smallest row gap",
    "gaps.min_column": "Smallest column gap",
    "gaps.min_sides": "Smallest gaps",
    "gaps, mu": "Gaps and μ",
    "upper.theorem1": "Theorem 1",
    "lower_slope.theorem2": "Theorem 2",
    "lower_slope.theorem3": "Theorem 3",
    "lower_slope.graves_lai": "Graves–Lai",
    "upper_slope.uts": "UTS",
    "upper_slope.osub": "OSUB",
    "identification.rank_one": "T* (rank one)",
    "identification.characteristic_time": "T*",
    "identification.any": "T* (any grid)",
}
#: The statement of each entry.
SAYS = {
    "upper.theorem1": "Rank1Elim's regret is at most",
    "lower_slope.theorem2": "for Bernoulli rewards, regret grows at least like",
    "lower_slope.theorem3": "for Gaussian rewards, regret grows at least like",
    "lower_slope.graves_lai": "the same without relaxation, solved numerically",
    "upper_slope.uts": "UTS's regret grows at most like",
    "upper_slope.osub": "OSUB's regret grows at most like",
}
#: What is known about the grid, for each characteristic time.
KNOWN = {
    "rank_one": "it has rank one",
    "characteristic_time": "an arm that beats its neighbours is the best",
    "any": "nothing",
}
#: The number of different gaps that fit on a line of the table.
MAX_GAPS = 6


@app.command(
    epilog="Example: rank1 bounds --problem spike --set K=8 --set L=8 --set p_u=0.7 --set p_v=0.7 "
    "--set delta_u=0.2 --set delta_v=0.2 --n 2e6"
)
def bounds(
    problem: ProblemName,
    set_: Set = None,
    n: Annotated[int, integer("Number of steps.")] = 2_000_000,
    policy: Annotated[
        list[str] | None,
        option(
            "Play this policy until it stops, and compare its pulls. Can be repeated.",
            "--policy",
            metavar="POLICY",
        ),
    ] = None,
    confidence: Annotated[float, number("Confidence of the policies' searches.")] = 0.95,
    runs: Annotated[int, integer("Number of searches per policy.")] = 100,
    json_: Json = False,
) -> None:
    """Print how hard a problem is, and the theoretical bounds on regret and pulls."""
    from rank1 import checks, theory

    chosen = problem_of(problem, set_)
    facts = theory.table(chosen, checks.integer("n", n, 1))
    if policy:
        facts["measured"] = _measured(chosen, policy, confidence, runs, facts["identification"])
    if json_:
        print_json(facts)
    else:
        for part in _shown(chosen, facts):
            show(part)


def _measured(
    problem: Any, policies: list[str], confidence: float, runs: int, times: dict[str, Any]
) -> dict[str, Any]:
    """The pulls of searches, and as multiples of each bound."""
    from rank1 import simulation
    from rank1.settings import parse_policy

    chosen = [parse_policy(text) for text in policies]
    found = simulation.identify(chosen, problem, confidence, runs=runs, shuffle=True)
    unit = math.log(1 / (1 - found.confidence))
    entries = []
    for each in found.searches:
        mean, all_stopped = float(each.pulls.mean()), bool(each.stopped.all())
        over = {name: mean / (time * unit) if time else None for name, time in times.items()}
        entries.append({
            "policy": each.label,
            "stopped": int(each.stopped.sum()),
            "pulls": mean,
            "over_bound": over if all_stopped else dict.fromkeys(over),
        })  # fmt: skip
    return {"confidence": found.confidence, "runs": found.runs, "policies": entries}


def _shown(problem: Any, facts: dict[str, Any]) -> list[Any]:
    from rank1.tables import table

    two, levels = len(problem.grid.sizes) == 2, problem.grid.levels(problem.best_arm)
    best = f"best {'pair' if two else 'arm'} {levels}, mean {problem.best_mean:.4g}"
    title = f"{problem.description['name']} {problem.grid}, {best}"
    hardness = table(title=title)
    hardness.show_header = False
    gaps = facts["gaps"]
    sides = ["row", "column"] if two else [f"side {side}" for side in range(len(levels))]
    for side, each, least in zip(sides, gaps["sides"], gaps["min_sides"], strict=True):
        hardness.add_row(f"{side} gaps", _counted(each))
        hardness.add_row(f"smallest {side} gap above 0", _short(least))
    smaller = "smaller of the average row and column" if two else "smallest of the sides' averages"
    hardness.add_row(f"μ, the {smaller}", _short(facts["mu"]))

    n = facts["n"]
    bounds = table("", "statement", "+× log n", f"+at n = {n:,}")
    for entry, says in SAYS.items():
        kind, name = entry.split(".")
        value = facts[kind][name]
        slope = value if kind.endswith("slope") else None
        total = value if slope is None else slope * math.log(n)
        bounds.add_row(WORDS[entry], says, _short(slope), "–" if total is None else f"{total:,.2f}")

    measured = facts.get("measured", {"confidence": 0.95, "policies": []})
    alpha = 1 - measured["confidence"]
    find = table(
        "", "what is known about the grid", "+× log(1/α)", f"+at α = {alpha:.4g}",
        *(f"+{each['policy']} ÷ bound" for each in measured["policies"]),
        title="Pulls to name the best arm with error α: at least",
    )  # fmt: skip
    for name, known in KNOWN.items():
        time = facts["identification"][name]
        pulls = "–" if time is None else f"{time * math.log(1 / alpha):,.0f}"
        ratios = [each["over_bound"][name] for each in measured["policies"]]
        shown = ["–" if ratio is None else f"{ratio:.2f}" for ratio in ratios]
        find.add_row(WORDS[f"identification.{name}"], known, _short(time), pulls, *shown)

    asymptotic = (
        "The factors of log n hold as n → ∞, and T* holds as α → 0: at a given n or α, regret or "
        "pulls may be lower."
    )
    return [hardness, bounds, find, *_in_words(facts["notes"]), asymptotic]


def _short(value: float | None) -> str:
    return "–" if value is None else f"{value:.6g}"


def _counted(gaps: list[float]) -> str:
    """Group equal gaps, as 7 × 0.2."""
    counts = Counter(f"{gap:.4g}" for gap in sorted(gaps))
    shown = [f"{count} × {gap}" for gap, count in list(counts.items())[:MAX_GAPS]]
    if len(counts) > MAX_GAPS:
        rest = len(gaps) - sum(list(counts.values())[:MAX_GAPS])
        shown.append(f"and {rest} more, up to {max(gaps):.4g}")
    return ", ".join(shown)


def _in_words(notes: list[Note]) -> list[str]:
    """Notes for people, grouped by their text."""
    about: dict[str, list[str]] = {}
    for note in notes:
        about.setdefault(note.text, []).append(WORDS[note.entry])
    return [f"{', '.join(entries)}: {text}." for text, entries in about.items()]
