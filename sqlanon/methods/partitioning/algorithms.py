"""Searches that cut the table into regions: Mondrian and Rothko."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from sqlanon.algorithms.base import PartitionSearch, SearchRequest
from sqlanon.algorithms.tree.merging import merge_partition
from sqlanon.methods.partitioning import mondrian
from sqlanon.methods.partitioning.sampling import rothko_s
from sqlanon.releases.earlier_groups import EarlierGroups
from sqlanon.releases.generalized import Regions
from sqlanon.staging.partition import Partition


class TreeSearch(PartitionSearch):
    """A partition tree grown on all rows (LeFevre et al., ICDE 2006; LeFevre, DeWitt, TR 1590, section 2)."""

    divides: ClassVar[bool] = True
    find_partition: ClassVar[Callable[..., Partition]] = staticmethod(mondrian.search)

    def coarsen(self, request: SearchRequest, decision: Partition, earlier: EarlierGroups) -> Partition | None:
        return merge_partition(request.engine, request.workspace, request.coded.word_columns, decision, earlier)

    def release(self, request: SearchRequest, decision: Partition) -> Regions:
        ranges = request.policy.ranges
        return Regions.create(request.engine, request.workspace, request.coded, decision, ranges)


class SampledTree(TreeSearch):
    """A partition tree grown on samples, and finished on all rows (LeFevre, DeWitt, TR 1590, section 4)."""

    divides: ClassVar[bool] = False
    find_partition = staticmethod(rothko_s.search)
