"""Top-down specialization: cuts through hierarchies, lowered for as long as the models allow."""

from __future__ import annotations

from sqlanon.algorithms.base import Algorithm, SearchRequest
from sqlanon.lattice import specialization
from sqlanon.partition.collapse import Tuples, collapse
from sqlanon.partition.groups import groups_of
from sqlanon.partition.result import Partition
from sqlanon.releases.generalized import Cuts


class TopDownSpecialization(Algorithm[Partition]):
    """Each branch of a hierarchy at a level of its own (Fung, Wang, Yu, ICDE 2005)."""

    def distinct_tuples(self, request: SearchRequest) -> Tuples | None:
        fields = groups_of(self.parameters, request.models).fields(request.coded)
        return collapse(request.engine, request.workspace, request.coded, fields)

    def search(self, request: SearchRequest) -> Partition:
        return specialization.search(
            request.engine,
            request.workspace,
            request.coded,
            request.tuples,
            request.models,
            self.parameters,
            request.report,
        )

    def release(self, request: SearchRequest, decision: Partition) -> Cuts:
        return Cuts.create(request.engine, request.workspace, request.coded, decision)
