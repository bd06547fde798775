"""Parts of the noise of a release that filters take away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlanon.results.codec import to_json


@dataclass(frozen=True)
class FilteredColumn:
    """The standard deviations of a column's noise and of its released numbers, and what filters take away of the noise.

    together: the part of the noise's variance that a filter of all columns takes away. alone: one of this column.
    """

    name: str
    noise: float
    released: float
    together: float
    alone: float


@dataclass(frozen=True)
class NoiseFilter:
    """Parts of the noise of a release that a filter by principal components takes away.

    components: that it keeps, of as many as there are columns.
    """

    release: str
    rows: int
    components: int
    columns: tuple[FilteredColumn, ...]

    def as_json(self) -> dict[str, Any]:
        """One object of plain values, as `--json` prints it."""
        plain: dict[str, Any] = to_json(self)
        return plain
