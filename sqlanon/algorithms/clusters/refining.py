"""Refinement of clusters: pairs of neighbours exchange rows while that brings rows nearer to their centres.

In each round, the rows of two neighbouring clusters are divided anew between both, as many as each had: those that are
nearer to the one centre than to the other go there. Of all pairs that gain by it, those exchange that gain most for
both of their clusters; so no cluster is touched twice. Neighbours are looked for in zones of clusters, whose borders
are others in every round.
"""

from __future__ import annotations

from sqlanon.engines.base import Engine
from sqlanon.releases.clustering import Points
from sqlanon.sql import Identifier, Relation
from sqlanon.work.workspace import Workspace

ZONE = 64  # clusters, at most, among which neighbours are looked for
NEIGHBOURS = 6  # of each cluster, that it may exchange rows with
WORK = 200_000  # rows that all rounds together look at, about
MOST_ROUNDS = 60
REFINED_ROWS = 1_000_000  # of the largest table that has a round at all


def rounds_for(rows: int) -> int:
    """The rounds of a table's refinement: the fewer the larger the table is."""
    return min(MOST_ROUNDS, max(WORK // rows, int(rows <= REFINED_ROWS)))


def refine(engine: Engine, workspace: Workspace, points: Points, clustered: Relation) -> tuple[Relation, int]:
    """Exchange points between clusters; returns `(point, cluster)` and the number of rounds that changed it."""
    idle = number = 0
    while number < rounds_for(points.rows) and idle < len(points.coordinates):
        classes, zoned, pairs, members, chosen = (
            workspace.table(meaning, number) for meaning in ("classes", "zoned", "pairs", "members", "chosen")
        )
        common = {"coordinates": points.coordinates}
        strata = {"has_strata": points.has_strata}
        engine.run(
            "clusters/create_classes", classes=classes, clustered=clustered, points=points.table, **common, **strata
        )
        (count,) = engine.query_one("clusters/count_clusters", classes=classes)
        engine.run("clusters/create_zones", zoned=zoned, classes=classes, splits=_splits(points, int(count), number))
        engine.analyze(zoned)
        engine.run("clusters/create_pairs", pairs=pairs, classes=zoned, neighbours=NEIGHBOURS, **common, **strata)
        engine.analyze(pairs)
        named = {"pairs": pairs, "classes": zoned, "clustered": clustered, "points": points.table}
        engine.run("clusters/split_pairs", members=members, **named, **common)
        engine.analyze(members)
        engine.run("clusters/choose_pairs", chosen=chosen, members=members, **common)
        engine.analyze(chosen)
        (exchanging,) = engine.query_one("clusters/count_exchanges", chosen=chosen)
        if exchanging:
            refined = workspace.table("refined", number)
            engine.run("clusters/exchange_points", refined=refined, clustered=clustered, members=members, chosen=chosen)
            engine.analyze(refined)
            workspace.drop(clustered)
            clustered = refined
        workspace.drop(classes, zoned, pairs, members, chosen)
        idle = 0 if exchanging else idle + 1
        number += 1
    return clustered, number


def _splits(points: Points, clusters: int, number: int) -> list[Identifier]:
    """The columns by whose medians zones are halved, until one holds few clusters."""
    halvings = max(0, (clusters - 1) // ZONE).bit_length()
    columns = [one.name for one in points.coordinates]
    return [columns[(place + number) % len(columns)] for place in range(halvings)]
