"""Facts of a source that plans look at too."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SourceColumn:
    """A column of a source: its name and type as the database writes them."""

    name: str
    type: str


@dataclass(frozen=True)
class Origin:
    """The kind of a source, such as a table or a view, and the role that owns it, where there are owners."""

    kind: str
    owner: str | None

    def __str__(self) -> str:
        return self.kind if self.owner is None else f"{self.kind} of role {self.owner}"


@dataclass(frozen=True)
class RepeatingColumn:
    """An identifier that repeats: the rows that hold it, how many values it has, and the rows of the busiest."""

    column: str
    rows: int
    values: int
    most_rows: int

    def __str__(self) -> str:
        return (
            f"'{self.column}' repeats ({self.rows:,} rows, {self.values:,} different values, up to"
            f" {self.most_rows:,} rows of one)"
        )
