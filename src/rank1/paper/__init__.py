"""The papers' experiments, one file per artefact. To add one, write a file and add its name here.

The module of an artefact has

- a docstring whose first line is its heading in the report;
- `compute(options)`: a generator that yields the series it needs, with their numbers of runs, gets
  their outcomes, and returns its document, plain values that `--json` prints. Runs are stored cell
  by cell in `options.store`, so an interrupted command continues where it stopped. `claims` holds
  the sentences of the paper that it tests, see `rank1.paper.claims`.
- `show(document)`: what to print besides the claims, as text and rich tables.
- `draw(document)`: figures by name, if it has any; they are saved as PNG and SVG.

The command line prints and saves these, and `rank1.paper.report` makes a page of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, NamedTuple

__all__ = ["ARTEFACTS", "PAPERS", "Options", "Paper"]


class Paper(NamedTuple):
    """A paper, and its artefacts."""

    title: str
    authors: str
    where: str
    artefacts: tuple[str, ...]


#: Each is a part of the page; the first is the default.
PAPERS = (
    Paper(
        "Stochastic Rank-1 Bandits",
        "Katariya, Kveton, Szepesvári, Vernade, Wen",
        "AISTATS 2017",
        ("table1", "scaling", "theorems", "figure2", "bets", "discussion", "figure3"),
    ),
    Paper(
        "Solving Bernoulli Rank-One Bandits with Unimodal Thompson Sampling",
        "Trinh, Kaufmann, Vernade, Combes",
        "ALT 2020",
        ("trinh2020",),
    ),
)
#: All artefacts, in this order.
ARTEFACTS = tuple(name for paper in PAPERS for name in paper.artefacts)


class Options(NamedTuple):
    """The command line's options."""

    runs: int = 20
    n: int = 2_000_000
    seed: int = 1
    jobs: int = 1
    #: Where runs are played, and the address of a cluster: see `rank1.simulate`.
    backend: str = "threads"
    address: str | None = None
    out: Path = Path("report")
    progress: bool = False
    #: A short run; everything made from it is labelled.
    quick: bool = False
    #: The folder of MovieLens 1M.
    data_dir: Path | None = None
    #: Whether the terms of MovieLens were accepted, so that it may be downloaded.
    accept_licence: bool = False
    #: For figure3, see `rating_problem`: the value of stars and their standard deviation, steps of
    #: the completion, and the seed of the block that is played.
    scale: str = "unit"
    sigma: float | Literal["estimated"] = 0.98
    iterations: int = 50
    block_seed: int = 1
    #: The command line itself, which documents and the page quote.
    command: str = ""

    @property
    def store(self) -> Path:
        """Where finished cells are stored."""
        return self.out / "cells"

    @property
    def label(self) -> str:
        """The label on every table, figure and page of a quick run.

        >>> Options(n=200_000, runs=5, quick=True).label
        'quick run: n = 200,000, 5 runs'
        >>> Options().label
        ''
        """
        return f"quick run: n = {self.n:,}, {self.runs} runs" if self.quick else ""
