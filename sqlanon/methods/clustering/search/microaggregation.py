"""Microaggregation: rows become points in blocks, these clusters, which are refined and merged for other models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.domains import Sensitive, create_domains, require_attainable
from sqlanon.engines.base import Engine
from sqlanon.mechanisms.mechanisms import secret_key
from sqlanon.methods.clustering.policy import Clustering
from sqlanon.methods.clustering.search.classes import create_classes, render_measures
from sqlanon.methods.clustering.search.merging import merge_violating
from sqlanon.methods.clustering.search.points import create_points
from sqlanon.methods.clustering.search.refining import refine
from sqlanon.models.base import PrivacyModel
from sqlanon.policy import Policy
from sqlanon.releases.clustering import Clusters, Points
from sqlanon.results.search_facts import ClusterFacts
from sqlanon.sql import RedactedValue, Relation
from sqlanon.work.journal import Progress
from sqlanon.work.workspace import Workspace

LARGE = 1_000  # points of a block: in one that has fewer, equal points are gathered like others


KEPT = 500  # of equal points that are many in a block, about, for the other points there


Method = Callable[[Engine, Workspace, Points, int, Clustering], Relation]


_RESTS = {"mdav": "last", "v-mdav": "single"}


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


def gather(engine: Engine, workspace: Workspace, points: Points, k: int, algorithm: Clustering) -> Relation:
    """Gather the points of every block in clusters of at least k, by the method of the policy: `(point, cluster)`.

    Every step looks at all points that are left of a block, which is quadratic where equal points can't be divided into
    blocks. Blocks of nothing but equal points are so divided by arithmetic, into the clusters that the method makes of
    them; and where there are several blocks, most of more than `LARGE` points that are equal in one of them.
    """
    method = _METHODS[algorithm.gathering]
    divided = None if points.largest < LARGE else _divide_equal(engine, workspace, points, k, algorithm)
    if divided is None:
        return method(engine, workspace, points, k, algorithm)
    rest, united = workspace.table("rest"), workspace.table("united")
    engine.run(
        "methods/clustering/search/number_rest",
        rest=rest,
        points=points.table,
        divided=divided,
        coordinates=points.coordinates,
    )
    engine.analyze(rest)
    (rows,) = engine.query_one("count_rows", table=rest)
    if not rows:
        workspace.drop(rest)
        return divided
    gathered = method(engine, workspace, replace(points, table=rest, measured=points.table), k, algorithm)
    engine.run("methods/clustering/search/unite_equal", clustered=united, gathered=gathered, rest=rest, divided=divided)
    engine.analyze(united)
    workspace.drop(rest, gathered, divided)
    return united


def _divide_equal(
    engine: Engine, workspace: Workspace, points: Points, k: int, algorithm: Clustering
) -> Relation | None:
    """Divide equal points that are many in a block; None where there are none."""
    divided, rest = workspace.table("divided"), _RESTS.get(algorithm.gathering, "first")
    kept = max(KEPT, 2 * k)
    engine.run(
        "methods/clustering/search/divide_equal",
        divided=divided,
        points=points.table,
        coordinates=points.coordinates,
        k=k,
        kept=kept,
        most=max(LARGE, 2 * kept) if points.blocks > 1 else None,
        rest=rest,
        step=1 if algorithm.gathering == "mdav" else k,
    )
    engine.analyze(divided)
    (rows,) = engine.query_one("count_rows", table=divided)
    if rows:
        return divided
    workspace.drop(divided)
    return None


"""The cluster that fewer than k points join at last, where all points of their block are equal."""


def _gather_mdav(engine: Engine, workspace: Workspace, points: Points, k: int, _algorithm: Clustering) -> Relation:
    """Gather by the maximum distance to the average vector (Domingo-Ferrer, Torra, DMKD 2005)."""
    clustered = workspace.table("clustered")
    engine.run("methods/clustering/search/gather_points", clustered=clustered, **_values(points, k))
    engine.analyze(clustered)
    return clustered


def _gather_variable(engine: Engine, workspace: Workspace, points: Points, k: int, algorithm: Clustering) -> Relation:
    """Gather clusters of k to 2k - 1, and let what is left of a block join the nearest (V-MDAV; COMPSTAT 2006)."""
    gathered = workspace.table("gathered")
    engine.run(
        "methods/clustering/search/gather_variable",
        gathered=gathered,
        gamma=float(algorithm.growth),
        **_values(points, k),
    )
    return _join_nearest(engine, workspace, points, gathered)


def _gather_nearest(engine: Engine, workspace: Workspace, points: Points, k: int, _algorithm: Clustering) -> Relation:
    """Gather a random row and the k - 1 nearest to it, for as long as k are left; the rest joins the nearest cluster.

    It is the static method of condensation (Aggarwal, Yu, EDBT 2004).
    """
    gathered = workspace.table("gathered")
    engine.run("methods/clustering/search/gather_nearest", gathered=gathered, key=secret_key(), **_values(points, k))
    return _join_nearest(engine, workspace, points, gathered)


def _gather_members(engine: Engine, workspace: Workspace, points: Points, k: int, _algorithm: Clustering) -> Relation:
    """Gather clusters whose extents grow least (k-member; Byun et al., DASFAA 2007); the rest joins alike."""
    shared = {"points": points.table, "coordinates": points.coordinates}
    whole = points.measured or points.table
    measured = engine.query_one(
        "methods/clustering/search/measure_widths", points=whole, coordinates=points.coordinates
    )
    widths = [RedactedValue(float(width)) if width else None for width in measured]
    gathered, clustered = workspace.table("gathered"), workspace.table("clustered")
    engine.run("methods/clustering/search/gather_members", gathered=gathered, widths=widths, k=k, **shared)
    engine.analyze(gathered)
    engine.run("methods/clustering/search/join_least", clustered=clustered, gathered=gathered, widths=widths, **shared)
    engine.analyze(clustered)
    workspace.drop(gathered)
    return clustered


def _join_nearest(engine: Engine, workspace: Workspace, points: Points, gathered: Relation) -> Relation:
    """Let the points without a cluster join the one of their block whose centre is nearest."""
    classes, clustered = workspace.table("classes"), workspace.table("clustered")
    shared = {"points": points.table, "coordinates": points.coordinates}
    engine.analyze(gathered)
    engine.run(
        "methods/clustering/search/create_classes", classes=classes, clustered=gathered, has_strata=False, **shared
    )
    engine.analyze(classes)
    engine.run(
        "methods/clustering/search/join_nearest", clustered=clustered, gathered=gathered, classes=classes, **shared
    )
    engine.analyze(clustered)
    workspace.drop(gathered, classes)
    return clustered


def _values(points: Points, k: int) -> dict[str, object]:
    """The values that the statement of every method needs."""
    return {
        "points": points.table,
        "coordinates": points.coordinates,
        "k": k,
        "places": 1 << points.largest.bit_length(),
    }


_METHODS: Mapping[str, Method] = {
    "mdav": _gather_mdav,
    "v-mdav": _gather_variable,
    "k-member": _gather_members,
    "nearest": _gather_nearest,
}
