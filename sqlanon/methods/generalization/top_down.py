"""Top-down specialization, apart from trees: its frequency sets take a library that is slow to load."""

from __future__ import annotations

from sqlanon.algorithms.base import SearchRequest
from sqlanon.algorithms.partitions import PartitionSearch
from sqlanon.methods.generalization import specialization
from sqlanon.releases.generalized import Cuts
from sqlanon.staging.partition import Partition


class TopDownSpecialization(PartitionSearch):
    """Each branch of a hierarchy at a level of its own (Fung, Wang, Yu, ICDE 2005)."""

    find_partition = staticmethod(specialization.search)

    def release(self, request: SearchRequest, decision: Partition) -> Cuts:
        return Cuts.create(request.engine, request.workspace, request.coded, decision)
