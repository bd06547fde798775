"""Statements of the catalog in one transaction: rendered from templates, with bound values."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum
from typing import Any

from sqlanon.catalog.tables import Tables
from sqlanon.engines.driver import Driver, Row
from sqlanon.sql import Identifier, Relation, Renderer, Statement

_CHUNK = 2_000  # bound values a statement


class Transaction:
    """The statements of one transaction."""

    def __init__(self, driver: Driver, render: Renderer, tables: Tables) -> None:
        self._driver = driver
        self._render = render
        self.tables = tables

    def at(self, tables: Tables) -> Transaction:
        """Read the tables of another catalog, in the same transaction."""
        return Transaction(self._driver, self._render, tables)

    def rows(self, template: str, bound: Mapping[str, Any] | None = None, **values: Any) -> list[Row]:
        """Run a template of the catalog with values bound by name; its rows, moments in UTC."""
        return self._send(template, {} if bound is None else bound, tables=self.tables, **values)

    def execute(self, template: str, **values: Any) -> None:
        """Run a template that is about none of the catalog's tables."""
        self._send(template, {}, **values)

    def insert(self, table: Relation, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert rows that all have the same columns."""
        if not rows:
            return
        columns = list(rows[0])
        statement = self.insertion(table, columns)
        chunk = max(1, _CHUNK // len(columns))
        for start in range(0, len(rows), chunk):
            part = [[self._write(value) for value in row.values()] for row in rows[start : start + chunk]]
            self._driver.insert(statement.text, part)

    def insertion(self, table: Relation, columns: Sequence[str]) -> Statement:
        """Write the statement that inserts rows with these columns."""
        return self._statement("insert_rows", table=table, columns=[Identifier(name) for name in columns])

    def _statement(self, template: str, **values: Any) -> Statement:
        """Render a template of the catalog."""
        return self._render(f"catalog/{template}", **values)

    def _send(self, template: str, bound: Mapping[str, Any], **values: Any) -> list[Row]:
        statement = self._statement(template, **values)
        written = {name: self._write(value) for name, value in bound.items()}
        rows = self._driver.execute(statement.text, written)
        return [{name: _read(value) for name, value in row.items()} for row in rows]

    def _write(self, value: Any) -> Any:
        if isinstance(value, datetime):
            return self._driver.timestamp(value)
        return value.value if isinstance(value, Enum) else value


def _read(value: Any) -> Any:
    if not isinstance(value, datetime):
        return value
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


@contextlib.contextmanager
def begun(driver: Driver, render: Renderer, tables: Tables) -> Iterator[Transaction]:
    """A transaction, committed at the end of the block, or undone if it fails."""
    with driver.transaction():
        yield Transaction(driver, render, tables)
