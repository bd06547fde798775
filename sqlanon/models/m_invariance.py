"""m-invariance: whoever holds all releases about a person sees the same sensitive values in all classes of the person.

Source: Xiao, Tao, "m-Invariance: towards privacy preserving re-publication of dynamic datasets", SIGMOD 2007. A class
is m-unique if it has m rows or more, and no two of them have the same value. Releases are m-invariant if all classes
are m-unique, and the classes of a person show the same set of values in all releases. Each class is judged here;
`runs.accounts.sets` holds the sets of a release against those of all earlier ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from sqlanon.engines.columns import Column, Kind
from sqlanon.models.base import Groups, PrivacyModel, relation
from sqlanon.policy import AttributeSection
from sqlanon.sql import Renderer, Statement


@dataclass(frozen=True)
class MInvariance(PrivacyModel):
    """Every class has at least `m` rows, and each of them another value of `attribute`.

    The measure is the number of rows of a class, 0 where a value is there twice, or none is known. Merging classes
    breaks it, and leaving out whole ones does not.
    """

    name: ClassVar[str] = "m-invariance"
    holds_sets: ClassVar[bool] = True
    monotone_under_generalization: ClassVar[bool] = False
    monotone_under_suppression: ClassVar[bool] = True

    attribute: str
    m: int

    @property
    def least_rows(self) -> int:
        return self.m

    @property
    def promised_rows(self) -> int:
        return self.m

    @property
    def parameters(self) -> dict[str, Any]:
        return {"attribute": self.attribute, "m": self.m}

    @property
    def sentence(self) -> str:
        return (
            f"Every class has {self.m} rows or more, each with another value of “{self.attribute}”, and the classes of"
            " a person show the same values in all releases."
        )

    def by_rows(self, person: str) -> MInvariance:  # noqa: ARG002
        """Return the model itself: it is asked of tables of one row a person."""
        return self

    def problems(self, column: Column | None, attribute: AttributeSection | None, rows: int | None) -> Iterator[str]:
        if rows is not None and 0 < rows < self.m:
            yield f"m is {self.m}, but the table holds {'one row' if rows == 1 else f'{rows} rows'}."
        if column is not None and (column.kind in (Kind.FLOAT, Kind.OTHER) or _has_no_scale(column)):
            yield (
                f"values of type {column.type} have several texts, and classes show the same set by these; cast"
                f" '{column.name}' to text, a whole number or a decimal with a scale in a view."
            )
        if attribute is not None and attribute.nulls != "refuse":
            yield "a class with NULL shows no set of values; write nulls: refuse at the attribute."

    def measure(self, render: Renderer, groups: Groups) -> Statement:
        """The rows of each class, exactly; 0 where one of them has NULL, or a value that another one has."""
        return render("models/measure_m_invariance", avs=relation(groups.avs), m=self.m)

    def worst_of(self, measures: tuple[float, float]) -> float:
        return min(measures)

    def is_met_by(self, worst: float, rows: int) -> bool:  # noqa: ARG002
        return worst >= self.m

    def attainable(self, measure: float) -> str:
        return f"m: {int(measure)}"


def _has_no_scale(column: Column) -> bool:
    return column.kind is Kind.DECIMAL and column.decimals is None
