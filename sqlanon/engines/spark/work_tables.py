"""Work tables of a session with Spark: tables of rows stay there, small ones are at home, or travel by Arrow.

At home is an embedded database in the memory of this process. It keeps dictionaries, hierarchies, regions and whatever
else decisions are made by; Spark keeps what has a line for each row of the source.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sqlanon.engines.duckdb.engine import DuckDBEngine
from sqlanon.engines.duckdb.exchange import create_table
from sqlanon.engines.embedded import MEMORY_URL
from sqlanon.engines.private_files import remove_directory
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.engines.spark.dialect import SparkSQL
from sqlanon.engines.spark.errors import unless_disconnected
from sqlanon.engines.spark.metastore import MetastoreTable, NewTable, TableOfFiles
from sqlanon.engines.spark.shared_parts import with_parts_shared
from sqlanon.engines.spark.unplaced import Place
from sqlanon.errors import EngineError
from sqlanon.sql import Identifier, Relation, Statement

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

_NAMED = re.compile(r'"temp"\."main"\."((?:[^"]|"")+)"')
_OF_OTHERS = re.compile(r'(?<!DISTINCT )\b(?:FROM|JOIN|INTO|TABLE|VIEW)\s+"')
_CREATED = re.compile(r"\s*CREATE (?:OR REPLACE )?(?:TEMP )?(?:TABLE|VIEW) ")
_WRITTEN = re.compile(r"\s*(?:CREATE (?:OR REPLACE )?(?:TEMP )?(?:TABLE|VIEW)|INSERT INTO|UPDATE|DELETE FROM) ")
_HOME = ("temp", "main")  # the catalog and schema that work tables have in statements, and at home
_ARRIVED = Relation("arrived")
_BROADCAST = 200_000  # lines of a table that every task may hold

_AT_HOME = ("hierarchies/", "encoding/create_dictionary", "encoding/count_equal_values", "encoding/measure_range")
_COMES_HOME = (
    "report/release_audit/create_classes",
    "report/release_audit/list_values",
    "encoding/create_values",
    "encoding/create_keyed_",
    "encoding/create_domain",
    "releases/rules/create_failing",
    "releases/rules/create_used",
    "staging/create_known",
    "staging/create_means",
    "staging/create_sets",
    "staging/measure_leaves",
)
_COUNTED_FOR_NODES = re.compile(r"/scan/(measure|count|number)_")


def is_decided_at_home(template: str) -> bool:
    """Tell whether a statement is carried out at home, wherever the tables are that it reads.

    Searches have the templates of their decisions in folders called `decide`, and those that read rows in `scan`.
    """
    return "/decide/" in template or template.startswith(_AT_HOME)


def makes_an_empty_table(template: str) -> bool:
    """Tell whether Spark makes the table of a statement although it reads nothing that is there."""
    return "/scan/create_" in template


def comes_home(template: str) -> bool:
    """Tell whether the table that Spark works out is kept at home; all others that it makes stay with the rows."""
    return template.startswith(_COMES_HOME) or _COUNTED_FOR_NODES.search(template) is not None


def counts_nodes(template: str) -> bool:
    """Tell whether a table has a line for each node, bin or value of one, so that little is shuffled for it."""
    return "/scan/" in template


def named_in(text: str) -> list[str]:
    """List the names of work tables in a statement, in the order in which they stand there."""
    return list(dict.fromkeys(match[1] for match in _NAMED.finditer(text)))


def written_by(text: str) -> str | None:
    """Tell the work table that a statement writes; None for a query."""
    start = _WRITTEN.match(text)
    match = _NAMED.match(text, start.end()) if start else None
    return None if match is None else match[1]


def query_of(text: str) -> str:
    """Take the query out of a statement that makes a table of it."""
    return text.partition(" AS\n")[2]


def creates(text: str) -> bool:
    """Tell whether a statement makes the table that it writes."""
    return _CREATED.match(text) is not None


def reads_others(text: str) -> bool:
    """Tell whether a statement names a table that is no work table."""
    return _OF_OTHERS.search(_NAMED.sub("work", text)) is not None


@dataclass(frozen=True)
class PlacedStatement(Statement):
    """A statement as its place takes it.

    writes: the work table that it writes, if it writes one; creates: and makes.
    """

    place: Place = Place.SPARK
    writes: str | None = None
    creates: bool = False

    @property
    def comes_home(self) -> bool:
        """Tell whether Spark works out what is kept at home."""
        return self.creates and self.place is Place.SPARK and comes_home(self.name)


class WorkTables:
    """The tables of a session by name, and where each of them is: at home, with Spark, or the same in both places.

    home: the embedded database.
    directory, schema: the place of the tables that Spark makes; a session with neither makes none.
    """

    def __init__(self, session: SparkSession, spill: Path | None = None) -> None:
        """`spill` is where the database at home has its own directory; None where temporary files go."""
        self.home = DuckDBEngine.connect(
            MEMORY_URL, EngineOptions(temp_directory=None if spill is None else str(spill))
        )
        self.directory: Path | None = None
        self.schema: str | None = None
        self._session = session
        self._renderer = SparkSQL.renderer()
        self._at: dict[str, set[Place]] = {}
        self._sent: set[str] = set()  # temporary views of Spark's, made of tables from home
        self._of_files: dict[str, TableOfFiles] = {}
        self._cached: dict[str, DataFrame] = {}

    def place_of(self, template: str, text: str) -> Place:
        """Choose the place of a statement: at home if it names work tables alone, and all of them are there."""
        if is_decided_at_home(template):
            return Place.HOME
        if makes_an_empty_table(template):
            return Place.SPARK
        names, made = named_in(text), written_by(text) if creates(text) else None
        read = [name for name in names if name != made]
        away = any(Place.HOME not in self._at.get(name, {Place.HOME}) for name in read)
        return Place.SPARK if away or not names or reads_others(text) else Place.HOME

    def text_for_spark(self, text: str) -> str:
        """Write a statement with the names that its tables have there; what it names several times is shared."""
        named = _NAMED.sub(lambda match: str(self._named_by_spark(match[1])), text)
        return with_parts_shared(named, self._renderer)

    def _named_by_spark(self, name: str) -> Relation:
        """Name a table that was sent from home, or is of files, as its view; others in the schema of work tables."""
        return Relation(name, None if name in self._sent else self.schema)

    def create(self, name: str, text: str, *, is_empty: bool) -> None:
        """Make a table of rows by a statement; a session that makes no tables keeps the rows in the executors.

        is_empty: whether the query gives no rows, which need not be asked for.
        """
        table, rows = self.new_table(name), self._session.sql(query_of(text))
        self.note_written(name, Place.SPARK)  # before its rows are there, so that it can be dropped
        if table is None:
            self._cached[name] = rows.persist()
            self._view(name, self._cached[name])
        elif is_empty:
            table.create_empty(rows)
        else:
            table.create_filled(rows)

    def new_table(self, name: str) -> NewTable | None:
        """Choose the place of a table of rows; None for a session that makes no tables."""
        if self.directory is not None:
            self._of_files[name] = table = TableOfFiles(self._session, self.directory / name)
            return table
        return None if self.schema is None else MetastoreTable(self._session, Relation(name, self.schema))

    def files_of(self, relation: Relation) -> Path | None:
        """Return the directory of a work table's files; None where the table has none of its own."""
        table = self._of_files.get(relation.name) if relation.parts[:2] == _HOME else None
        return None if table is None else table.path

    def rows_named(self, prefix: str) -> list[str]:
        """List the tables of rows whose names begin with a prefix."""
        return sorted(name for name, at in self._at.items() if Place.SPARK in at and name.startswith(prefix))

    def bring(self, names: Iterable[str], place: Place) -> None:
        """Have tables in a place, copied there from the other one if need be.

        Raises EngineError for tables of rows, which stay with Spark.
        """
        for name in names:
            if name in self._at and place not in self._at[name]:
                if place is Place.HOME:
                    raise EngineError(f"{name} is a table of rows: it stays with Spark.")
                self._send(name, self.fetch_home(name))
                self._at[name].add(place)

    def note_written(self, name: str, place: Place) -> None:
        """Note that a statement wrote a table: what the other place has of it is out of date."""
        self._at[name] = {place}

    def forget(self, name: str) -> None:
        """Forget where a table is, as a statement would drop it."""
        self._at.pop(name, None)

    def knows(self, relation: Relation) -> bool:
        """Tell whether a relation is a work table that is there."""
        return relation.parts[:2] == _HOME and relation.name in self._at

    def is_at_home(self, relation: Relation) -> bool:
        """Tell whether a relation is a work table that is at home."""
        return relation.parts[:2] == _HOME and Place.HOME in self._at.get(relation.name, ())

    def with_spark(self, relation: Relation) -> Relation:
        """Name a relation as Spark does: a work table by its own place, all others as they are."""
        return self._named_by_spark(relation.name) if relation.parts[:2] == _HOME else relation

    def frame(self, name: str, columns: Sequence[Identifier] | None = None) -> DataFrame:
        """Return a table of Spark's, or those of its columns that are listed."""
        frame = self._session.sql(self._renderer("engines/select_table", table=self._named_by_spark(name)).text)
        if columns is None:
            return frame
        listed = {column.name for column in columns}
        return frame[[name for name in frame.columns if name in listed]]

    def fetch_home(self, name: str) -> pyarrow.Table:
        """Return a table that is at home."""
        statement = self.home.render("engines/select_table", table=Relation(name, *_HOME[::-1]))
        return self.home.driver_connection.sql(statement.text).to_arrow_table()

    def keep_home(self, name: str, table: pyarrow.Table) -> None:
        """Make a table at home."""
        connection = self.home.driver_connection
        connection.register(_ARRIVED.name, table)
        try:
            self.home.run("engines/keep_arrived", table=Relation(name, *_HOME[::-1]), arrived=_ARRIVED)
        finally:
            connection.unregister(_ARRIVED.name)
        self._at.setdefault(name, set()).add(Place.HOME)

    def _send(self, name: str, table: pyarrow.Table) -> None:
        frame = self._session.createDataFrame(table)
        if table.num_rows <= _BROADCAST:
            frame = frame.hint("broadcast")
        self._view(name, frame)

    def receive(
        self, rows: Mapping[str, DataFrame], tables: Mapping[str, pyarrow.Table], kept: DataFrame | None = None
    ) -> None:
        """Take in tables that were made elsewhere: those of rows stay with Spark, the others are kept at home.

        kept: the frame that executors keep, of which `rows` are parts; None where they are in a table.
        """
        for name, frame in rows.items():
            self._view(name, frame)
            self._at[name] = {Place.SPARK}
            if kept is not None:
                self._cached[name] = kept
        for name, table in tables.items():
            create_table(self.home, Relation(name, *_HOME[::-1]), table)
            self._at[name] = {Place.HOME}

    def _view(self, name: str, frame: DataFrame) -> None:
        frame.createOrReplaceTempView(str(Identifier(name)))
        self._sent.add(name)

    def drop(self, name: str) -> Relation | None:
        """Drop a table at home, and what was sent of it; returns the one that Spark made, and is to drop."""
        places = self._at.pop(name, set())
        if Place.HOME in places:
            self.home.run("engines/drop_table", table=Relation(name, *_HOME[::-1]))
        if (files := self._of_files.pop(name, None)) is not None:
            files.drop()
            return None
        if name in self._sent:
            self._sent.discard(name)
            with unless_disconnected():
                self._session.catalog.dropTempView(name)
                self._forget(name)
            return None
        return self._named_by_spark(name) if Place.SPARK in places else None

    def _forget(self, name: str) -> None:
        """Let executors forget rows that they kept."""
        frame = self._cached.pop(name, None)
        if frame is not None and not any(frame is one for one in self._cached.values()):
            frame.unpersist()

    def remove_directory(self) -> None:
        """Drop all tables of rows with their directory, if there is one, whether Spark still answers or not."""
        if self.directory is not None:
            for name in self.rows_named(""):
                self.drop(name)
            remove_directory(self.directory)
            self.directory = None

    def close(self) -> None:
        """End the database at home and all tables; executors forget what they kept, as their session may go on."""
        for name in list(self._cached):
            with unless_disconnected():
                self._forget(name)
        self.remove_directory()
        self.home.close()
