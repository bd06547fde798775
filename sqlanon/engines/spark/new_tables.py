"""New tables of rows: known before their files are written, so that a killed run leaves no files that nobody owns.

`CREATE TABLE … AS` writes all files first, and enters the table when they are there. A run that is killed meanwhile
would leave raw values in a directory that no DROP reaches. So a table is in the metastore first; or its files are in a
private directory of this machine, which the ledger names, and the metastore has no part in it.
"""

from __future__ import annotations

import re
import shutil
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING

from sqlanon.engines.spark.dialect import SparkSQL
from sqlanon.engines.spark.errors import unless_disconnected
from sqlanon.sql import Identifier, Relation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_QUOTED = r'"(?:[^"]|"")+"'
_OF_QUERY = re.compile(rf"\s*CREATE\s+TABLE ({_QUOTED}(?:\.{_QUOTED})*) USING PARQUET AS\n(.+)", re.DOTALL)
MOST_ROWS = "maxRecordsPerFile"
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


class NewTable(ABC):
    """A table of rows that is made by the methods of a session."""

    @abstractmethod
    def create_empty(self, rows: DataFrame) -> None:
        """Create the table with the columns that rows have, without any; it takes no job."""

    @abstractmethod
    def create_filled(self, rows: DataFrame, rows_of_file: int | None = None) -> None:
        """Create the table with the columns that rows have, then write the rows.

        Where writing fails the table is left, to be dropped.

        rows_of_file: the most rows that one file holds; None for as many as a task has.
        """

    @abstractmethod
    def frame(self) -> DataFrame:
        """Return the rows of the table."""

    @abstractmethod
    def drop(self) -> None:
        """Drop the table with its files, if it is there."""


class MetastoreTable(NewTable):
    """A table that the metastore owns."""

    def __init__(self, session: SparkSession, relation: Relation) -> None:
        self._session = session
        self._name = name_for_methods(relation)
        self._relation = relation

    def create_empty(self, rows: DataFrame) -> None:
        self._create(rows)

    def create_filled(self, rows: DataFrame, rows_of_file: int | None = None) -> None:
        self._create(rows, **({} if rows_of_file is None else {MOST_ROWS: str(rows_of_file)}))
        rows.write.insertInto(self._name)

    def _create(self, rows: DataFrame, **options: str) -> None:
        self._session.catalog.createTable(self._name, source="parquet", schema=rows.schema.toNullable(), **options)

    def frame(self) -> DataFrame:
        return self._session.table(self._name)

    def drop(self) -> None:
        self._session.sql(SparkSQL.renderer()("engines/forget_table", table=self._relation).text)


class TableOfFiles(NewTable):
    """Parquet files of a directory, which a temporary view of the session shows under the directory's name."""

    def __init__(self, session: SparkSession, path: Path) -> None:
        self._session = session
        self._view = str(Identifier(path.name))
        self.path = path

    def create_empty(self, rows: DataFrame) -> None:
        self.path.mkdir()
        self._show(rows)

    def create_filled(self, rows: DataFrame, rows_of_file: int | None = None) -> None:
        writer = rows.write if rows_of_file is None else rows.write.option(MOST_ROWS, rows_of_file)
        writer.parquet(self._place)
        self._show(rows)

    @property
    def _place(self) -> str:
        return f"file:{self.path}"

    def _show(self, rows: DataFrame) -> None:
        self._session.read.schema(rows.schema.toNullable()).parquet(self._place).createOrReplaceTempView(self._view)

    def frame(self) -> DataFrame:
        return self._session.table(self._view)

    def drop(self) -> None:
        """Remove the files, whether Spark still answers or not."""
        shutil.rmtree(self.path, ignore_errors=True)
        with unless_disconnected():
            self._session.catalog.dropTempView(self.path.name)


def name_for_methods(relation: Relation) -> str:
    """A name as the methods of sessions and data frames take it."""
    return ".".join(map(quoted_for_methods, relation.parts))


def quoted_for_methods(name: str) -> str:
    """One part of a name, or the name of a column, as these methods take it."""
    return "`" + name.replace("`", "``") + "`"
