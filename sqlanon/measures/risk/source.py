"""A table whose risk is measured: its quasi-identifiers, and the column that tells whose each row is."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from sqlanon.engines.base import Column, Engine
from sqlanon.errors import PolicyError
from sqlanon.sql import Identifier, Relation
from sqlanon.values.expressions import comparable, shown


@dataclass(frozen=True)
class RiskSource:
    """A table with the columns that its risk is about; see `risk_source`."""

    engine: Engine
    table: Relation
    quasi_identifiers: tuple[Column, ...]
    subject: Column | None = None

    @property
    def keys(self) -> list[Markup | int]:
        """Expressions that are equal where a reader sees the same in all quasi-identifiers; at least one."""
        parts = (self.shown(column) for column in self.quasi_identifiers)
        return list(itertools.chain.from_iterable(parts)) or [0]

    def shown(self, column: Column) -> tuple[Markup, ...]:
        """Expressions that are equal where a reader sees the same in this column."""
        return shown(self.engine, column, Markup(Identifier(column.name)))

    @property
    def person(self) -> Markup | None:
        """The expression that tells persons apart; None without a subject."""
        if self.subject is None:
            return None
        return comparable(self.engine, Markup(Identifier(self.subject.name)), self.subject.kind)


def risk_source(
    engine: Engine, table: Relation, quasi_identifiers: Sequence[str], *, subject: str | None = None
) -> RiskSource:
    """Resolve the columns by their names.

    Raises PolicyError for an unknown column, or one that is named for two purposes.
    """
    there = {column.name: column for column in engine.columns(table)}
    _refuse_doubled(quasi_identifiers, subject)
    return RiskSource(
        engine,
        table,
        tuple(there[name] for name in quasi_identifiers),
        None if subject is None else there[subject],
    )


def _refuse_doubled(quasi_identifiers: Sequence[str], subject: str | None) -> None:
    if len(set(quasi_identifiers)) < len(quasi_identifiers):
        raise PolicyError("A quasi-identifier is named twice.")
    if subject in quasi_identifiers:
        raise PolicyError(f"'{subject}' tells persons apart (the subject), so it can't be a quasi-identifier, too.")
