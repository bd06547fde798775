"""l-diversity: distinct, entropy, recursive (Machanavajjhala, Gehrke, Kifer, Venkitasubramaniam, ICDE 2006).

All three are monotone under generalization (the paper's section 4.2 proves it for the entropy and the recursive form;
the distinct values of a union are at least those of a part), and under suppression of whole classes, for each class is
judged by its own rows alone.

NULL adds no diversity, unless `counts_null` makes it a value like any other. Somebody whose value is unknown to the
reader of the release may have any value, so a class must satisfy a model whatever values its NULLs stand for. The worst
are those of the most frequent known value: with z NULLs, and counts x1 >= x2 >= ... of the known values, the counts (x1
+ z, x2, ...) majorize every other way of giving the NULLs to values. So entropy is least there (it is Schur-concave),
x1 is greatest and x_l + ... + x_m least; and the distinct values are at least the known ones. A class of NULLs alone
has no distinct value, and is as one of a single value to the other two.

Merging stays monotone. Let f(P) be the least entropy that values for the NULLs of a class P can give, reached by the
value v for P + Q. Giving v to the NULLs of P and of Q apart gives entropies of at least f(P) and f(Q), and by the
paper's theorem their union, which is P + Q with v for all NULLs, has at least the lesser one: f(P + Q) >= min(f(P),
f(Q)). The recursive form goes alike: P and Q, satisfying it whatever their NULLs are, do so with v, and then so does
their union.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

from sqlanon.models.base import Groups, PrivacyModel, Runs, SampleTest, relation
from sqlanon.models.thresholds import (
    INFORMATION_SCALE,
    RELATIVE_TOLERANCE,
    RUNNING_TOLERANCE,
    integer_type,
    logarithm_scale,
    ordinal,
    ratio_of_counts,
    rounded_down,
    rounded_up,
    running_error,
    threshold_of_ratios,
)
from sqlanon.sql import Expression, Relation, Renderer, Statement, macro


class _LDiversity(PrivacyModel):
    """The base of the three l-diversities: at least l values, so at least l rows, in every class."""

    judges_shares: ClassVar[bool] = True
    monotone_under_generalization: ClassVar[bool] = True
    monotone_under_suppression: ClassVar[bool] = True
    counts_null_by_policy: ClassVar[bool] = True

    attribute: str
    l: float  # noqa: E741
    counts_null: bool

    @property
    def least_rows(self) -> int:
        return math.floor(self.l)

    @property
    def parameters(self) -> dict[str, Any]:
        return {"attribute": self.attribute, "l": self.l}

    def worst_of(self, measures: tuple[float, float]) -> float:
        return min(measures)

    def _completed(self, render: Renderer, groups: Groups) -> Relation | Expression:
        """The groups that a test on samples counts: NULLs are a value, or rows of the most frequent one."""
        avs = relation(groups.avs)
        return avs if self.counts_null else render("models/complete_groups", avs=avs)


@dataclass(frozen=True)
class DistinctLDiversity(_LDiversity):
    """Every class holds at least `l` distinct values of `attribute`; the measure is their number."""

    name: ClassVar[str] = "distinct-l-diversity"
    closed_under_union: ClassVar[bool] = True

    attribute: str
    l: int  # noqa: E741
    counts_null: bool = field(default=False, kw_only=True)

    @property
    def sentence(self) -> str:
        return f"Every class holds at least {self.l} different values of “{self.attribute}”."

    def by_rows(self, person: str) -> DistinctLDiversity:  # noqa: ARG002
        """Return the model itself: distinct values are the same, whether rows or persons have them."""
        return self

    def sample_test(self, render: Renderer, groups: Groups) -> None:
        """Values that a sample shows are there."""

    def measure(self, render: Renderer, groups: Groups) -> Statement:
        """The number of distinct sensitive values of each class, exactly."""
        return render(
            "models/measure_distinct_diversity", avs=relation(groups.avs), l=self.l, counts_null=self.counts_null
        )

    def measure_prefixes(self, render: Renderer, runs: Runs) -> Statement:
        """The running number of values that come for the first time, exactly."""
        return render(
            "models/measure_prefixes_distinct_diversity", runs=runs.runs, l=self.l, counts_null=self.counts_null
        )

    def is_met_by(self, worst: float, rows: int) -> bool:  # noqa: ARG002
        return worst >= self.l

    def attainable(self, measure: float) -> str:
        return f"l: {int(measure)}"


@dataclass(frozen=True)
class EntropyLDiversity(_LDiversity):
    """The Shannon entropy H of `attribute` in every class is at least log(l).

    The measure is exp(H), the number of equally frequent values that would have this entropy, so it compares with l.
    Entropy is irrational: a class violates when H < log(l) * (1 - 1e-9).
    """

    name: ClassVar[str] = "entropy-l-diversity"

    attribute: str
    l: float  # noqa: E741
    counts_null: bool = field(default=False, kw_only=True)

    @property
    def least(self) -> float:
        """The entropy below which a class violates, tolerance included."""
        return math.log(self.l) * (1 - RELATIVE_TOLERANCE)

    @property
    def sentence(self) -> str:
        values = f"the values of “{self.attribute}” are as mixed as {self.l:g} equally frequent ones, or more"
        return f"In every class {values}."

    def sample_test(self, render: Renderer, groups: Groups) -> SampleTest:
        completed = self._completed(render, groups)
        values = {"completed": completed, "classes": groups.classes, "least": self.least, "scale": INFORMATION_SCALE}
        return SampleTest("models/test_entropy", values)

    def measure(self, render: Renderer, groups: Groups) -> Statement:
        """exp(H) of each class; logarithms are added as integers, so the result does not depend on their order."""
        scale = logarithm_scale(groups.rows)
        return render(
            "models/measure_entropy_diversity",
            avs=relation(groups.avs),
            least=self.least,
            scale=scale,
            counts_null=self.counts_null,
        )

    def measure_prefixes(self, render: Renderer, runs: Runs) -> Statement:
        """The running sum of n * ln(n): only the values that join change their terms, and the most frequent value's is
        exchanged for the one with the NULLs."""
        error = running_error(runs.rows) * (1 if self.counts_null else 2)
        return render(
            "models/measure_prefixes_entropy_diversity",
            runs=runs.runs,
            falls=self.least - error,
            stands=self.least + error,
            counts_null=self.counts_null,
        )

    def is_met_by(self, worst: float, rows: int) -> bool | None:  # noqa: ARG002
        """`measure` compares the entropy itself, before it is made a number of values."""
        if not worst >= 1:
            return False
        above = math.log(worst) - self.least
        return None if abs(above) <= RUNNING_TOLERANCE else above > 0

    def attainable(self, measure: float) -> str:
        return f"l: {rounded_down(measure):g}"


@dataclass(frozen=True)
class RecursiveLDiversity(_LDiversity):
    """(c, l)-diversity: x1 < c * (x_l + ... + x_m) in every class, x being its value counts in descending order.

    The comparison is strict and a class of fewer than l values violates it. The measure is x1 / (x_l + ... + x_m), and
    must stay below c; it is infinite where there are fewer than l values.
    """

    name: ClassVar[str] = "recursive-l-diversity"

    attribute: str
    c: float
    l: int  # noqa: E741
    counts_null: bool = field(default=False, kw_only=True)

    @property
    def parameters(self) -> dict[str, Any]:
        return {"attribute": self.attribute, "c": self.c, "l": self.l}

    @property
    def sentence(self) -> str:
        return (
            f"In every class the most frequent value of “{self.attribute}” has fewer rows than {self.c:g} times all "
            f"values from the {ordinal(self.l)} most frequent one on."
        )

    def sample_test(self, render: Renderer, groups: Groups) -> SampleTest:
        values = {"completed": self._completed(render, groups), "c": float(self.c), "l": self.l}
        return SampleTest("models/test_recursive", values)

    def measure(self, render: Renderer, groups: Groups) -> Statement:
        """The ratio of each class, compared with c exactly, as c is written: a ratio of 0.3 is not below c: 0.3."""
        c = threshold_of_ratios(self.c, groups.rows)
        return render(
            "models/measure_recursive_diversity",
            avs=relation(groups.avs),
            numerator=c.numerator,
            denominator=c.denominator,
            integer=integer_type(render, groups.rows * max(c.numerator, c.denominator)),
            l=self.l,
            counts_null=self.counts_null,
        )

    def measure_prefixes(self, render: Renderer, runs: Runs) -> Statement:
        """The running greatest count, and the running sum of the l - 1 greatest.

        A value's n rows are its 1st to n-th. With N(x) values that occur x times or more, the j greatest counts add up
        to the sum of min(N(x), j): so a row counts if it is among the first j that are the x-th of their values.
        """
        return render(
            "models/measure_prefixes_recursive_diversity"
            if self.l > 2
            else "models/measure_prefixes_frequent_diversity",
            runs=runs.runs,
            others=self.l - 1,
            falls=float(self.c) * (1 + RUNNING_TOLERANCE),
            stands=float(self.c) * (1 - RUNNING_TOLERANCE),
            counts_null=self.counts_null,
        )

    def min_suppressed(self) -> Expression:
        """Rows m must go until x1 - m < c * tail: the rest has no larger tail (its counts in descending order are
        nowhere larger), and its x1, NULLs included, falls by no more than m. Without a tail all rows must go."""
        return macro("models.lost_rows")

    def worst_of(self, measures: tuple[float, float]) -> float:
        return max(measures)

    def is_met_by(self, worst: float, rows: int) -> bool | None:
        """The ratio of two counts and c, as it is written, are rounded to doubles alike: only if these are equal does
        it take the counts themselves to tell which is greater."""
        if worst != self.c:
            return worst < self.c
        ratio = ratio_of_counts(worst, rows)
        return None if ratio is None else ratio < Fraction(str(self.c))

    def attainable(self, measure: float) -> str:
        if math.isinf(measure):
            return f"no c: there are fewer than {self.l} values"
        return f"c: {rounded_up(measure, strictly=True):g}"
