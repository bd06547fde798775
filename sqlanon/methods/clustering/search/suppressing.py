"""Clusters that violate a model other than k-anonymity are suppressed, as many as the budget allows; others are merged.

The budget goes to those first whose centres are farthest from the nearest other one of their block, for these would
lose most by a merge.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlanon.encoding.domains import Sensitive
from sqlanon.engines.base import Engine
from sqlanon.methods.clustering.search.classes import create_classes, render_measures
from sqlanon.models.base import PrivacyModel
from sqlanon.releases.clustering import Points
from sqlanon.sql import Relation
from sqlanon.work.workspace import Workspace


def suppress_violating(
    engine: Engine,
    workspace: Workspace,
    points: Points,
    clustered: Relation,
    models: Sequence[PrivacyModel],
    sensitive: Sequence[Sensitive],
    spared: int,
) -> tuple[Relation, int]:
    """Leave out clusters that violate a model, of at most `spared` points together.

    Returns `(point, cluster)` and the number of points that are left out: none where the others together would violate
    a model, as no merge could help them then. Every model must be monotone under suppression.
    """
    judged = [model for model in models if not model.decided_by_size]
    if not judged or not spared:
        return clustered, 0
    classes, stayed = workspace.table("checked"), workspace.table("stayed")
    create_classes(engine, points, clustered, classes)
    engine.run(
        "methods/clustering/search/keep_clusters",
        stayed=stayed,
        classes=classes,
        clustered=clustered,
        coordinates=points.coordinates,
        measures=render_measures(engine, points, classes, clustered, judged, sensitive),
        spared=spared,
    )
    engine.analyze(stayed)
    workspace.drop(classes)
    omitted = points.rows - int(engine.query_one("count_rows", table=stayed)[0])
    if not omitted or _violate(engine, workspace, points, stayed, judged, sensitive):
        workspace.drop(stayed)
        return clustered, 0
    workspace.drop(clustered)
    return stayed, omitted


def _violate(
    engine: Engine,
    workspace: Workspace,
    points: Points,
    stayed: Relation,
    models: Sequence[PrivacyModel],
    sensitive: Sequence[Sensitive],
) -> bool:
    """Tell whether all points that stay, as one cluster, violate a model."""
    whole, classes = workspace.table("whole"), workspace.table("checked_whole")
    engine.run("methods/clustering/search/join_all", whole=whole, clustered=stayed)
    create_classes(engine, points, whole, classes)
    measures = render_measures(engine, points, classes, whole, models, sensitive)
    (violating,) = engine.query_one("methods/clustering/search/count_violating_clusters", measures=measures)
    workspace.drop(whole, classes)
    return bool(violating)
