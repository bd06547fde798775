"""Ordered-set partitionings: searches for intervals of single columns, and the algorithm that policies name."""

from __future__ import annotations

from sqlanon.algorithms.base import PartitionSearch, SearchRequest
from sqlanon.methods.intervals.search import ordered_sets
from sqlanon.releases.generalized import Regions
from sqlanon.staging.partition import Partition

__all__ = ["OrderedSetSearch"]


class OrderedSetSearch(PartitionSearch):
    """Intervals of single columns, the same for all rows (LeFevre et al., SIGMOD 2005; Bayardo, Agrawal, ICDE 2005)."""

    find_partition = staticmethod(ordered_sets.search)

    def release(self, request: SearchRequest, decision: Partition) -> Regions:
        return Regions.create(request.engine, request.workspace, request.coded, decision, "cuts")
