"""Undo splits of a grown tree, for models that judge the classes of a person together, or with those of other releases.

A split is allowable by what its children hold; whether persons have sets of classes that are their own is seen once all
classes are there. As long as some set of classes is that of too few persons, its smallest class is merged with the rest
of what was split to make it. All classes are nodes of the tree, each of which satisfied the models that judge classes
one by one when it was made. In the end there is one class, which has no sets; or there is one for each of several
roots, and those whose sets are still of too few persons are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlanon.algorithms.tree.forest import Grown
from sqlanon.algorithms.tree.task import Task
from sqlanon.encoding.axes import Ranged
from sqlanon.encoding.class_sets import list_short
from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError
from sqlanon.models.km_anonymity import persons_of_sets
from sqlanon.releases.earlier_groups import EarlierGroups, LocatedGroups
from sqlanon.sql import Expression, Identifier, Relation
from sqlanon.staging.partition import Partition
from sqlanon.work.workspace import Workspace

TREE_COLUMNS = ("node", "parent", "round", "attribute", "lower", "upper")  # of a tree that a search has grown


def merge_short_sets(engine: Engine, workspace: Workspace, task: Task, grown: Grown) -> Grown:
    """Merge leaves of a tree until every set of classes that one person has is that of persons enough.

    Nothing is to be merged where nobody has rows in several classes, or no model asks for it.
    """
    sets = persons_of_sets(task.models)
    if task.several is None or not sets:
        return grown
    merging = _Merging(engine, workspace, task, grown)
    merging.begin()
    for size, persons in sets.items():
        while merging.merge(size, persons):
            pass
    return merging.end()


def merge_failing(tree: TreeClasses, located: LocatedGroups) -> bool:
    """Merge leaves until no class divides an earlier group into parts that fail; False where not even the root does so.

    Each class that such a part is in gives way to the node above it, so no split is undone without need.
    """
    tree.begin()
    while (listed := located.list_failing(tree.classes)).count:
        if listed.nodes == 1:
            return False
        tree.climb(listed.groups, listed.failing)
    return True


def merge_partition(
    engine: Engine, workspace: Workspace, words: Sequence[Identifier], partition: Partition, earlier: EarlierGroups
) -> Partition | None:
    """Merge leaves of a partition as `merge_failing` does, with the tree that they are of; None where that fails.

    Raises PolicyError where the search has not written its tree down.
    """
    if partition.tree is None:
        raise PolicyError("--repair: the search left no tree by which classes can be merged; leave --repair out.")
    if not earlier.find_remainder(partition.assigned).is_empty:
        return None
    tree = TreeClasses(engine, workspace, partition.leaves, partition.tree)
    if not merge_failing(tree, earlier.locate(partition.assigned)):
        return None
    leaves, rows, nodes = (workspace.table(f"merged_{name}") for name in ("leaves", "rows", "tree"))
    tree.merge_leaves(leaves, partition.axes)
    tree.merge_rows(rows, partition.assigned, words)
    tree.prune_tree(nodes)
    engine.analyze(leaves, rows, nodes)
    tree.end()
    return replace(partition, leaves=leaves, assigned=rows, tree=nodes, tuples=None)


@dataclass
class TreeClasses:
    """The leaves of a tree while they are merged: a class is a node in whose place all leaves below it stand.

    leaves, tree: relations with `leaf`, and `(node, parent)`; the root is node 0, and a leaf is the node of its number.
    classes: the work table `(leaf, node, leaves)` of the node that is the class of each leaf by now, which has so many
        leaves.
    rounds: how often leaves were merged.
    """

    engine: Engine
    workspace: Workspace
    leaves: Relation | Expression
    tree: Relation | Expression
    rounds: int = 0

    def __post_init__(self) -> None:
        self.lineages, self.classes = self.workspace.table("lineages"), self.workspace.table("classes", 0)

    def begin(self) -> None:
        """Write down the nodes above each leaf, and each leaf as a class of its own."""
        self._run("create_lineages", lineages=self.lineages, leaves=self.leaves, tree=self.tree)
        self._run("create_classes", classes=self.classes, lineages=self.lineages)
        self.engine.analyze(self.lineages, self.classes)

    def climb(self, numbered: Relation, short: Relation) -> None:
        """Give leaves of the listed classes, and all beside them, the next node above these as their class.

        numbered: `(node, number)` of classes; a node may have several numbers. short: `(class)`, the listed numbers.
        """
        self.rounds += 1
        climbed = self.workspace.table("classes", self.rounds)
        self._run(
            "climb", climbed=climbed, classes=self.classes, numbered=numbered, short=short, lineages=self.lineages
        )
        self.workspace.drop(self.classes)
        self.classes = climbed
        self.engine.analyze(climbed)

    def count(self) -> int:
        """Count the classes."""
        return int(self.engine.query_one("algorithms/tree/merge/count_classes", classes=self.classes)[0])

    def leave_out(self, numbered: Relation, short: Relation) -> None:
        """Take the listed classes out; numbered and short: as in `climb`."""
        self.rounds += 1
        kept = self.workspace.table("classes", self.rounds)
        self._run("leave_out", kept=kept, classes=self.classes, numbered=numbered, short=short)
        self.workspace.drop(self.classes)
        self.classes = kept
        self.engine.analyze(kept)

    def merge_leaves(self, merged: Relation, axes: Sequence[Ranged]) -> None:
        """Create the leaves of the tree of classes, each with the ranges of all that is in it."""
        self._run("merge_leaves", merged=merged, leaves=self.leaves, classes=self.classes, axes=axes)

    def merge_rows(self, merged: Relation, rows: Relation | Expression, words: Sequence[Identifier]) -> None:
        """Create the rows with their classes as leaves; rows: with the leaves of the tree."""
        self._run("merge_rows", merged=merged, done=rows, classes=self.classes, words=words)

    def prune_tree(self, merged: Relation, columns: Sequence[str] = TREE_COLUMNS) -> None:
        """Create the tree down to the classes; columns: those of a node."""
        named = [Identifier(name) for name in columns]
        self._run(
            "prune_tree", merged=merged, tree=self.tree, classes=self.classes, lineages=self.lineages, columns=named
        )

    def end(self) -> None:
        """Drop what says which leaves are below which nodes."""
        self.workspace.drop(self.lineages, self.classes)

    def _run(self, name: str, **values: object) -> None:
        self.engine.run(f"algorithms/tree/merge/{name}", **values)


@dataclass
class _Merging:
    """A grown tree while its leaves are merged."""

    engine: Engine
    workspace: Workspace
    task: Task
    grown: Grown

    def __post_init__(self) -> None:
        assert self.grown.tree is not None
        self.held = self.workspace.table("held")
        self.tree = TreeClasses(self.engine, self.workspace, self.grown.leaves, self.grown.tree)

    def begin(self) -> None:
        """Write down the nodes above each leaf, and the leaves of each person."""
        assert self.task.several is not None
        self.tree.begin()
        self._run("create_held", held=self.held, done=self.grown.done, person=self.task.several.code)
        self.engine.analyze(self.held)

    def merge(self, size: int, persons: int) -> bool:
        """Merge the smallest class of each set of so many classes that fewer than `persons` have; whether there are."""
        numbered, memberships = self.workspace.table("numbered"), self.workspace.table("memberships")
        classes = self.tree.classes
        self._run("number_classes", numbered=numbered, classes=classes, leaves=self.grown.leaves, axes=self.task.axes)
        self._run("create_memberships", memberships=memberships, held=self.held, classes=classes, numbered=numbered)
        self.engine.analyze(numbered, memberships)
        short, listed = list_short(self.engine, self.workspace, memberships, size, persons)
        if listed:
            before = self.tree.count()
            self.tree.climb(numbered, short)
            if self.tree.count() == before:  # these are roots already, of which there may be several
                self.tree.leave_out(numbered, short)
        self.workspace.drop(numbered, memberships, short)
        return listed > 0

    def end(self) -> Grown:
        """Make the tree of the classes that there are now."""
        merged, rounds = self.grown, self.tree.rounds
        if rounds:
            leaves, done, tree = (self.workspace.table(f"merged_{name}") for name in ("leaves", "done", "tree"))
            self.tree.merge_leaves(leaves, self.task.axes)
            self.tree.merge_rows(done, merged.done, self.task.word_columns)
            self.tree.prune_tree(tree)
            self.engine.analyze(leaves, done, tree)
            merged = replace(merged, leaves=leaves, done=done, tree=tree, rounds=merged.rounds + rounds)
        self.tree.end()
        self.workspace.drop(self.held)
        return merged

    def _run(self, name: str, **values: object) -> None:
        self.engine.run(f"algorithms/tree/merge/{name}", **values)
