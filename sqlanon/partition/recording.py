"""The partition tree, written down while it grows: what the rules of a release are made of.

Every phase of growth numbers its nodes for itself; here each has a number of its own in the whole tree.
"""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from sqlanon.partition.axes import chosen
from sqlanon.partition.repartition import Settled, Tree
from sqlanon.partition.task import Branch
from sqlanon.sql import Relation


@dataclass(frozen=True)
class Numbers:
    """What is added to the nodes of a round, and to their parents, to make them nodes of the whole tree."""

    nodes: int
    parents: int


ROOT = Numbers(0, 0)


def record_nodes(branch: Branch, ranges: Relation, splits: Relation, round_: int, numbers: Numbers) -> None:
    """Add the nodes in `ranges` to the branch's tree, with what the splits that made them say of them."""
    branch.run(
        "record_tree",
        tree=branch.table("tree"),
        ranges=ranges,
        splits=splits,
        round=round_,
        bits=branch.task.bits,
        shift=_shift(branch),
        first_node=numbers.nodes,
        first_parent=numbers.parents,
    )


def follow_episode(branch: Branch, tree: Tree, settled: Settled, sampled: Relation | None, number: int) -> Relation:
    """The nodes of an episode's tree that are left, with the numbers that they have, as the partition tree has them.

    sampled: `(root, node, …)`, the nodes of the episode before that this one has sampled; None for the whole table.
    """
    followed = branch.table("followed", number)
    branch.engine.run(
        "sampling/follow_tree",
        tree=followed,
        routes=tree.routes,
        ranges=settled.ranges,
        landing=settled.landing,
        sampled=sampled,
        first=tree.first,
        bits=branch.task.bits,
        unit=1 << branch.task.bits,
        nested=branch.task.nested,
        shift=_shift(branch),
    )
    return followed


def _shift(branch: Branch) -> Markup:
    """How far the values of the attribute of a split are shifted in their words."""
    return chosen(branch.task.axes, lambda axis: axis.shift)
