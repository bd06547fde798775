"""delta-presence: of the members of a population that fit a class, at most a share is in the release.

Source: M. E. Nergiz, M. Atzori, C. Clifton, "Hiding the presence of individuals from shared databases", SIGMOD 2007,
definition 2, with a delta_min of 0.

Somebody who knows a member's values in the population, and not who was drawn, finds the class that the member fits. The
probability that the member is in the release is the rows of the class over those of the population that fit it.

That ratio, of a union of classes, lies between the ratios of its parts: monotone under generalization. A class that
satisfies the model may violate it when others join: not closed under union. It is judged by its own rows and those
that fit it, and the population stays as it is whatever is left out: monotone under suppression of whole classes.
Whoever fits a class that was left out is not in the release.

A delta_min above 0 is a claim about these people too, and about all whose labels no row of the source shows: they are
certainly not in the release. No class of the release tells of them, so it is no model of classes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

from markupsafe import Markup

from sqlanon.models.base import Groups, PrivacyModel, relation
from sqlanon.models.numbers import rounded_up, threshold_of_ratios
from sqlanon.sql import Renderer, Statement, macro

_MOST_MEMBERS = 2**53  # rows of a population: products with the rows of a table fit the engines' wide integers


@dataclass(frozen=True)
class DeltaPresence(PrivacyModel):
    """Of the rows of the table `population` that fit a class, its own are at most the share `maximum`.

    The measure is that share, infinite where a class fits no row. It is compared with `maximum` exactly, as that is
    written.
    """

    name: ClassVar[str] = "delta-presence"
    monotone_under_generalization: ClassVar[bool] = True
    monotone_under_suppression: ClassVar[bool] = True

    maximum: float
    population: str
    attribute: str | None = field(default=None, init=False)

    @property
    def parameters(self) -> dict[str, Any]:
        return {"maximum": self.maximum, "population": self.population}

    @property
    def sentence(self) -> str:
        return (
            f"Of the rows of {self.population} that fit a class, no more than {100 * self.maximum:.6g}% are in the"
            " release, so that nobody is known to be in it with a greater probability."
        )

    @property
    def _exact(self) -> Fraction:
        return Fraction(str(self.maximum))

    def measure(self, render: Renderer, groups: Groups) -> Statement:
        """The share of each class; its inverse, whose denominator the table bounds, is compared in integers."""
        least = threshold_of_ratios(1 / self._exact, groups.rows, most=_MOST_MEMBERS)
        return render(
            "models/measure_delta_presence",
            classes=groups.classes,
            population=relation(groups.population),
            integer=render.macro("wide_integer"),
            numerator=least.numerator,
            denominator=least.denominator,
            maximum=self.maximum,
        )

    def min_suppressed(self) -> Markup:
        """The parts that satisfy the model have no more rows together than `maximum` times the population's."""
        return macro("models.all_but_kept")

    def worst_of(self, measures: tuple[float, float]) -> float:
        return max(measures)

    def is_met_by(self, worst: float, rows: int) -> bool | None:
        """The share and `maximum`, as it is written, are rounded to doubles by one rule: only if these are equal does
        it take the counts themselves to tell which is greater.

        Inverses of shares of one double differ by less than 2**-51 of them, those of different shares by 1 / rows**2.
        """
        if worst != self.maximum:
            return worst < self.maximum
        if rows**2 >= Fraction(worst) * 2**51:
            return None
        return (1 / Fraction(worst)).limit_denominator(max(rows, 1)) >= 1 / self._exact

    def attainable(self, measure: float) -> str:
        share = rounded_up(measure) if math.isfinite(measure) else measure
        return f"maximum: {share:g}" if share < 1 else "no maximum below 1"
