"""Privacy models that judge a release as a whole: a figure of the sizes of all its classes, not of one class.

Rows are left out for them the smallest class first, whole classes, as long as it takes: those who are easiest to find.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from sqlanon.errors import PolicyError
from sqlanon.models.base import Groups, PrivacyModel
from sqlanon.sql import Renderer, Statement

Sizes = Mapping[int, int]
"""Numbers of classes by their rows."""


@dataclass(frozen=True, order=True)
class SmallestClasses:
    """The smallest classes of a table: all of fewer than `size` rows, and so many of just `size` rows."""

    size: int = 0
    classes: int = 0

    def taken_from(self, sizes: Sizes) -> dict[int, int]:
        """Count the classes that are left without these."""
        left = {size: classes for size, classes in sizes.items() if size >= self.size}
        if self.classes:
            left[self.size] -= self.classes
        return {size: classes for size, classes in left.items() if classes}


class TableModel(PrivacyModel):
    """A model whose figure is that of a whole table.

    Its flags say the same of tables as those of other models say of classes: `monotone_under_generalization`, that a
    table which satisfies it still does once classes are merged; `closed_under_union`, that the fewest rows which must
    be left out of a table do not become more by that, either.
    """

    scope: ClassVar[Literal["class", "table"]] = "table"

    @abstractmethod
    def figure(self, sizes: Sizes) -> float:
        """Measure a table by the sizes of its classes, of which there is one at least."""

    @abstractmethod
    def is_satisfied_by(self, sizes: Sizes) -> bool:
        """Tell, exactly, whether a table satisfies the model; one without a class does."""

    @abstractmethod
    def leave_out(self, sizes: Sizes) -> SmallestClasses:
        """Find the fewest of the smallest classes without which the table satisfies the model."""

    def measure(self, render: Renderer, groups: Groups) -> Statement:  # noqa: ARG002
        """Refuse: no class by itself satisfies or violates the model."""
        raise PolicyError(f"{self.name} judges a release as a whole, and classes are judged one by one here.")

    def worst_of(self, measures: tuple[float, float]) -> float:
        return max(measures)


def class_models(models: Iterable[PrivacyModel]) -> tuple[PrivacyModel, ...]:
    """Select the models that judge classes one by one."""
    return tuple(model for model in models if not isinstance(model, TableModel))


def table_models(models: Iterable[PrivacyModel]) -> tuple[TableModel, ...]:
    """Select the models that judge a release as a whole."""
    return tuple(model for model in models if isinstance(model, TableModel))


def leave_out_for_all(models: Sequence[TableModel], sizes: Sizes) -> SmallestClasses:
    """Find the smallest classes without which a table satisfies all of some models.

    What is left out for one model counts for the next; they take turns until each is satisfied.
    """
    out, left = SmallestClasses(), dict(sizes)
    while more := [cut for model in models if (cut := model.leave_out(left)) != SmallestClasses()]:
        out = _joined(out, max(more))
        left = out.taken_from(sizes)
    return out


def _joined(out: SmallestClasses, more: SmallestClasses) -> SmallestClasses:
    """Leave out some classes, and of what is left some more."""
    gone = out.classes if more.size == out.size else 0
    return SmallestClasses(more.size, more.classes + gone)


def refuse_table_models(models: Iterable[PrivacyModel], doer: str) -> None:
    """Raise PolicyError where `doer`, the subject of a sentence, sees classes one by one, and a model sees more."""
    models = tuple(models)
    if names := [model.name for model in models if model.population_table is not None]:
        raise PolicyError(f"privacy: {doer} sees no population, by which {', '.join(names)} judges classes.")
    if names := [model.name for model in table_models(models)]:
        raise PolicyError(f"privacy: {doer} judges classes one by one, and {', '.join(names)} a release as a whole.")
