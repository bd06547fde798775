"""Variance diversity: a numeric sensitive attribute varies in every class (LeFevre, DeWitt, TR 1590, section 2)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from sqlanon.engines.columns import Column
from sqlanon.models.base import Groups, PrivacyModel, Runs, SampleTest, relation
from sqlanon.models.thresholds import RELATIVE_TOLERANCE, rounded_down
from sqlanon.policy import AttributeSection
from sqlanon.sql import Renderer, Statement


@dataclass(frozen=True)
class VarianceDiversity(PrivacyModel):
    """The population variance of `attribute` in every class is at least `v`; the measure is the variance.

    NULL, NaN, infinities, and numbers beyond 1e150, whose square no double holds, are left out; a class without any
    other value has variance 0. Deviations are taken from the least value of the class, so a constant class has
    exactly 0 wherever it lies; as integers of 48 bits, so their sums are exact and their order does not matter. The
    last divisions are a double's: a class violates when its variance < v * (1 - 1e-9).

    Monotone under generalization: the variance of a union is at least the weighted mean of the parts' variances.
    Monotone under suppression of whole classes: a class is judged by its own rows alone.
    """

    name: ClassVar[str] = "variance-diversity"
    judges_shares: ClassVar[bool] = True
    monotone_under_generalization: ClassVar[bool] = True
    monotone_under_suppression: ClassVar[bool] = True

    attribute: str
    v: float

    @property
    def parameters(self) -> dict[str, Any]:
        return {"attribute": self.attribute, "v": self.v}

    @property
    def least(self) -> float:
        """The variance below which a class violates, tolerance included."""
        return self.v * (1 - RELATIVE_TOLERANCE)

    @property
    def sentence(self) -> str:
        return f"In every class the variance of “{self.attribute}” is at least {self.v:g}."

    def problems(self, column: Column | None, attribute: AttributeSection | None, rows: int | None) -> Iterator[str]:  # noqa: ARG002
        if column is not None and not column.kind.is_numeric:
            yield f"a variance needs numbers, and '{column.name}' is {column.type}."

    def sample_test(self, render: Renderer, groups: Groups) -> SampleTest:
        least, measure = float(self.v) * (1 - RELATIVE_TOLERANCE), self.measure(render, groups)
        values = {"avs": groups.avs, "domain": groups.domain, "measure": measure, "least": least}
        return SampleTest("models/test_variance", values)

    def measure(self, render: Renderer, groups: Groups) -> Statement:
        """The population variance of each class."""
        return render(
            "models/measure_variance_diversity",
            avs=relation(groups.avs),
            domain=relation(groups.domain),
            least=self.least,
            integer=render.macro("wide_integer"),
        )

    def measure_prefixes(self, render: Renderer, runs: Runs) -> Statement:
        """Running sums of n, x and x * x: exact in doubles, as x is an integer that counts steps of 2**-b of the node's
        range, with 2b bits for squares and the rest of 53 for rows.

        Rounding to steps moves no value by more than half a step, nor the standard deviation: what is within 0.51
        steps of the threshold is not decided.
        """
        bits = (53 - runs.rows.bit_length()) // 2
        return render(
            "models/measure_prefixes_variance_diversity",
            runs=runs.runs,
            domain=runs.domain,
            bits=min(bits, 16),
            deviation=math.sqrt(self.least),
        )

    def worst_of(self, measures: tuple[float, float]) -> float:
        return min(measures)

    def is_met_by(self, worst: float, rows: int) -> bool:  # noqa: ARG002
        return worst >= self.least

    def attainable(self, measure: float) -> str:
        return f"v: {rounded_down(measure):g}"
