"""Groups of a random row and the rows nearest to it: the static method of condensation (Aggarwal, Yu, EDBT 2004).

A row is chosen at random among those that are left, and is a group with its k - 1 nearest, for as long as k rows are
left; each of the rest joins the group whose centre is nearest.
"""

from __future__ import annotations

from sqlanon.engines.base import Engine
from sqlanon.releases.clustering import Points
from sqlanon.releases.synthetic import secret_key
from sqlanon.sql import Relation
from sqlanon.work.workspace import Workspace


def gather(engine: Engine, workspace: Workspace, points: Points, k: int) -> Relation:
    """Gather the points of every block in groups of at least k; returns `(point, cluster)`."""
    gathered, classes, clustered = map(workspace.table, ("gathered", "classes", "clustered"))
    shared = {"points": points.table, "coordinates": points.coordinates}
    engine.run(
        "clusters/gather_nearest",
        gathered=gathered,
        k=k,
        places=1 << points.largest.bit_length(),
        key=secret_key(),
        **shared,
    )
    engine.analyze(gathered)
    engine.run("clusters/create_classes", classes=classes, clustered=gathered, **shared)
    engine.analyze(classes)
    engine.run("clusters/join_nearest", clustered=clustered, gathered=gathered, classes=classes, **shared)
    engine.analyze(clustered)
    workspace.drop(gathered, classes)
    return clustered
