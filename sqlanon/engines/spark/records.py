"""Records that tasks give back: rows of several tables, and what else there is, in the columns of one.

A record has the number of its `part` and of its `relation`, and is one of two kinds:

- a row of a table that holds rows: the first columns in `c0`, `c1`, …, the others in the list `further`;
- a piece of the delivery, `relation` being `DELIVERY`: `c0` is its place, `payload` the bytes.
"""

from __future__ import annotations

import hashlib
import hmac
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow

from sqlanon.errors import EngineError, SqlanonError

DELIVERY = -1
_PIECE = 8_000_000  # bytes of a delivery in one record
_LIST = pyarrow.list_(pyarrow.int64())


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
