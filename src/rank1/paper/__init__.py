"""The paper's experiments: one file an artefact. A new one is a new file and a name here.

The module of an artefact has

- `compute(options)`: its document, plain values that `--json` prints. What takes long is kept cell
  by cell in `options.store`, so that an interrupted command goes on where it stopped.
- `show(document)`: what to print, as text and rich tables.
- `draw(document)`: figures by name; they are saved as PNG and SVG.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

__all__ = ["ARTEFACTS", "Options"]

#: In the order of the paper.
ARTEFACTS = ("table1",)


class Options(NamedTuple):
    """What the command line says."""

    runs: int = 20
    n: int = 2_000_000
    seed: int = 1
    jobs: int = 1
    out: Path = Path("report")
    progress: bool = False

    @property
    def store(self) -> Path:
        """Where finished cells are kept."""
        return self.out / "cells"
