"""Searches for single cells to be suppressed, and what each may be told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from sqlanon.policy.algorithm_parameters import AlgorithmParameters, Recodes
from sqlanon.policy.attributes import AttributeSection, Hierarchy, Role, Show
from sqlanon.policy.document import path_text
from sqlanon.policy.part import Whole
from sqlanon.support.suggest import did_you_mean

MOST_COLUMNS = 12  # quasi-identifiers, all sets of which may be tried for a row
Importance = Annotated[Whole, Field(ge=1, le=100)]
Size = Annotated[int, Field(ge=1, le=MOST_COLUMNS)]
Rows = Annotated[Whole, Field(ge=1)]


class LocalSuppression(AlgorithmParameters):
    """Shows single cells as `*`, and all others as they are: as few as a greedy cover finds, so that k rows fit every
    row, where `*` fits any value. docs/local-suppression.md says what that protects, and when classes protect more."""

    sentence: ClassVar[str] = (
        "Single cells are shown as *, as few as a greedy search found, so that enough rows fit every row: two rows fit"
        " where no column shows two different values, and * fits any value."
    )
    recodes: ClassVar[Recodes] = Recodes.CELLS
    has_wildcards: ClassVar[bool] = True
    name: Literal["local-suppression"]
    importance: dict[str, Importance] = {}  # noqa: RUF012 - pydantic copies it
    """The weight of a cell of a quasi-identifier, from 1, the default, to 100: cells are chosen so that each row loses
    as little weight as the search finds."""
    whole: tuple[str, ...] = ()
    """Quasi-identifiers that never show `*`."""
    subsets: dict[Size, Rows] = {}  # noqa: RUF012 - pydantic copies it
    """Numbers of columns, each with a number of rows: of every combination of so many quasi-identifiers alone, as many
    rows fit every row. It is asked beside the privacy models, which look at all quasi-identifiers."""

    @property
    def combined(self) -> Mapping[int, int]:
        return self.subsets

    def hierarchy_of(self, attribute: AttributeSection) -> Hierarchy | None:
        return Hierarchy(suppress=True) if attribute.role is Role.QUASI_IDENTIFIER else attribute.hierarchy

    def quasi_problems(self, attribute: AttributeSection) -> Iterator[str]:
        if attribute.hierarchy is not None and attribute.hierarchy.kind != "suppress":
            yield f"{self.name} shows values or `*`, and no groups; leave hierarchy out, or group values in a view."
        if attribute.show is not Show.LABEL:
            yield f"{self.name} shows values and `*` as texts; leave show out."

    def problems(self, quasi: Sequence[str]) -> Iterator[str]:
        named = [("importance", name) for name in self.importance] + [("whole", name) for name in self.whole]
        for key, name in named:
            if name not in quasi:
                place = path_text(("algorithm", key, name))
                yield f"{place}: it is not a quasi-identifier; {did_you_mean(name, quasi)}"
        if len(quasi) > MOST_COLUMNS:
            yield (
                f"algorithm: {self.name} tries sets of quasi-identifiers, and takes {MOST_COLUMNS} at most, not"
                f" {len(quasi)}; leave columns out, or make one of several in a view."
            )
        if quasi and not set(quasi) - set(self.whole):
            yield "algorithm.whole: every quasi-identifier is to stay whole, so that none can show `*`; leave one out."
        for size in self.subsets:
            if quasi and size > len(quasi):
                place = path_text(("algorithm", "subsets", str(size)))
                yield f"{place}: there are only {len(quasi)} quasi-identifiers; leave it out."
