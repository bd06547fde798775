"""What a generalization has to satisfy, and what a check says of it.

A generalization *satisfies* the models if the rows in classes that violate one are within the suppression budget; such
classes are suppressed whole. Two facts let a search conclude from one generalization to others:

- *floor*: what a check returns beside the suppressed rows, a number of rows that every more specific generalization
  must suppress too, if it is within the budget at all. One whose floor is over the budget rules out all below it.
- *predictive*: where nothing may be suppressed, or every model is closed under union (a class that satisfies it does
  so whatever rows join it), a generalization that satisfies the models vouches for all above it.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlanon.models.base import PrivacyModel
from sqlanon.models.k_anonymity import KAnonymity
from sqlanon.partition.domains import Sensitive


@dataclass(frozen=True)
class Verdict:
    """What a check found: the rows that must be suppressed, and the floor (see the module). Both may stop counting
    once they are over the budget."""

    suppressed: int
    floor: int


@dataclass(frozen=True)
class Task:
    """What is to be satisfied.

    budget: how many rows may be suppressed.
    rows: of the table, or of the part of it that is generalized.
    omits: whether suppressed rows leave the table, and with them the distribution that t-closeness compares with.
    compared: the rows of that distribution, where only a part of the table is generalized.
    """

    models: tuple[PrivacyModel, ...]
    sensitive: tuple[Sensitive, ...]
    rows: int
    budget: int
    omits: bool = True
    compared: int | None = None

    @property
    def predictive(self) -> bool:
        """Whether a generalization that satisfies the models vouches for all above it."""
        return self.budget == 0 or all(model.closed_under_union for model in self.models)

    @property
    def moves(self) -> bool:
        """Whether suppression changes what the remaining classes are judged by."""
        return self.omits and self.budget > 0 and not all(m.monotone_under_suppression for m in self.models)

    @property
    def least_rows(self) -> int | None:
        """The k of plain k-anonymity; None where other models look at the classes too."""
        if all(isinstance(model, KAnonymity) for model in self.models):
            return self.fewest_rows
        return None

    @property
    def fewest_rows(self) -> int:
        """A class of fewer rows violates some model, whatever is in it."""
        return max(model.least_rows for model in self.models)
