"""delta-disclosure privacy: each value of a sensitive attribute is nearly as frequent in a class as in the whole table.

Source: J. Brickell, V. Shmatikov, KDD 2008, definition 4.

With p the share of a value in the whole table and q the one in a class, |log2(q / p)| < delta for **every** value of
the table: a class that lacks one violates the model, whatever delta is. (ARX looks at the values of the class alone.)
NULL is a value.

Both bounds are on a share, so merging classes that satisfy them gives one that does: monotone under generalization.
Leaving rows out changes p: not monotone under suppression.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from sqlanon.models.base import Groups, PrivacyModel, Runs, relation
from sqlanon.models.thresholds import RELATIVE_TOLERANCE, RUNNING_TOLERANCE, integer_type, rounded_up
from sqlanon.sql import Expression, Renderer, Statement, macro


@dataclass(frozen=True)
class DeltaDisclosure(PrivacyModel):
    """The binary logarithm of q / p is nearer to 0 than `delta`, for every value of `attribute` in every class.

    The measure is the greatest |log2(q / p)|, infinite where a value is missing. The comparison is strict, and rounding
    must not make it hold: a class violates from delta * (1 - 1e-9) on.
    """

    name: ClassVar[str] = "delta-disclosure"
    judges_shares: ClassVar[bool] = True
    monotone_under_generalization: ClassVar[bool] = True
    monotone_under_suppression: ClassVar[bool] = False

    attribute: str
    delta: float

    @property
    def parameters(self) -> dict[str, Any]:
        return {"attribute": self.attribute, "delta": self.delta}

    @property
    def limit(self) -> float:
        """The measure from which on a class violates, tolerance included."""
        return self.delta * (1 - RELATIVE_TOLERANCE)

    @property
    def factor(self) -> float:
        """The factor by which a share must not differ, as far as doubles go."""
        return math.exp2(min(self.limit, 1000.0))

    @property
    def sentence(self) -> str:
        factor = f"{math.exp2(min(self.delta, 1000.0)):.4g}"
        return (
            f"In every class each value of “{self.attribute}” is less than {factor} times as frequent, or rare, as in"
            " the whole table; none is missing."
        )

    def measure(self, render: Renderer, groups: Groups) -> Statement:
        """The greatest |log2(q / p)| of each class."""
        return render(
            "models/measure_delta_disclosure",
            classes=groups.classes,
            avs=relation(groups.avs),
            domain=relation(groups.domain),
            rows=groups.total,
            integer=integer_type(render, groups.rows**2),
            limit=self.limit,
            factor=self.factor,
        )

    def measure_prefixes(self, render: Renderer, runs: Runs) -> Statement:
        """The running greatest share, and for each value the sizes at which its share is too small.

        A value with x rows becomes too rare at a size that is known beforehand, until more of its rows join.
        """
        return render(
            "models/measure_prefixes_delta_disclosure",
            runs=runs.runs,
            domain=runs.domain,
            rows=runs.rows,
            factor=self.factor,
            falls=1 + RUNNING_TOLERANCE,
            stands=1 - RUNNING_TOLERANCE,
        )

    def min_suppressed(self) -> Expression:
        """A part of a class has no more rows of a value than the class, so that it can't have many rows where these are
        few; and no more rows of other values, where these are many."""
        return macro("models.all_but_kept")

    def worst_of(self, measures: tuple[float, float]) -> float:
        return max(measures)

    def is_met_by(self, worst: float, rows: int) -> bool:  # noqa: ARG002
        return worst < self.limit

    def attainable(self, measure: float) -> str:
        return f"delta: {rounded_up(measure, strictly=True):g}"
