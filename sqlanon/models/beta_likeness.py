"""beta-likeness: no value of a sensitive attribute is much more frequent in a class than in the whole table.

Source: J. Cao, P. Karras, PVLDB 5(11), 2012, sections 3.1 (basic) and 3.2 (enhanced).

With p the share of a value in the whole table and q the one in a class, the class satisfies the model if the gain
(q - p) / p of each value is at most beta; in the enhanced form also at most -ln(p), so that a value which is frequent
in the table cannot become certain in a class. A value that is rarer in the class gains nothing. NULL is a value.

Each bound is one on a share, so merging classes that satisfy it gives one that does: monotone under generalization.
Leaving rows out changes p, and so the gain of classes that were kept: not monotone under suppression.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from sqlanon.models.base import Groups, PrivacyModel, Runs, relation
from sqlanon.models.thresholds import RELATIVE_TOLERANCE, RUNNING_TOLERANCE, integer_type, rounded_up
from sqlanon.sql import Expression, Renderer, Statement, macro


@dataclass(frozen=True)
class BetaLikeness(PrivacyModel):
    """The relative gain of every value of `attribute` in every class is at most `beta`, and at most -ln(p) if enhanced.

    The measure is the least beta that the class satisfies: its greatest gain; infinite where a value gains more than
    -ln(p) allows, whatever beta is. Counts are compared as integers; a gain violates from 1 + 1e-9 times its bound on.
    """

    name: ClassVar[str] = "beta-likeness"
    judges_shares: ClassVar[bool] = True
    monotone_under_generalization: ClassVar[bool] = True
    monotone_under_suppression: ClassVar[bool] = False

    attribute: str
    beta: float
    form: str = "enhanced"

    @property
    def parameters(self) -> dict[str, Any]:
        return {"attribute": self.attribute, "beta": self.beta, "form": self.form}

    @property
    def greatest(self) -> float:
        """The gain from which on a class violates, tolerance included."""
        return self.beta * (1 + RELATIVE_TOLERANCE)

    @property
    def sentence(self) -> str:
        bounded = ", and less where it is frequent anyway" if self.form == "enhanced" else ""
        return (
            f"In every class each value of “{self.attribute}” is at most {1 + self.beta:g} times as frequent as in the"
            f" whole table{bounded}."
        )

    def measure(self, render: Renderer, groups: Groups) -> Statement:
        """The least beta that each class satisfies."""
        return render(
            "models/measure_beta_likeness",
            classes=groups.classes,
            avs=relation(groups.avs),
            domain=relation(groups.domain),
            rows=groups.total,
            integer=integer_type(render, groups.rows**2),
            **self._bounds,
        )

    def measure_prefixes(self, render: Renderer, runs: Runs) -> Statement:
        """The running greatest of a value's rows, each divided by the greatest share that the value may have."""
        return render(
            "models/measure_prefixes_beta_likeness",
            runs=runs.runs,
            domain=runs.domain,
            rows=runs.rows,
            falls=1 + RUNNING_TOLERANCE,
            stands=1 - RUNNING_TOLERANCE,
            **self._bounds,
        )

    @property
    def _bounds(self) -> dict[str, Any]:
        return {"greatest": self.greatest, "enhanced": self.form == "enhanced", "tolerance": 1 + RELATIVE_TOLERANCE}

    def min_suppressed(self) -> Expression:
        """A value may have a share c: if c < 1, no part of the class, in which other values have m rows, has more than
        m / (1 - c) rows."""
        return macro("models.all_but_kept")

    def worst_of(self, measures: tuple[float, float]) -> float:
        return max(measures)

    def is_met_by(self, worst: float, rows: int) -> bool:  # noqa: ARG002
        return worst <= self.greatest

    def attainable(self, measure: float) -> str:
        return f"beta: {rounded_up(measure):g}"
