"""From a generalization to the classes of the release: full-domain recoding, with what it can't keep suppressed.

Each *pass* recodes rows at one generalization: the first all of them, each further one what those before it failed to
put into a class that satisfies the models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from sqlanon.encoding.axes import Axis, carried
from sqlanon.encoding.frequency.keys import Dimension
from sqlanon.encoding.frequency.lattice import Node
from sqlanon.results.search_facts import Facts
from sqlanon.sql import Expression, Identifier, Relation, macro
from sqlanon.staging.partition import Partition

if TYPE_CHECKING:
    from sqlanon.encoding.frequency.frequency_sets import FrequencySets

SUPPRESSED_LEAF = 0  # the leaf of suppressed rows; classes count from 1


@dataclass(frozen=True)
class Generalization(Partition):
    """The classes of a full-domain generalization.

    passes: the level of every quasi-identifier, by name, one generalization a pass.
    shown: the levels of its hierarchy at which each axis is shown.
    chart: what is known of the lattice that was searched (see `lattice.record.record`).
    """

    passes: tuple[Mapping[str, int], ...] = ()
    shown: tuple[frozenset[int], ...] = ()
    chart: Mapping[str, Any] | None = None

    @property
    def levels(self) -> tuple[frozenset[int], ...]:
        return self.shown

    def as_searched(self, rounds: int, facts: Facts, chart: Mapping[str, Any] | None) -> Self:
        return replace(self, rounds=rounds, facts=facts, chart=chart)


@dataclass(frozen=True)
class RecodingPass:
    """One generalization and the classes that satisfy the models there: `(leaf, n, p0, p1, …)`, words masked."""

    node: Node
    classes: Relation


def recode_node(sets: FrequencySets, node: Node) -> Generalization:
    """The release of one generalization; classes that violate a model are suppressed whole, whatever the budget."""
    failing, verdict = sets.create_failing(node)
    first = create_pass(sets, node, failing)
    sets.workspace.drop(failing)
    return release_of(sets, [first], verdict.suppressed)


def create_pass(
    sets: FrequencySets, node: Node, failing: Relation, number: int = 0, first_leaf: int = 1
) -> RecodingPass:
    """Write down the classes of a node that are not among the failing ones (see `FrequencySets.create_failing`)."""
    classes = sets.workspace.table("classes", number)
    sets.engine.run(
        "releases/create_classes",
        classes=classes,
        table=sets.base.table,
        keys=[
            {"name": name, "value": value}
            for name, value in zip(sets.keys.kept_columns(node), sets.keys.of_node(node), strict=True)
        ],
        words=sets.keys.in_rows(node, sets.coded.words),
        failing=failing,
        first_leaf=first_leaf,
    )
    sets.engine.analyze(classes)
    return RecodingPass(node, classes)


def release_of(sets: FrequencySets, passes: Sequence[RecodingPass], suppressed: int) -> Generalization:
    """The partition of one or several passes."""
    stars = not sets.task.omits and suppressed > 0
    leaves = sets.workspace.table("leaves")
    axes = tuple(Axis(d.number, d.field, leveled=True) for d in sets.keys.dimensions)
    sets.engine.run(
        "releases/create_leaves",
        leaves=leaves,
        passes=[_described(sets, one) for one in passes],
        suppressed_leaf=SUPPRESSED_LEAF if stars else None,
        suppressed=suppressed,
        tops=[{"height": d.steps[-1]} for d in sets.keys.dimensions],
    )
    sets.engine.analyze(leaves)
    suppressed_leaf = SUPPRESSED_LEAF if stars else None
    dimensions = sets.keys.dimensions
    names = [d.field.attribute.name for d in dimensions]
    return Generalization(
        axes,
        leaves,
        _assigned(sets, passes, suppressed_leaf),
        1,
        suppressed,
        suppressed_leaf,
        passes=tuple(dict(zip(names, one.node, strict=True)) for one in passes),
        shown=tuple(frozenset(d.steps[one.node[d.number]] for one in passes) for d in dimensions),
    )


def _described(sets: FrequencySets, one: RecodingPass) -> dict[str, Any]:
    """Build the values of a pass for the template of the leaves."""
    return {
        "classes": one.classes,
        "attributes": [_attribute(d, level) for d, level in zip(sets.keys.dimensions, one.node, strict=True)],
    }


def _attribute(dimension: Dimension, level: int) -> dict[str, Any]:
    """One attribute of a class: its level, and its group there as the class's words have it."""
    shift = dimension.shifts[level]
    return {
        "lo": dimension.lo,
        "hi": dimension.hi,
        "column": Identifier(f"level_{dimension.number}"),
        "alias": Identifier(f"group_{dimension.number}"),
        "level": dimension.steps[level],
        "is_root": level == dimension.height,
        "table": dimension.table,
        "group": macro(
            "bits.field",
            dimension.field.column,
            dimension.mask_in_row(level),
            dimension.field.shift + shift,
            Identifier("classes"),
        ),
        "shift": shift,
    }


def _assigned(sets: FrequencySets, passes: Sequence[RecodingPass], suppressed_leaf: int | None) -> Expression:
    """Every row's words with the leaf of the first pass that has a class for it."""
    described = []
    for one in passes:
        masks = sets.keys.masks_in_rows(one.node, sets.coded.words)
        words = [pair for pair in zip(sets.coded.word_columns, masks, strict=True) if pair[1]]
        described.append({"classes": one.classes, "words": words})
    return macro("lattice.assigned", sets.coded.rows, carried("r", sets.coded.word_columns), described, suppressed_leaf)
