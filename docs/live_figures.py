"""The cost of delay for each policy, and the effects of forgetting: figures of docs/studies.md.

python docs/live_figures.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

import rank1
from rank1.fit import fit, p_value
from rank1.plots import save_figure
from rank1.simulation.feedback import Feedback
from rank1.simulation.series import Series
from rank1.studies.order import ASK, LEARN, Order, Replayer, grids_of
from rank1.studies.spec import make_spec

FOLDER = Path(__file__).parent / "figures"

DELAYS = (0, 10, 100, 1000, 10_000)
PLAYERS: tuple[Any, ...] = (
    rank1.UTS(), rank1.ThompsonSampling(), rank1.OSUB(), rank1.KLUCB(), rank1.UCB1(),
    rank1.Rank1Elim(), rank1.LinUCB(1 / 3),
)  # fmt: skip
N, RUNS = 100_000, 20

HALF_LIVES = (None, 8000.0, 4000.0, 2000.0, 1000.0)
TURN = 25_000


class Turning(NamedTuple):
    """A law whose rows and columns swap places after every `turn` steps."""

    means: Any  # (phases, arms)
    best: Any  # the largest mean of each phase
    turn: int
    steps: Any  # so far

    def draw(self, arm: int, rng: np.random.Generator) -> tuple[float, float]:
        """Draw one reward; its realised regret isn't kept."""
        phase = min(self.steps[0] // self.turn, len(self.means) - 1)
        return (1.0 if rng.random() < self.means[phase, arm] else 0.0), 0.0

    def gap(self, arm: int) -> float:
        """Return the expected regret against the arm that is best now, and end the step."""
        phase = min(self.steps[0] // self.turn, len(self.means) - 1)
        self.steps[0] += 1
        return self.best[phase] - self.means[phase, arm]


class Drift(rank1.Problem):
    """A grid that turns: each phase has another best row and another best column."""

    def __init__(self, K: int, n: int, turn: int) -> None:
        u, v = np.linspace(0.9, 0.3, K), np.linspace(0.8, 0.2, K)
        phases = -(-n // turn)
        self.turn = turn
        shifted = [np.outer(np.roll(u, 3 * k), np.roll(v, 5 * k)) for k in range(phases)]
        self.phases = np.array(shifted)
        self.means = self.phases[0]
        self.description = {"name": "drift", "settings": {"K": K, "turn": turn}}

    @property
    def law(self) -> Turning:
        """Return the compiled law."""
        means = self.phases.reshape(len(self.phases), -1)
        return Turning(means, means.max(axis=1), self.turn, np.zeros(1, np.int64))

    @property
    def given(self) -> tuple[Any, ...]:
        """Return the values that identify this problem."""
        return "drift", self.phases, self.turn


def delays() -> None:
    """Show regret against delay, in a table and a figure."""
    problem = rank1.spike(K=8, L=8, p_u=0.5, p_v=0.5, delta_u=0.2, delta_v=0.2)
    rows = {}
    for policy in PLAYERS:
        rows[policy.label] = [
            rank1.simulate(policy, problem, N, RUNS, seed=1, delay=delay, checkpoints=1)
            .outcomes[0]
            .expected[:, -1]
            for delay in DELAYS
        ]
    print("| policy | " + " | ".join(f"delay {d:,}" for d in DELAYS) + " |")
    print("| --- |" + " --- |" * len(DELAYS))
    figure = Figure(figsize=(8.5, 4.2), layout="constrained")
    axes = figure.subplots()
    for label, found in rows.items():
        means = [one.mean() for one in found]
        errors = [one.std(ddof=1) / np.sqrt(RUNS) for one in found]
        cells = [f"{m:,.0f} ± {e:,.0f}" for m, e in zip(means, errors, strict=True)]
        print(f"| {label} | " + " | ".join(cells) + " |")
        axes.errorbar([d + 1 for d in DELAYS], means, errors, marker="o", label=label)
    axes.set(xscale="log", yscale="log", xlabel="1 + mean delay in steps", ylabel="expected regret")
    figure.legend(loc="outside right center", fontsize=8)
    save_figure(figure, FOLDER / "delay.png")


def drift() -> None:
    """Show the regret of UTS with half-lives, on a grid that turns and on one that doesn't."""
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    panels = figure.subplots(1, 2)
    marks = list(range(1000, N + 1, 1000))
    print("| half-life | turns every 25,000 steps | stays |")
    print("| --- | --- | --- |")
    rows: dict[Any, list[str]] = {half: [] for half in HALF_LIVES}
    for axes, turn in zip(panels, (TURN, N), strict=True):
        problem = Drift(8, N, turn)
        for half in HALF_LIVES:
            feedback = Feedback(forgetting=half)
            series = Series.of(rank1.UTS(), problem, N, marks, 1, feedback=feedback)
            curves = series.play(range(RUNS))["curves"][:, :, 0]
            mean, error = curves[:, -1].mean(), curves[:, -1].std(ddof=1) / np.sqrt(RUNS)
            rows[half].append(f"{mean:,.0f} ± {error:,.0f}")
            label = "never forgets" if half is None else f"half-life {half:,.0f}"
            axes.plot(marks, curves.mean(axis=0), label=label)
        axes.set(xlabel="step", ylabel="expected regret")
        axes.set_title("the grid turns" if turn < N else "the grid stays")
    panels[0].legend(fontsize=8)
    for half, cells in rows.items():
        print(f"| {'never forgets' if half is None else f'{half:,.0f}'} | {' | '.join(cells)} |")
    save_figure(figure, FOLDER / "drift.png")


def fit_power(studies: int = 200, reports: int = 4000) -> None:
    """Show how often `Study.fit` rejects rank one at 5%: if it holds, and if a pair is off."""
    names = [f"line {k}" for k in range(4)]
    grid = np.outer([0.9, 0.8, 0.7, 0.6], [0.8, 0.7, 0.6, 0.5])
    off = grid.copy()
    off[0, 1] += 0.15
    print("| policy | rank one holds | a pair next to the best is off by 0.15 | by the χ² table |")
    print("| --- | --- | --- | --- |")
    for policy in ("uts", "uniform", "thompson"):
        spec = make_spec(
            rows=names, columns=names, goal="earn", policy=policy, horizon=None,
            reward_window=None, on_expiry="drop", default_reward=None, reward_range=(0, 1),
            confidence=0.95, tolerance=0, forgetting=None, seed=1,
        )  # fmt: skip
        cells, table, none = [], 0, np.zeros(0, np.int64)
        order = Order(  # each reward arrives immediately
            np.tile(np.array([ASK, LEARN], np.int8), reports), np.repeat(np.arange(reports), 2),
            np.full(reports, -1), np.ones(reports, np.bool_), none, none,
        )  # fmt: skip
        for means in (grid, off):
            replay = Replayer(spec, grids_of(spec, []), order, means, repetitions=studies)
            rejected = 0
            for number in range(studies):
                found = fit(*replay(means, np.random.default_rng((1, number))))
                rejected += p_value(found, replay, 99, number, double=True) <= 0.05
                table += means is grid and found.chi2_p <= 0.05
            share = rejected / studies
            cells.append(f"{share:.1%} ± {np.sqrt(share * (1 - share) / studies):.1%}")
        print(f"| {policy} | {' | '.join(cells)} | {table / studies:.1%} where it holds |")


def main() -> None:
    """Draw both figures and print the tables."""
    delays()
    drift()
    fit_power()


if __name__ == "__main__":
    main()
