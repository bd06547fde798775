"""Starred rows as the class that a reader sees: other classes join them until they satisfy the models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlanon.encoding.frequency.lattice import Node
from sqlanon.sql import Identifier, Relation

if TYPE_CHECKING:
    from sqlanon.encoding.frequency.frequency_sets import FrequencySets

MOST_TRIED = 512  # numbers of joining classes that are tried in one statement


def complete_stars(
    sets: FrequencySets,
    named: Mapping[str, dict[str, Identifier]],
    classes: tuple[Node, Relation, Relation],
    rows: int,
) -> int:
    """Let classes join the suppressed ones of a generalization until these satisfy all models as one class.

    named: how statements name the sensitive attributes; classes: the generalization, the frequency set it is counted
    from, and its suppressed classes, which have so many rows. Returns how many rows they have then: more than the
    budget where nothing within it does.
    """
    return _Stars(sets, named, *classes, rows).complete()


@dataclass(frozen=True)
class _Stars:
    """The suppressed rows of a generalization as one class, and the classes that may join it: smallest first, of equal
    ones by their keys, each whole.

    named: how statements name sensitive attributes.
    failing: the classes that are suppressed, which grow; rows: in them.
    """

    sets: FrequencySets
    named: Mapping[str, dict[str, Identifier]]
    node: Node
    table: Relation
    failing: Relation
    rows: int

    def complete(self) -> int:
        """Let the fewest classes join with which the class satisfies all models; how many rows it has then.

        More than the budget where no number of them within it does.
        """
        joining = self._rank()
        try:
            fewest = self._first(joining)
            if fewest is None:
                return self.sets.task.budget + 1
            self.sets.engine.run("encoding/frequency/add_joining", failing=self.failing, joining=joining, place=fewest)
            (joined,) = self.sets.engine.query_one("encoding/frequency/count_joined", joining=joining, place=fewest)
            return self.rows + int(joined)
        finally:
            self.sets.workspace.drop(joining)

    def _rank(self) -> Relation:
        """Work table `(place, class, n, upto)`: the classes that fit into the budget, `upto` rows with all before."""
        joining = self.sets.workspace.table("joining", next(self.sets.numbers))
        self.sets.engine.run(
            "encoding/frequency/rank_joining",
            joining=joining,
            table=self.table,
            keys=self.sets.keys.of_node(self.node),
            failing=self.failing,
            room=self.sets.task.budget - self.rows,
        )
        self.sets.engine.analyze(joining)
        return joining

    def _first(self, joining: Relation) -> int | None:
        """The least number of classes that do, 0 if none has to join."""
        fewest = self.sets.task.fewest_rows - self.rows
        places, low = (
            int(n)
            for n in self.sets.engine.query_one("encoding/frequency/count_joining", joining=joining, fewest=fewest)
        )
        step = 1
        while low <= places:
            first = self._find_fewest(joining, low, low + step)
            if first is not None:
                return first
            low, step = low + step, min(MOST_TRIED, step * 8)
        return None

    def _find_fewest(self, joining: Relation, low: int, high: int) -> int | None:
        """The least number of classes from `low` up to before `high` with which all models hold."""
        sets = self.sets
        values = {
            "table": self.table,
            "keys": sets.keys.of_node(self.node),
            "failing": self.failing,
            "joining": joining,
            "low": low,
            "high": high,
            "sensitive": list(self.named.values()),
        }
        rows = sets.task.compared or sets.task.rows
        measured = sets.measures(self.named, sets.task.sensitive, rows, "encoding/frequency/list_open_joining", values)
        measures = [statement for _, statement in measured]
        (fewest,) = sets.engine.query_one("encoding/frequency/find_fewest_joining", measures=measures, **values)
        return None if fewest is None else int(fewest)
