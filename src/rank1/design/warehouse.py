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
    """How an SQL engine quotes names."""

    quote: str
    #: Whether a lower-case name means the same with and without quotes.
    lower: bool = True


DIALECTS = {
    "duckdb": Dialect('"'),
    "postgres": Dialect('"'),
    "spark": Dialect("`"),
    "bigquery": Dialect("`"),
    # Snowflake converts names without quotes to upper case.
    "snowflake": Dialect('"', lower=False),
}

#: The column in which `rank1 judge sql` numbers the exposures of a unit.
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
    """Return a query that counts exposures by version, levels and reward, and each unit once.

    Parameters
    ----------
    versions
        The shares document, as in `judge`.
    dialect
        One of `DIALECTS`.
    table
        The table of exposures. Its columns are version, one per side, and reward, which is NULL
        while pending. Anything that can follow FROM is allowed.
    unit, time
        The columns with the unit that saw the exposure, and with its time.
    where
        A condition that exposures must meet to count, such as that their reward window is over.

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
    """Return the SQL for a column of the table."""
    if not dialect.lower and re.fullmatch("[a-z_][a-z0-9_]*", name):
        return name
    return _quoted(dialect, name)


def _read_as(dialect: Dialect, name: str) -> str:
    """Return the SQL for a column of the table, under its own name in the result."""
    read, quoted = _read(dialect, name), _quoted(dialect, name)
    return read if read == quoted else f"{read} AS {quoted}"
