"""What runs leave until they end: work tables that are to be dropped, and checkpoints to take a run up from."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime

from sqlalchemy import Connection, delete, insert, select

from sqlanon.catalog import queries
from sqlanon.catalog.access import Access
from sqlanon.catalog.records import LedgerEntry
from sqlanon.sql import Relation


class Ledger(Access):
    """The ledger of a catalog."""

    def ledger_add(self, entry: LedgerEntry) -> None:
        """Note, before it is made, a table that a run makes."""
        values = dataclasses.asdict(entry) | {"relation": str(entry.relation), "created": datetime.now(UTC)}
        self._write("note a work table", insert(self._tables.work_tables).values(values))

    def ledger_remove(self, *entries: LedgerEntry) -> None:
        """Forget tables that are dropped."""

        def forget(connection: Connection) -> None:
            for entry in entries:
                connection.execute(queries.remove_from_ledger(self._tables, entry))

        self._connection.do("forget work tables", forget)

    def ledger(self, run: str) -> list[LedgerEntry]:
        """The tables that a run may have left."""
        table = self._tables.work_tables
        rows = self._read(select(table).where(table.c.run == run).order_by(table.c.relation))
        return [
            LedgerEntry(row["run"], Relation.parse(row["relation"]), row["database"], row["is_prefix"]) for row in rows
        ]

    def record_checkpoint(self, run: str, content: str) -> None:
        """Record from what a run can be taken up if it is stopped."""
        self._write("record a checkpoint", insert(self._tables.checkpoints).values(run=run, content=content))

    def checkpoint(self, run: str) -> str | None:
        """From what a run can be taken up; None where there is nothing."""
        table = self._tables.checkpoints
        return next((row["content"] for row in self._read(select(table).where(table.c.run == run))), None)

    def forget_checkpoint(self, run: str) -> None:
        """The tables of a run are dropped: it can't be taken up any more."""
        table = self._tables.checkpoints
        self._write("forget a checkpoint", delete(table).where(table.c.run == run))
