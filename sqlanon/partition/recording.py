"""The partition tree, written down while it grows: what the rules of a release are made of.

Every phase of growth numbers its nodes for itself; here each has a number of its own in the whole tree.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlanon.partition.axes import chosen
from sqlanon.partition.task import Branch
from sqlanon.sql import Relation


@dataclass(frozen=True)
class Numbers:
    """What is added to the nodes of a round, and to their parents, to make them nodes of the whole tree."""

    nodes: int
    parents: int


def record_nodes(branch: Branch, ranges: Relation, splits: Relation, round_: int, numbers: Numbers) -> None:
    """Add the nodes in `ranges` to the branch's tree, with what the splits that made them say of them."""
    branch.run(
        "record_tree",
        tree=branch.table("tree"),
        ranges=ranges,
        splits=splits,
        round=round_,
        bits=branch.task.bits,
        shift=chosen(branch.task.axes, lambda axis: axis.shift),
        first_node=numbers.nodes,
        first_parent=numbers.parents,
    )
