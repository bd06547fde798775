"""Confidence bounding: from no class does anybody infer a sensitive value with more than a given confidence.

Source: K. Wang, B. C. M. Fung, P. S. Yu, Handicapping Attacker's Confidence: An Alternative to k-Anonymization,
Knowledge and Information Systems 11(3), 2007: a template (quasi-identifiers → value, h) holds where no class has more
than the share h of the value. The confidence of the rule from what a class shows to a value is the value's share of the
class, so that this is (alpha, k)-anonymity with k = 1, and is measured as that.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from sqlanon.models.alpha_k import AlphaK
from sqlanon.models.thresholds import rounded_up
from sqlanon.policy import ModelParameters


@dataclass(frozen=True)
class ConfidenceBound(AlphaK):
    """In no class has a value of `attribute` more than the share `alpha`, which policies call `confidence`.

    values: the texts of the values that must not be inferred; None for all values.
    """

    name: ClassVar[str] = "confidence-bound"

    k: int = field(default=1, init=False)

    @classmethod
    def from_parameters(cls, parameters: ModelParameters, *, counts_null: bool) -> ConfidenceBound:
        given = parameters.model_dump(exclude={"model"})
        return cls(given["attribute"], given["confidence"], given["values"], counts_null=counts_null)

    @property
    def parameters(self) -> dict[str, Any]:
        named = {} if self.values is None else {"values": list(self.values)}
        return {"attribute": self.attribute, "confidence": self.alpha, **named}

    @property
    def promised_rows(self) -> int | None:
        return None

    @property
    def sentence(self) -> str:
        named = len(self.named_values)
        value = "a value" if not named else "the named value" if named == 1 else f"any of {named:,} named values"
        return (
            f"Who knows the class of somebody infers {value} of “{self.attribute}” with a confidence of at most"
            f" {100 * self.alpha:.6g}%."
        )

    def attainable(self, measure: float) -> str:
        return f"confidence: {rounded_up(measure):g}"
