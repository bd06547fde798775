"""Connections of drivers, as the catalog uses them: sessions of engines bind no values."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from sqlanon.engines.base import Engine
from sqlanon.support.own_parts import load_part

if TYPE_CHECKING:
    import sqlalchemy

Row = dict[str, Any]
Bound = Mapping[str, Any] | Sequence[Any]


class Driver(Protocol):
    """A driver's connection, as the catalog uses it."""

    errors: type[Exception]

    def transaction(self) -> contextlib.AbstractContextManager[None]:
        """A transaction that sees what others commit meanwhile, where the engine can."""

    def execute(self, text: str, bound: Bound) -> list[Row]:
        """Run a statement; its rows, none of one that has no result."""

    def insert(self, text: str, rows: Sequence[Sequence[Any]]) -> None:
        """Send rows with the statement that inserts rows of such columns; they may hold numbers out of the data."""

    def explain(self, error: Exception) -> tuple[bool, bool]:
        """Tell whether an error means that the connection is lost, and whether it is a refused permission."""

    def alchemy(self) -> sqlalchemy.Engine:
        """SQLAlchemy over this one connection, for migrations."""

    def timestamp(self, value: datetime) -> datetime:
        """A moment as the driver writes it."""


def driver_of(session: Engine) -> Driver:
    """The driver's connection of a session that the catalog has for itself."""
    driver: Driver = load_part(session.traits.catalog_driver)(session.driver_connection)
    return driver
