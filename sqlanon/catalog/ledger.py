"""Ledger of unfinished runs: work tables that are to be dropped, and checkpoints to resume a run from."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime

from sqlanon.catalog.access import Access
from sqlanon.catalog.records import LedgerEntry
from sqlanon.catalog.transaction import Transaction
from sqlanon.sql import Relation


class Ledger(Access):
    """The ledger of a catalog."""

    def ledger_add(self, entry: LedgerEntry) -> None:
        """Note, before it is made, a table that a run makes."""
        values = dataclasses.asdict(entry) | {"relation": str(entry.relation), "created": datetime.now(UTC)}
        self._insert("note a work table", self._tables.work_tables, values)

    def ledger_remove(self, *entries: LedgerEntry) -> None:
        """Forget tables that are dropped."""

        def forget(transaction: Transaction) -> None:
            for entry in entries:
                bound = {"run": entry.run, "relation": str(entry.relation), "database": entry.database}
                transaction.rows("delete_from_ledger", bound)

        self._connection.do("forget work tables", forget)

    def ledger(self, run: str) -> list[LedgerEntry]:
        """The tables that a run may have left."""
        rows = self._rows("select_ledger", {"run": run})
        return [
            LedgerEntry(row["run"], Relation.parse(row["relation"]), row["database"], row["is_prefix"]) for row in rows
        ]

    def record_checkpoint(self, run: str, content: str) -> None:
        """Record from what a run can be taken up if it is stopped."""
        self._insert("record a checkpoint", self._tables.checkpoints, {"run": run, "content": content})

    def checkpoint(self, run: str) -> str | None:
        """From what a run can be taken up; None where there is nothing."""
        return next((row["content"] for row in self._rows("select_checkpoint", {"run": run})), None)

    def forget_checkpoint(self, run: str) -> None:
        """The tables of a run are dropped: it can't be taken up any more."""
        self._change("forget a checkpoint", "delete_of_run", {"run": run}, of="checkpoints")
