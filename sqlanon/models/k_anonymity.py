"""k-anonymity: every equivalence class holds at least k rows (Samarati, IEEE TKDE 13(6), 2001)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from sqlanon.models.base import Groups, PrivacyModel
from sqlanon.sql import Renderer, Statement


@dataclass(frozen=True)
class KAnonymity(PrivacyModel):
    """Every class holds at least `k` rows; the measure is the number of rows.

    Monotone under generalization, for merging classes only adds rows, and under suppression of whole classes, for a
    class is judged by its own rows alone.
    """

    name: ClassVar[str] = "k-anonymity"
    monotone_under_generalization: ClassVar[bool] = True
    monotone_under_suppression: ClassVar[bool] = True
    closed_under_union: ClassVar[bool] = True

    k: int
    attribute: str | None = field(default=None, init=False)

    @property
    def least_rows(self) -> int:
        return self.k

    @property
    def parameters(self) -> dict[str, Any]:
        return {"k": self.k}

    def measure(self, render: Renderer, groups: Groups) -> Statement:
        """The number of rows of each class, exactly."""
        return render("models/measure_k_anonymity", classes=groups.classes, k=self.k)

    def worst(self, measures: tuple[float, float]) -> float:
        return min(measures)

    def holds(self, worst: float, rows: int) -> bool:  # noqa: ARG002
        return worst >= self.k

    def attainable(self, measure: float) -> str:
        return f"k: {int(measure)}"
