"""Searches for clusters of similar rows."""

from __future__ import annotations

from typing import ClassVar

from sqlanon.algorithms.base import Algorithm, SearchRequest
from sqlanon.algorithms.clusters import mdav
from sqlanon.releases.clustering import Clusters
from sqlanon.releases.clusters import Centres


class Clustering(Algorithm[Clusters]):
    """Clusters of at least k similar rows, shown by their centres."""

    needs_all_witnesses: ClassVar[bool] = True

    def search(self, request: SearchRequest) -> Clusters:
        return mdav.search(
            request.engine,
            request.workspace,
            request.coded,
            request.models,
            self.parameters,
            request.report,
        )

    def release(self, request: SearchRequest, decision: Clusters) -> Centres:
        return Centres.create(request.engine, request.workspace, request.coded, decision)
