"""The cells in which rows of all sites are counted: combinations of labels, known to everybody from the hierarchies."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sqlanon.encoding.frequency.lattice import Node
from sqlanon.errors import PolicyError
from sqlanon.hierarchies.taxonomy import ROOT, read_taxonomy
from sqlanon.plan.plan import Plan
from sqlanon.policy import AttributeSection, Hierarchy
from sqlanon.staging.labels import NULL

Labels = tuple[str | None, ...]


@dataclass(frozen=True)
class PublicHierarchy:
    """A quasi-identifier's values and their labels, as its hierarchy lists them; NULL is a value of its own.

    paths: the labels of each value from level 0, which is the value, up to the root.
    """

    name: str
    paths: tuple[Labels, ...]

    @property
    def height(self) -> int:
        """The level of the root."""
        return len(self.paths[0]) - 1

    def labels(self, level: int) -> Labels:
        """The labels of a level, in the order of the hierarchy; NULL comes last, and joins the root."""
        if level == self.height:
            return (ROOT,)
        return tuple(dict.fromkeys(path[level] for path in self.paths))

    def values(self, level: int) -> Labels:
        """A value of each label of a level, in the same order: the first that has it."""
        firsts: dict[str | None, str | None] = {}
        for path in self.paths:
            firsts.setdefault(path[level], path[0])
        return tuple(firsts.values())


def public_hierarchies(plan: Plan) -> tuple[PublicHierarchy, ...]:
    """Read the hierarchies of the quasi-identifiers, in the order of the source's columns."""
    return tuple(_read(one.name, one.hierarchy, plan) for one in plan.quasi_identifiers if one.hierarchy is not None)


def _read(name: str, hierarchy: Hierarchy, plan: Plan) -> PublicHierarchy:
    def error(what: str) -> PolicyError:
        return PolicyError(f"Hierarchy of column '{name}': {what}")

    lines = read_taxonomy(hierarchy, plan.base_directory, error)
    paths: list[Labels] = [(line.value, *line.labels) for line in lines]
    if any(NULL in path for path in paths):
        raise error("it has the text NULL as a value or label, which a release does not tell from no value; rename it.")
    has_null = _may_be_null(plan.policy.attributes[name])
    null: Labels = (*(None for _ in paths[0][:-1]), ROOT)
    return PublicHierarchy(name, (*paths, *([null] if has_null else [])))


def _may_be_null(attribute: AttributeSection) -> bool:
    return attribute.nulls != "refuse"


@dataclass(frozen=True)
class PublicCells:
    """All combinations of labels at a generalization, numbered in the order of the hierarchies.

    labels: those of each quasi-identifier.
    """

    node: Node
    labels: tuple[Labels, ...]

    @classmethod
    def at(cls, hierarchies: Sequence[PublicHierarchy], node: Node) -> PublicCells:
        """The cells of a generalization."""
        return cls(node, tuple(one.labels(level) for one, level in zip(hierarchies, node, strict=True)))

    @property
    def size(self) -> int:
        """The number of cells."""
        return math.prod(map(len, self.labels))

    @property
    def _places(self) -> tuple[Mapping[str | None, int], ...]:
        return tuple({label: place for place, label in enumerate(labels)} for labels in self.labels)

    def numbers(self, combinations: Sequence[Labels]) -> list[int | None]:
        """Number combinations of labels; None for one that is no cell."""
        places = self._places

        def number(combination: Labels) -> int | None:
            result = 0
            for labels, label in zip(places, combination, strict=True):
                if label not in labels:
                    return None
                result = result * len(labels) + labels[label]
            return result

        return [number(one) for one in combinations]

    def digits(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
        """The places of each cell's labels among those of each quasi-identifier."""
        return tuple(np.unravel_index(numbers, [len(labels) for labels in self.labels]))


def require_few(cells: PublicCells, names: Sequence[str], most: int) -> None:
    """Refuse more cells than a plan allows, with the columns that have most labels."""
    if cells.size <= most:
        return
    ranked = sorted(zip(names, map(len, cells.labels), strict=True), key=lambda pair: -pair[1])
    widest = ", ".join(f"'{name}' ({count:,} labels)" for name, count in ranked[:3])
    raise PolicyError(
        f"Rows would be counted in {cells.size:,} cells, and the plan allows {most:,} (most_cells). Raise the least"
        f" levels in algorithm.limits, most of all of {widest}."
    )


def roll_up(
    hierarchies: Sequence[PublicHierarchy], base: PublicCells, counts: NDArray[np.uint64], to: PublicCells
) -> NDArray[np.uint64]:
    """Add up the rows of cells to those of a more general one."""
    numbers = np.flatnonzero(counts)
    result = np.zeros(to.size, np.uint64)
    target = np.zeros(len(numbers), np.int64)
    parts = zip(hierarchies, base.digits(numbers), base.node, to.node, to.labels, strict=True)
    for one, digits, low, level, labels in parts:
        target = target * len(labels) + _parents(one, low, level)[digits]
    np.add.at(result, target, counts[numbers])
    return result


def _parents(hierarchy: PublicHierarchy, low: int, level: int) -> NDArray[np.int64]:
    """The place, among the labels of a level, of the one above each label of a lower level."""
    places = {label: place for place, label in enumerate(hierarchy.labels(level))}
    above: dict[str | None, int] = {}
    for path in hierarchy.paths:
        above.setdefault(path[low], places[path[level]])
    return np.array(list(above.values()), np.int64)
