"""A site's own rows in the cells that all sites count in; nothing of this leaves the site but in shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sqlanon.encoding.frequency.frequency_sets import FrequencySets
from sqlanon.encoding.frequency.keys import Dimension
from sqlanon.encoding.frequency.lattice import Node
from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError
from sqlanon.hierarchies.taxonomy import ROOT
from sqlanon.methods.generalization.federation.cells import Labels, PublicCells
from sqlanon.methods.generalization.federation.party import Counts
from sqlanon.sql import Identifier, Relation
from sqlanon.staging.labels import NULL


@dataclass(frozen=True)
class LocalClass:
    """A class of a site's rows: the words of its key, its labels, and its rows."""

    words: tuple[int, ...]
    labels: Labels
    rows: int


def count_classes(sets: FrequencySets, node: Node) -> list[LocalClass]:
    """Count the site's classes at a generalization."""
    names = sets.keys.kept_columns(node)
    keys = [{"name": name, "value": value} for name, value in zip(names, sets.keys.of_node(node), strict=True)]
    counted = sets.engine.query("methods/generalization/federation/count_classes", table=sets.base.table, keys=keys)
    places = {name: place for place, name in enumerate(names)}
    readers = [
        _LabelReader.of(sets.engine, d, level, places) for d, level in zip(sets.keys.dimensions, node, strict=True)
    ]
    return [
        LocalClass(tuple(words), tuple(reader.label(words) for reader in readers), int(rows))
        for *words, rows in counted
    ]


@dataclass(frozen=True)
class _LabelReader:
    """Reads a quasi-identifier's label from the words of a key.

    digits: the word, the bits and the place in the group's code of each digit that is kept.
    """

    digits: tuple[tuple[int, int, int, int], ...]
    labels: Mapping[int, str | None]

    @classmethod
    def of(cls, engine: Engine, dimension: Dimension, level: int, places: Mapping[Identifier, int]) -> _LabelReader:
        if level == dimension.height:
            return cls((), {0: ROOT})
        shift, shifts = dimension.shifts[level], dimension.shifts
        label = Identifier(f"l{dimension.steps[level]}")
        labels = engine.query(
            "methods/generalization/federation/label_groups", table=dimension.table, shift=shift, label=label
        )
        kept = zip(dimension.digits[level:], shifts[level:-1], strict=True)
        digits = [
            (places[Identifier(f"k{digit.word}")], digit.mask, digit.shift, lower - shift)
            for digit, lower in kept
            if digit.bits
        ]
        return cls(tuple(digits), {0: None, **{int(group): text for group, text in labels}})

    def label(self, words: Sequence[int]) -> str | None:
        """The label; None for NULL."""
        group = sum(((words[place] & mask) >> shift) << up for place, mask, shift, up in self.digits)
        return self.labels[group]


def counts_in(cells: PublicCells, classes: Sequence[LocalClass], names: Sequence[str]) -> Counts:
    """Count a site's rows in every cell; raises PolicyError for NULL in a column that refuses it."""
    counts = np.zeros(cells.size, np.uint64)
    for one, number in zip(classes, cells.numbers([one.labels for one in classes]), strict=True):
        if number is None:
            wrong = [n for n, label, known in zip(names, one.labels, cells.labels, strict=True) if label not in known]
            raise PolicyError(f"Column '{wrong[0]}' holds a value that is in no cell of its hierarchy.")
        counts[number] += np.uint64(one.rows)
    return counts


def create_failing(sets: FrequencySets, node: Node, failing: Sequence[LocalClass]) -> Relation:
    """Write down the site's classes that are suppressed, as a recoding leaves them out: `(class, n, floor)`."""
    names = sets.keys.kept_columns(node)
    small, table = sets.workspace.table("federated_small"), sets.workspace.table("federated_failing")
    sets.engine.run("methods/generalization/federation/create_small", small=small, keys=names)
    sets.engine.load(small, [*(name.name for name in names), "n"], [(*one.words, one.rows) for one in failing])
    sets.engine.run("methods/generalization/federation/create_failing", failing=table, small=small, keys=names)
    sets.workspace.drop(small)
    return table


def count_staged(
    engine: Engine, staged: Relation, columns: Sequence[str], cells: PublicCells, wanted: Mapping[int, int]
) -> Counts:
    """Count staged rows in the cells of `wanted` (cell to place), and last the rows that are in none of them."""
    counts = np.zeros(len(wanted) + 1, np.uint64)
    counted = engine.query(
        "methods/generalization/federation/count_labels", table=staged, columns=[Identifier(name) for name in columns]
    )
    combinations = [tuple(None if label == NULL else label for label in labels) for *labels, _ in counted]
    for number, row in zip(cells.numbers(combinations), counted, strict=True):
        place = len(wanted) if number is None else wanted.get(number, len(wanted))
        counts[place] += np.uint64(row[-1])
    return counts
