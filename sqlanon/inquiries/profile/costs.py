"""Costs of a drafted policy's models and columns, as a trial on a sample found them: losses only, no cell's value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Attempt:
    """One search: its GCP, the mean loss (NCP) of each quasi-identifier, and its classes."""

    loss: float
    of: Mapping[str, float]
    classes: int

    def loss_but_of(self, column: str) -> float:
        """The mean loss of the quasi-identifiers other than `column`."""
        others = [loss for name, loss in self.of.items() if name != column]
        return sum(others) / len(others) if others else 0.0


@dataclass(frozen=True)
class DraftCosts:
    """A draft tried on a sample.

    rows: those of the sample; is_whole: whether each combination of values of the table is in it.
    draft: the draft as it stands; None where `problem` says why it could not be tried or met.
    k_alone: k-anonymity without the other models; None where there is no other.
    without_model: for each sensitive attribute, the draft without its model.
    without_column: the draft without one quasi-identifier, of those that cost most.
    """

    rows: int
    is_whole: bool
    seconds: float
    draft: Attempt | None = None
    k_alone: Attempt | None = None
    without_model: Mapping[str, Attempt] = field(default_factory=dict)
    without_column: Mapping[str, Attempt] = field(default_factory=dict)
    problem: str | None = None

    @property
    def costliest(self) -> str | None:
        """The quasi-identifier that loses most; None where none loses anything."""
        losses = self.draft.of if self.draft is not None else {}
        name = max(losses, key=lambda one: losses[one], default=None)
        return name if name is not None and losses[name] > 0 else None

    def as_json(self) -> dict[str, Any]:
        """The figures as programs read them."""
        common: dict[str, Any] = {"rows": self.rows, "whole": self.is_whole, "seconds": round(self.seconds, 3)}
        if self.draft is None:
            return {**common, "problem": self.problem}
        return {
            **common,
            **_attempt(self.draft),
            "losses": dict(self.draft.of),
            "costliest": self.costliest,
            "k_alone": None if self.k_alone is None else _attempt(self.k_alone),
            "without_model": {name: _attempt(one) for name, one in self.without_model.items()},
            "without_column": {
                name: {"gcp_of_others": one.loss, "with_it": self.draft.loss_but_of(name), "classes": one.classes}
                for name, one in self.without_column.items()
            },
        }


def _attempt(one: Attempt) -> dict[str, Any]:
    return {"gcp": one.loss, "classes": one.classes}
