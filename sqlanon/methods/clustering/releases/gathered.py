"""Releases of one row a cluster, with a second table of how often each kept value occurs in each cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.fields import Field
from sqlanon.engines.base import Engine
from sqlanon.methods.clustering.policy import RGather
from sqlanon.methods.clustering.verify_gathered import GatheredClaims, check_gathered
from sqlanon.plan.plan import Plan
from sqlanon.releases.base import Judged, Release
from sqlanon.releases.clustering import Gathered, digest_clusters
from sqlanon.results.measures import Check
from sqlanon.results.search_facts import GatheredFacts
from sqlanon.sql import Identifier, RedactedValue, Relation
from sqlanon.staging.gathered import expand_clusters, stage_clusters
from sqlanon.staging.pair import StagedPair
from sqlanon.staging.recode import cell_name
from sqlanon.staging.staging import Staged
from sqlanon.work.publish import guard_staging
from sqlanon.work.publish.companion import VALUES, companion_of
from sqlanon.work.session import Session
from sqlanon.work.workspace import Workspace


@dataclass(frozen=True)
class GatheredClusters(Release):
    """Clusters around centres, each released as a row: centre, rows, radius.

    assigned: every row's words with its cluster; regions: clusters, as they are shown.
    """

    coded: CodedTable
    gathered: Gathered
    assigned: Relation
    regions: Relation
    parameters: RGather

    @classmethod
    def create(
        cls, engine: Engine, workspace: Workspace, coded: CodedTable, gathered: Gathered, parameters: RGather
    ) -> GatheredClusters:
        """Write down the clusters and which one every row is in."""
        assigned, points = workspace.table("assigned"), gathered.points.table
        engine.run(
            "methods/clustering/search/assign_rows",
            assigned=assigned,
            clustered=gathered.clustered,
            points=points,
            words=coded.word_columns,
        )
        engine.analyze(assigned)
        regions = describe_clusters(engine, workspace, coded, gathered)
        workspace.drop(points, gathered.clustered)
        return cls(coded, gathered, assigned, regions, parameters)

    @property
    def rounds(self) -> int:
        return self.gathered.guesses

    @property
    def suppressed(self) -> int:
        return self.gathered.omitted

    @property
    def omitted(self) -> int:
        return self.gathered.omitted

    @property
    def facts(self) -> GatheredFacts:
        gathered = self.gathered
        return GatheredFacts(
            gathered=gathered.clusters,
            smallest=gathered.smallest,
            largest=gathered.largest,
            standardized=self.parameters.standardize,
            greatest_radius=float(f"{gathered.radius / gathered.scale:.6g}"),
            factor=round(gathered.factor, 6),
        )

    @property
    def shown_columns(self) -> list[str]:
        return ["cluster"]

    @contextlib.contextmanager
    def stage(self, session: Session, plan: Plan, workspace: Workspace, *, replace: bool) -> Iterator[Staged]:
        engine, companion = session.engine, companion_of(plan.release)
        final, values = workspace.staging(plan.release, engine), workspace.staging(companion, engine)
        with engine.transaction():
            stage_clusters(engine, self.coded, self.assigned, self.regions, final, values)
            grants = guard_staging(engine, final)
            guard_staging(engine, values)
        yield StagedPair(engine, final, values, VALUES, plan.release, grants, replace)

    def check_claims(self, engine: Engine, workspace: Workspace, plan: Plan, staged: Staged) -> dict[str, Check]:
        assert isinstance(staged, StagedPair)
        claims = GatheredClaims(self.coded, self.assigned, self.regions, staged.final, staged.second, self.omitted)
        return check_gathered(engine, workspace, plan, claims, standardize=self.parameters.standardize)

    @contextlib.contextmanager
    def judged(
        self,
        engine: Engine,
        workspace: Workspace,
        plan: Plan,
        staged: Staged,
        *,
        whole: bool = False,  # noqa: ARG002
    ) -> Iterator[Judged]:
        assert isinstance(staged, StagedPair)
        rows = expand_clusters(engine, workspace, [one.column for one in plan.kept], staged.final, staged.second)
        yield Judged(engine, rows, self.shown_columns)
        workspace.drop(rows)

    def digest_recoding(self, engine: Engine) -> str | None:
        names = [field.attribute.name for field in self.coded.quasi_identifiers]
        return digest_clusters(engine, names, self.regions)

    def count_labels(self, engine: Engine) -> dict[str, int]:
        cells = [cell_name(number) for number in range(len(self.coded.quasi_identifiers))]
        counts = engine.query_one("methods/clustering/gathering/count_centres", regions=self.regions, cells=cells)
        names = [field.attribute.name for field in self.coded.quasi_identifiers]
        return {name: int(count) for name, count in zip(names, counts, strict=True)}

    @property
    def classes(self) -> Relation:
        return self.regions


def describe_clusters(engine: Engine, workspace: Workspace, coded: CodedTable, gathered: Gathered) -> Relation:
    """Write down what each cluster shows."""
    regions, quasi = workspace.table("regions"), coded.quasi_identifiers
    centres = [_centre(number, field) for number, field in enumerate(quasi)]
    engine.run(
        "methods/clustering/gathering/describe_clusters",
        regions=regions,
        clustered=gathered.clustered,
        points=gathered.points.table,
        coordinates=gathered.points.coordinates,
        centres=centres,
        scale=RedactedValue(gathered.scale),
        slack=len(quasi) + 1,  # steps by which rounding may have shortened a distance
    )
    engine.analyze(regions)
    return regions


def _centre(number: int, field: Field) -> dict[str, Any]:
    """The number of one column in the row `r` that is a centre."""
    code = field.code(Identifier("r"))
    return {
        "cell": cell_name(number),
        "alias": Identifier(f"d{number}"),
        "dictionary": field.coding.dictionary,
        "code": code,
        "value": None if field.coding.dictionary is not None else field.coding.value_of(code),
        "type": Markup(field.attribute.column.type),
    }
