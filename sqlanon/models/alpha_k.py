"""(alpha, k)-anonymity: every class is large, and no value of a sensitive attribute has a large share of it.

Source: R. C.-W. Wong, J. Li, A. W.-C. Fu, K. Wang, KDD 2006: section 2 for one sensitive value, and its general form
for all values of the attribute.

Merging two classes gives no value a larger share than it had in one of them, and a class is judged by its own rows
alone: monotone under generalization and under suppression of whole classes.

A row whose value is NULL may have any value, so it counts as one of the most frequent value, or of the most frequent
named one, unless the policy takes NULL for a value. With f(P) the greatest share that values for the NULLs of a class P
can give, some value has it in P + Q; there it has the mean of its shares in P and Q, weighted by rows, and these are at
most f(P) and f(Q).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

from sqlanon.models.base import Groups, PrivacyModel, Runs, SampleTest, relation
from sqlanon.models.thresholds import (
    RUNNING_TOLERANCE,
    integer_type,
    ratio_of_counts,
    rounded_up,
    threshold_of_ratios,
)
from sqlanon.sql import Expression, RedactedValue, Renderer, Statement, macro


@dataclass(frozen=True)
class AlphaK(PrivacyModel):
    """Every class holds at least `k` rows, of which each value of `attribute` has at most the share `alpha`.

    values: the texts of the values whose share is bounded; None for all values.

    The measure is the greatest share; infinite in a class of fewer than k rows. It is compared with alpha exactly, as
    alpha is written.
    """

    name: ClassVar[str] = "alpha-k"
    monotone_under_generalization: ClassVar[bool] = True
    monotone_under_suppression: ClassVar[bool] = True
    counts_null_by_policy: ClassVar[bool] = True

    attribute: str
    alpha: float
    k: int
    values: tuple[str, ...] | None = None
    counts_null: bool = field(default=False, kw_only=True)

    @property
    def parameters(self) -> dict[str, Any]:
        named = {} if self.values is None else {"values": list(self.values)}
        return {"attribute": self.attribute, "alpha": self.alpha, "k": self.k, **named}

    @property
    def least_rows(self) -> int:
        """Some value has a row: where the share of every value is bounded, this one is at most alpha."""
        return max(self.k, math.ceil(1 / self._exact)) if self.values is None else self.k

    @property
    def promised_rows(self) -> int | None:
        return self.k

    @property
    def named_values(self) -> tuple[str, ...]:
        return self.values or ()

    @property
    def sentence(self) -> str:
        least = f"{self.k:,} rows" if self.k > 1 else "one row"
        return (
            f"Every class holds at least {least}, and no more than {100 * self.alpha:.6g}% of its rows"
            f" {in_common(len(self.named_values))} of “{self.attribute}”."
        )

    @property
    def _exact(self) -> Fraction:
        return Fraction(str(self.alpha))

    def sample_test(self, render: Renderer, groups: Groups) -> SampleTest:
        """Test the shares; that a class has k rows is tested for all models at once."""
        shares = AlphaK(self.attribute, self.alpha, 1, self.values, counts_null=self.counts_null)
        measure = shares.measure(render, groups)
        values = {"avs": relation(groups.avs), "alpha": float(self.alpha), "measure": measure}
        return SampleTest("models/test_share", values)

    def measure(self, render: Renderer, groups: Groups) -> Statement:
        """The greatest share of each class; its other rows are compared with 1 - alpha as a fraction, in integers."""
        least = threshold_of_ratios(1 - self._exact, groups.rows)
        return render(
            "models/measure_alpha_k",
            avs=relation(groups.avs),
            domain=relation(groups.domain),
            numerator=least.numerator,
            denominator=least.denominator,
            integer=integer_type(render, groups.rows * max(least.numerator, least.denominator)),
            others=float(1 - self._exact),
            k=self.k,
            names=self._names,
            counts_null=self.counts_null,
        )

    def measure_prefixes(self, render: Renderer, runs: Runs) -> Statement:
        """The running greatest count, with the NULLs so far."""
        return render(
            "models/measure_prefixes_alpha_k",
            runs=runs.runs,
            domain=runs.domain,
            falls=self.alpha * (1 + RUNNING_TOLERANCE),
            stands=self.alpha * (1 - RUNNING_TOLERANCE),
            k=self.k,
            names=self._names,
            counts_null=self.counts_null,
        )

    @property
    def _names(self) -> list[RedactedValue] | None:
        return None if self.values is None else [RedactedValue(text) for text in self.values]

    def min_suppressed(self) -> Expression:
        """No part of a class, in which m rows do not count for the most frequent value, has more rows than
        m / (1 - alpha), nor less than k."""
        return macro("models.all_but_kept")

    def worst_of(self, measures: tuple[float, float]) -> float:
        return max(measures)

    def is_met_by(self, worst: float, rows: int) -> bool | None:
        """The share and alpha, as it is written, are rounded to doubles by one rule: only if these are equal does it
        take the counts themselves to tell which is greater."""
        if worst != self.alpha:
            return worst < self.alpha
        share = ratio_of_counts(worst, rows)
        return None if share is None else share <= self._exact

    def attainable(self, measure: float) -> str:
        if math.isinf(measure):
            return f"no alpha: there are fewer than {self.k} rows"
        return f"alpha: {rounded_up(measure):g}"


def in_common(named: int) -> str:
    """The words for what rows may have in common; the values that a policy names stay unnamed."""
    if named == 0:
        return "share a value"
    return "have the value that the policy names" if named == 1 else f"share one of the {named:,} values that it names"
