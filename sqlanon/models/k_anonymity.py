"""k-anonymity: every equivalence class holds at least k rows (Samarati, IEEE TKDE 13(6), 2001), or rows of k persons.

k-anonymity of persons is (X,Y)-anonymity (Wang, Fung, KDD 2006, definition 2): as many distinct values of Y, the
persons, belong to each value of X, the quasi-identifiers. So where rows are counted, classes are judged by the persons
as by a sensitive attribute.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from sqlanon.engines.columns import Column
from sqlanon.models.base import Groups, PrivacyModel, Runs, relation
from sqlanon.policy import AttributeSection
from sqlanon.sql import Renderer, Statement


class AtLeastK(PrivacyModel):
    """A model whose measure of a class is a number of rows or persons, which must be at least `k`."""

    k: int

    def worst_of(self, measures: tuple[float, float]) -> float:
        return min(measures)

    def is_met_by(self, worst: float, rows: int) -> bool:  # noqa: ARG002
        return worst >= self.k

    def attainable(self, measure: float) -> str:
        return f"k: {int(measure)}"


class KMembers(AtLeastK):
    """A model that counts the rows or persons of a class itself, and so promises `k` rows."""

    @property
    def least_rows(self) -> int:
        return self.k

    @property
    def promised_rows(self) -> int:
        return self.k

    @property
    def parameters(self) -> dict[str, Any]:
        return {"k": self.k}


@dataclass(frozen=True)
class KAnonymity(KMembers):
    """Every class holds at least `k` rows; the measure is the number of rows.

    Monotone under generalization, for merging classes only adds rows, and under suppression of whole classes, for a
    class is judged by its own rows alone.
    """

    name: ClassVar[str] = "k-anonymity"
    monotone_under_generalization: ClassVar[bool] = True
    monotone_under_suppression: ClassVar[bool] = True
    closed_under_union: ClassVar[bool] = True
    decided_by_size: ClassVar[bool] = True

    k: int
    attribute: str | None = field(default=None, init=False)

    @property
    def sentence(self) -> str:
        least = f"{self.k:,} rows" if self.k > 1 else "one row"
        return f"Every class holds at least {least}, so that a row hides among {self.k - 1:,} others or more."

    def problems(self, column: Column | None, attribute: AttributeSection | None, rows: int | None) -> Iterator[str]:  # noqa: ARG002
        if rows is not None and 0 < rows < self.k:
            yield f"k is {self.k}, but the table holds {'one row' if rows == 1 else f'{rows} rows'}."

    def by_rows(self, person: str) -> KPersons:
        """Ask for k persons, whom an attribute tells apart."""
        return KPersons(self.k, person)

    def measure(self, render: Renderer, groups: Groups) -> Statement:
        """The number of rows of each class, exactly."""
        return render("models/measure_k_anonymity", classes=groups.classes, k=self.k)


@dataclass(frozen=True)
class KPersons(KMembers):
    """Every class holds rows of at least `k` persons, whom `attribute` tells apart; NULL is another one in each row.

    The measure is their number. Monotone under generalization, for the persons of a union are at least those of a part,
    and under suppression of whole classes, for a class is judged by its own rows alone.
    """

    name: ClassVar[str] = KAnonymity.name
    monotone_under_generalization: ClassVar[bool] = True
    monotone_under_suppression: ClassVar[bool] = True
    closed_under_union: ClassVar[bool] = True

    k: int
    attribute: str

    @property
    def sentence(self) -> str:
        return f"Every class holds rows of at least {self.k:,} persons."

    def measure(self, render: Renderer, groups: Groups) -> Statement:
        """The number of persons of each class, exactly."""
        return render("models/measure_k_persons", avs=relation(groups.avs), k=self.k)

    def measure_prefixes(self, render: Renderer, runs: Runs) -> Statement:
        """The running number of persons who come for the first time, exactly."""
        return render("models/measure_prefixes_k_persons", runs=runs.runs, k=self.k)

    def sample_test(self, render: Renderer, groups: Groups) -> None:
        """Persons whom a sample shows are there."""


def largest_k(models: Sequence[PrivacyModel]) -> int:
    """The k that sizes of classes are compared with: the largest that a model promises, or 1."""
    return max((model.promised_rows or 1 for model in models), default=1)
