"""Average re-identification risk: of a row, by somebody who knows that it is in the release, on the mean over all rows.

A row of a class of n rows is picked rightly with the chance 1/n. Its mean over the rows is the number of the classes
over that of the rows (Dankar, El Emam, "A method for evaluating marketer re-identification risk", PAIS 2010; the
average risk of ARX).

Merging classes leaves fewer of them with as many rows: monotone under generalization. Leaving out a large class raises
the mean, so it is not monotone under suppression; leaving out the smallest never does, for it is no larger than the
mean class.

The smallest classes are also the fewest rows to leave out. Of c classes and n rows, c <= a n must hold: a class of s
rows that goes brings that nearer by 1 - a s, the more the smaller it is, and costs s rows. If any j classes suffice,
the j smallest do, with no more rows. What suffices in a table does so where its classes are merged: those that stay
become no more, and have no fewer rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

from sqlanon.models.table_model import Sizes, SmallestClasses, TableModel
from sqlanon.models.thresholds import ratio_of_counts, rounded_up


@dataclass(frozen=True)
class AverageRisk(TableModel):
    """The mean of 1/size over the rows of the release is at most `risk`, compared exactly, as `risk` is written."""

    name: ClassVar[str] = "average-risk"
    monotone_under_generalization: ClassVar[bool] = True
    monotone_under_suppression: ClassVar[bool] = False
    closed_under_union: ClassVar[bool] = True

    risk: float
    attribute: str | None = field(default=None, init=False)

    @property
    def parameters(self) -> dict[str, Any]:
        return {"risk": self.risk}

    @property
    def sentence(self) -> str:
        return (
            f"Somebody who knows that a row is in the release picks it rightly with a chance of at most"
            f" {100 * self.risk:.6g}%, on the mean over all rows; of a row in a small class the chance is greater."
        )

    @property
    def _exact(self) -> Fraction:
        return Fraction(str(self.risk))

    def figure(self, sizes: Sizes) -> float:
        """Classes over rows."""
        return sum(sizes.values()) / _rows(sizes)

    def is_satisfied_by(self, sizes: Sizes) -> bool:
        return self._excess(sizes) <= 0

    def leave_out(self, sizes: Sizes) -> SmallestClasses:
        """The classes that go bring the excess down to 0, each by what it has of it."""
        excess = self._excess(sizes)
        for size in sorted(sizes):
            if excess <= 0:
                break
            each = self._exact.denominator - self._exact.numerator * size
            if each * sizes[size] >= excess:  # never where `each` is not above 0: larger classes alone have no excess
                return SmallestClasses(size, -(-excess // each))
            excess -= each * sizes[size]
        return SmallestClasses()

    def _excess(self, sizes: Sizes) -> int:
        """The classes beyond `risk` times the rows, in whole parts."""
        return self._exact.denominator * sum(sizes.values()) - self._exact.numerator * _rows(sizes)

    def is_met_by(self, worst: float, rows: int) -> bool | None:
        """The figure and `risk` are rounded to doubles by one rule: only if they are equal do the counts decide."""
        if worst != self.risk:
            return worst < self.risk
        share = ratio_of_counts(worst, rows)
        return None if share is None else share <= self._exact

    def attainable(self, measure: float) -> str:
        return f"risk: {rounded_up(measure):g}"


def _rows(sizes: Sizes) -> int:
    return sum(size * classes for size, classes in sizes.items())
