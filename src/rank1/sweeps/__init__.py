"""Sweeps: every policy on every problem of a grid, from one core to a cluster."""

from rank1.sweeps.grid import SweepGrid, grid_of, read_grid
from rank1.sweeps.output import Sweep, load, read_sweep
from rank1.sweeps.play import sweep, write_sweep

__all__ = [
    "Sweep",
    "SweepGrid",
    "grid_of",
    "load",
    "read_grid",
    "read_sweep",
    "sweep",
    "write_sweep",
]
