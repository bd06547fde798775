"""Releases that show synthetic rows, as many as there were, in place of groups of similar ones."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from sqlanon.encoding.coded_table import CodedTable
from sqlanon.engines.base import Engine
from sqlanon.methods.clustering.releases.centred import Centres, measure_groups
from sqlanon.methods.clustering.releases.synthetic import draw_rows
from sqlanon.methods.clustering.verify_condensed import CondensedRows, check_condensed, create_judged, create_witness
from sqlanon.plan.plan import Plan
from sqlanon.releases.base import Judged
from sqlanon.releases.clustering import Clusters
from sqlanon.results.masking import Masking
from sqlanon.results.measures import Check
from sqlanon.sql import Relation
from sqlanon.staging.staging import Staged
from sqlanon.work.workspace import Workspace


@dataclass(frozen=True)
class Condensed(Centres):
    """Groups of similar rows, each replaced by synthetic ones with its means and covariances.

    Released rows have no classes that a reader could see: models judge the groups of source rows. As centres do, they
    leave no rules.
    """

    drawn: CondensedRows

    @classmethod
    def draw(
        cls, engine: Engine, workspace: Workspace, coded: CodedTable, clusters: Clusters, scale: float
    ) -> Condensed:
        """Draw the synthetic rows of every group."""
        drawn = draw_rows(engine, workspace, coded, clusters, scale)
        return cls(drawn.recoding, drawn)

    def check_claims(self, engine: Engine, workspace: Workspace, plan: Plan, staged: Staged) -> dict[str, Check]:
        return check_condensed(engine, workspace, plan, self.drawn, staged)

    @contextlib.contextmanager
    def judged(
        self,
        engine: Engine,
        workspace: Workspace,
        plan: Plan,  # noqa: ARG002
        staged: Staged,  # noqa: ARG002
        *,
        whole: bool = False,  # noqa: ARG002
    ) -> Iterator[Judged]:
        relation, group = create_judged(engine, workspace, self.drawn)
        yield Judged(engine, relation, [group])
        workspace.drop(relation)

    def digest_recoding(self, engine: Engine) -> str | None:  # noqa: ARG002
        return None  # no two draws are alike

    def measure_masking(self, engine: Engine, workspace: Workspace) -> Masking | None:
        """Measure the tables as wholes, and groups: a synthetic row stands for no row of the source."""
        witness = create_witness(engine, workspace, self.drawn)
        measured = measure_groups(engine, self.recoding, witness)
        workspace.drop(witness)
        return measured

    @property
    def classes(self) -> Relation:
        return self.drawn.factors
