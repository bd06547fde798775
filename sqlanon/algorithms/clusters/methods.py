"""The methods that gather points in clusters of at least k, in all blocks at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlanon.engines.base import Engine
from sqlanon.policy import Clustering
from sqlanon.releases.clustering import Points
from sqlanon.releases.synthetic import secret_key
from sqlanon.sql import RedactedValue, Relation
from sqlanon.work.workspace import Workspace

Method = Callable[[Engine, Workspace, Points, int, Clustering], Relation]


def gather(engine: Engine, workspace: Workspace, points: Points, k: int, algorithm: Clustering) -> Relation:
    """Gather the points of every block in clusters of at least k, by the method of the policy: `(point, cluster)`."""
    return _METHODS[algorithm.gathering](engine, workspace, points, k, algorithm)


def _gather_mdav(engine: Engine, workspace: Workspace, points: Points, k: int, _algorithm: Clustering) -> Relation:
    """Gather by the maximum distance to the average vector (Domingo-Ferrer, Torra, DMKD 2005)."""
    clustered = workspace.table("clustered")
    engine.run("clusters/gather_points", clustered=clustered, **_values(points, k))
    engine.analyze(clustered)
    return clustered


def _gather_variable(engine: Engine, workspace: Workspace, points: Points, k: int, algorithm: Clustering) -> Relation:
    """Gather clusters of k to 2k - 1, and let what is left of a block join the nearest (V-MDAV; COMPSTAT 2006)."""
    gathered = workspace.table("gathered")
    engine.run("clusters/gather_variable", gathered=gathered, gamma=float(algorithm.growth), **_values(points, k))
    return _join_nearest(engine, workspace, points, gathered)


def _gather_nearest(engine: Engine, workspace: Workspace, points: Points, k: int, _algorithm: Clustering) -> Relation:
    """Gather a random row and the k - 1 nearest to it, for as long as k are left; the rest joins the nearest cluster.

    It is the static method of condensation (Aggarwal, Yu, EDBT 2004).
    """
    gathered = workspace.table("gathered")
    engine.run("clusters/gather_nearest", gathered=gathered, key=secret_key(), **_values(points, k))
    return _join_nearest(engine, workspace, points, gathered)


def _gather_members(engine: Engine, workspace: Workspace, points: Points, k: int, _algorithm: Clustering) -> Relation:
    """Gather clusters whose extents grow least (k-member; Byun et al., DASFAA 2007); the rest joins alike."""
    shared = {"points": points.table, "coordinates": points.coordinates}
    measured = engine.query_one("clusters/measure_widths", **shared)
    widths = [RedactedValue(float(width)) if width else None for width in measured]
    gathered, clustered = workspace.table("gathered"), workspace.table("clustered")
    engine.run("clusters/gather_members", gathered=gathered, widths=widths, k=k, **shared)
    engine.analyze(gathered)
    engine.run("clusters/join_least", clustered=clustered, gathered=gathered, widths=widths, **shared)
    engine.analyze(clustered)
    workspace.drop(gathered)
    return clustered


def _join_nearest(engine: Engine, workspace: Workspace, points: Points, gathered: Relation) -> Relation:
    """Let the points without a cluster join the one of their block whose centre is nearest."""
    classes, clustered = workspace.table("classes"), workspace.table("clustered")
    shared = {"points": points.table, "coordinates": points.coordinates}
    engine.analyze(gathered)
    engine.run("clusters/create_classes", classes=classes, clustered=gathered, has_strata=False, **shared)
    engine.analyze(classes)
    engine.run("clusters/join_nearest", clustered=clustered, gathered=gathered, classes=classes, **shared)
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
