"""Columns of live tables, and the kinds of their values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """The kind of a column's values, whatever the engine calls the type."""

    INTEGER = "integer"
    DECIMAL = "decimal"
    FLOAT = "float"
    BOOLEAN = "boolean"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIMESTAMPTZ = "timestamptz"
    TIME = "time"
    TEXT = "text"
    UUID = "uuid"
    ENUM = "enum"
    OTHER = "other"

    @property
    def is_numeric(self) -> bool:
        return self in (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT)

    @property
    def is_nominal(self) -> bool:
        """Tell whether the values have no meaningful order, so that a region shows them as a set."""
        return self in (Kind.TEXT, Kind.BOOLEAN, Kind.UUID)

    @property
    def has_day(self) -> bool:
        """Tell whether a value lies on a day of the calendar."""
        return self in (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)

    @property
    def equals_may_differ(self) -> bool:
        """Tell whether equal values may differ byte for byte: -0.0 and 0.0, 1.0 and 1.00."""
        return self in (Kind.FLOAT, Kind.DECIMAL, Kind.OTHER)


@dataclass(frozen=True)
class Column:
    """A column of a live table: its exact name, the engine's type as text, and its kind.

    compares: whether its values can be grouped and sorted as they are; not all types of kind OTHER can.
    has_exact_text: whether the texts of values that differ do, by the macro `text_of_other` where the kind is OTHER.
    is_rescaled: whether the scales of decimals have changed on the way, so that equal numbers are the same value.
    field: an expression of a field of a nested type, such as a view may have as a column.
    """

    name: str
    type: str
    kind: Kind
    nullable: bool = True
    compares: bool = True
    has_exact_text: bool = True
    is_rescaled: bool = False
    field: str = ""

    @property
    def is_padded(self) -> bool:
        """Tell whether blanks at the end of a value are none of it, as in PostgreSQL's CHAR(n)."""
        return self.kind is Kind.TEXT and re.match(r"character\(|character$|bpchar", self.type) is not None

    @property
    def decimals(self) -> int | None:
        """The digits after the point that a decimal type declares, as in DECIMAL(10,2); None where it declares none."""
        match = re.search(r"\(\s*\d+\s*,\s*(\d+)\s*\)", self.type) if self.kind is Kind.DECIMAL else None
        return int(match[1]) if match else None
