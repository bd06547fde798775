"""Releases that show most cells as they are, and single ones as `*`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlanon.encoding.axes import Axis
from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.distinct_tuples import Tuples, expand
from sqlanon.engines.base import Engine
from sqlanon.releases.clustering import digest_clusters
from sqlanon.releases.generalized import Generalized
from sqlanon.results.facts import CellFacts
from sqlanon.sql import Relation
from sqlanon.staging.partition import Partition
from sqlanon.staging.recode import create_regions
from sqlanon.work.workspace import Workspace


@dataclass(frozen=True)
class StarredTuples:
    """The cells to be starred.

    states: `(tuple, n, p0, p1, …, stars)`: the distinct tuples of quasi-identifiers with their rows, and the columns
        that each stars, bit i for that in place i.
    tuples: the layout of these. rounds: of the search.
    subsets: the policy's, for the facts.
    """

    states: Relation
    tuples: Tuples
    rounds: int
    subsets: Mapping[int, int]

    @property
    def omitted(self) -> int:
        """The rows that are left out: none."""
        return 0


@dataclass(frozen=True)
class Cells(Generalized):
    """Rows that show their values, or `*`; which rows fit a row is for readers to see, and what models judge.

    What is starred follows from the rows that there were: no rules would treat new ones alike.
    """

    @classmethod
    def create(cls, engine: Engine, workspace: Workspace, coded: CodedTable, decided: StarredTuples) -> Cells:
        """Write down what every tuple shows."""
        axes = tuple(Axis(number, field, leveled=True) for number, field in enumerate(coded.quasi_identifiers))
        leaves, numbered = workspace.table("leaves"), workspace.table("numbered_tuples")
        described = [{"axis": axis, "height": 1} for axis in axes]
        engine.run("cells/create_leaves", leaves=leaves, states=decided.states, axes=described)
        engine.run("cells/number_tuples", numbered=numbered, states=decided.states, words=coded.word_columns)
        engine.analyze(leaves, numbered)
        assigned = expand(coded, decided.tuples, numbered)
        facts = _count_starred(engine, axes, decided)
        partition = Partition(axes, leaves, assigned, decided.rounds, facts=facts)
        recoding = create_regions(engine, workspace, coded, partition)
        workspace.drop(decided.states)
        return cls(recoding)

    def digest_recoding(self, engine: Engine) -> str | None:
        return digest_clusters(engine, [one.name for one in self.recoding.shown], self.recoding.regions)


def _count_starred(engine: Engine, axes: tuple[Axis, ...], decided: StarredTuples) -> CellFacts:
    """Count the starred cells of each quasi-identifier, and the rows that have any."""
    rows, *counts = engine.query_one("cells/count_starred", states=decided.states, axes=axes)
    names = [axis.field.attribute.name for axis in axes]
    starred = {name: int(count) for name, count in zip(names, counts, strict=True)}
    subsets = {str(size): least for size, least in decided.subsets.items()}
    return CellFacts(starred, int(rows), subsets or None)
