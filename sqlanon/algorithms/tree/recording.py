"""The partition tree, written down when it has grown: what the rules of a release are made of.

Every phase of growth numbers its nodes for itself; here each has a number of its own in the whole tree.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlanon.algorithms.tree.task import Branch
from sqlanon.sql import Relation


@dataclass(frozen=True)
class Numbers:
    """The numbers to add to the nodes of a round, and to their parents, to make them nodes of the whole tree."""

    nodes: int
    parents: int


ROOT = Numbers(0, 0)


def remember_splits(branch: Branch, splits: Relation, round_: int, numbers: Numbers) -> None:
    """Keep the splits that made the nodes of a round until the tree is written down."""
    branch.decide(
        "remember_splits",
        history=branch.table("history"),
        splits=splits,
        round=round_,
        first_split=numbers.nodes >> branch.task.bits,
        first_parent=numbers.parents,
    )


def record_tree(branch: Branch, leaves: Relation) -> None:
    """Add the nodes that the remembered splits have made to the branch's tree: once, when all of it has grown."""
    tables = {"tree": branch.table("tree"), "history": branch.table("history"), "leaves": leaves}
    branch.decide("record_tree", bits=branch.task.bits, axes=branch.task.axes, **tables)
    branch.workspace.drop(tables["history"])
