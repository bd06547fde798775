"""Searches for single cells that show less than their value, and the algorithms that policies name."""

from __future__ import annotations

from typing import ClassVar

from sqlanon.algorithms.base import Algorithm, SearchRequest
from sqlanon.methods.cells.release import Cells, ClimbedTuples
from sqlanon.methods.cells.search import climbing, suppressing

__all__ = ["CellClimbing", "CellSuppression"]


class CellSuppression(Algorithm[ClimbedTuples]):
    """Few cells shown as `*`, so that enough rows fit every row."""

    reads_uncoded: ClassVar[bool] = False

    def search(self, request: SearchRequest) -> ClimbedTuples:
        return suppressing.suppress(request, self.parameters)

    def release(self, request: SearchRequest, decision: ClimbedTuples) -> Cells:
        return Cells.create(request.engine, request.workspace, request.coded, decision)


class CellClimbing(CellSuppression):
    """Cells shown as groups of their hierarchies, as low as enough rows fit every row."""

    def search(self, request: SearchRequest) -> ClimbedTuples:
        return climbing.generalize(request, self.parameters)
