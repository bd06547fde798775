"""Runs of a sorted table: rows that are neighbours in the order of the quasi-identifiers are a class.

Classes begin with as many rows as the models need at least, and become twice as large as long as one of them violates a
model; rows that are equal in all columns stay together. One
sort of the table finds the classes, whatever the number of quasi-identifiers: far quicker than a partition tree, with
regions that are narrow in the first quasi-identifier of the policy and wide in the last.
"""

from __future__ import annotations

from sqlanon.algorithms import Algorithm, SearchRequest
from sqlanon.encoding.domains import create_domains, require_attainable
from sqlanon.releases.generalized import Regions
from sqlanon.sql import Identifier
from sqlanon.staging.classes import count_violating, partition_of
from sqlanon.staging.partition import Partition


class SortedRunsSearch(Algorithm[Partition]):
    """Classes of neighbours in the order of the quasi-identifiers."""

    def search(self, request: SearchRequest) -> Partition:
        engine, workspace, coded = request.engine, request.workspace, request.coded
        sensitive = create_domains(engine, workspace, coded, request.models)
        require_attainable(engine, coded.source_rows, request.models, sensitive)  # so one class of all rows will do
        size, rounds = max(model.least_rows for model in request.models), 1
        while True:
            partition = self._cut(request, size, rounds)
            if not count_violating(engine, request.models, sensitive, partition, coded.source_rows):
                return partition
            workspace.drop(partition.leaves, partition.assigned)
            size, rounds = size * self.parameters.growth, rounds + 1

    def _cut(self, request: SearchRequest, size: int, rounds: int) -> Partition:
        """Cut the order into classes of about so many rows; the last one takes what is left over."""
        coded, assigned = request.coded, request.workspace.table("assigned")
        request.engine.run(
            "sqlanon_example:sorted_runs/cut_sorted_rows",
            assigned=assigned,
            rows=coded.rows,
            words=coded.word_columns,
            keys=[field.code(Identifier("r")) for field in coded.quasi_identifiers],
            size=size,
            last=max(1, coded.source_rows // size) - 1,
        )
        request.engine.analyze(assigned)
        return partition_of(request.engine, request.workspace, coded, assigned, rounds)

    def release(self, request: SearchRequest, decision: Partition) -> Regions:
        return Regions.create(request.engine, request.workspace, request.coded, decision, request.policy.ranges)
