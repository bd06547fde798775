"""Releases that show most cells as they are, and single ones as groups of values, or as `*`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlanon.encoding.axes import Axis
from sqlanon.encoding.climbs import Climb
from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.distinct_tuples import Tuples, expand
from sqlanon.engines.base import Engine
from sqlanon.measures.certainty_penalty import measure_loss
from sqlanon.releases.clustering import digest_clusters
from sqlanon.releases.generalized import Generalized
from sqlanon.results.search_facts import CellFacts
from sqlanon.sql import Relation
from sqlanon.staging.partition import Partition
from sqlanon.staging.recode import create_regions
from sqlanon.work.workspace import Workspace


@dataclass(frozen=True)
class ClimbedTuples:
    """The cells that show less than their value.

    states: `(tuple, n, p0, p1, …, stars)`: the distinct tuples of quasi-identifiers with their rows, and the steps that
        the cells of each made.
    tuples: the layout of these. climbs: the steps of each quasi-identifier. rounds: of the search.
    subsets: the policy's, for the facts.
    """

    states: Relation
    tuples: Tuples
    climbs: tuple[Climb, ...]
    rounds: int
    subsets: Mapping[int, int]

    @property
    def omitted(self) -> int:
        """The rows that are left out: none."""
        return 0

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The quasi-identifiers as the release shows them."""
        return tuple(Axis(number, climb.field, leveled=True) for number, climb in enumerate(self.climbs))

    @property
    def columns(self) -> list[dict[str, Any]]:
        """Describe the quasi-identifiers for statements."""
        return [{"axis": axis, "climb": climb} for axis, climb in zip(self.axes, self.climbs, strict=True)]


@dataclass(frozen=True)
class Cells(Generalized):
    """Rows that show their values, groups of these, or `*`; which rows fit a row is for readers to see, and what models
    judge.

    What climbs follows from the rows that there were: no rules would treat new ones alike.
    """

    @classmethod
    def create(cls, engine: Engine, workspace: Workspace, coded: CodedTable, decided: ClimbedTuples) -> Cells:
        """Write down what every tuple shows."""
        numbered = workspace.table("numbered_tuples")
        engine.run("methods/cells/number_tuples", numbered=numbered, states=decided.states, words=coded.word_columns)
        engine.analyze(numbered)
        assigned = expand(coded, decided.tuples, numbered)
        leaves, facts = _create_leaves(engine, workspace, decided), _count_climbed(engine, decided)
        partition = Partition(decided.axes, leaves, assigned, decided.rounds, facts=facts)
        recoding = create_regions(engine, workspace, coded, partition)
        workspace.drop(decided.states)
        return cls(recoding)

    def digest_recoding(self, engine: Engine) -> str | None:
        return digest_clusters(engine, [one.name for one in self.recoding.shown], self.recoding.regions)


def lose(engine: Engine, workspace: Workspace, decided: ClimbedTuples) -> float:
    """Measure the information loss of what tuples would show."""
    leaves = _create_leaves(engine, workspace, decided)
    loss = measure_loss(engine, Partition(decided.axes, leaves, decided.states, decided.rounds)).gcp
    workspace.drop(leaves)
    return loss


def _create_leaves(engine: Engine, workspace: Workspace, decided: ClimbedTuples) -> Relation:
    leaves = workspace.table("leaves")
    engine.run("methods/cells/create_leaves", leaves=leaves, states=decided.states, columns=decided.columns)
    engine.analyze(leaves)
    return leaves


def _count_climbed(engine: Engine, decided: ClimbedTuples) -> CellFacts:
    """Count the cells of each quasi-identifier that show `*` or a group, and the rows that have any."""
    rows, *counts = engine.query_one("methods/cells/count_starred", states=decided.states, columns=decided.columns)
    names = [climb.name for climb in decided.climbs]
    starred, grouped = (
        {name: int(count) for name, count in zip(names, part, strict=True)}
        for part in (counts[: len(names)], counts[len(names) :])
    )
    has_groups = any(len(climb.steps) > 1 for climb in decided.climbs)
    subsets = {str(size): least for size, least in decided.subsets.items()}
    return CellFacts(starred, int(rows), subsets or None, grouped if has_groups else None)
