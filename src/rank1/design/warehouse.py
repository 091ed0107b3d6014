"""The query that turns a table of exposures into the counts that `judge` takes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from rank1 import checks
from rank1.design.share_document import SharesDocument
from rank1.errors import InputError

__all__ = ["DIALECTS", "counts_sql"]


class Dialect(NamedTuple):
    """How an engine writes names."""

    quote: str
    #: Whether a name without quotes means the same as with them, if it is in lower case.
    lower: bool = True


DIALECTS = {
    "duckdb": Dialect('"'),
    "postgres": Dialect('"'),
    "spark": Dialect("`"),
    "bigquery": Dialect("`"),
    # Without quotes, names are in upper case there.
    "snowflake": Dialect('"', lower=False),
}

#: What `rank1 judge sql` calls the number of a unit's exposure.
VISIT = "rank1_visit"


def counts_sql(
    versions: Mapping[str, Any],
    dialect: str = "duckdb",
    *,
    table: str = "exposures",
    unit: str = "unit",
    time: str = "time",
    where: str | None = None,
) -> str:
    """The query that counts exposures by version, levels and reward; each unit once.

    Parameters
    ----------
    versions
        The document of the shares, as for `judge`.
    dialect
        One of `DIALECTS`.
    table
        The table of exposures, with the columns version, one for each side, and reward, which is
        NULL while it is pending. It may be anything that can follow FROM.
    unit, time
        The columns that say whom it was shown to, and when.
    where
        A condition on the exposures that count, such as that the time for their rewards is over.

    Examples
    --------
    >>> from rank1.design import first_shares
    >>> print(counts_sql(first_shares({"headline": ["A", "B"]})))
    SELECT "version", "headline", "reward", COUNT(*) AS "count"
    FROM (
      SELECT *, ROW_NUMBER() OVER (
        PARTITION BY "unit" ORDER BY "time", "version", "headline", "reward"
      ) AS rank1_visit
      FROM exposures
    ) AS shown
    WHERE rank1_visit = 1 AND "reward" IS NOT NULL
    GROUP BY "version", "headline", "reward"
    ORDER BY "version", "headline", "reward"
    """
    checks.one_of("dialect", dialect, DIALECTS)
    sides = SharesDocument.of(versions).sides
    for name, text in (("table", table), ("unit", unit), ("time", time)):
        if not isinstance(text, str) or not text.strip():
            raise InputError(name, text, "a name")
    of = DIALECTS[dialect]
    columns = ["version", *sides, "reward"]
    read = [_read(of, column) for column in columns]
    chosen = [_read_as(of, column) for column in columns]
    groups = ", ".join(read)
    rest = f" AND ({where})" if where else ""
    order = ", ".join([_read(of, time), *read])
    return (
        f"SELECT {', '.join(chosen)}, COUNT(*) AS {_quoted(of, 'count')}\n"
        "FROM (\n"
        "  SELECT *, ROW_NUMBER() OVER (\n"
        f"    PARTITION BY {_read(of, unit)} ORDER BY {order}\n"
        f"  ) AS {VISIT}\n"
        f"  FROM {table}\n"
        ") AS shown\n"
        f"WHERE {VISIT} = 1 AND {_read(of, 'reward')} IS NOT NULL{rest}\n"
        f"GROUP BY {groups}\n"
        f"ORDER BY {groups}"
    )


def _quoted(dialect: Dialect, name: str) -> str:
    quote = dialect.quote
    if quote == "`" and ("`" in name or "\\" in name):
        raise InputError("side", name, "a name without ` and \\, for this dialect")
    return quote + name.replace(quote, 2 * quote) + quote


def _read(dialect: Dialect, name: str) -> str:
    """A column of the table."""
    if not dialect.lower and re.fullmatch("[a-z_][a-z0-9_]*", name):
        return name
    return _quoted(dialect, name)


def _read_as(dialect: Dialect, name: str) -> str:
    """A column of the table, under its own name in the result."""
    read, quoted = _read(dialect, name), _quoted(dialect, name)
    return read if read == quoted else f"{read} AS {quoted}"
