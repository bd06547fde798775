"""Searches for a partition of the rows: trees cut into regions (Mondrian, Rothko)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from sqlanon.algorithms.base import Algorithm, SearchRequest
from sqlanon.algorithms.tree import mondrian
from sqlanon.algorithms.tree.sampling import rothko_s
from sqlanon.encoding.distinct_tuples import WORTH_SHARE
from sqlanon.releases.generalized import Regions
from sqlanon.staging.partition import Partition


class PartitionSearch(Algorithm[Partition]):
    """A search of coded rows, or of their distinct tuples, for a partition."""

    worth = WORTH_SHARE

    @property
    @abstractmethod
    def find_partition(self) -> Callable[..., Partition]:
        """The search itself."""

    def search(self, request: SearchRequest) -> Partition:
        return self.find_partition(
            request.engine,
            request.workspace,
            request.coded,
            request.tuples,
            request.models,
            self.parameters,
            request.report,
        )


class TreeSearch(PartitionSearch):
    """A partition tree grown on all rows (LeFevre et al., ICDE 2006; LeFevre, DeWitt, TR 1590, section 2)."""

    @property
    def find_partition(self) -> Callable[..., Partition]:
        return mondrian.search

    def release(self, request: SearchRequest, decision: Partition) -> Regions:
        ranges = request.policy.ranges
        return Regions.create(request.engine, request.workspace, request.coded, decision, ranges)


class SampledTree(TreeSearch):
    """A partition tree grown on samples, and finished on all rows (LeFevre, DeWitt, TR 1590, section 4)."""

    @property
    def find_partition(self) -> Callable[..., Partition]:
        return rothko_s.search
