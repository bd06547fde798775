"""A metastore of Spark: its settings, schemas, tables and views, and new tables of it or of files.

`CREATE TABLE … AS` writes all files first, and enters the table when they are there. A run that is killed meanwhile
would leave raw values in a directory that no DROP reaches. So a table is in the metastore first; or its files are in a
private directory of this machine, which the ledger names, and the metastore has no part in it.
"""

from __future__ import annotations

import json
import re
import shutil
from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import dropwhile, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlanon.engines.dialects import CAPABLE, Capability
from sqlanon.engines.spark.dialect import SparkSQL
from sqlanon.engines.spark.errors import condition_of, names_nothing, statement_error, unless_disconnected
from sqlanon.errors import EngineError
from sqlanon.sql import Identifier, Relation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from sqlanon.engines.base import Engine

OWN_CATALOG = "spark_catalog"


_DETAILS = "# Detailed Table Information"  # the line after which properties follow the columns


_UNDEFINED = "<undefined>"


_BUILT_IN = (_UNDEFINED, "builtin")


_ATOMIC_FORMATS = {
    "org.apache.spark.sql.delta.catalog.DeltaCatalog": "delta",
    "org.apache.iceberg.spark.SparkCatalog": "iceberg",
    "org.apache.iceberg.spark.SparkSessionCatalog": "iceberg",
}


_QUOTED = r'"(?:[^"]|"")+"'


_OF_QUERY = re.compile(rf"\s*CREATE\s+TABLE ({_QUOTED}(?:\.{_QUOTED})*) USING PARQUET AS\n(.+)", re.DOTALL)


MOST_ROWS = "maxRecordsPerFile"


_ENDS_QUOTES = re.compile(r'(?<!\\)(?:\\\\)*\\(?:"|$)')


"""The classes of catalogs in which a table is replaced in one step, with the format of their tables."""


_FORGETS = Capability(
    "the catalog of this session with Spark is in memory, and forgets its tables when Spark ends; name a catalog that"
    " stays (spark.sql.catalogImplementation=hive in the URL), or release a file."
)


@dataclass(frozen=True)
class CatalogKind:
    """A catalog, as publishing sees it.

    atomic_format: of tables that the catalog replaces in one step; None where releases are views over versions.
    releases: whether releases can be there at all.
    """

    atomic_format: str | None = None
    releases: Capability = CAPABLE


class Metastore:
    """The metastore that a session with Spark reaches."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def setting(self, name: str) -> str | None:
        """Look up a setting of the session, without a statement; None where it has no value."""
        try:
            value = self._engine.driver_connection.conf.get(name, None)
        except Exception as error:  # of py4j or grpc, where the connection is lost
            raise statement_error(error, "engine/get_setting") from error
        return None if value is None else str(value)

    def kind_of(self, catalog: str) -> CatalogKind:
        """Tell how releases are published in a catalog."""
        made_by = self.setting(f"spark.sql.catalog.{catalog}") or _UNDEFINED
        if made_by in _ATOMIC_FORMATS:
            return CatalogKind(atomic_format=_ATOMIC_FORMATS[made_by])
        if catalog != OWN_CATALOG or made_by not in _BUILT_IN:
            return CatalogKind(releases=_not_supported(catalog, made_by))
        is_kept = self.setting("spark.sql.catalogImplementation") == "hive"
        return CatalogKind(releases=CAPABLE if is_kept else _FORGETS)

    def has_schema(self, schema: Relation) -> bool:
        """Tell whether there is a schema."""
        return self._describe_schema(schema) is not None

    def location_of_schema(self, schema: Relation) -> str | None:
        """Look up the directory of a schema, spelled in one way; None where there is no schema."""
        described = self._describe_schema(schema)
        return None if described is None else _spelled_once(described.get("Location", ""))

    def _describe_schema(self, schema: Relation) -> dict[str, str] | None:
        try:
            lines = self._engine.query_there("work/publish/describe_schema", schema=schema)
        except EngineError as error:
            if names_nothing(error):
                return None
            raise
        return {str(name): str(value) for name, value in lines}

    def describe(self, relation: Relation) -> dict[str, Any] | None:
        """Describe a table or view as Spark's JSON does; None where there is none."""
        try:
            ((text,),) = self._engine.query_there("engines/describe_relation", relation=relation)
        except EngineError as error:
            if names_nothing(error):
                return None
            if condition_of(error.__cause__ or error).startswith("NOT_SUPPORTED_COMMAND_FOR_V2_TABLE"):
                return self._describe_by_lines(relation)
            raise
        described: dict[str, Any] = json.loads(text)
        return described

    def _describe_by_lines(self, relation: Relation) -> dict[str, Any] | None:
        """Describe a table of a catalog that Spark makes no JSON of, such as one of Iceberg; no comments."""
        lines = self._lines(relation)
        if lines is None:
            return None
        columns = takewhile(lambda line: line[0], lines)
        home = self._engine.home()
        return {
            "table_name": relation.name,
            "namespace": [relation.schema or home.schema],
            "catalog_name": relation.catalog or home.catalog,
            "type": dict(lines).get("Type", "MANAGED"),
            "columns": [{"name": name, "type": _type_of(spelled)} for name, spelled in columns],
        }

    def location_of(self, relation: Relation) -> str | None:
        """Look up the directory of a table's files, spelled in one way; None where there is none, as of a view."""
        lines = dropwhile(lambda line: line[0] != _DETAILS, self._lines(relation) or [])
        return _spelled_once(dict(lines).get("Location", ""))

    def format_of(self, relation: Relation) -> str | None:
        """Look up the format of a table of any catalog, empty where it has none; None where there is no table."""
        lines = self._lines(relation)
        if lines is None:
            return None
        known = dict(lines)
        return "" if known.get("Type") == "VIEW" else known.get("Provider", "").lower()

    def _lines(self, relation: Relation) -> list[tuple[str, str]] | None:
        try:
            lines = self._engine.query_there("engines/describe_columns", relation=relation)
        except EngineError as error:
            if names_nothing(error):
                return None
            raise
        return [(str(name), str(value)) for name, value, _ in lines]


def _spelled_once(location: str) -> str | None:
    return re.sub(r"^(\w+):/+", r"\1:/", location).rstrip("/") or None


def _type_of(spelled: str) -> dict[str, Any]:
    """Take a type such as `decimal(10,2)` apart, as JSON has it."""
    name = re.match(r"\w+", spelled)
    known: dict[str, Any] = {"name": name[0] if name else spelled}
    if known["name"] == "timestamp":
        known["name"] = "timestamp_ltz"
    if digits := re.fullmatch(r"decimal\((\d+),\s*(\d+)\)", spelled):
        known |= {"precision": int(digits[1]), "scale": int(digits[2])}
    if collated := re.fullmatch(r"string collate (\w+)", spelled):
        known["collation"] = collated[1]
    return known


def _not_supported(catalog: str, made_by: str) -> Capability:
    return Capability(
        f"releases can't be in the catalog {Identifier(catalog)} ({made_by.rpartition('.')[2]}), of which it is not"
        " known whether a table is replaced in one step; choose another catalog, or release a file."
    )


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
