"""Sweeps: every policy on every problem of a grid, from one core to a cluster."""

from rank1.sweeps.engine import ENGINES, Cell, Failure, Setup
from rank1.sweeps.grid import Grid, Series, grid_of, read_grid
from rank1.sweeps.output import Sweep, read_sweep, write_sweep
from rank1.sweeps.summary import summary, winners
from rank1.sweeps.sweep import Plan, plan, play

__all__ = [
    "ENGINES",
    "Cell",
    "Failure",
    "Grid",
    "Plan",
    "Series",
    "Setup",
    "Sweep",
    "grid_of",
    "plan",
    "play",
    "read_grid",
    "read_sweep",
    "summary",
    "winners",
    "write_sweep",
]
