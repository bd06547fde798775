"""The Spark adapter, over the DataFrame-free part of PySpark that classic sessions and Connect share."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sqlanon.engines.base import Engine, MadeRelation, RelationType
from sqlanon.engines.columns import Column
from sqlanon.engines.dialects import Capability
from sqlanon.engines.duckdb.exchange import read_table
from sqlanon.engines.read_options import FileReading, ReadOptions
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.engines.spark.dialect import SparkAddress, SparkSQL, address_of
from sqlanon.engines.spark.dry_session import SparkDrySession
from sqlanon.engines.spark.errors import names_nothing, statement_error, unless_disconnected
from sqlanon.engines.spark.files import FilesOfSpark, copy_directory, write_directory
from sqlanon.engines.spark.metastore import (
    OWN_CATALOG,
    Metastore,
    MetastoreTable,
    NewTable,
    ends_its_quotes,
    table_and_query,
)
from sqlanon.engines.spark.orphans import remove_orphans
from sqlanon.engines.spark.session import (
    FILE_MASK,
    close_session,
    in_one_job,
    make_work_directories,
    open_session,
    spill_directory,
    spill_places,
    warehouse_of,
)
from sqlanon.engines.spark.shared_parts import with_parts_shared
from sqlanon.engines.spark.types import column_of
from sqlanon.engines.spark.unplaced import Place, PlacesRenderer
from sqlanon.engines.spark.work_tables import (
    PlacedStatement,
    WorkTables,
    counts_nodes,
    creates,
    makes_an_empty_table,
    named_in,
    query_of,
    written_by,
)
from sqlanon.engines.statements import BLOCK
from sqlanon.engines.worker import StatementWorker
from sqlanon.errors import AccessError, EngineError, PolicyError, SqlanonError
from sqlanon.sql import Identifier, Relation, Renderer, Statement, Text

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

_T = TypeVar("_T")
_DROPS = ("drop_table", "drop_tables")
MOST_OF_MESSAGE = 64_000_000  # bytes of tables: a Connect server takes messages of 128 MB, with all that is around them


class SparkEngine(Engine):
    """One session with Spark, for the rows, and an embedded database at home, for all that is small.

    There are no transactions: each statement sees the tables as they are when it starts.
    """

    traits = SparkSQL
    parallel_sessions = 1

    def __init__(self, address: SparkAddress, options: EngineOptions) -> None:
        self._address = address
        self.limits = options
        self._session: SparkSession = open_session(address, options.statement_timeout)
        self._worker = StatementWorker("spark", options.statement_timeout, self._interrupt)
        self._tables = WorkTables(self._session, spill_directory())
        self._renderer = PlacesRenderer(self._tables.home.traits.renderer(), SparkSQL.renderer())

    @classmethod
    def connect(
        cls, url: str, options: EngineOptions | None = None, *, read_only: bool = False, create: bool = False
    ) -> SparkEngine:
        """Open a session: `read_only` and `create` change nothing.

        Raises PolicyError for limits that are the cluster's, AccessError where there is no Spark.
        """
        del read_only, create
        address, options = address_of(url), options or EngineOptions()
        if options.memory_limit or options.threads or options.temp_directory:
            raise PolicyError(
                "Spark has its own limits of memory, threads and disk; give its settings in the URL, such as"
                " spark+local://2?spark.driver.memory=4g."
            )
        return cls(address, options)

    @property
    def driver_connection(self) -> SparkSession:
        return self._session

    @property
    def render(self) -> Renderer:
        return self._renderer

    @property
    def version(self) -> str:
        return f"Spark {self._session.version}"

    def identity(self) -> str:
        """Identify the metastore by the directory of its tables."""
        return f"spark {warehouse_of(self._session)}"

    def _fork(self) -> SparkEngine:
        return SparkEngine(self._address, self.limits)

    def close(self) -> None:
        """End the session; with the last one the JVM that the program started."""
        if self._worker.close():
            try:
                self._tables.close()
            finally:
                close_session(self._session)

    # --- statements

    def execute(self, statement: Statement) -> int:
        if statement.name.endswith(_DROPS):
            return self._drop(self._renderer.text_at(Place.SPARK, statement))
        placed = self._placed(statement)
        if placed.writes is not None and placed.creates and placed.place is Place.SPARK:
            self._drop_table(placed.writes)
        rows = super().execute(placed)
        if placed.writes is not None:
            self._tables.note_written(placed.writes, Place.HOME if placed.comes_home else placed.place)
        return rows

    def fetch(self, statement: Statement) -> list[tuple[Any, ...]]:
        return super().fetch(self._placed(statement))

    def fetch_blocks(self, statement: Statement, size: int = BLOCK) -> Iterator[list[tuple[Any, ...]]]:
        return super().fetch_blocks(self._placed(statement), size)

    def _placed(self, statement: Statement) -> PlacedStatement:
        """Choose the place of a statement, have its tables there, and write it as it is written there."""
        text = self._renderer.names_in(statement)
        place = self._tables.place_of(statement.name, text)
        finished = self._renderer.finished(statement, place)
        written = written_by(text)
        makes = written is not None and creates(text)
        needed = [name for name in named_in(text) if not (makes and name == written)]
        self._guarded(statement.name, lambda: self._tables.bring(needed, place))
        text = finished.text if place is Place.HOME else self._tables.text_for_spark(finished.text)
        return PlacedStatement(finished.name, text, place, written, makes)

    def _execute(self, statement: Statement) -> int:
        if _is_at_home(statement):
            return self._tables.home.execute(statement)
        if isinstance(statement, PlacedStatement) and statement.comes_home:
            return self._guarded(statement.name, lambda: self._fetch_home(statement))
        if isinstance(statement, PlacedStatement) and statement.creates:
            name, is_empty = statement.writes or "", makes_an_empty_table(statement.name)
            self._guarded(statement.name, lambda: self._tables.create(name, statement.text, is_empty=is_empty))
        elif new := table_and_query(statement.text):
            self._create_filled(statement, *new)
        else:
            self._fetch(statement)
        return -1

    def _create_filled(self, statement: Statement, table: Relation, query: str) -> None:
        """Make a table of the metastore, such as a version of a release, of a query."""
        made = MetastoreTable(self._session, table)
        self._guarded(statement.name, lambda: made.create_filled(self._session.sql(query)))

    def _fetch_home(self, statement: PlacedStatement) -> int:
        """Keep at home what a statement would make a table of; the number of its rows."""
        with in_one_job(self._session) if counts_nodes(statement.name) else contextlib.nullcontext():
            table = self._session.sql(query_of(statement.text)).toArrow()
        assert statement.writes is not None
        self._tables.keep_home(statement.writes, table)
        return int(table.num_rows)

    def _fetch(self, statement: Statement) -> list[tuple[Any, ...]]:
        if _is_at_home(statement):
            return self._tables.home.fetch(statement)
        return self._guarded(statement.name, lambda: _rows_of(self._session.sql(statement.text)))

    def _fetch_blocks(self, statement: Statement, size: int) -> Iterator[list[tuple[Any, ...]]]:
        if _is_at_home(statement):
            return self._tables.home.fetch_blocks(statement, size)
        table = self._guarded(statement.name, lambda: self._session.sql(statement.text).toArrow())
        batches = table.combine_chunks().to_batches(max_chunksize=size)  # else each of Spark's tasks begins one
        return (list(zip(*(column.to_pylist() for column in batch.columns), strict=True)) for batch in batches)

    def text_for_others(self, statement: Statement) -> str:
        """Write a statement of Spark's as every session takes it, with what it names several times worked out once."""
        finished = self._renderer.finished(statement, Place.SPARK)
        return self.traits.text_for_others(with_parts_shared(finished.text, self._renderer.of(Place.SPARK)))

    def run_there(self, template: str, **values: Any) -> None:
        """Run a statement by Spark itself, whatever tables it names."""
        super().execute(self._written_for_spark(template, values))

    def query_there(self, template: str, **values: Any) -> list[tuple[Any, ...]]:
        """Fetch the rows of a query by Spark itself."""
        return super().fetch(self._written_for_spark(template, values))

    def _written_for_spark(self, template: str, values: Mapping[str, Any]) -> Statement:
        """Render a statement with the names that its work tables have with Spark, and have them there."""
        statement = SparkSQL.renderer()(template, **values)
        self._guarded(template, lambda: self._tables.bring(named_in(statement.text), Place.SPARK))
        return Statement(template, self._tables.text_for_spark(statement.text))

    def _guarded(self, name: str, work: Callable[[], _T]) -> _T:
        """Run `work` on the worker's thread, and explain an error of Spark."""
        try:
            return self._worker.run(work)
        except SqlanonError:
            raise
        except Exception as error:  # of pyspark, py4j or grpc, which share no class
            raise statement_error(error, name) from error

    def _drop(self, text: str) -> int:
        """Drop tables wherever they are."""
        for line in text.split(";"):
            if work := named_in(line):
                self._drop_table(work[0])
            else:
                super().execute(Statement("engines/drop_table", line.strip()))
        return -1

    def _drop_table(self, name: str) -> None:
        left = self._guarded("engines/drop_table", lambda: self._tables.drop(name))
        if left is not None:
            super().execute(self._renderer.of(Place.SPARK)("engines/forget_table", table=left))

    def cancel(self) -> None:
        self._tables.home.cancel()
        self._worker.cancel()

    def _interrupt(self) -> None:
        """Stop the jobs that there are, and what is brought home or from there; one that is planned has no job yet."""
        self._tables.home.cancel()
        with unless_disconnected():
            self._session.interruptAll()  # of this session, which is nobody else's

    def load(self, table: Relation, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Load rows into a work table at home.

        Raises EngineError for other tables: those of Spark are written by its own statements.
        """
        if not self._tables.is_at_home(table):
            raise EngineError(f"{table} is a table of Spark's: rows of the program's own are loaded at home alone.")
        self._tables.home.load(table, columns, rows)
        self._tables.note_written(table.name, Place.HOME)

    def begin(self) -> None:
        """Begin nothing: there are no transactions."""

    def commit(self) -> None:
        """Keep nothing more than what each statement kept."""

    def rollback(self) -> None:
        """Undo nothing: what a run made is dropped by its workspace."""

    def carry_out_with_rows(
        self, tables: Sequence[Relation], rows: Sequence[Relation], work: Callable[[Engine], _T]
    ) -> _T:
        """Carry out work in an executor that holds the rows in an embedded database; see `executors`."""
        (value,) = self._carry_out_keeping(tables, rows, [work])
        return value

    def measure_with_rows(
        self,
        tables: Sequence[Relation],
        rows: Sequence[Relation],
        columns: Sequence[Identifier],
        count: int,
        measure: Callable[[Engine], _T],
    ) -> _T:
        """Measure rows in an executor, which gets these columns alone; too many for one task by statements of Spark.

        So are those that go with tables too large for one message to a Connect server: it gets other tables in parts.
        """
        if self.tasks_for(count):
            return measure(self)
        small = self._read_small(tables)
        if self._address.remote is not None and sum(table.nbytes for table in small.values()) > MOST_OF_MESSAGE:
            return measure(self)
        frames = self._frames(rows, columns)
        (value,) = self._carry_out(small, frames, [measure], None)
        return value

    def tasks_for(self, rows: int) -> int:
        from sqlanon.engines.spark.executors import rows_of_task  # here, as it takes the extra

        tasks = -(-rows // self._guarded("carry_out", lambda: rows_of_task(self._session)))
        return tasks if tasks > 1 else 0

    def carry_out_in_parts(
        self, tables: Sequence[Relation], rows: Relation, works: Sequence[Callable[[Engine], _T]]
    ) -> list[_T]:
        """Carry out each part in a task of its own, which holds its rows."""
        return self._carry_out_keeping(tables, [rows], works)

    def _carry_out_keeping(
        self, tables: Sequence[Relation], rows: Sequence[Relation], works: Sequence[Callable[[Engine], _T]]
    ) -> list[_T]:
        """Carry out parts of a work, whose rows are in a table where the session makes some, else in executors."""
        made = self._tables.new_table(f"{rows[0].name}_carried")
        return self._carry_out(self._read_small(tables), self._frames(rows), works, made)

    def _frames(self, rows: Sequence[Relation], columns: Sequence[Identifier] | None = None) -> dict[str, DataFrame]:
        """Take the frames of tables of rows, of all columns or of these, to go along with work."""
        return self._guarded("carry_out", lambda: {one.name: self._tables.frame(one.name, columns) for one in rows})

    def _read_small(self, tables: Sequence[Relation]) -> dict[str, pyarrow.Table]:
        """Read tables that are to go along with work."""
        self._guarded("carry_out", lambda: self._tables.bring([one.name for one in tables], Place.HOME))
        return {one.name: read_table(self._tables.home, one) for one in tables}

    def _carry_out(
        self,
        small: Mapping[str, pyarrow.Table],
        frames: Mapping[str, DataFrame],
        works: Sequence[Callable[[Engine], _T]],
        made: NewTable | None,
    ) -> list[_T]:
        from sqlanon.engines.spark.executors import carry_out_in_parts, pickled

        parts = [pickled(work) for work in works]
        outcomes = self._guarded("carry_out", lambda: carry_out_in_parts(self._session, frames, small, parts, made))
        for name in dict.fromkeys(name for outcome in outcomes for name in outcome.dropped):
            self._drop_table(name)
        for outcome in outcomes:
            self._tables.receive(outcome.rows, outcome.tables, outcome.kept)
        return [outcome.value for outcome in outcomes]

    def prepare_work(self, schema: str) -> tuple[Path, ...]:
        """Make the place of work tables: where Spark is on this machine alone, a private directory.

        Elsewhere it is a schema of the metastore, whose files are as private as the cluster's mask makes them.
        """
        mask = self._session.conf.get(FILE_MASK, None)
        if mask is not None and not mask.endswith("77"):
            raise AccessError(
                f"{FILE_MASK}={mask} would let others read the work tables in schema {Identifier(schema)}, which hold"
                " raw values, and releases that are not verified yet: leave it out, and give rights to releases by the"
                " cluster's own means."
            )
        if self._address.is_local:
            directories = make_work_directories(self._session)
            self._tables.directory = directories[0]
            return directories
        self.run("catalog/create_schema", schema=Relation(schema))
        self._tables.schema = schema
        return ()

    def remove_orphans(self, prefix: Relation) -> list[str]:
        return list(remove_orphans(self, prefix))

    def spill_places(self) -> tuple[Path, ...]:
        return spill_places()

    def remove_work(self) -> None:
        self._tables.remove_directory()

    def list_made(self, prefix: Relation) -> list[MadeRelation]:
        """List tables and views by their names; those of temporary views are no part of it."""
        if prefix.parts[:2] == self.temporary("").parts[:2]:
            return [MadeRelation(self.temporary(name), False) for name in self._tables.rows_named(prefix.name)]
        try:
            return self._list_named(prefix)
        except EngineError as error:
            if names_nothing(error):  # as a metastore in memory forgets its schemas
                return []
            raise

    def _list_named(self, prefix: Relation) -> list[MadeRelation]:
        schema = Identifier(prefix.schema or self.home().schema or "")
        names = Text(f"{prefix.name}*")
        views = self.query("engines/list_views_named", schema=schema, prefix=names)
        tables = [
            one for one in self.query("engines/list_tables_named", schema=schema, prefix=names) if one not in views
        ]
        return [
            MadeRelation(Relation(name, at, prefix.catalog), is_view)
            for rows, is_view in ((tables, False), (views, True))
            for at, name, is_temporary in rows
            if not is_temporary
        ]

    def dry_session(self) -> SparkDrySession:
        return SparkDrySession(self._tables, self._renderer, is_local=self._address.is_local)

    # --- files

    def read_file(self, relation: Relation, path: str, options: ReadOptions | None = None) -> FileReading:
        """Make a temporary view of files where the session is: Parquet, or CSV of UTF-8."""
        return FilesOfSpark(self, path).read(relation, options or ReadOptions())

    def file_version(self, path: str | None) -> tuple[int, ...] | None:
        return None if path is None else FilesOfSpark(self, path).version()

    def write_directory(self, relation: Relation, path: Path) -> None:
        if (files := self._tables.files_of(relation)) is not None:
            copy_directory(files, path)
        else:
            write_directory(self, relation, path)

    @property
    def writes_here(self) -> Capability:
        return self._address.writes_here

    # --- what is there

    def resolve(self, relation: Relation) -> Relation | None:
        """The name by which Spark keeps a relation, which ignores case: its own temporary views go first."""
        if self._tables.knows(relation):
            return relation
        known = self.describe(relation)
        if known is None:
            return None
        named = Relation(known["table_name"], known["namespace"][-1], known["catalog_name"])
        # The session's own catalog keeps names in lower case, and answers with the spelling that it was asked by.
        return Relation(*map(str.lower, reversed(named.parts))) if named.catalog == OWN_CATALOG else named

    def home(self) -> Relation:
        catalog, schema = self.query_one("engines/locate_schema")
        return Relation("", schema, catalog)

    def relations(self) -> list[Relation]:
        catalog = self.home().catalog
        return [
            Relation(name, schema, catalog)
            for (at,) in self.query("engines/list_schemas")
            for schema, name, is_temporary in self.query("engines/list_relations", schema=Identifier(at))
            if not is_temporary
        ]

    def relation_type(self, relation: Relation) -> RelationType:
        return RelationType.VIEW if self._known(relation)["type"] == "VIEW" else RelationType.TABLE

    def exchange_directory(self) -> Path | None:
        """The directory of the database at home: what Spark's rows are in goes elsewhere as a release alone."""
        return self._tables.home.exchange_directory()

    def columns(self, relation: Relation) -> list[Column]:
        if self._tables.is_at_home(relation):
            return self._tables.home.columns(relation)
        known = self._known(self._tables.with_spark(relation))["columns"]
        if unread := next((one["name"] for one in known if ends_its_quotes(one["name"])), None):
            raise PolicyError(
                f"column {unread}: Spark reads no quoted name that has a backslash before a quote or at its end; use a"
                " view that calls the column otherwise."
            )
        return [column_of(column) for column in known]

    def unique_columns(self, relation: Relation) -> frozenset[str]:
        """None: constraints of Spark's tables are not enforced."""
        del relation
        return frozenset()

    def object_of(self, relation: Relation) -> str | None:
        """Identify a table by the directory of its files, of which parts may be secret; None for a view."""
        location = Metastore(self).location_of(relation)
        return None if location is None else sha256(location.encode()).hexdigest()

    def reads(self, relation: Relation, table: Relation) -> bool:
        """Tell it by the analyzed plan, which names every table that a view reads."""
        (plan,) = self.query_one("engines/explain_relation", relation=relation)
        named = f"SubqueryAlias {'.'.join(table.parts)}".lower()
        return any(line.strip(" +-:").lower() == named for line in plan.splitlines())

    def describe(self, relation: Relation) -> dict[str, Any] | None:
        """Describe a relation as Spark's JSON does; None where there is none."""
        return Metastore(self).describe(relation)

    def _known(self, relation: Relation) -> dict[str, Any]:
        known = self.describe(relation)
        if known is None:
            raise PolicyError(f"There is no table {relation}.")
        return known


def _is_at_home(statement: Statement) -> bool:
    return isinstance(statement, PlacedStatement) and statement.place is Place.HOME


def _rows_of(frame: DataFrame) -> list[tuple[Any, ...]]:
    """Fetch rows; whole numbers of more than 64 bits, which are decimals there, as integers."""
    wide = {n for n, field in enumerate(frame.schema.fields) if field.dataType.simpleString() == "decimal(38,0)"}
    rows = [tuple(row) for row in frame.collect()]
    if not wide:
        return rows
    return [tuple(int(v) if n in wide and v is not None else v for n, v in enumerate(row)) for row in rows]
