"""Searches for single cells to be suppressed, and what each may be told."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from sqlanon.policy.algorithm_parameters import AlgorithmParameters, Recodes
from sqlanon.policy.attributes import HIERARCHY_KINDS, AttributeSection, Hierarchy, Role, Show
from sqlanon.policy.document import path_text
from sqlanon.policy.part import Whole
from sqlanon.support.quantities import quantity
from sqlanon.support.suggest import did_you_mean

MOST_COLUMNS = 12  # quasi-identifiers, all sets of which may be tried for a row
MOST_SETS = 20_000  # of steps, one of each column or none
Importance = Annotated[Whole, Field(ge=1, le=100)]
Size = Annotated[int, Field(ge=1, le=MOST_COLUMNS)]
Rows = Annotated[Whole, Field(ge=1)]


class SingleCells(AlgorithmParameters):
    """A search for single cells that show less than their value, so that enough rows fit every row."""

    recodes: ClassVar[Recodes] = Recodes.CELLS
    has_wildcards: ClassVar[bool] = True
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
        if attribute.role is not Role.QUASI_IDENTIFIER:
            return attribute.hierarchy
        return self.cell_hierarchy(attribute) or Hierarchy(suppress=True)

    def cell_hierarchy(self, attribute: AttributeSection) -> Hierarchy | None:  # noqa: ARG002
        """Tell the hierarchy by which cells of a quasi-identifier climb; None where they show their value or `*`."""
        return None

    def quasi_problems(self, attribute: AttributeSection) -> Iterator[str]:
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
                f" {len(quasi)}; leave columns out, or make one of several in the source."
            )
        if quasi and not set(quasi) - set(self.whole):
            yield "algorithm.whole: every quasi-identifier is to stay whole, so that none can show `*`; leave one out."
        for size in self.subsets:
            if quasi and size > len(quasi):
                place = path_text(("algorithm", "subsets", str(size)))
                yield f"{place}: there are only {len(quasi)} quasi-identifiers; leave it out."

    def size_problems(self, rows: int) -> Iterator[str]:
        for size, least in self.subsets.items():
            if 0 < rows < least:
                place = path_text(("algorithm", "subsets", str(size)))
                yield f"{place}: {quantity(least, 'row')} can't fit a row, as the table holds {rows:,}; ask for less."


class LocalSuppression(SingleCells):
    """Shows single cells as `*`, and all others as they are: as few as greedy searches find, so that k rows fit every
    row, where `*` fits any value. docs/local-suppression.md says what that protects, and when classes protect more."""

    sentence: ClassVar[str] = (
        "Single cells are shown as *, as few as a greedy search found, so that enough rows fit every row: two rows fit"
        " where no column shows two different values, and * fits any value."
    )
    name: Literal["local-suppression"]

    def quasi_problems(self, attribute: AttributeSection) -> Iterator[str]:
        if attribute.hierarchy is not None and attribute.hierarchy.kind != "suppress":
            yield (
                f"{self.name} shows values or `*`, and no groups; use algorithm: cell-generalization, leave hierarchy"
                " out, or group values in the source."
            )
        yield from super().quasi_problems(attribute)


class CellGeneralization(SingleCells):
    """Shows single cells as groups of their hierarchies, or as `*`, and all others as they are, so that k rows fit
    every row: two rows fit where in each column one shows a group of what the other shows, or the same.
    docs/local-suppression.md says what that protects, and when classes protect more."""

    sentence: ClassVar[str] = (
        "Single cells are shown as groups of their hierarchies, or as *, as low as a greedy search found, so that"
        " enough rows fit every row: two rows fit where in every column one shows the same as the other, or a group"
        " that holds it."
    )
    name: Literal["cell-generalization"]

    def cell_hierarchy(self, attribute: AttributeSection) -> Hierarchy | None:
        return attribute.hierarchy

    def step_problems(self, steps: Mapping[str, int]) -> Iterator[str]:
        sets = math.prod(1 + number for number in steps.values())
        if sets > MOST_SETS:
            yield (
                f"algorithm: the levels of the hierarchies make {sets:,} combinations, and cell-generalization tries"
                f" {MOST_SETS:,} at most; leave levels or columns out."
            )

    def quasi_problems(self, attribute: AttributeSection) -> Iterator[str]:
        yield from super().quasi_problems(attribute)
        hierarchy = attribute.hierarchy
        problem = None if hierarchy is None else _untold(hierarchy)
        if problem is not None:
            yield (
                f"{self.name} compares groups by their labels alone, and {problem}; write the hierarchy as a file"
                " (sqlanon hierarchy export) and give it as csv."
            )
        if hierarchy is not None and (attribute.bottom is not None or attribute.top is not None):
            yield (f"{self.name} knows no labels with open ends; leave bottom and top out, or recode numbers before.")


def _untold(hierarchy: Hierarchy) -> str | None:
    """Say why labels of a hierarchy don't tell which of them hold which others; None where they do."""
    if hierarchy.kind not in HIERARCHY_KINDS:
        return f"labels of {hierarchy.kind}, of an installed package, do not tell which others they hold"
    if hierarchy.mask is not None and hierarchy.length is None:
        return "without a length masks do not tell how many characters they hide; give the mask its length"
    if "week" in (hierarchy.date or ()):
        return "a week's label does not tell its days"
    numbers = [Fraction(str(number)) for number in (hierarchy.origin, *(hierarchy.intervals or ()))]
    if any(number.denominator != 1 for number in numbers):
        return "only intervals of whole numbers can be told from their ends"
    if any(wide % narrow for narrow, wide in pairwise(numbers[1:])):
        return "widths must be multiples of each other to be told from the ends"
    return None
