"""Mondrian, Rothko-T and Rothko-S: partition trees, whose leaves a release shows as regions."""

from __future__ import annotations

from sqlanon.algorithms.base import Algorithm, SearchRequest
from sqlanon.partition import mondrian, rothko_s
from sqlanon.partition.collapse import Tuples, collapse
from sqlanon.partition.groups import groups_of
from sqlanon.partition.result import Partition
from sqlanon.releases.generalized import Regions


class Tree(Algorithm[Partition]):
    """A partition tree grown on all rows (LeFevre et al., ICDE 2006; LeFevre, DeWitt, TR 1590, section 2)."""

    def distinct_tuples(self, request: SearchRequest) -> Tuples | None:
        fields = groups_of(self.parameters, request.models).fields(request.coded)
        return collapse(request.engine, request.workspace, request.coded, fields)

    def search(self, request: SearchRequest) -> Partition:
        return mondrian.search(
            request.engine,
            request.workspace,
            request.coded,
            request.tuples,
            request.models,
            self.parameters,
            request.report,
        )

    def release(self, request: SearchRequest, decision: Partition) -> Regions:
        ranges = request.policy.ranges
        return Regions.create(request.engine, request.workspace, request.coded, decision, ranges)


class SampledTree(Tree):
    """A partition tree grown on samples, and finished on all rows (LeFevre, DeWitt, TR 1590, section 4)."""

    def search(self, request: SearchRequest) -> Partition:
        return rothko_s.search(
            request.engine,
            request.workspace,
            request.coded,
            request.tuples,
            request.models,
            self.parameters,
            request.report,
        )
