"""The DuckDB adapter: the embedded engine, on the raw driver."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb

from sqlanon.engines.base import Engine, RelationType
from sqlanon.engines.columns import Column, Kind
from sqlanon.engines.duckdb.confinement import confine, confinement, is_alone, require_own_functions
from sqlanon.engines.duckdb.dialect import MEMORY, DuckDB, path_of
from sqlanon.engines.duckdb.errors import opening_error, statement_error
from sqlanon.engines.duckdb.files import FileReader
from sqlanon.engines.duckdb.lending import session_of
from sqlanon.engines.files import source_file
from sqlanon.engines.private_files import make_private_directory, remove_directory, umask_guard
from sqlanon.engines.read_options import FileReading, ReadOptions
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.engines.statements import BLOCK
from sqlanon.engines.worker import StatementWorker, open_in_thread
from sqlanon.errors import AccessError, EngineError, PolicyError
from sqlanon.sql import Identifier, Relation, Statement, Text
from sqlanon.support.documents import is_path_in_text

if TYPE_CHECKING:
    import pyarrow

_T = TypeVar("_T")
_LOAD_CHUNK = 100_000  # bound values a statement
TEXTS_A_STATEMENT = 100  # that are tested: a thousand at once take forty times as long
_PLACES, _MOST_PLACES = 12, 22  # bits of the arrays in which groups of a number are counted: by default, and at most
_PARSED, _LONG = 64, 20_000  # statements that a session keeps as they were parsed, none of more characters
_LITTLE_MEMORY, _MEMORY_OF_THREAD = 1000, 150  # MB: the least limit of an instance, and by thread

_NAME = r'(?:"(?:[^"]|"")*"|[^\s".(]+)'
_VIEW = re.compile(rf"\A\s*CREATE\s+(?:TEMP\s+)?VIEW\s+{_NAME}(?:\.{_NAME})*\s+(?:\({_NAME}(?:,\s*{_NAME})*\)\s+)?AS\s")

# Text with a collation that takes different texts for equal is OTHER: no text of a class is the right one.
_KINDS = {
    **dict.fromkeys(
        (
            "TINYINT",
            "SMALLINT",
            "INTEGER",
            "BIGINT",
            "HUGEINT",
            "UTINYINT",
            "USMALLINT",
            "UINTEGER",
            "UBIGINT",
            "UHUGEINT",
        ),
        Kind.INTEGER,
    ),
    **dict.fromkeys(("FLOAT", "DOUBLE"), Kind.FLOAT),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"), Kind.TIMESTAMP),
    **dict.fromkeys(("TIME", "TIME_NS"), Kind.TIME),
    "TIMESTAMP WITH TIME ZONE": Kind.TIMESTAMPTZ,
    "BOOLEAN": Kind.BOOLEAN,
    "DATE": Kind.DATE,
    "VARCHAR": Kind.TEXT,
    "UUID": Kind.UUID,
}


def kind_of(type_name: str) -> Kind:
    """The kind of a DuckDB type, by its name in `duckdb_columns()`; nested and binary types are OTHER."""
    if type_name.endswith("]"):
        return Kind.OTHER
    if type_name.startswith("ENUM("):
        return Kind.ENUM
    if type_name.startswith("DECIMAL("):
        return Kind.DECIMAL
    return _KINDS.get(type_name, Kind.OTHER)


class DuckDBEngine(Engine):
    """One connection to a DuckDB instance.

    Statements run in a thread of their own, the caller waits: so Ctrl-C and the statement timeout, which DuckDB does
    not have, end the wait and interrupt the statement.
    """

    traits = DuckDB
    parallel_sessions = 1  # one statement uses all threads already

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, options: EngineOptions, private_directory: Path | None = None
    ) -> None:
        self._connection = connection
        self.limits = options
        self._private_directory = private_directory
        self._mask: int | None = None  # of the files that are made while it is open
        self._memory = MEMORY
        self._is_begun = False  # a transaction of this session, which further ones are a part of
        self._worker = StatementWorker("duckdb", options.statement_timeout, connection.interrupt)
        self._parse = functools.lru_cache(_PARSED)(connection.extract_statements)
        self._apply_settings()

    # --- opening and closing

    @property
    def driver_connection(self) -> duckdb.DuckDBPyConnection:
        return self._connection

    @classmethod
    def connect(
        cls, url: str, options: EngineOptions | None = None, *, read_only: bool = False, create: bool = False
    ) -> DuckDBEngine:
        """Open the file that `duckdb:///relative.duckdb` or `duckdb:////absolute.duckdb` names, or one in memory.

        `create` makes a file that is missing; otherwise that is an AccessError.
        """
        path, asked_read_only = path_of(url)
        options = options or EngineOptions()
        read_only = read_only or asked_read_only
        if path.startswith(MEMORY):
            engine = cls._over(session_of(path) or duckdb.connect(path), options, None)
            engine._memory = path
            return engine
        _check_file(Path(path), create and not read_only)
        mask = umask_guard.enter(Path(path))
        try:
            connection = open_in_thread(
                lambda: duckdb.connect(path, read_only=read_only), duckdb.DuckDBPyConnection.close
            )
            engine = cls._over(connection, options, Path(path).absolute().parent, is_confined=True)
        except BaseException as error:
            umask_guard.leave(mask)
            if isinstance(error, duckdb.Error):
                raise opening_error(error, path) from None
            raise
        engine._mask = mask
        return engine

    @classmethod
    def _over(
        cls,
        connection: duckdb.DuckDBPyConnection,
        options: EngineOptions,
        directory_of_file: Path | None,
        *,
        is_confined: bool = False,
    ) -> DuckDBEngine:
        """An engine that spills to a private directory: where it was told, else beside the database's file.

        An instance that the program has open elsewhere too spills where that one was told, unless this one is; and it
        reaches what that one reaches.
        """
        directory, alone = None, is_alone(connection)
        try:
            if directory_of_file is not None:
                require_own_functions(connection)
            if alone or (options.temp_directory is not None and not confinement(connection)):
                directory = _spill_directory(options.temp_directory, directory_of_file)
            engine = cls(connection, options, directory)
            if is_confined and alone and options.places is not None:
                confine(connection, [str(engine._private()), *options.places])
            return engine
        except BaseException:
            connection.close()
            remove_directory(directory)
            raise

    def _apply_settings(self) -> None:
        """Every setting goes through SET: other connections of this process may share the instance."""
        settings: dict[str, int | bool | Text] = {"TimeZone": Text("UTC"), "preserve_insertion_order": True}
        if self.limits.memory_limit is not None:
            settings["memory_limit"] = Text(self.limits.memory_limit)
        if self.limits.threads is not None:
            settings["threads"] = self.limits.threads
        if self._private_directory is not None:
            settings["temp_directory"] = Text(str(self._private_directory))
        for name, value in settings.items():
            self._set(name, value)
        self._hide_progress_bar()

    def _hide_progress_bar(self) -> None:
        """Turn DuckDB's own bar off, which is written to stdout, where results go.

        In a notebook without ipywidgets DuckDB refuses the setting, and shows no bar.
        """
        statement = self.render("engines/set_setting", name=Identifier("enable_progress_bar"), value=False)
        with contextlib.suppress(duckdb.InvalidInputException):
            self._connection.execute(statement.text)

    def _set(self, name: str, value: int | bool | Text) -> None:
        statement = self.render("engines/set_setting", name=Identifier(name), value=value)
        try:
            self._connection.execute(statement.text)
        except duckdb.Error as error:
            shown = value.value if isinstance(value, Text) else value
            raise PolicyError(f"DuckDB refuses {name} = {shown} ({type(error).__name__}).") from None

    def exchange_directory(self) -> Path:
        return self._private()

    @contextlib.contextmanager
    def grouping_by_number(self, most: int) -> Iterator[None]:
        """An array of a place for each row is as dear as a hash of half the rows; a larger one is read for nothing.

        After an error arrays stay as large as they are made here, which costs memory alone.
        """
        bits = max(_PLACES, min(most.bit_length(), _MOST_PLACES))
        self.run("engines/set_setting", name=Identifier("perfect_ht_threshold"), value=bits)
        yield
        self.run("engines/set_setting", name=Identifier("perfect_ht_threshold"), value=_PLACES)

    def stay_small(self) -> None:
        """Use one thread: a search of a few thousand rows takes three quarters of the processor time then."""
        self.run("engines/set_setting", name=Identifier("threads"), value=1)

    def spill_early(self) -> None:
        """Limit the memory of an instance that nobody else in this process has open: the limit is the instance's."""
        if self.limits.memory_limit is not None or self._private_directory is None:
            return
        threads = self.limits.threads or os.cpu_count() or 1
        limit = max(_LITTLE_MEMORY, threads * _MEMORY_OF_THREAD)
        self.run("engines/set_setting", name=Identifier("memory_limit"), value=Text(f"{limit}MB"))

    @property
    def memory_name(self) -> str:
        return self._memory

    @property
    def version(self) -> str:
        return f"DuckDB {duckdb.__version__}"

    def _fork(self) -> DuckDBEngine:
        """Another connection to the same instance; it doesn't see this one's temporary tables, and ends with it."""
        options = EngineOptions(statement_timeout=self.limits.statement_timeout)
        other = type(self)(self._connection.cursor(), options)
        other._memory = self._memory
        return other

    def close(self) -> None:
        """Close the connection; what was spilled to disk is removed."""
        if not self._worker.close():
            return
        self._connection.close()
        if self._mask is not None:
            umask_guard.leave(self._mask)
        remove_directory(self._private_directory)

    # --- statements

    def _execute(self, statement: Statement) -> int:
        return self._guarded(statement.name, lambda: _written(self._send(statement.text)))

    def _fetch(self, statement: Statement) -> list[tuple[Any, ...]]:
        return self._guarded(statement.name, lambda: self._send(statement.text).fetchall())

    def _fetch_blocks(self, statement: Statement, size: int) -> Iterator[list[tuple[Any, ...]]]:
        sent = self._guarded(statement.name, lambda: self._send(statement.text))
        while block := self._guarded(statement.name, lambda: sent.fetchmany(size)):
            yield block

    def read_records(self, statement: Statement, size: int = BLOCK) -> pyarrow.RecordBatchReader:
        """Run a query whose rows are read as record batches of at most `size`; no other statement meanwhile."""
        return self._guarded(statement.name, lambda: self._connection.sql(statement.text).to_arrow_reader(size))

    def _send(self, text: str) -> duckdb.DuckDBPyConnection:
        """Execute a statement; one that was sent before is not parsed again, a quarter of what a short one takes."""
        if len(text) > _LONG:
            return self._connection.execute(text)
        for parsed in self._parse(text):
            self._connection.execute(parsed)
        return self._connection

    def load(self, table: Relation, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Insert rows as bound lists, one a column: values that are bound one by one take twenty times as long."""
        statement = self.insertion(table, columns)
        pending = iter(rows)
        per_statement = max(1, _LOAD_CHUNK // len(columns))
        while chunk := list(islice(pending, per_statement)):
            for lists in lists_of(chunk):
                self._guarded(statement.name, self._loader(statement, lists))

    def _loader(self, statement: Statement, lists: list[list[Any]]) -> Callable[[], object]:
        return lambda: self._connection.execute(statement.text, lists)

    def _guarded(self, name: str, work: Callable[[], _T]) -> _T:
        """Run `work` on the worker's thread, and explain an error of the driver."""
        try:
            return self._worker.run(work)
        except (duckdb.Error, RuntimeError) as error:
            raise statement_error(error, name) from None

    def cancel(self) -> None:
        with contextlib.suppress(duckdb.ConnectionException):  # closed: nothing runs
            self._connection.interrupt()

    def begin(self) -> None:
        self._guarded("begin", lambda: self._connection.begin())
        self._is_begun = True

    def commit(self) -> None:
        self._is_begun = False  # whatever comes of it: what can't be committed is undone
        self._guarded("commit", lambda: self._connection.commit())

    def rollback(self) -> None:
        self._is_begun = False
        self._guarded("rollback", lambda: self._connection.rollback())

    @property
    def in_transaction(self) -> bool:
        return self._is_begun

    # --- what is there

    def resolve(self, relation: Relation) -> Relation | None:
        """The stored spelling, as written if it can be: DuckDB ignores case. Without a schema: temporary ones first."""
        rows = self.query("engines/find_relation", name=Text(relation.name))
        if not rows:
            return None
        candidates = [Relation(name, schema, catalog) for catalog, schema, name, _ in sorted(rows)]
        candidates.sort(key=lambda candidate: candidate.name != relation.name)
        for catalog, schema in _places(relation, current=rows[0][3]):
            for candidate in candidates:
                if _same(candidate.catalog, catalog) and _same(candidate.schema, schema):
                    return candidate
        return None

    def home(self) -> Relation:
        catalog, schema = self.query_one("engines/locate_schema")
        return Relation("", schema, catalog)

    def relations(self) -> list[Relation]:
        return [Relation(name, schema, catalog) for catalog, schema, name in self.query("engines/list_relations")]

    def relation_type(self, relation: Relation) -> RelationType:
        (kind,) = self.query_one("engines/get_relation_type", **self._place(relation))
        return RelationType.VIEW if kind == "VIEW" else RelationType.TABLE

    def columns(self, relation: Relation) -> list[Column]:
        rows = self._column_rows(relation)
        columns = [Column(name, type_name, kind_of(type_name), nullable) for name, type_name, nullable in rows]
        texts = [Identifier(column.name) for column in columns if column.kind is Kind.TEXT]
        parts = [texts[start : start + TEXTS_A_STATEMENT] for start in range(0, len(texts), TEXTS_A_STATEMENT)]
        tests = [
            test for part in parts for test in self.query_one("engines/find_lax_columns", table=relation, columns=part)
        ]
        lax = {text.name for text, is_lax in zip(texts, tests, strict=True) if is_lax}
        return [replace(column, kind=Kind.OTHER) if column.name in lax else column for column in columns]

    def _column_rows(self, relation: Relation) -> list[tuple[Any, ...]]:
        """Ask for the columns by the whole name, where it is one: to look a name up takes three times as long."""
        if relation.catalog is None or relation.schema is None:
            relation = self._known(relation)
        try:
            return self.query("engines/list_columns", name=Text(str(relation)))
        except EngineError as error:
            if isinstance(error.__context__, duckdb.CatalogException):
                raise _no_table(relation) from None
            raise

    def unique_columns(self, relation: Relation) -> frozenset[str]:
        return frozenset(name for (name,) in self.query("engines/list_unique_columns", **self._place(relation)))

    def reads(self, relation: Relation, table: Relation) -> bool:
        """DuckDB keeps no dependencies of views, but the plan of reading one names the tables that it scans."""
        return relation == table or any(_is_same(name, table) for name in self._scans(relation))

    def sharing(self, relation: Relation) -> list[Relation]:
        if self.relation_type(relation) is not RelationType.VIEW:
            return []
        return list(dict.fromkeys(map(self._known, self._scans(relation))))

    def _scans(self, relation: Relation) -> list[Relation]:
        plans = [plan for _, plan in self.query("engines/explain_relation", relation=relation)]
        return [Relation.parse(name) for plan in plans for name in _scanned(json.loads(plan))]

    def definition_of(self, relation: Relation) -> str | None:
        statements = self.query("engines/show_definition", **self._place(relation))
        return _VIEW.sub("", statements[0][0], count=1) if statements else None

    def _known(self, relation: Relation) -> Relation:
        known = self.resolve(relation)
        if known is None:
            raise _no_table(relation)
        return known

    def _place(self, relation: Relation) -> dict[str, Text]:
        catalog, schema, name = self._known(relation).parts
        return {"catalog": Text(catalog), "schema": Text(schema), "name": Text(name)}

    # --- DuckDB only

    def read_file(self, relation: Relation, path: str, options: ReadOptions | None = None) -> FileReading:
        """Make a temporary relation with the rows of a file, which is read once; see `FileReading`.

        Raises PolicyError for another kind of file or one that is not made as `options` say, AccessError for one that
        is missing or can't be read.
        """
        known = self.temporary(relation.name)
        return FileReader(self, path, source_file(path), options or ReadOptions(), self._private()).read(known)

    def _private(self) -> Path:
        """The directory of this session that only this user can read."""
        if self._private_directory is None:
            self._private_directory = make_private_directory(confinement(self._connection))
        return self._private_directory

    def view_file(self, relation: Relation, path: str) -> Relation:
        """Make a temporary relation with the rows of a file; the name it is known by."""
        return self.read_file(relation, path).relation


def lists_of(rows: Sequence[Sequence[Any]]) -> list[list[list[Any]]]:
    """The rows as one list a column; each row by itself where the values of a column are not all of one type."""
    lists = [list(column) for column in zip(*rows, strict=True)]
    if any(map(_mixes_types, lists)):
        return [[[value] for value in row] for row in rows]
    return [lists]


def _mixes_types(values: list[Any]) -> bool:
    """Tell whether DuckDB would convert values of a list: it has several types for numbers beyond 64 bits."""
    types = {type(value) for value in values if value is not None}
    return len(types) > 1 or (int in types and any(value is not None and abs(value) >= 2**63 for value in values))


def _written(result: duckdb.DuckDBPyConnection) -> int:
    """The rows that a statement wrote: DuckDB answers them in a column `Count`."""
    description = result.description
    if not description or description[0][0] != "Count":
        return -1
    row = result.fetchone()
    return int(row[0]) if row and isinstance(row[0], int) else -1


def _check_file(file: Path, create: bool) -> None:
    if not is_path_in_text(file):
        raise PolicyError(
            f"The path of the DuckDB file {file}, or a directory on it, is not text in UTF-8, which DuckDB asks for;"
            " rename it, or work in another directory."
        )
    if file.is_dir():
        raise AccessError(f"{file} is a directory, not a DuckDB file.")
    if not create and not file.exists():
        raise AccessError(f"There is no DuckDB file {file}.")


def _spill_directory(directory: str | None, directory_of_file: Path | None) -> Path:
    """A private directory: where the user says, else on the disk of the database, else where temporary files go."""
    if directory is None and directory_of_file is not None and os.access(directory_of_file, os.W_OK | os.X_OK):
        return make_private_directory(directory_of_file)
    return make_private_directory(directory)


def _no_table(relation: Relation) -> PolicyError:
    return PolicyError(f"There is no table {relation}.")


def _same(one: str | None, other: str | None) -> bool:
    return one is not None and other is not None and one.lower() == other.lower()


def _is_same(one: Relation, other: Relation) -> bool:
    return all(map(_same, (one.catalog, one.schema, one.name), (other.catalog, other.schema, other.name)))


def _scanned(plan: Any) -> Iterator[str]:
    """The names of the tables that a plan, or a part of one, scans."""
    nodes = plan if isinstance(plan, list) else [plan]
    for node in nodes:
        if "Table" in node.get("extra_info", {}):
            name = node["extra_info"]["Table"]
            yield name if isinstance(name, str) else "\n".join(name)  # a line break parts it
        yield from _scanned(node.get("children", []))


def _places(relation: Relation, current: str) -> list[tuple[str, str]]:
    """List the places where DuckDB looks for a name, as (catalog, schema): `a.t` may mean a schema or a database."""
    if relation.catalog is not None:
        return [(relation.catalog, relation.schema or "main")]
    if relation.schema is not None:
        return [(current, relation.schema), ("temp", relation.schema), (relation.schema, "main")]
    return [("temp", "main"), (current, "main")]
