"""A table whose risk is measured: its quasi-identifiers, and the columns that tell whose each row is."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.errors import PolicyError
from sqlanon.plan.lookup import name_for_people, require_columns
from sqlanon.sql import Expression, Identifier, Relation, macro
from sqlanon.support.suggest import quoted
from sqlanon.values.expressions import comparable, double_of, shown


@dataclass(frozen=True)
class RiskSource:
    """A table with the columns that its risk is about; see `risk_source`.

    nulls_each: whether a row in which the subject is NULL is of another person each.
    counted: the column that says how many members there are, where the table has one row for each class.
    """

    engine: Engine
    table: Relation
    quasi_identifiers: tuple[Column, ...]
    subject: Column | None = None
    weights: Column | None = None
    household: Column | None = None
    nulls_each: bool = False
    counted: Column | None = None

    @property
    def name(self) -> str:
        """The name by which people know the table, or its file."""
        return name_for_people(self.engine, self.table)

    @property
    def keys(self) -> list[Expression]:
        """Expressions that are equal where a reader sees the same in all quasi-identifiers; at least one."""
        parts = (self.shown(column) for column in self.quasi_identifiers)
        return list(itertools.chain.from_iterable(parts))

    def shown(self, column: Column) -> tuple[Expression, ...]:
        """Expressions that are equal where a reader sees the same in this column."""
        return shown(self.engine, column, Markup(Identifier(column.name)))

    @property
    def person(self) -> Expression | None:
        """The expression that tells persons apart; None without a subject."""
        return None if self.subject is None else self._comparable(self.subject)

    @property
    def house(self) -> Expression | None:
        """The expression that tells households apart; None without their column."""
        return None if self.household is None else self._comparable(self.household)

    def _comparable(self, column: Column) -> Expression:
        return comparable(self.engine, Markup(Identifier(column.name)), column.kind)

    def weight(self, otherwise: float = 1.0) -> Expression | float:
        """The weight of a row as a double, NULL where it is none; `otherwise` where no column holds weights."""
        render = self.engine.render
        if self.weights is None:
            return otherwise
        raw = Markup(Identifier(self.weights.name))
        is_finite = render.macro("is_finite_number", raw, self.weights.kind.value)
        return macro("risk.usable", double_of(render, raw, self.weights.kind), is_finite)


def risk_source(
    engine: Engine,
    table: Relation,
    quasi_identifiers: Sequence[str],
    *,
    subject: str | None = None,
    weights: str | None = None,
    household: str | None = None,
    nulls_each: bool = False,
) -> RiskSource:
    """Resolve the columns by their names.

    Raises PolicyError for an unknown column, one that is named for two purposes, or weights that are no numbers.
    """
    if not quasi_identifiers:
        raise PolicyError("No quasi-identifier is named, by which people in the table could be picked.")
    others = {"--subject": subject, "--weights": weights, "--household": household}
    named = [*quasi_identifiers, *(name for name in others.values() if name is not None)]
    require_columns(engine, table, named)
    doubled = sorted({name for name in named if named.count(name) > 1})
    if doubled:
        raise PolicyError(f"A column is of one use alone; {', '.join(quoted(doubled))} is named twice.")
    there = {column.name: column for column in engine.columns(table)}
    if weights is not None and not there[weights].kind.is_numeric:
        raise PolicyError(f"The weights '{weights}' are no numbers.")
    who, weight, house = (None if name is None else there[name] for name in others.values())
    quasi = tuple(there[name] for name in quasi_identifiers)
    return RiskSource(engine, table, quasi, who, weight, house, nulls_each)
