"""Releases that show the centre of its cluster in place of every row's quasi-identifiers."""

from __future__ import annotations

from dataclasses import dataclass

from sqlanon.encoding.coded_table import CodedTable
from sqlanon.engines.base import Engine
from sqlanon.methods.clustering.releases.centres import create_centres
from sqlanon.methods.clustering.releases.masked import measure_centres
from sqlanon.methods.clustering.verify_centres import check_clusters
from sqlanon.plan.plan import Plan
from sqlanon.releases.clustering import Clusters, digest_clusters
from sqlanon.releases.equivalence_classes import EquivalenceClasses
from sqlanon.results.masking import Masking
from sqlanon.results.measures import Check
from sqlanon.staging.recode import witness_of
from sqlanon.staging.staging import Staged
from sqlanon.work.workspace import Workspace


@dataclass(frozen=True)
class Centres(EquivalenceClasses):
    """Clusters of similar rows, each shown as its centre.

    A centre is no region: the release has no loss of ranges, and leaves no rules by which new rows would be recoded.
    """

    @classmethod
    def create(cls, engine: Engine, workspace: Workspace, coded: CodedTable, clusters: Clusters) -> Centres:
        """Write down the centre of every cluster."""
        return cls(create_centres(engine, workspace, coded, clusters))

    def check_claims(self, engine: Engine, workspace: Workspace, plan: Plan, staged: Staged) -> dict[str, Check]:
        return check_clusters(engine, workspace, plan, self.recoding, staged)

    def digest_recoding(self, engine: Engine) -> str | None:
        return digest_clusters(engine, [one.name for one in self.recoding.shown], self.recoding.regions)

    def measure_masking(self, engine: Engine, workspace: Workspace) -> Masking | None:
        witness = witness_of(workspace)
        measured = measure_centres(engine, self.recoding, witness)
        workspace.drop(witness)
        return measured
