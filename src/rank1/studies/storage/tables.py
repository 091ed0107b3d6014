"""The tables of a storage in SQLite and PostgreSQL, derived from `events.Event`."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import NamedTuple

from rank1.errors import FormatError
from rank1.studies.events import COLUMNS, FORMER_ARM, RECORD, Event

__all__ = ["FORMAT", "Dialect", "check_format", "insert_events", "migration", "schema"]

#: The version of the tables: increase it when they change. `migration` adds what an older version
#: lacks. Version 1 had rows and columns for arms. Versions 1 and 2 had no checksums and no
#: guardrails, and studies could be neither archived nor deleted. Before version 4, PostgreSQL had
#: no events without numbers.
FORMAT = 4

#: The columns to write for each event, in this order.
WRITTEN = ("study", *Event._fields)


#: SQLite can't drop a default.
REFUSE_OLDER = """
    CREATE TRIGGER rank1_older BEFORE INSERT ON rank1_events WHEN new.checksum = 0
    BEGIN SELECT RAISE(ABORT, 'an older version of rank1 is still running'); END"""


class Dialect(NamedTuple):
    """The differences between the databases."""

    #: SQL types, by the type names in `COLUMNS` and "bytes".
    types: Mapping[str, str]
    #: The type of a study's number, and of the column that generates new ones.
    study: str
    new_study: str
    #: Options for creating a table.
    options: str
    #: Whether the database can store NaN; otherwise it stores NULL.
    has_nan: bool


def _column(name: str, dialect: Dialect) -> str:
    """Return the definition of a column of the table of events."""
    optional = COLUMNS[name] == "text" or not (dialect.has_nan or _default(name) != "NULL")
    return f"{name} {dialect.types[COLUMNS[name]]}{'' if optional else ' NOT NULL'}"


def _default(name: str) -> str:
    """Return a column's value in events from before it was added."""
    default = Event._field_defaults.get(name)
    return "NULL" if default is None or default != default else repr(default)


def schema(dialect: Dialect) -> str:
    """Return the statements that create the tables."""
    d, types = dialect, dialect.types
    columns = ",\n        ".join(_column(name, d) for name in COLUMNS)
    return f"""
    CREATE TABLE rank1_studies (
        id {d.new_study},
        name {types["text"]} NOT NULL UNIQUE,
        uid {types["text"]} NOT NULL UNIQUE,
        created {types["float8"]} NOT NULL,
        retired {types["float8"]},
        archived {types["float8"]}
    ){d.options};
    {_deleted(d)};
    CREATE TABLE rank1_events (
        study {d.study} NOT NULL REFERENCES rank1_studies,
        {columns},
        PRIMARY KEY (study, seq)
    ){d.options and d.options + ", WITHOUT ROWID"};
    CREATE UNIQUE INDEX rank1_outcomes ON rank1_events (study, suggestion, kind)
        WHERE suggestion > 0;
    CREATE UNIQUE INDEX rank1_keys ON rank1_events (study, key, position) WHERE key IS NOT NULL;
    CREATE INDEX rank1_units ON rank1_events (study, unit, seq) WHERE unit IS NOT NULL;
    CREATE TABLE rank1_snapshots (
        study {d.study} NOT NULL REFERENCES rank1_studies,
        seq {types["int8"]} NOT NULL,
        layout {types["text"]} NOT NULL,
        blob {types["bytes"]} NOT NULL,
        digest {types["bytes"]} NOT NULL,
        PRIMARY KEY (study, seq)
    ){d.options};
    """


def _deleted(dialect: Dialect) -> str:
    """Return the table of deleted studies, whose numbers are never reused."""
    columns = f"study {dialect.study} PRIMARY KEY, at {dialect.types['float8']} NOT NULL"
    return f"CREATE TABLE rank1_deleted ({columns}){dialect.options}"


def check_format(found: int, where: str) -> bool:
    """Return whether the tables are of an older version; raises if they are of a newer one."""
    if found > FORMAT:
        raise FormatError(
            f"{where!r} has format {found}, and this version of rank1 knows up to {FORMAT}",
            "a later version wrote it; upgrade rank1",
            where=where,
        )
    if found < 1:
        raise FormatError(f"{where!r} has format {found}, which doesn't exist", where=where)
    return found < FORMAT


def migration(dialect: Dialect, present: frozenset[str]) -> list[str]:
    """Return the statements that migrate to this version; the table of events has `present`.

    They rewrite no rows, so they take no time. A process of an older release that is still running
    fails before it can misread an event, because there is no column "row", or write an event
    without a checksum.
    """
    change, made = "ALTER TABLE rank1_events", []
    if "row" in present:
        made += [f'{change} RENAME COLUMN "{name}" TO former_{name}' for name in ("row", "column")]
        made.append(f"{change} ADD COLUMN arm {dialect.types['int8']}")
        if dialect.has_nan:  # SQLite sets their values on insert
            made += [f"{change} ALTER former_{name} SET DEFAULT 0" for name in ("row", "column")]
    for name in COLUMNS:
        if name not in present and not (name == "arm" and "row" in present):
            made.append(f"{change} ADD COLUMN {_column(name, dialect)} DEFAULT {_default(name)}")
    if "checksum" not in present:
        made.append(f"ALTER TABLE rank1_studies ADD COLUMN archived {dialect.types['float8']}")
        made.append(_deleted(dialect))
        made.append(f"{change} ALTER checksum DROP DEFAULT" if dialect.has_nan else REFUSE_OLDER)
    return made


def read_as(column: str, present: frozenset[str]) -> str:
    """Return the SQL for reading a column from a table that has the columns `present`."""
    if column == "arm" and "row" in present:  # a read-only table of version 1
        return FORMER_ARM.format(row='"row"', column='"column"')
    if column == "arm" and "former_row" in present:
        return f"coalesce(arm, {FORMER_ARM.format(row='former_row', column='former_column')})"
    return column if column in present else _default(column)


@functools.cache
def select_events(present: frozenset[str]) -> str:
    """Return the start of a statement that reads a study's events, with the fields of `Event`."""
    fields = ", ".join(read_as(column, present) for column in Event._fields)
    return f"SELECT {fields} FROM rank1_events WHERE study = ?"


@functools.cache
def select_columns(present: frozenset[str]) -> str:
    """Do the same for the columns of `RECORD`, with their names."""
    fields = ", ".join(f"{read_as(column, present)} AS {column}" for column in RECORD.names or ())
    return f"SELECT {fields} FROM rank1_events WHERE study = ?"


@functools.cache
def select_studies(present: frozenset[str]) -> str:
    """Return the start of a statement that reads studies, with the fields of `StudyRow`."""
    last = "FROM rank1_events WHERE study = id ORDER BY seq DESC LIMIT 1"
    return f"""
        SELECT id, name, uid, created, retired, {"archived" if "checksum" in present else "NULL"},
            (SELECT seq {last}), (SELECT at {last}) FROM rank1_studies"""


@functools.cache
def insert_events(present: frozenset[str]) -> str:
    """Return the statement that writes an event, with the fields of `WRITTEN`."""
    names, marks = list(WRITTEN), ["?"] * len(WRITTEN)
    if "former_row" in present:
        names += ["former_row", "former_column"]
        marks += ["0", "0"]
    return f"INSERT INTO rank1_events ({', '.join(names)}) VALUES ({', '.join(marks)})"
