"""Decision trees of codes, grown round by round: the database counts and moves rows, tables of nodes decide.

A node is split where the Gini index of its two parts is least, as in SPRINT (Shafer, Agrawal, Mehta, VLDB 1996), which
Agrawal and Srikant used: numbers at a bound, categories into one value and all others. The tree is pruned from below
where a leaf is described in fewer bits than the split with its parts (Mehta, Rissanen, Agrawal, KDD 1995). Several
trees, each with rows of its own, grow at once, and rows for testing go the same paths, uncounted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlanon.engines.base import Engine
from sqlanon.methods.randomization.reconstruction.classifying.features import Feature
from sqlanon.sql import Relation
from sqlanon.work.workspace import Workspace

MOST_ROUNDS = 12
_PARTS = 1000  # of the rows for training: a leaf holds one part at least
_LEAST = 5  # rows of a leaf

Classes = dict[int, int]


@dataclass
class TreeNode:
    """A node with its rows by class, those for testing apart, and with both its children if it is split."""

    rows: Classes = field(default_factory=dict)
    tested: Classes = field(default_factory=dict)
    children: tuple[TreeNode, TreeNode] | None = None

    @property
    def label(self) -> int:
        """The class of most rows; the least of several."""
        return max(self.rows, key=lambda class_: (self.rows[class_], -class_), default=0)


class Trees:
    """Trees whose roots are the nodes that rows are at, grown until nothing is split."""

    def __init__(self, engine: Engine, workspace: Workspace, features: Sequence[Feature], roots: Sequence[int]) -> None:
        self._engine = engine
        self._workspace = workspace
        self._features = [one.listed(engine) for one in features]
        self._ordered = [one.number for one in features if one.bins is not None] or [-1]
        self.roots = {number: TreeNode() for number in roots}

    def grow(self, training: Relation) -> None:
        """Split nodes, a level a round."""
        nodes = self.roots
        self._count(training, nodes)
        least = max(_LEAST, max(sum(node.rows.values()) for node in nodes.values()) // _PARTS)
        for number in range(MOST_ROUNDS):
            chosen = self._choose(training, nodes, number, least)
            if not chosen:
                break
            nodes = self._split(nodes, chosen)
            training = self._move(training, number, chosen)
            self._count(training, nodes)

    def _count(self, training: Relation, nodes: Mapping[int, TreeNode]) -> None:
        for node, is_test, class_, n in self._engine.query(
            "methods/randomization/classification/count_classes", training=training
        ):
            of = nodes[int(node)]
            (of.tested if is_test else of.rows)[int(class_)] = int(n)

    def _choose(
        self, training: Relation, nodes: Mapping[int, TreeNode], number: int, least: int
    ) -> list[tuple[int, int, int]]:
        """Choose the splits that lessen the Gini index, as (node, feature, code)."""
        counts = self._workspace.table("counts", number)
        self._engine.run(
            "methods/randomization/classification/count_codes",
            counts=counts,
            training=training,
            features=self._features,
        )
        rows = self._engine.query(
            "methods/randomization/classification/choose_splits", counts=counts, least=least, ordered=self._ordered
        )
        self._workspace.drop(counts)
        chosen = [(int(node), int(feature), int(code), float(score)) for node, feature, code, score in rows]
        return [one[:3] for one in sorted(chosen) if one[3] > _score(nodes[one[0]].rows) * (1 + 1e-12)]

    def _split(self, nodes: Mapping[int, TreeNode], chosen: Sequence[tuple[int, int, int]]) -> dict[int, TreeNode]:
        made: dict[int, TreeNode] = {}
        for place, (node, _, _) in enumerate(chosen):
            nodes[node].children = made[2 * place], made[2 * place + 1] = TreeNode(), TreeNode()
        return made

    def _move(self, training: Relation, number: int, chosen: Sequence[tuple[int, int, int]]) -> Relation:
        """Send the rows of split nodes to the children, which are numbered anew."""
        splits, moved = self._workspace.table("splits", number), self._workspace.table("training", number)
        self._engine.run("methods/randomization/classification/create_splits", splits=splits)
        children = [(*one, 2 * place) for place, one in enumerate(chosen)]
        self._engine.load(splits, ["node", "feature", "code", "child"], children)
        self._engine.run(
            "methods/randomization/classification/move_rows",
            moved=moved,
            training=training,
            splits=splits,
            features=self._features,
        )
        self._workspace.drop(splits, training)
        return moved


def _score(rows: Classes) -> float:
    """The score of a node that is not split; see `choose_splits`."""
    return float(sum(n * n for n in rows.values()) / max(1, sum(rows.values())))


def prune(node: TreeNode, classes: int, features: Sequence[Feature]) -> float:
    """Make a leaf of each node that takes fewer bits so; returns the bits of the node.

    classes: how many there are.
    """
    as_leaf = 1 + _bits_of(node.rows, classes)
    if node.children is None:
        return as_leaf
    codes = sum(one.last + 1 for one in features)
    as_split = 1 + math.log2(codes) + sum(prune(child, classes, features) for child in node.children)
    if as_leaf <= as_split:
        node.children = None
    return min(as_leaf, as_split)


def _bits_of(rows: Classes, classes: int) -> float:
    """The stochastic complexity of the classes of a leaf's rows (Mehta, Rissanen, Agrawal, 1995, formula 2)."""
    total = sum(rows.values())
    if not total:
        return 0.0
    entropy = sum(n * math.log2(total / n) for n in rows.values() if n)
    volume = (classes / 2 * math.log(math.pi) - math.lgamma(classes / 2)) / math.log(2)
    return entropy + max(0.0, (classes - 1) / 2 * math.log2(total / 2) + volume)


def leaves_of(node: TreeNode) -> list[TreeNode]:
    """List the leaves below a node."""
    return [node] if node.children is None else [leaf for child in node.children for leaf in leaves_of(child)]


def count_right_of(node: TreeNode) -> int:
    """Count the rows for testing that the leaves below a node predict rightly."""
    return sum(leaf.tested.get(leaf.label, 0) for leaf in leaves_of(node))
