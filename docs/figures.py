"""Draw the figures of the documentation: make docs-figures."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import bets_figure
import gallery_figures
import live_figures
import numpy as np
import which_policy

import rank1
from rank1.plots import save_figure

FOLDER = Path(__file__).parent / "figures"
ROOT = Path(__file__).parent.parent


def main() -> None:
    """Draw all figures."""
    FOLDER.mkdir(exist_ok=True)
    problem = rank1.spike(K=16, L=16, p_u=0.7, p_v=0.7, delta_u=0.2, delta_v=0.2)
    result = rank1.simulate(
        [rank1.Rank1Elim(), rank1.Uniform()], problem, n=2_000_000, runs=20, seed=1, shuffle=True
    )
    save_figure(result.plot().figure, FOLDER / "regret.png")

    uneven = rank1.Bernoulli(u=np.linspace(0.3, 0.9, 10), v=np.linspace(0.8, 0.2, 6))
    result = rank1.simulate(rank1.Rank1Elim(), uneven, n=2_000_000, runs=1, seed=1)
    save_figure(result.trace(run=0).plot(), FOLDER / "trace.png")

    figures_of_commands()
    bets_figure.main()
    gallery_figures.main()
    live_figures.main()
    which_policy.main()
    phase_diagrams()


def figures_of_commands() -> None:
    """Run the plotting commands that the pages on stopping and on policies show."""
    pages = [FOLDER.parent / "stopping.md", *sorted((FOLDER.parent / "policies").glob("*.md"))]
    for page in pages:
        text = page.read_text().replace("\\\n", " ")
        for command in re.findall(r"^rank1 ((?:simulate|identify) .*--plot docs/.*)$", text, re.M):
            run_command(command)


def run_command(command: str) -> None:
    """Run a command exactly as a page shows it."""
    subprocess.run([sys.executable, "-m", "rank1", *shlex.split(command)], cwd=ROOT, check=True)


def phase_diagrams() -> None:
    """Run the commands that the pages on sweeps and on choosing a policy show."""
    for page, name in (("sweeps.md", "phase"), ("which-policy.md", "which-policy")):
        text = (FOLDER.parent / page).read_text()
        for command in re.findall(rf"^rank1 ((?:sweep|plot) .*{name}.*)$", text, re.M):
            run_command(command)


if __name__ == "__main__":
    main()
