"""Grids from the real world: how often each pair was tried, and how often it paid.

These are only counts, small enough to come with the package. `rank1.fit` says whether a grid has
rank one; `grid_problem` turns it into a problem.
"""

from __future__ import annotations

import csv
import datetime
from dataclasses import dataclass
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from rank1 import checks
from rank1.errors import InputError, InputTypeError
from rank1.problems import Categorical, Problem

__all__ = ["Table", "facebook_ads", "grid_problem", "hillstrom", "upworthy"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

#: Period in which Upworthy's tests were not evenly randomised, according to the archive's authors.
FAULTY = datetime.date(2013, 6, 25), datetime.date(2014, 1, 10)


@dataclass(frozen=True, eq=False)
class Table:
    """A grid of counts, with the names of its lines and its source."""

    name: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    #: K×L, read-only.
    trials: Ints
    successes: Ints
    source: str
    licence: str
    #: A caveat.
    note: str = ""

    @property
    def failures(self) -> Ints:
        """Trials that did not pay."""
        return self.trials - self.successes

    @property
    def rates(self) -> Floats:
        """Successes per trial."""
        return self.successes / self.trials

    def __repr__(self) -> str:
        size = f"{len(self.rows)}×{len(self.columns)}"
        return f"<{self.name} {size}, {self.trials.sum():,} trials>"


def _read(file: str) -> dict[str, list[dict[str, str]]]:
    """The lines of a file by test, or all under ''."""
    text = (resources.files(__name__) / file).read_text("utf-8")
    tables: dict[str, list[dict[str, str]]] = {}
    for line in csv.DictReader(text.splitlines()):
        tables.setdefault(line.get("test", ""), []).append(line)
    return tables


def _table(name: str, lines: list[dict[str, str]], source: str, licence: str, note: str) -> Table:
    rows = tuple(dict.fromkeys(line["row"] for line in lines))
    columns = tuple(dict.fromkeys(line["column"] for line in lines))
    trials = np.zeros((len(rows), len(columns)), np.int64)
    successes = np.zeros_like(trials)
    for line in lines:
        at = rows.index(line["row"]), columns.index(line["column"])
        trials[at], successes[at] = int(line["trials"]), int(line["successes"])
    trials.setflags(write=False)
    successes.setflags(write=False)
    return Table(name, rows, columns, trials, successes, source, licence, note)


def hillstrom(by: str = "history") -> Table:
    """Visits after an e-mail: customer segments × campaigns. Randomised.

    64,000 customers of a shop were sent, at random, an e-mail about men's or about women's
    merchandise, or none; a success is a visit to the site within two weeks. The best campaign is
    the same in all segments, so the grid is hard only because segments differ little.

    Parameters
    ----------
    by
        Rows: `"history"`, seven classes of what a customer spent in the past year, or
        `"recency"`, twelve classes of months since the last purchase.

    Examples
    --------
    >>> from rank1 import datasets
    >>> table = datasets.hillstrom()
    >>> table
    <hillstrom_history 7×3, 64,000 trials>
    >>> table.columns
    ('Mens E-Mail', 'No E-Mail', 'Womens E-Mail')
    >>> table.rates[-1].round(3)
    array([0.263, 0.166, 0.22 ])

    References
    ----------
    Kevin Hillstrom: The MineThatData E-Mail Analytics and Data Mining Challenge. 20 March 2008,
    blog.minethatdata.com. Published for anyone to analyse, without a stated licence. The file here
    has only sums of counts.
    """
    checks.one_of("by", by, ("history", "recency"))
    return _table(
        f"hillstrom_{by}",
        _read(f"hillstrom_{by}.csv")[""],
        "K. Hillstrom, MineThatData E-Mail Analytics and Data Mining Challenge, 2008",
        "none stated; published for anybody to analyse",
        "",
    )


def facebook_ads() -> Table:
    """Clicks on advertisements: 17 interests × 8 groups of age and gender. Not randomised.

    149 million impressions and 26,862 clicks, rates near 0.0002: the regime of small means. The
    network chose whom to show what, so the rates of pairs may not be their effects. Rows are
    numbers of interests, whose meaning was not published.

    Examples
    --------
    >>> from rank1 import datasets
    >>> table = datasets.facebook_ads()
    >>> table, int(table.successes.sum())
    (<facebook_ads 17×8, 148,848,218 trials>, 26862)

    References
    ----------
    "Sales Conversion Optimization" (KAG_conversion_data.csv), Kaggle, loveall/
    clicks-conversion-tracking: one organisation's campaigns, anonymised. The licence is unknown;
    the file here has only sums of counts.
    """
    return _table(
        "facebook_ads",
        _read("facebook_ads.csv")[""],
        "Sales Conversion Optimization (KAG_conversion_data.csv), Kaggle",
        "not known",
        "not randomised: the network chose whom to show what",
    )


def upworthy(sound: bool = False) -> list[Table]:
    """Clicks on articles: 46 tests of headlines × images, 2×2 to 4×2. Randomised.

    All tests of the archive in which every headline was shown with every image. Visitors were
    assigned at random, but the archive's authors found in 2024 that assignment was not even from 25
    June 2013 to 10 January 2014, and advise against using tests from that period to confirm
    anything. Twelve of the 46 were created then (according to their identifiers); their note says
    so.

    Parameters
    ----------
    sound
        Only tests created outside that period.

    Examples
    --------
    >>> from rank1 import datasets
    >>> tables = datasets.upworthy()
    >>> len(tables), len(datasets.upworthy(sound=True))
    (46, 34)
    >>> tables[0]
    <upworthy 51436086220cb800020009a1 2×2, 12,211 trials>

    References
    ----------
    Matias, Munger, Le Quere, Ebersole: The Upworthy Research Archive, a time series of 32,487
    experiments in U.S. media. Scientific Data 2021. osf.io/jd64p, CC BY 4.0. On the randomisation:
    upworthy.natematias.com, June 2024. https://doi.org/10.1038/s41597-021-00934-7
    """
    tables = []
    for test, lines in _read("upworthy.csv").items():
        # The first four bytes of such an identifier are its creation time.
        moment = datetime.datetime.fromtimestamp(int(test[:8], 16), datetime.UTC).date()
        faulty = FAULTY[0] <= moment <= FAULTY[1]
        if sound and faulty:
            continue
        tables.append(
            _table(
                f"upworthy {test}",
                lines,
                "The Upworthy Research Archive (Matias et al. 2021)",
                "CC BY 4.0",
                f"created {moment}" + (", while randomisation was faulty" if faulty else ""),
            )
        )
    return tables


def grid_problem(table: Table) -> Problem:
    """A problem in which each pair pays at its observed rate; it need not have rank one.

    Parameters
    ----------
    table
        A grid in which every pair was tried.

    Examples
    --------
    >>> from rank1 import datasets
    >>> problem = datasets.grid_problem(datasets.hillstrom())
    >>> problem.name_of(problem.best_arm), round(problem.best_mean, 3)
    ('$1,000 +, Mens E-Mail', 0.263)
    """
    if not isinstance(table, Table):
        raise InputTypeError("table", table, "a Table, such as datasets.hillstrom()")
    if (table.trials == 0).any():
        raise InputError("table", table, "one with a trial of every pair")
    problem = Categorical([0.0, 1.0], np.stack([1 - table.rates, table.rates], axis=-1))
    problem.labels = [list(table.rows), list(table.columns)]
    return problem
