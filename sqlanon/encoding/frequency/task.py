"""The requirements on a generalization, and the verdict of a check.

A generalization *satisfies* the models if the rows in classes that violate one are within the suppression budget; such
classes are suppressed whole. Two facts let a search conclude from one generalization to others:

- *floor*: what a check returns beside the suppressed rows, a number of rows that every more specific generalization
  must suppress too, if it is within the budget at all. One whose floor is over the budget rules out all below it.
- *predictive*: where nothing may be suppressed, or every model is closed under union (a class that satisfies it does
  so whatever rows join it), a generalization that satisfies the models vouches for all above it.

Models of whole tables are judged by the sizes of the classes that satisfy the others: the smallest of these are
suppressed as long as it takes. Models of joined rows are judged by the sets of these classes that persons have: the
smallest class of each set that too few have is suppressed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from sqlanon.encoding.domains import Sensitive
from sqlanon.models.base import PrivacyModel
from sqlanon.models.table_model import (
    Sizes,
    SmallestClasses,
    TableModel,
    class_models,
    leave_out_for_all,
    table_models,
)


@dataclass(frozen=True)
class Verdict:
    """The result of a check: the rows that must be suppressed, and the floor (see the module).

    Both may stop counting once they are over the budget.
    """

    suppressed: int
    floor: int


@dataclass(frozen=True)
class ClassesOfSize:
    """The classes of one size: how many they are, how many violate a model of classes, and the sum of their floors."""

    size: int
    classes: int
    failing: int
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
        if self.budget == 0:
            return all(model.monotone_under_generalization for model in self.models)
        return not self.completes and self.unions_stay

    @property
    def fails_below(self) -> bool:
        """Tell whether a generalization that violates the models rules out all below it, whatever its floor is."""
        return self.budget == 0 and self.predictive

    @cached_property
    def class_models(self) -> tuple[PrivacyModel, ...]:
        """The models that judge classes one by one."""
        return class_models(self.models)

    @cached_property
    def table_models(self) -> tuple[TableModel, ...]:
        """The models that judge the table as a whole."""
        return table_models(self.models)

    @cached_property
    def joined(self) -> tuple[PrivacyModel, ...]:
        """The models that judge several classes of a person together."""
        return tuple(model for model in self.models if (model.known_rows or 1) > 1)

    @property
    def covers_population(self) -> bool:
        """Tell whether all rows of the population must fit a class."""
        return any(model.covers_population for model in self.class_models)

    @property
    def unions_stay(self) -> bool:
        """Tell whether no model asks for more suppression where classes are merged."""
        return all(model.closed_under_union for model in self.models) and not self.joined

    @property
    def moves(self) -> bool:
        """Tell whether more may have to be suppressed than the classes that violate a model in the whole table."""
        return self.shifts or self.completes or bool(self.joined)

    @property
    def shifts(self) -> bool:
        """Tell whether suppression changes the figures by which the remaining classes are checked."""
        return self.omits and self.budget > 0 and not all(m.monotone_under_suppression for m in self.class_models)

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

    def leave_out(self, kept: Sizes) -> SmallestClasses:
        """Find the smallest of some classes without which the table satisfies the models of whole tables."""
        return leave_out_for_all(self.table_models, kept)

    def verdict_of(self, counted: Sequence[ClassesOfSize]) -> Verdict:
        """Judge a generalization by the sizes of its classes, for models of whole tables.

        The fewest rows that a model closed under union must leave out of all classes are a floor.
        """
        kept = {one.size: one.classes - one.failing for one in counted if one.classes > one.failing}
        failing = sum(one.size * one.failing for one in counted)
        suppressed = failing + _rows_of(self.leave_out(kept), kept)
        if self.unions_stay and not self.completes:
            return Verdict(suppressed, suppressed)
        every = {one.size: one.classes for one in counted}
        rising = [model for model in self.table_models if model.closed_under_union]
        return Verdict(
            suppressed,
            max(sum(one.floor for one in counted), _rows_of(leave_out_for_all(rising, every), every)),
        )


def _rows_of(out: SmallestClasses, sizes: Sizes) -> int:
    left = out.taken_from(sizes)
    return sum(size * (classes - left.get(size, 0)) for size, classes in sizes.items())
