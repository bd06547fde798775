"""A task of an executor: rows that arrive as records, an embedded DuckDB that holds them, the work, what came of it."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import pickle
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow
from pyspark import TaskContext

import sqlanon
from sqlanon.engines.duckdb.engine import DuckDBEngine
from sqlanon.engines.duckdb.exchange import RECEIVED, column_types, create_table, read_table, received
from sqlanon.engines.embedded import MEMORY_URL
from sqlanon.engines.private_files import remove_dead_directories
from sqlanon.engines.session_limits import EngineOptions, kilobytes
from sqlanon.errors import EngineError, SqlanonError
from sqlanon.sql import Identifier, Text

_ROWS_AT_ONCE = 500_000  # that are in memory as records before DuckDB takes them


_SHARE = 2  # of the memory that DuckDB would take, a half is for Spark and Python


_ROW_COLUMNS = {"p0", "x0"}  # of tables that hold rows, or tuples of their codes


WHOLE_TYPES: Mapping[str, str] = {
    "BOOLEAN": "BOOLEAN",
    "TINYINT": "TINYINT",
    "SMALLINT": "SMALLINT",
    "INTEGER": "INT",
    "BIGINT": "BIGINT",
    "UTINYINT": "SMALLINT",
    "USMALLINT": "INT",
    "UINTEGER": "BIGINT",
}


DELIVERY = -1


_PIECE = 8_000_000  # bytes of a delivery in one record


_LIST = pyarrow.list_(pyarrow.int64())


"""The types of columns beside rows, with the types that they have on Spark."""


def versions() -> tuple[str, str]:
    """Return the versions of the program and of DuckDB, by which executors decide as the driver would."""
    return sqlanon.__version__, duckdb.__version__


@dataclass(frozen=True)
class ArrivingTable:
    """A table of rows in the records that arrive: its name, and its columns with those of the record."""

    name: str
    columns: tuple[tuple[str, str], ...]

    @property
    def described(self) -> list[dict[str, Identifier]]:
        """The columns for templates."""
        return [{"name": Identifier(name), "source": Identifier(source)} for name, source in self.columns]


@dataclass(frozen=True)
class CarriedWork:
    """Work in pickled form, one for each part, with all that tasks need for it.

    arriving: the tables of rows, by their numbers in the records, which have this `schema`.
    tables: the others, as Arrow streams, by name.
    memory, threads: limits of the DuckDB of one task; None for what the task finds.
    made_by: the versions of the driver.
    """

    works: tuple[bytes, ...]
    arriving: tuple[ArrivingTable, ...]
    schema: pyarrow.Schema
    tables: Mapping[str, bytes]
    layout: RecordLayout
    memory: str | None
    threads: int | None
    made_by: tuple[str, str]

    def run(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        """Carry out the part of this task over the records that arrive, and yield what came of it as records.

        An error of the work is delivered: a task that fails would be tried again.
        """
        part = _task().partitionId()
        try:
            yield from self._carry_out(part, batches)
        except Exception as error:
            for _ in batches:
                pass  # the process of a task that leaves records is not used again
            yield from self.layout.delivery(part, Delivery(error=error_of_work(error)))

    def _carry_out(self, part: int, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        if versions() != self.made_by:
            theirs, ours = (f"sqlanon {program} and DuckDB {driver}" for program, driver in (versions(), self.made_by))
            raise EngineError(f"Executors have {theirs}, this program {ours}: install the same in their Python.")
        with contextlib.closing(self._open()) as engine:
            self._load(engine, batches)
            before = temporary_tables(engine)
            value = pickle.loads(self.works[part])(engine)
            after = temporary_tables(engine)
            dropped = tuple(name for name, number in before.items() if after.get(name) != number)
            made = [name for name, number in after.items() if before.get(name) != number]
            rows, tables = divide_tables(engine, made)
            for table in rows:
                for batch in self._read_rows(engine, table):
                    yield self.layout.rows(part, table, batch)
            others = {name: to_bytes(read_table(engine, engine.temporary(name))) for name in tables}
        yield from self.layout.delivery(part, Delivery(value, None, rows, others, dropped))

    def _open(self) -> DuckDBEngine:
        """Open a DuckDB in memory, which spills to the place that Spark has for that."""
        place = os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0] or None
        if place is not None:
            with contextlib.suppress(FileNotFoundError):  # another task removes the same
                list(remove_dead_directories(Path(place)))
        threads = self.threads or _task().cpus()
        engine = DuckDBEngine.connect(MEMORY_URL, EngineOptions(self.memory, threads, place))
        if self.memory is None:
            limit = f"{_memory_of_task(engine, len(self.works))}KiB"
            engine.run("engines/set_setting", name=Identifier("memory_limit"), value=Text(limit))
        return engine

    def _load(self, engine: DuckDBEngine, batches: Iterable[pyarrow.RecordBatch]) -> None:
        """Create the tables that are given: those of rows from the records that arrive, in any order."""
        for name, content in self.tables.items():
            create_table(engine, engine.temporary(name), from_bytes(content))
        tables = [
            {"table": engine.temporary(one.name), "received": RECEIVED, "columns": one.described}
            for one in self.arriving
        ]
        with received(engine, self.schema.empty_table()):
            for values in tables:
                engine.run("engines/create_arriving", **values)
        for records in _in_chunks(batches):
            with received(engine, records):
                for number in records.column("relation").unique().to_pylist():
                    engine.run("engines/insert_arriving", **tables[number], relation=number)

    def _read_rows(self, engine: DuckDBEngine, table: RowTable) -> Iterator[pyarrow.RecordBatch]:
        names = [Identifier(name) for name, _ in table.columns]
        width = self.layout.width
        statement = engine.render(
            "engines/select_whole_numbers",
            table=engine.temporary(table.name),
            columns=names[:width],
            more=names[width:],
        )
        return iter(engine.read_records(statement))


def _task() -> TaskContext:
    task = TaskContext.get()
    assert task is not None, "in an executor"
    return task


def temporary_tables(engine: DuckDBEngine) -> dict[str, int]:
    """List the temporary tables and views by name, with numbers that change when one is replaced."""
    return {name: int(number) for name, number in engine.query("engines/list_temporary")}


def divide_tables(engine: DuckDBEngine, names: Iterable[str]) -> tuple[tuple[RowTable, ...], list[str]]:
    """Divide tables into those that hold rows, with their columns, and the names of the others.

    Raises EngineError where there is a column beside rows that is no whole number of 64 bits.
    """
    rows: list[RowTable] = []
    others: list[str] = []
    for name in names:
        columns = tuple(column_types(engine, engine.temporary(name)))
        if _ROW_COLUMNS.isdisjoint(dict(columns)):
            others.append(name)
            continue
        if wrong := next((column for column, kind in columns if kind not in WHOLE_TYPES), None):
            raise EngineError(f"The column {wrong} of work table {name} is no whole number that Spark keeps.")
        rows.append(RowTable(len(rows), name, columns))
    return tuple(rows), others


def error_of_work(error: Exception) -> SqlanonError:
    """Explain an error of the work: the program's own as it is, of any other its kind, as its text may hold values."""
    if isinstance(error, SqlanonError):
        return error
    if isinstance(error, ImportError):
        return EngineError(f"Executors of Spark lack the Python module {error.name}: install it in their Python.")
    return EngineError(f"The work failed in an executor ({type(error).__name__}).")


def _in_chunks(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.Table]:
    """Put batches together, as each is small."""
    waiting: list[pyarrow.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(one.num_rows for one in waiting) >= _ROWS_AT_ONCE:
            yield pyarrow.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pyarrow.Table.from_batches(waiting)


def _memory_of_task(engine: DuckDBEngine, parts: int) -> int:
    """The kilobytes for one of so many tasks, which may all run on this machine at once."""
    (limit,) = engine.query_one("engines/get_memory_limit")
    own: Any = os.environ.get("PYSPARK_EXECUTOR_MEMORY_MB")
    most = int(own) * 1024 if own else kilobytes(limit) // min(parts, os.cpu_count() or 1)
    return most // _SHARE


@dataclass(frozen=True)
class RowTable:
    """A table of rows in the records: its number, its name, and its columns with their types in the session there."""

    number: int
    name: str
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Delivery:
    """The outcome of one part of the work, but for rows.

    value: what the work returned. error: what it raised, if anything.
    rows: the tables whose rows are in the records; tables: the others, as Arrow streams, by name.
    dropped: the names of tables that it was given and has dropped, or replaced.
    """

    value: Any = None
    error: SqlanonError | None = None
    rows: tuple[RowTable, ...] = ()
    tables: Mapping[str, bytes] | None = None
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True)
class RecordLayout:
    """The columns of records of one part.

    width: the number of columns `c0`, `c1`, ….
    key: of the signature that deliveries have, as unpickling them runs what is in them.
    """

    width: int
    key: bytes

    @property
    def columns(self) -> list[str]:
        """The columns of whole numbers."""
        return [f"c{place}" for place in range(self.width)]

    @property
    def schema(self) -> str:
        """The schema of records as Spark writes it."""
        numbers = ", ".join(f"{name} BIGINT" for name in self.columns)
        return f"part INT, relation INT, {numbers}, further ARRAY<BIGINT>, payload BINARY"

    def rows(self, part: int, table: RowTable, batch: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
        """Write rows, whose columns are whole numbers and, where they are more than the record has, one list."""
        numbers = list(batch.columns[: self.width])
        further = batch.columns[self.width].cast(_LIST) if batch.num_columns > self.width else None
        return self._records(part, table.number, batch.num_rows, numbers, further=further)

    def delivery(self, part: int, delivery: Delivery) -> Iterator[pyarrow.RecordBatch]:
        """Write a delivery in pieces."""
        pickled = pickle.dumps(delivery)
        content = self._sign(pickled) + pickled
        for place, start in enumerate(range(0, len(content), _PIECE)):
            payload = pyarrow.array([content[start : start + _PIECE]], pyarrow.binary())
            yield self._records(part, DELIVERY, 1, [pyarrow.array([place], pyarrow.int64())], payload=payload)

    def read_delivery(self, content: bytes) -> Delivery:
        """Read a delivery from all its pieces; raises EngineError for one that no task of this work wrote."""
        size = hashlib.sha256().digest_size
        if not hmac.compare_digest(content[:size], self._sign(content[size:])):
            raise EngineError("What a task of Spark gave back has been changed by others. Nothing of it was used.")
        delivery: Delivery = pickle.loads(content[size:])
        return delivery

    def _sign(self, content: bytes) -> bytes:
        return hmac.digest(self.key, content, "sha256")

    def _records(
        self,
        part: int,
        relation: int,
        count: int,
        numbers: list[pyarrow.Array],
        *,
        further: pyarrow.Array | None = None,
        payload: pyarrow.Array | None = None,
    ) -> pyarrow.RecordBatch:
        missing = pyarrow.nulls(count, pyarrow.int64())
        integer = pyarrow.int32()
        arrays = [
            pyarrow.repeat(pyarrow.scalar(part, integer), count),
            pyarrow.repeat(pyarrow.scalar(relation, integer), count),
            *numbers,
            *(missing for _ in range(self.width - len(numbers))),
            pyarrow.nulls(count, _LIST) if further is None else further,
            pyarrow.nulls(count, pyarrow.binary()) if payload is None else payload,
        ]
        return pyarrow.RecordBatch.from_arrays(arrays, ["part", "relation", *self.columns, "further", "payload"])


def to_bytes(table: pyarrow.Table) -> bytes:
    """Write an Arrow table as a compressed stream."""
    sink = pyarrow.BufferOutputStream()
    options = pyarrow.ipc.IpcWriteOptions(compression="zstd")
    with pyarrow.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def from_bytes(content: bytes) -> pyarrow.Table:
    """Read an Arrow table from a stream."""
    with pyarrow.ipc.open_stream(content) as reader:
        return reader.read_all()
