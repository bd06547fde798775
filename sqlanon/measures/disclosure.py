"""What classes tell of sensitive values without anybody being picked: how sure a reader is of the value of a class.

A class whose rows all hold one value tells it of everybody in it, however large k is. NULL is no value: rows that hold
it tell nothing, and are left out of a class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sqlanon.comparing import as_sensitive, shown
from sqlanon.engines.base import Column, Engine
from sqlanon.sql import Identifier, Relation, Statement

THRESHOLDS = (50, 80, 95)  # percent


@dataclass(frozen=True)
class Disclosure:
    """What the classes of a table tell of one sensitive attribute.

    protected: whether a model is about it.
    rows: those that hold a value; one_value: those whose class holds no other value.
    confidence: the greatest share that a value has of a class; None where no row holds a value.
    above: for each of `THRESHOLDS`, the rows in classes of which a value has a greater share.
    """

    attribute: str
    protected: bool
    rows: int
    one_value: int
    confidence: float | None
    above: tuple[int, ...]

    def as_json(self) -> dict[str, Any]:
        """The figures as programs read them."""
        above = {f"above_{percent}": rows for percent, rows in zip(THRESHOLDS, self.above, strict=True)}
        shown = {"attribute": self.attribute, "protected": self.protected, "rows": self.rows}
        return {**shown, "one_value": self.one_value, "confidence": self.confidence, **above}


def disclosure_statement(
    engine: Engine, table: Relation, quasi_identifiers: Sequence[Column], sensitive: Column
) -> Statement:
    """The statement that `measure_disclosure` sends: one row of rows, one_value, confidence, and above, one each."""
    parts = (shown(engine, column, Markup(Identifier(column.name))) for column in quasi_identifiers)
    return engine.render(
        "verify/measure_disclosure",
        table=table,
        keys=[part for each in parts for part in each] or [Markup("0")],
        sensitive=as_sensitive(engine, sensitive, Markup(Identifier(sensitive.name))),
        thresholds=THRESHOLDS,
    )


def measure_disclosure(
    engine: Engine, table: Relation, quasi_identifiers: Sequence[Column], sensitive: Column, *, protected: bool
) -> Disclosure:
    """Measure it of a table, one GROUP BY over it: classes are the groups of equal quasi-identifiers.

    Rows that are suppressed, but shown, are a class like others: a reader sees them.
    """
    statement = disclosure_statement(engine, table, quasi_identifiers, sensitive)
    with engine.grouping_by_hash():
        ((rows, one_value, confidence, *above),) = engine.fetch(statement)
    found = None if confidence is None else float(confidence)
    return Disclosure(sensitive.name, protected, int(rows), int(one_value), found, tuple(map(int, above)))
