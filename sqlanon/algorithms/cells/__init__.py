"""Searches for single cells to be suppressed, and the algorithms that policies name."""

from __future__ import annotations

from typing import ClassVar

from sqlanon.algorithms.base import Algorithm, SearchRequest
from sqlanon.algorithms.cells import suppressing
from sqlanon.releases.cells import Cells, StarredTuples

__all__ = ["CellSearch"]


class CellSearch(Algorithm[StarredTuples]):
    """Few cells shown as `*`, so that enough rows fit every row."""

    reads_uncoded: ClassVar[bool] = False

    def search(self, request: SearchRequest) -> StarredTuples:
        return suppressing.search(
            request.engine, request.workspace, request.coded, request.models, self.parameters, request.report
        )

    def release(self, request: SearchRequest, decision: StarredTuples) -> Cells:
        return Cells.create(request.engine, request.workspace, request.coded, decision)
