"""Association rules of transactions, mined level by level inside the database, and held against those of another table.

R. Agrawal, R. Srikant, Fast Algorithms for Mining Association Rules, VLDB 1994: sets of one item more are counted from
sets that enough transactions have, of which all parts must be such sets. Sets and their places in transactions are
tables. Rules have one item on the right side; NULL is no item.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sqlanon.engines.base import Engine
from sqlanon.sql import Expression, Relation
from sqlanon.work.workspace import Workspace


@dataclass(frozen=True)
class MinedTable:
    """A table whose rules are mined.

    id: the expression of a row's transaction. cells: of its items, each with `place` and `text`.
    """

    relation: Relation | Expression
    id: Expression
    cells: Sequence[Mapping[str, Any]]

    @property
    def described(self) -> dict[str, Any]:
        return {"relation": self.relation, "cells": self.cells}


@dataclass(frozen=True)
class RuleDifference:
    """The rules of a table and of its release: how many there are, were lost, and are in the release alone."""

    before: int = 0
    after: int = 0
    missing: int = 0
    ghosts: int = 0

    def __add__(self, other: RuleDifference) -> RuleDifference:
        counts = zip(vars(self).values(), vars(other).values(), strict=True)
        return RuleDifference(*(one + more for one, more in counts))


@dataclass(frozen=True)
class RuleThresholds:
    """The least support and confidence of rules, and the items of the largest."""

    support: int
    confidence: Fraction
    most: int

    def are_met_by(self, both: int, left: int) -> bool:
        """Tell whether a rule is mined that so many transactions have, and so many the left side of."""
        return both >= self.support and both >= self.confidence * left


@dataclass(frozen=True)
class MinedSets:
    """The sets of items that enough transactions of a table have, one of which was taken out somewhere.

    baskets: `(id, i1)`, all items of all transactions. sets: a table for each size, `(i1, i2, …, n)`; that of single
    items has them all.
    """

    baskets: Relation
    sets: tuple[Relation, ...]


class RuleMining:
    """The rules of a table and of its release that have an item which was taken out; others are the same in both.

    Items are numbered so that those which were taken out come first: a set has one if its first item is one.

    words: `(item, attribute, value)`, the numbers. last: the number of the last item that was taken out.
    """

    def __init__(
        self, engine: Engine, workspace: Workspace, table: MinedTable, removed: Relation, asked: RuleThresholds
    ) -> None:
        self._engine, self._workspace, self._asked = engine, workspace, asked
        self.words = workspace.table("words")
        engine.run(
            "methods/rule_hiding/mining/create_words",
            words=self.words,
            support=asked.support,
            removed=removed,
            **table.described,
        )
        engine.analyze(self.words)
        (last,) = engine.query_one("methods/rule_hiding/mining/count_removed", removed=removed, words=self.words)
        self.last = int(last)
        self._before = self._mine(table, "before")

    def compare(self, release: MinedTable) -> RuleDifference:
        """Hold the rules of the release against those of the source, and drop all that was made."""
        before, after = self._before, self._mine(release, "after")
        difference = RuleDifference()
        for size in range(2, self._asked.most + 1):
            lefts = self._count_lefts(size)
            counts = self._engine.query_one(
                "methods/rule_hiding/mining/compare_rules",
                before_sets=before.sets[size - 1],
                before_lefts=[before.sets[size - 2], *lefts],
                after_sets=after.sets[size - 1],
                after_lefts=[after.sets[size - 2], *lefts],
                size=size,
                confidence=self._asked.confidence,
            )
            difference += RuleDifference(*(int(count) for count in counts))
            self._workspace.drop(*lefts)
        self._workspace.drop(after.baskets, *after.sets)
        self.drop()
        return difference

    @property
    def sets(self) -> tuple[Relation, ...]:
        """The sets of the source, see `MinedSets`."""
        return self._before.sets

    @property
    def baskets(self) -> Relation:
        """The items of the source's transactions, see `MinedSets`."""
        return self._before.baskets

    def drop(self) -> None:
        """Drop what was mined of the source."""
        self._workspace.drop(self.words, self.baskets, *self.sets)

    def _mine(self, table: MinedTable, name: str) -> MinedSets:
        """Mine sets level by level; name: tells the work tables from those of another table."""
        engine, workspace, asked = self._engine, self._workspace, self._asked
        baskets, sets = workspace.table(f"{name}_baskets"), [workspace.table(f"{name}_sets", 1)]
        engine.run(
            "methods/rule_hiding/mining/create_baskets",
            baskets=baskets,
            words=self.words,
            id=table.id,
            **table.described,
        )
        engine.analyze(baskets)
        engine.run("methods/rule_hiding/mining/count_items", sets=sets[0], baskets=baskets, support=asked.support)
        engine.analyze(sets[0])
        occurrences = baskets
        for size in range(2, asked.most + 1):
            sets.append(workspace.table(f"{name}_sets", size))
            engine.run(
                "methods/rule_hiding/mining/count_sets",
                sets=sets[-1],
                occurrences=occurrences,
                baskets=baskets,
                pairs=sets[1],
                last=self.last,
                size=size,
                support=asked.support,
            )
            engine.analyze(sets[-1])
            if size < asked.most:
                located = self._locate(occurrences, baskets, sets[-1], size, name)
                workspace.drop(*([occurrences] if occurrences is not baskets else []))
                occurrences = located
        workspace.drop(*([occurrences] if occurrences is not baskets else []))
        return MinedSets(baskets, tuple(sets))

    def _locate(self, occurrences: Relation, baskets: Relation, sets: Relation, size: int, name: str) -> Relation:
        """Find the sets in their transactions."""
        located = self._workspace.table(f"{name}_located", size)
        self._engine.run(
            "methods/rule_hiding/mining/locate_sets",
            located=located,
            occurrences=occurrences,
            baskets=baskets,
            sets=sets,
            size=size,
        )
        self._engine.analyze(located)
        return located

    def _count_lefts(self, size: int) -> list[Relation]:
        """Count the left sides without an item that was taken out; those of one item are known."""
        if size == 2:
            return []
        lefts = self._workspace.table("lefts", size)
        self._engine.run(
            "methods/rule_hiding/mining/count_lefts",
            lefts=lefts,
            sets=self._before.sets[size - 1],
            baskets=self._before.baskets,
            last=self.last,
            size=size,
        )
        self._engine.analyze(lefts)
        return [lefts]
