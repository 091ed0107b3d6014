"""The numbers published in the papers."""

from __future__ import annotations

import math
from typing import NamedTuple

__all__ = [
    "RUNS",
    "TABLE_1",
    "TRINH_APPENDIX_N",
    "TRINH_APPENDIX_RUNS",
    "TRINH_CLOSE",
    "TRINH_DRAWN",
    "TRINH_GAMMAS",
    "TRINH_LARGE",
    "TRINH_N",
    "TRINH_RUNS",
    "TRINH_SIZES",
    "Cell",
    "N",
]

#: Every experiment has two million steps and twenty runs.
N = 2_000_000
RUNS = 20


class Cell(NamedTuple):
    """A cell of Table 1: a spike problem, and Rank1Elim's regret on it."""

    table: int
    K: int
    L: int
    p_u: float
    p_v: float
    delta_u: float
    delta_v: float
    regret: float
    se: float


_SIZES = {
    (8, 8): (17491, 384), (8, 16): (29628, 1499), (8, 32): (50030, 1931),
    (16, 8): (28862, 585), (16, 16): (41823, 1689), (16, 32): (62451, 2268),
    (32, 8): (46156, 806), (32, 16): (61992, 2339), (32, 32): (85208, 3546),
}  # fmt: skip
_MEANS = {
    (0.700, 0.700): (17744, 466), (0.700, 0.350): (23983, 594), (0.700, 0.175): (24776, 2333),
    (0.350, 0.700): (22963, 205), (0.350, 0.350): (38373, 71), (0.350, 0.175): (57401, 68),
    (0.175, 0.700): (27440, 2011), (0.175, 0.350): (57492, 67), (0.175, 0.175): (95586, 99),
}  # fmt: skip
_GAPS = {
    (0.20, 0.20): (17653, 307), (0.20, 0.10): (22891, 912), (0.20, 0.05): (30954, 787),
    (0.10, 0.20): (20958, 614), (0.10, 0.10): (33642, 1089), (0.10, 0.05): (45511, 3257),
    (0.05, 0.20): (30688, 482), (0.05, 0.10): (44390, 2542), (0.05, 0.05): (68412, 2312),
}  # fmt: skip

#: The three sub-tables, left to right, each from top to bottom.
TABLE_1 = [
    *(Cell(1, K, L, 0.7, 0.7, 0.2, 0.2, *regret) for (K, L), regret in _SIZES.items()),
    *(Cell(2, 8, 8, p_u, p_v, 0.2, 0.2, *regret) for (p_u, p_v), regret in _MEANS.items()),
    *(Cell(3, 8, 8, 0.7, 0.7, d_u, d_v, *regret) for (d_u, d_v), regret in _GAPS.items()),
]

#: Trinh, Kaufmann, Vernade, Combes (ALT 2020): steps and runs of Figures 2 to 4, of the appendix.
TRINH_N, TRINH_RUNS = 300_000, 100
TRINH_APPENDIX_N, TRINH_APPENDIX_RUNS = 2_000_000, 50

#: Final regret, read off the figures: by K = L, then by policy. u = v = (.75, .25, …).
TRINH_SIZES: dict[int, dict[str, float]] = {
    4: {"uts": 75.7, "osub": 157.5, "kl_ucb": 303.5},
    8: {"uts": 193, "osub": 400, "kl_ucb": 1191},
    16: {"uts": 507, "osub": 1026, "kl_ucb": 4590},
}
#: UTS at K = L = 4, by γ.
TRINH_GAMMAS: dict[float, float] = {2: 75.7, 5: 78.0, 10: 78.3, 15: 80.3, 30: 79.9, math.inf: 80.2}
#: The appendix's larger grids, again .75 over .25.
TRINH_LARGE: dict[int, dict[str, float]] = {
    32: {"uts": 1600, "rank1elim_kl": 37_000, "kl_ucb": 20_300},
    64: {"uts": 4800, "rank1elim_kl": 87_000, "kl_ucb": 80_000},
    128: {"uts": 10_000, "rank1elim_kl": 191_000, "kl_ucb": 316_000},
}
#: The appendix's small gaps, .55 over .5.
TRINH_CLOSE: dict[int, dict[str, float]] = {
    8: {"uts": 2000, "osub": 3300},
    16: {"uts": 4100, "osub": 8500},
    32: {"uts": 10_000, "osub": 24_000},
}
#: The factors of log T of the lower bounds in the figures, by K = L.
TRINH_DRAWN = {4: 5.46, 8: 12.7, 16: 27.3}
