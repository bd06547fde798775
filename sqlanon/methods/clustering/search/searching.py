"""Microaggregation: rows become points in blocks, these clusters, which are refined and merged for other models."""

from __future__ import annotations

from collections.abc import Callable

from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.domains import create_domains, require_attainable
from sqlanon.engines.base import Engine
from sqlanon.methods.clustering.policy import Clustering
from sqlanon.methods.clustering.search.merging import merge_violating
from sqlanon.methods.clustering.search.methods import gather
from sqlanon.methods.clustering.search.points import create_points
from sqlanon.methods.clustering.search.refining import refine
from sqlanon.methods.clustering.search.suppressing import suppress_violating
from sqlanon.models.base import PrivacyModel
from sqlanon.policy import Policy
from sqlanon.releases.clustering import Clusters, Points
from sqlanon.results.search_facts import ClusterFacts
from sqlanon.sql import Relation
from sqlanon.work.journal import Progress
from sqlanon.work.workspace import Workspace


def search(
    engine: Engine,
    workspace: Workspace,
    coded: CodedTable,
    models: tuple[PrivacyModel, ...],
    policy: Policy,
    algorithm: Clustering,
    report: Callable[[Progress], None],
) -> Clusters:
    """Gather the coded rows in clusters.

    Raises ProtectionError where no release can meet the models.
    """
    sensitive = create_domains(engine, workspace, coded, models)
    require_attainable(engine, coded.source_rows, models, sensitive)
    k = algorithm.rows_of(max(model.least_rows for model in models))
    points = create_points(engine, workspace, coded, algorithm, k, report)
    clustered = gather(engine, workspace, points, k, algorithm)
    refined = 0
    if algorithm.refines:
        clustered, refined = refine(engine, workspace, points, clustered, k, report)
    spared = policy.suppressible(coded.source_rows) if algorithm.suppresses else 0
    clustered, omitted = suppress_violating(engine, workspace, points, clustered, models, sensitive, spared)
    clustered, rounds = merge_violating(engine, workspace, points, clustered, models, sensitive)
    facts = _measure_clusters(engine, points, clustered, algorithm)
    assigned = workspace.table("assigned")
    engine.run(
        "methods/clustering/search/assign_rows",
        assigned=assigned,
        clustered=clustered,
        points=points.table,
        words=coded.word_columns,
    )
    workspace.drop(points.table, clustered)
    engine.analyze(assigned)
    return Clusters(points.axes, points.coordinates, assigned, facts, rounds=1 + refined + rounds, omitted=omitted)


def _measure_clusters(engine: Engine, points: Points, clustered: Relation, algorithm: Clustering) -> ClusterFacts:
    """Count the clusters, and measure the share of the variance that is lost in them."""
    clusters, smallest, largest, *sums = engine.query_one(
        "methods/clustering/search/measure_clusters",
        clustered=clustered,
        points=points.table,
        coordinates=points.coordinates,
    )
    rows = int(engine.query_one("count_rows", table=clustered)[0])
    squares, of_centres, totals = (list(map(int, sums[part::3])) for part in range(3))
    about_table = sum(squares) - sum(total * total // rows for total in totals)
    about_centres = sum(squares) - sum(of_centres)
    share = 100 * about_centres / about_table if about_table > 0 else 0.0
    return ClusterFacts(
        method=algorithm.gathering,
        standardized=algorithm.standardize,
        blocks=points.blocks,
        clusters=int(clusters),
        smallest=int(smallest),
        largest=int(largest),
        variance_loss=round(max(0.0, share), 6),
        keep=algorithm.kept_statistic,
    )
