"""The query of `rank1 judge sql` on a PostgreSQL server."""

from __future__ import annotations

from typing import Any

import psycopg

from rank1.design import counts_sql, first_shares
from tests.studies.conftest import new_schema
from tests.test_judge_command import COLUMNS, COUNTED, EXPOSURES, SIDES


def test_the_query_in_postgres(server: Any) -> None:
    kinds = ("text", "integer", "integer", "text", "text", "double precision")
    columns = ", ".join(f'"{name}" {kind}' for name, kind in zip(COLUMNS, kinds, strict=True))
    query = counts_sql(first_shares(SIDES), "postgres", where='"time" < 9')
    with psycopg.connect(new_schema(server)) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE exposures ({columns})".encode())
        cursor.executemany("INSERT INTO exposures VALUES (%s, %s, %s, %s, %s, %s)", EXPOSURES)
        assert cursor.execute(query.encode()).fetchall() == COUNTED
