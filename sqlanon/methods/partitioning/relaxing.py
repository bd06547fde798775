"""Relaxed partitioning: leaves of a tree that can be cut nowhere are divided among rows with equal values.

Source: LeFevre, DeWitt, Ramakrishnan, ICDE 2006, section 4 ("relaxed multidimensional partitioning"): rows at the
median may go to either side. Here the strict tree ends first. Each leaf with rows for two classes or more is then
divided by the rank of its rows in the canonical order of their values, into as many parts of equal size as it has rows
for. A part shows the range of its own rows, which is that of the leaf or a narrower one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from markupsafe import Markup

from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.domains import Sensitive
from sqlanon.encoding.row_order import canonical_order
from sqlanon.engines.base import Engine
from sqlanon.models.base import Groups, PrivacyModel
from sqlanon.models.solver import settle_groups
from sqlanon.results.search_facts import TreeFacts
from sqlanon.sql import Expression, Relation, macro
from sqlanon.staging.partition import Partition
from sqlanon.work.workspace import Workspace


class Relaxing:
    """A partition while its large leaves are divided, with their tables."""

    def __init__(
        self,
        engine: Engine,
        workspace: Workspace,
        coded: CodedTable,
        partition: Partition,
        models: Sequence[PrivacyModel],
        sensitive: Sequence[Sensitive],
    ) -> None:
        self.engine, self.workspace, self.coded, self.partition = engine, workspace, coded, partition
        self.fewest = max(model.least_rows for model in models)
        self.models = [model for model in models if not model.decided_by_size]
        self.sensitive = {one.name: one for one in sensitive}
        self.divisible = workspace.table("divisible")
        self.divided = workspace.table("divided")
        self.leaves = workspace.table("parts")

    def relax(self) -> Partition:
        """Divide the large leaves; a leaf stays whole where a part of it would violate a model.

        So where k-anonymity alone is asked for, no part has 2k rows. Parts of a leaf that show the same are one class
        to readers: with ranges of values this happens only to rows that are equal in all quasi-identifiers.
        """
        divided = self._divide(None)
        if self.models and divided:
            undivided = self.workspace.table("undivided")
            self.engine.run(
                "algorithms/tree/decide/list_undivided",
                undivided=undivided,
                divisible=self.divisible,
                measures=self._measure_parts(),
            )
            (whole,) = self.engine.query_one("count_rows", table=undivided)
            if whole:
                self.workspace.drop(self.divisible, self.divided, self.leaves)
                divided = self._divide(undivided)
            self.workspace.drop(undivided)
        self.workspace.drop(self.divisible)
        facts = TreeFacts(partitioning="relaxed", divided=divided)
        return replace(
            self.partition, leaves=self.leaves, assigned=self.divided, facts=facts, tree=None, divides_equal_rows=True
        )

    def _divide(self, undivided: Relation | None) -> int:
        """Divide the leaves that are large enough, but those that stay whole; how many were divided."""
        self.engine.run(
            "algorithms/tree/decide/list_divisible",
            divisible=self.divisible,
            leaves=self.partition.leaves,
            fewest=self.fewest,
            undivided=undivided,
        )
        (leaves,) = self.engine.query_one("count_rows", table=self.divisible)
        keys, asides = canonical_order(self.engine, self.coded)
        self.engine.run(
            "algorithms/tree/scan/divide_leaves",
            divided=self.divided,
            assigned=self.partition.assigned,
            divisible=self.divisible,
            words=self.coded.word_columns,
            keys=keys,
            asides=asides,
        )
        self.engine.analyze(self.divided)
        self.engine.run("staging/measure_leaves", leaves=self.leaves, assigned=self.divided, axes=self.partition.axes)
        self.engine.analyze(self.leaves)
        return int(leaves)

    def _measure_parts(self) -> list[Expression]:
        models = settle_groups(self.engine, self.models, self._groups_of)
        return [model.measure(self.engine.render, self._groups_of(model)) for model in models]

    def _groups_of(self, model: PrivacyModel) -> Groups:
        classes = macro("relations.classes_of_leaves", self.leaves)
        if model.attribute is None:
            return Groups(classes, None, None, self.coded.source_rows)
        one = self.sensitive[model.attribute]
        avs = macro("relations.groups_of_rows", self.divided, one.word, one.mask)
        return Groups(classes, avs, Markup(one.domain), self.coded.source_rows, one.height)
