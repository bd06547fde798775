"""New tables of rows: in the metastore before their files are, so that a killed run leaves no files that nobody owns.

`CREATE TABLE … AS` writes all files first, and enters the table when they are there. A run that is killed meanwhile
would leave raw values in a directory that no DROP reaches.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlanon.sql import Relation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_QUOTED = r'"(?:[^"]|"")+"'
_OF_QUERY = re.compile(rf"\s*CREATE\s+TABLE ({_QUOTED}(?:\.{_QUOTED})*) USING PARQUET AS\n(.+)", re.DOTALL)
_ENDS_QUOTES = re.compile(r'(?<!\\)(?:\\\\)*\\(?:"|$)')


def ends_its_quotes(name: str) -> bool:
    """Tell whether Spark takes a quote within or after a quoted name for another one than it is.

    There a backslash goes with the character that follows, so that `"a\\"` does not end; `"a\\\\"` does.
    """
    return _ENDS_QUOTES.search(name) is not None


def table_and_query(text: str) -> tuple[Relation, str] | None:
    """Take a statement that makes a table of a query apart into the table and the query; None for any other."""
    match = _OF_QUERY.match(text)
    return None if match is None else (Relation.parse(match[1]), match[2])


def create_filled(session: SparkSession, table: Relation, rows: DataFrame, rows_of_file: int | None = None) -> None:
    """Create a table of the columns that rows have, then write the rows.

    Where writing fails the table is left, to be dropped by its name.

    rows_of_file: the most rows that one file holds; None for as many as a task has.
    """
    options = {} if rows_of_file is None else {"maxRecordsPerFile": str(rows_of_file)}
    create_empty(session, table, rows, **options)
    rows.write.insertInto(name_for_methods(table))


def create_empty(session: SparkSession, table: Relation, rows: DataFrame, **options: str) -> None:
    """Create a table of the columns that rows have, without any; it takes no job."""
    name = name_for_methods(table)
    session.catalog.createTable(name, source="parquet", schema=rows.schema.toNullable(), **options)


def name_for_methods(relation: Relation) -> str:
    """A name as the methods of sessions and data frames take it."""
    return ".".join(map(quoted_for_methods, relation.parts))


def quoted_for_methods(name: str) -> str:
    """One part of a name, or the name of a column, as these methods take it."""
    return "`" + name.replace("`", "``") + "`"
