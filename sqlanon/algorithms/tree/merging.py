"""Undo splits of a grown tree, for models that judge the classes of a person together.

A split is allowable by what its children hold; whether persons have sets of classes that are their own is seen once all
classes are there. As long as some set of classes is that of too few persons, its smallest class is merged with the rest
of what was split to make it. All classes are nodes of the tree, each of which satisfied the models that judge classes
one by one when it was made. In the end there is one class, which has no sets.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlanon.algorithms.tree.forest import Grown
from sqlanon.algorithms.tree.task import Task
from sqlanon.encoding.class_sets import list_short
from sqlanon.engines.base import Engine
from sqlanon.models.km_anonymity import persons_of_sets
from sqlanon.sql import Relation
from sqlanon.work.workspace import Workspace


def merge_short_sets(engine: Engine, workspace: Workspace, task: Task, grown: Grown) -> Grown:
    """Merge leaves of a tree until every set of classes that one person has is that of persons enough.

    Nothing is to be merged where nobody has rows in several classes, or no model asks for it.
    """
    sets = persons_of_sets(task.models)
    if task.several is None or not sets:
        return grown
    merging = _Merging(engine, workspace, task, grown)
    rounds = 0
    merging.begin()
    for size, persons in sets.items():
        while merging.merge(size, persons, rounds):
            rounds += 1
    return merging.end(rounds)


@dataclass
class _Merging:
    """A grown tree while its leaves are merged.

    classes: the work table `(leaf, node, leaves)` of the node that is the class of each leaf by now, which has so many
        leaves.
    """

    engine: Engine
    workspace: Workspace
    task: Task
    grown: Grown

    def __post_init__(self) -> None:
        self.lineages, self.held = self.workspace.table("lineages"), self.workspace.table("held")
        self.classes = self.workspace.table("classes", 0)

    def begin(self) -> None:
        """Write down the nodes above each leaf, and the leaves of each person."""
        assert self.grown.tree is not None
        assert self.task.several is not None
        self._run("create_lineages", lineages=self.lineages, leaves=self.grown.leaves, tree=self.grown.tree)
        self._run("create_classes", classes=self.classes, lineages=self.lineages)
        self._run("create_held", held=self.held, done=self.grown.done, person=self.task.several.code)
        self.engine.analyze(self.lineages, self.classes, self.held)

    def merge(self, size: int, persons: int, rounds: int) -> bool:
        """Merge the smallest class of each set of so many classes that fewer than `persons` have; whether there are."""
        numbered, memberships = self.workspace.table("numbered"), self.workspace.table("memberships")
        self._run(
            "number_classes",
            numbered=numbered,
            classes=self.classes,
            leaves=self.grown.leaves,
            axes=self.task.axes,
        )
        self._run(
            "create_memberships", memberships=memberships, held=self.held, classes=self.classes, numbered=numbered
        )
        self.engine.analyze(numbered, memberships)
        short, listed = list_short(self.engine, self.workspace, memberships, size, persons)
        if listed:
            self._climb(numbered, short, self.workspace.table("classes", 1 + rounds))
        self.workspace.drop(numbered, memberships, short)
        return listed > 0

    def _climb(self, numbered: Relation, short: Relation, climbed: Relation) -> None:
        """Give leaves of the listed classes, and all beside them, the next node above these as their class."""
        self._run(
            "climb",
            climbed=climbed,
            classes=self.classes,
            numbered=numbered,
            short=short,
            lineages=self.lineages,
        )
        self.workspace.drop(self.classes)
        self.classes = climbed
        self.engine.analyze(climbed)

    def end(self, rounds: int) -> Grown:
        """Make the tree of the classes that there are now."""
        merged = self.grown
        if rounds:
            leaves, done, tree = (self.workspace.table(f"merged_{name}") for name in ("leaves", "done", "tree"))
            self._run("merge_leaves", merged=leaves, leaves=merged.leaves, classes=self.classes, axes=self.task.axes)
            self._run("merge_rows", merged=done, done=merged.done, classes=self.classes, words=self.task.word_columns)
            self._run("prune_tree", merged=tree, tree=merged.tree, classes=self.classes, lineages=self.lineages)
            self.engine.analyze(leaves, done, tree)
            merged = replace(merged, leaves=leaves, done=done, tree=tree, rounds=merged.rounds + rounds)
        self.workspace.drop(self.lineages, self.held, self.classes)
        return merged

    def _run(self, name: str, **values: object) -> None:
        self.engine.run(f"algorithms/tree/merge/{name}", **values)
