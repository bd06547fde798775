"""delta-presence: of the members of a population that fit a class, a share between two bounds is in the release.

Source: M. E. Nergiz, M. Atzori, C. Clifton, "Hiding the presence of individuals from shared databases", SIGMOD 2007,
definition 2.

Somebody who knows a member's values in the population, and not who was drawn, finds the class that the member fits. The
probability that the member is in the release is the rows of the class over those of the population that fit it.

That ratio, of a union of classes, lies between the ratios of its parts: monotone under generalization. A class that
satisfies the model may violate it when others join: not closed under union. It is judged by its own rows and those
that fit it, and the population stays as it is whatever is left out: monotone under suppression of whole classes.
Whoever fits a class that was left out is not in the release.

A delta_min above 0 is a claim about these people too, and about all whose labels no row of the source shows: they are
certainly not in the release. So with it every member must fit a class, and no class may be left out. Merging classes
takes no member's class away: monotone under generalization as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

from sqlanon.engines.columns import Column
from sqlanon.models.base import Groups, PrivacyModel, relation
from sqlanon.models.thresholds import rounded_down, rounded_up, threshold_of_ratios
from sqlanon.policy import AttributeSection
from sqlanon.sql import Expression, Renderer, Statement, macro

_MOST_MEMBERS = 2**53  # rows of a population: products with the rows of a table fit the engines' wide integers


@dataclass(frozen=True)
class DeltaPresence(PrivacyModel):
    """Of the rows of the table `population` that fit a class, its own are at most the share `maximum`.

    With a `minimum` they are no less than that share, and every row of the population fits a class.

    The measure is that share, infinite where a class fits no row. It is compared with both exactly, as they are
    written.
    """

    name: ClassVar[str] = "delta-presence"
    monotone_under_generalization: ClassVar[bool] = True
    monotone_under_suppression: ClassVar[bool] = True

    maximum: float
    population: str
    minimum: float | None = None
    attribute: str | None = field(default=None, init=False)

    @property
    def parameters(self) -> dict[str, Any]:
        least = {} if self.minimum is None else {"minimum": self.minimum}
        return {"maximum": self.maximum, **least, "population": self.population}

    @property
    def covers_population(self) -> bool:
        return self.minimum is not None

    def problems(self, column: Column | None, attribute: AttributeSection | None, rows: int | None) -> Iterator[str]:  # noqa: ARG002
        if self.minimum is not None and self.minimum > self.maximum:
            yield f"no share is at least {self.minimum:g} and at most {self.maximum:g}; lower one or raise the other."

    @property
    def sentence(self) -> str:
        if self.minimum is not None:
            return (
                f"Of the rows of {self.population} that fit a class, {100 * self.minimum:.6g}% to"
                f" {100 * self.maximum:.6g}% are in the release, and each of its rows fits one, so that nobody is known"
                " to be in it, or not to be, with a greater probability."
            )
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
            minimum=None if self.minimum is None else threshold_of_ratios(self.minimum, _MOST_MEMBERS),
        )

    def min_suppressed(self) -> Expression:
        """The parts that satisfy the model have no more rows together than `maximum` times the population's.

        With a `minimum` a class that is small enough for that may violate it too, and some part of it will.
        """
        return macro("models.all_but_kept") if self.minimum is None else super().min_suppressed()

    def worst_of(self, measures: tuple[float, float]) -> float:
        """The greatest share, or the least one where it is below `minimum`, or at it with the other below `maximum`."""
        least, greatest = min(measures), max(measures)
        if self.minimum is None or greatest > self.maximum:
            return greatest
        return least if least < self.minimum or (least == self.minimum and greatest < self.maximum) else greatest

    def is_met_by(self, worst: float, rows: int) -> bool | None:
        """The share and `maximum`, as it is written, are rounded to doubles by one rule: only if these are equal does
        it take the counts themselves to tell which is greater.

        Inverses of shares of one double differ by less than 2**-51 of them, those of different shares by 1 / rows**2.
        Where the greatest share is at `maximum`, the least one may still be below `minimum` by less than doubles tell.
        """
        if worst not in (self.minimum, self.maximum):
            return (self.minimum or 0.0) < worst < self.maximum
        if rows**2 >= Fraction(worst) * 2**51:
            return None
        inverse = (1 / Fraction(worst)).limit_denominator(max(rows, 1))
        if worst == self.maximum and inverse < 1 / self._exact:
            return False
        if worst == self.minimum:
            return inverse <= 1 / Fraction(str(self.minimum))
        return True if self.minimum is None else None

    def attainable(self, measure: float) -> str:
        if self.minimum is not None and measure < self.minimum:
            return f"minimum: {rounded_down(measure):g}" if measure > 0 else "no minimum above 0"
        share = rounded_up(measure) if math.isfinite(measure) else measure
        return f"maximum: {share:g}" if share < 1 else "no maximum below 1"
