"""The methods that gather points in clusters of at least k, in all blocks at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from sqlanon.engines.base import Engine
from sqlanon.mechanisms.keys import secret_key
from sqlanon.methods.clustering.policy import Clustering
from sqlanon.releases.clustering import Points
from sqlanon.sql import RedactedValue, Relation
from sqlanon.work.workspace import Workspace

LARGE = 1_000  # points of a block: in one that has fewer, equal points are gathered like others
KEPT = 500  # of equal points that are many in a block, about, for the other points there

Method = Callable[[Engine, Workspace, Points, int, Clustering], Relation]


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


_RESTS = {"mdav": "last", "v-mdav": "single"}
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
