"""Orders of magnitude of whole numbers: 10 to 99 are alike, and so are 100 to 999; above them, the signs.

In a base b, level 1 groups the numbers from b^n to below b^(n+1), and their negatives; 0 is alone. Level 2 has positive
numbers, 0 and negative ones.
"""

from __future__ import annotations

from itertools import pairwise

from pydantic import Field

from sqlanon.engines.columns import Column, Kind
from sqlanon.hierarchies.computed import ComputedHierarchy
from sqlanon.policy import HierarchyParameters
from sqlanon.sql import Expression, Renderer, Statement, Text

LARGEST = 2**63  # orders from here on are one


class Parameters(HierarchyParameters):
    """Whole numbers: their orders of magnitude, and above these their signs."""

    base: int = Field(default=10, ge=2, le=1000)
    """The number by which orders differ."""


class Magnitude(ComputedHierarchy):
    """Orders of magnitude, and signs."""

    Parameters = Parameters
    levels = 2

    def problems(self, column: Column) -> list[str]:
        if column.kind is not Kind.INTEGER:
            return [f"magnitude needs whole numbers, and the column is {column.type}."]
        return []

    def labels(self, render: Renderer, column: Column, values: Expression) -> Statement:  # noqa: ARG002
        """The order and the sign of each value: comparisons with the powers of the base, the greatest first."""
        orders = [
            {"least": low, "above": Text(f"{low}-{high - 1}"), "below": Text(f"-{high - 1}--{low}")}
            for low, high in self._orders()
        ]
        return render("sqlanon_example:label_magnitudes", values=values, orders=orders)

    def _orders(self) -> list[tuple[int, int]]:
        """The least number of each order and of the next one, the greatest order first."""
        powers, base = [1], self.parameters.base
        while powers[-1] < LARGEST:
            powers.append(powers[-1] * base)
        return list(pairwise(powers))[::-1]
