"""Searches for clusters of similar rows."""

from __future__ import annotations

from typing import ClassVar

from sqlanon.algorithms.base import Algorithm, SearchRequest
from sqlanon.methods.clustering.releases.centred import Centres
from sqlanon.methods.clustering.releases.condensed import Condensed
from sqlanon.methods.clustering.releases.gathered import GatheredClusters
from sqlanon.methods.clustering.search import gathering, microaggregation
from sqlanon.releases.clustering import Clusters, Gathered


class ClusterSearch(Algorithm[Clusters]):
    """Clusters of at least k similar rows, shown by their centres."""

    needs_all_witnesses: ClassVar[bool] = True

    def search(self, request: SearchRequest) -> Clusters:
        return microaggregation.search(
            request.engine,
            request.workspace,
            request.coded,
            request.models,
            request.policy,
            self.parameters,
            request.report,
        )

    def release(self, request: SearchRequest, decision: Clusters) -> Centres:
        return Centres.create(request.engine, request.workspace, request.coded, decision)


class Gathering(Algorithm[Gathered]):
    """Clusters of at least r rows around centres, released as one row each."""

    needs_all_witnesses: ClassVar[bool] = True

    def search(self, request: SearchRequest) -> Gathered:
        return gathering.search(
            request.engine,
            request.workspace,
            request.coded,
            request.models,
            request.policy,
            request.report,
        )

    def release(self, request: SearchRequest, decision: Gathered) -> GatheredClusters:
        return GatheredClusters.create(request.engine, request.workspace, request.coded, decision, self.parameters)


class Condensing(ClusterSearch):
    """Groups of at least k similar rows, shown by synthetic ones."""

    def release(self, request: SearchRequest, decision: Clusters) -> Condensed:
        return Condensed.draw(request.engine, request.workspace, request.coded, decision, self.parameters.scale)
