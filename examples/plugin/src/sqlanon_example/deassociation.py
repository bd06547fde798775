"""Alpha-deassociation: no value of a sensitive attribute is shared by more than a part alpha of a class.

Source: Wong, Li, Fu, Wang, "(alpha, k)-anonymity", KDD 2006, section 2; the general form, for every value.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Literal

from pydantic import Field

from sqlanon.models.base import Groups, PrivacyModel, relation
from sqlanon.models.thresholds import rounded_up
from sqlanon.policy import ModelParameters
from sqlanon.sql import Renderer, Statement


class Parameters(ModelParameters):
    """At most a part alpha of the rows of every class has one value of the sensitive attribute."""

    model: Literal["deassociation"]
    attribute: str
    """The sensitive attribute."""
    alpha: float = Field(gt=0, le=1)
    """The greatest part of a class that may share a value."""


@dataclass(frozen=True)
class Deassociation(PrivacyModel):
    """At most `alpha` of every class has the same value of `attribute`; the measure is the part of the commonest.

    A row whose value is NULL may have any value, so it counts as one of the commonest, unless the policy takes NULL for
    a value. Merging two classes gives no value a larger part than it had in one of them; a class is judged by its own
    rows alone.
    """

    name: ClassVar[str] = "deassociation"
    Parameters: ClassVar[type[ModelParameters]] = Parameters
    monotone_under_generalization: ClassVar[bool] = True
    monotone_under_suppression: ClassVar[bool] = True
    counts_null_by_policy: ClassVar[bool] = True

    attribute: str
    alpha: float
    counts_null: bool = field(default=False, kw_only=True)

    @property
    def parameters(self) -> dict[str, Any]:
        return {"attribute": self.attribute, "alpha": self.alpha}

    @property
    def sentence(self) -> str:
        return f"In every class at most {self.alpha:.0%} of the rows share a value of “{self.attribute}”."

    def measure(self, render: Renderer, groups: Groups) -> Statement:
        """The part of the commonest value of each class; counts are compared with alpha as it is written, exactly."""
        alpha = Fraction(str(self.alpha))
        return render(
            "sqlanon_example:measure_deassociation",
            avs=relation(groups.avs),
            numerator=alpha.numerator,
            denominator=alpha.denominator,
            counts_null=self.counts_null,
        )

    def worst_of(self, measures: tuple[float, float]) -> float:
        return max(measures)

    def is_met_by(self, worst: float, rows: int) -> bool | None:  # noqa: ARG002
        """Equal doubles may come from a part just above alpha."""
        return None if worst == self.alpha else worst < self.alpha

    def attainable(self, measure: float) -> str:
        return f"alpha: {rounded_up(measure):g}"
