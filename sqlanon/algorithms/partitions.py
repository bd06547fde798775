"""Searches for a partition of the rows: trees cut into regions (Mondrian, Rothko)."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from sqlanon.algorithms.base import Algorithm, SearchRequest
from sqlanon.algorithms.tree import mondrian
from sqlanon.algorithms.tree.sampling import rothko_s
from sqlanon.encoding.distinct_tuples import WORTH_SHARE
from sqlanon.releases.generalized import Regions
from sqlanon.staging.partition import Partition


class PartitionSearch(Algorithm[Partition]):
    """A search of coded rows, or of their distinct tuples, for a partition.

    find_partition: the search itself.
    """

    worth = WORTH_SHARE
    reads_uncoded: ClassVar[bool] = False
    find_partition: ClassVar[Callable[..., Partition]]

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

    divides: ClassVar[bool] = True
    find_partition: ClassVar[Callable[..., Partition]] = staticmethod(mondrian.search)

    def release(self, request: SearchRequest, decision: Partition) -> Regions:
        ranges = request.policy.ranges
        return Regions.create(request.engine, request.workspace, request.coded, decision, ranges)


class SampledTree(TreeSearch):
    """A partition tree grown on samples, and finished on all rows (LeFevre, DeWitt, TR 1590, section 4)."""

    divides: ClassVar[bool] = False
    find_partition = staticmethod(rothko_s.search)
