"""Sums between declared bounds, to which noise is added: in whole units, so that they and the noise are exact."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from sqlanon.engines.columns import Column, Kind
from sqlanon.errors import PolicyError, QuestionError
from sqlanon.policy import Policy

_MOST_DECIMALS = 9
_MOST = 2**53  # of a bound, in units


@dataclass(frozen=True)
class BoundedColumn:
    """A column that is summed in units of its last decimal: values below `low` count as it, those above `high` as that.

    NULL adds nothing. most: the rows of a person that add, as far as a sum is between bounds too; 1 of rows.
    """

    column: Column
    decimals: int
    low: int
    high: int
    most: int

    @property
    def sensitivity(self) -> int:
        """The most by which the sum changes when a row, or a person, is added or removed."""
        return self.most * max(abs(self.low), abs(self.high))

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the greatest sum of one person."""
        return min(0, self.most * self.low), max(0, self.most * self.high)

    def literal(self, bound: int) -> Decimal | int:
        """A bound as the column has it."""
        return Decimal(bound).scaleb(-self.decimals) if self.decimals else bound

    def written(self, units: int) -> str:
        """Write a sum as people read it."""
        return f"{Decimal(units).scaleb(-self.decimals):f}"


def bounded_column(policy: Policy, name: str, column: Column | None, most: int) -> BoundedColumn:
    """Find the bounds of a column by the domain that the policy declares; nothing is looked up.

    Raises QuestionError where it has none, PolicyError where it is no column of whole numbers or decimals.
    """
    attribute = policy.attributes.get(name)
    domain = None if attribute is None else attribute.domain
    if domain is None or column is None or attribute is None or attribute.is_omitted:
        raise QuestionError(
            f"'{name}' has no declared domain, {{from: …, below: …}}, and nothing else bounds what one row adds to a"
            " sum. Ask how many rows there are, or declare it."
        )
    decimals = 0 if column.kind is Kind.INTEGER else column.decimals
    if column.kind not in (Kind.INTEGER, Kind.DECIMAL) or decimals is None or decimals > _MOST_DECIMALS:
        raise PolicyError(
            f"'{name}' is {column.type}, and noise is added to whole numbers and to decimals of up to {_MOST_DECIMALS}"
            " digits after the point: ask of a view that has it as NUMERIC(18, 2) or the like."
        )
    unit = Fraction(10) ** decimals
    low, high = math.floor(domain.first * unit), math.ceil(Fraction(repr(domain.below)) * unit)
    bounded = BoundedColumn(column, decimals, low, high, most)
    if max(abs(low), abs(high)) * most > _MOST:
        raise PolicyError(f"'{name}' has a domain too wide for exact sums; declare a narrower one.")
    return bounded
