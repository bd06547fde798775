"""The levels of one quasi-identifier by itself: the groups there, their rows, and the leaves they cover."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sqlanon.encoding.frequency.keys import Dimension, Keys
from sqlanon.engines.base import Engine
from sqlanon.sql import Expression, Identifier, Relation, macro
from sqlanon.work.workspace import Workspace


@dataclass(frozen=True)
class MarginalLevel:
    """The groups of one level that hold rows; those that cover equally many leaves are taken together.

    groups: how many there are.
    entropy: of the rows over the groups, in nats; an estimate of how many classes there will be, no more.
    leaves: the leaves that a group covers, each number once, the greatest first.
    rows: the rows in groups that cover so many.
    """

    groups: int
    entropy: float
    leaves: NDArray[np.int64]
    rows: NDArray[np.int64]

    @property
    def covered(self) -> int:
        """The sum over the rows of the leaves that their group covers."""
        return int(self.leaves @ self.rows)


@dataclass(frozen=True)
class Marginal:
    """A quasi-identifier's levels, from its values up to `*`.

    table: work table `(k0, …, n, n1, …)`: each value of the data in the words of the key that have digits of it, its
        rows, and the leaves that its group covers at each level between the value and `*`.
    domain: the leaves of the hierarchy, NULL among them if the data hold it (see `HierarchyTable.domain`).
    """

    dimension: Dimension
    table: Relation
    domain: int
    levels: tuple[MarginalLevel, ...]

    def words(self, level: int) -> list[tuple[Identifier, int]]:
        """The words of the key in which the groups of a level differ, and by which bits."""
        masks: dict[int, int] = {}
        for digit in self.dimension.digits[level:]:
            if digit.bits:
                masks[digit.word] = masks.get(digit.word, 0) | digit.mask
        return [(Identifier(f"k{word}"), mask) for word, mask in sorted(masks.items())]

    def distinct_levels(self, low: int, high: int) -> list[int]:
        """The levels from `low` to `high` that merge groups of the one below; the others only lose detail."""
        levels = range(low, high + 1)
        return [n for n in levels if n == low or self.levels[n].groups < self.levels[n - 1].groups]


def measure_marginals(
    engine: Engine, workspace: Workspace, keys: Keys, table: Relation, rows: int
) -> tuple[Marginal, ...]:
    """The marginal of every dimension, counted from a frequency set `table` of the ungeneralized table."""
    tables = [_create(engine, workspace, dimension, table) for dimension in keys.dimensions]
    engine.analyze(*tables)
    return tuple(_measure_marginal(engine, d, made, rows) for d, made in zip(keys.dimensions, tables, strict=True))


def marginal_table(workspace: Workspace, dimension: Dimension) -> Relation:
    """The work table of a dimension's marginal."""
    return workspace.table("marginal", dimension.number)


def _create(engine: Engine, workspace: Workspace, dimension: Dimension, table: Relation) -> Relation:
    marginal, hierarchy = marginal_table(workspace, dimension), dimension.field.coding.hierarchy
    assert hierarchy is not None
    engine.run(
        "encoding/frequency/create_marginal",
        marginal=marginal,
        table=table,
        words=_packed(dimension),
        dimension=hierarchy.covered(engine.render),
        covered=[Identifier(f"n{level}") for level in range(1, dimension.height)],
    )
    return marginal


def _packed(dimension: Dimension) -> list[dict[str, Any]]:
    """The words of the key that have digits of a dimension: masked, and packed from a code of its table."""
    hierarchy = dimension.field.coding.hierarchy
    assert hierarchy is not None
    masks: dict[int, int] = {}
    terms: dict[int, list[Expression]] = {}
    for digit, lower in zip(dimension.digits, dimension.shifts, strict=False):
        masks[digit.word] = masks.get(digit.word, 0) | digit.mask
        moved = macro("bits.moved", Identifier("code"), lower, digit.mask >> digit.shift, digit.shift)
        terms.setdefault(digit.word, []).append(moved)
    return [
        {"name": Identifier(f"k{word}"), "mask": masks[word], "packed": macro("bits.united", terms[word])}
        for word in sorted(masks)
        if masks[word]
    ]


def _measure_marginal(engine: Engine, dimension: Dimension, table: Relation, rows: int) -> Marginal:
    hierarchy = dimension.field.coding.hierarchy
    assert hierarchy is not None
    bare = Marginal(dimension, table, 0, ())
    counts = engine.query(
        "encoding/frequency/measure_marginal",
        marginal=table,
        words=[column for column, _ in bare.words(0)],
        levels=[
            {
                "number": level,
                "covered": Identifier(f"n{level}"),
                "keys": [macro("bits.masked", column, mask) for column, mask in bare.words(level)],
            }
            for level in range(1, dimension.height)
        ],
    )
    nulls = next(int(count) for level, _, count, _, _ in counts if level == -1)
    domain = hierarchy.domain + nulls
    each = [sorted((row[1:] for row in counts if row[0] == level), reverse=True) for level in range(dimension.height)]
    levels = [_level(part, rows) for part in each]
    levels.append(MarginalLevel(1, 0.0, np.array([domain], np.int64), np.array([rows], np.int64)))
    return Marginal(dimension, table, domain, tuple(levels))


def _level(counted: list[tuple[Any, ...]], rows: int) -> MarginalLevel:
    """A level from what was found of it: (leaves, groups, rows, sum of n ln n), the most leaves first."""
    leaves, groups, counts, logarithms = zip(*counted, strict=True)
    entropy = math.log(rows) - sum(float(part) for part in logarithms) / rows
    as_integers = (np.array([int(value) for value in values], np.int64) for values in (leaves, counts))
    return MarginalLevel(sum(int(count) for count in groups), entropy, *as_integers)
