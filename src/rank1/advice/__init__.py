"""Which policy, for this grid, horizon, rate and goal? By simulation of grids that may be like it.

A grid's means are not known beforehand. What is known is its size, what its arms bring on average,
and how much better the best may plausibly be: the lift. So a few grids of rank one with that
average and several lifts are played, for as long as it takes to say something, in seconds.
"""

from __future__ import annotations

from rank1.advice.recommend import Advice, advise

__all__ = ["Advice", "advise"]
