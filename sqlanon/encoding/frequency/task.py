"""The requirements on a generalization, and the verdict of a check.

A generalization *satisfies* the models if the rows in classes that violate one are within the suppression budget; such
classes are suppressed whole. Two facts let a search conclude from one generalization to others:

- *floor*: what a check returns beside the suppressed rows, a number of rows that every more specific generalization
  must suppress too, if it is within the budget at all. One whose floor is over the budget rules out all below it.
- *predictive*: where nothing may be suppressed, or every model is closed under union (a class that satisfies it does
  so whatever rows join it), a generalization that satisfies the models vouches for all above it.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlanon.encoding.domains import Sensitive
from sqlanon.models.base import PrivacyModel


@dataclass(frozen=True)
class Verdict:
    """The result of a check: the rows that must be suppressed, and the floor (see the module).

    Both may stop counting once they are over the budget.
    """

    suppressed: int
    floor: int


@dataclass(frozen=True)
class LatticeTask:
    """The models to satisfy, and the rows that may be suppressed.

    budget: how many rows may be suppressed.
    rows: of the table, or of the part of it that is generalized.
    omits: whether suppressed rows leave the table, and with them the distribution that t-closeness compares with.
    compared: the rows of that distribution, where only a part of the table is generalized.
    judges_stars: whether suppressed rows are shown, and must satisfy the models as one class: if they don't, more
        classes are suppressed with them, the smallest first, until they do.
    """

    models: tuple[PrivacyModel, ...]
    sensitive: tuple[Sensitive, ...]
    rows: int
    budget: int
    omits: bool = True
    compared: int | None = None
    judges_stars: bool = False

    @property
    def predictive(self) -> bool:
        """Tell whether a generalization that satisfies the models vouches for all above it.

        Where suppressed rows are judged it does not: those of a more general one may be too few for a class, and its
        other classes too large to join them.
        """
        return self.budget == 0 or (not self.completes and all(model.closed_under_union for model in self.models))

    @property
    def moves(self) -> bool:
        """Tell whether more may have to be suppressed than the classes that violate a model in the whole table."""
        return self.shifts or self.completes

    @property
    def shifts(self) -> bool:
        """Tell whether suppression changes the figures by which the remaining classes are checked."""
        return self.omits and self.budget > 0 and not all(m.monotone_under_suppression for m in self.models)

    @property
    def completes(self) -> bool:
        """Tell whether suppressed rows are a class that may need more rows."""
        return self.judges_stars and self.budget > 0

    @property
    def least_rows(self) -> int | None:
        """The k of plain k-anonymity; None where more than the size of a class says whether it is suppressed."""
        if not self.completes and all(model.decided_by_size for model in self.models):
            return self.fewest_rows
        return None

    @property
    def fewest_rows(self) -> int:
        """A class of fewer rows violates some model, whatever is in it."""
        return max(model.least_rows for model in self.models)
