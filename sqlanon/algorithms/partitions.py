"""Searches for a partition of the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from sqlanon.algorithms.base import Algorithm, SearchRequest
from sqlanon.encoding.distinct_tuples import WORTH_SHARE
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
