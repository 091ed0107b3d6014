"""Which policy to use for a grid, horizon, rate and goal, from simulations of plausible grids.

A grid's means are unknown beforehand. Known are its size, the average reward of its arms, and how
much better the best may plausibly be: the lift. So this simulates a few grids of rank one with that
average and several lifts, within seconds.
"""

from __future__ import annotations

from rank1.advice.recommend import Advice, advise

__all__ = ["Advice", "advise"]
