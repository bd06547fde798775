"""Clusters that violate a model other than k-anonymity are merged with their nearest neighbours until none does.

Merges of one round touch a cluster once: a cluster moves to its nearest neighbour unless a nearer one moves to itself.
Neighbours are looked for in the block first, and in twice as many blocks each round.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlanon.encoding.domains import Sensitive
from sqlanon.engines.base import Engine
from sqlanon.errors import ProtectionError, VerificationError
from sqlanon.methods.clustering.search.classes import create_classes, render_measures
from sqlanon.models.base import PrivacyModel
from sqlanon.releases.clustering import Points
from sqlanon.sql import Relation
from sqlanon.work.workspace import Workspace

DOUBLINGS = 62  # of a block, after which it holds every other one


def merge_violating(
    engine: Engine,
    workspace: Workspace,
    points: Points,
    clustered: Relation,
    models: Sequence[PrivacyModel],
    sensitive: Sequence[Sensitive],
) -> tuple[Relation, int]:
    """Merge clusters until every one satisfies all models; returns `(point, cluster)` and the number of rounds.

    The whole table as one cluster must satisfy them. Raises ProtectionError where a whole stratum does not.
    """
    judged = [model for model in models if not model.decided_by_size]
    rounds = 0
    while judged:
        classes, moves = workspace.table("classes", rounds), workspace.table("moves", rounds)
        neighbours = 1 << min(rounds, DOUBLINGS)
        create_classes(engine, points, clustered, classes)
        engine.run(
            "methods/clustering/search/propose_merges",
            moves=moves,
            classes=classes,
            coordinates=points.coordinates,
            has_strata=points.has_strata,
            neighbours=neighbours,
            measures=render_measures(engine, points, classes, clustered, judged, sensitive),
        )
        engine.analyze(moves)
        violating, moving = engine.query_one("methods/clustering/search/count_violating", moves=moves)
        if violating:
            clustered = _merge(engine, workspace, clustered, moves, rounds)
        workspace.drop(classes, moves)
        if not violating:
            break
        is_stuck = not moving and neighbours >= points.blocks
        if is_stuck and points.has_strata:
            raise ProtectionError(
                "The rows of a value of the target violate a model even together. Ask less of the model, or leave"
                " target out."
            )
        if is_stuck:
            raise VerificationError("Clusters violate a model after all were merged; nothing was published.")
        rounds += 1
    return clustered, rounds


def _merge(engine: Engine, workspace: Workspace, clustered: Relation, moves: Relation, number: int) -> Relation:
    merged = workspace.table("merged", number)
    engine.run("methods/clustering/search/merge_clusters", merged=merged, clustered=clustered, moves=moves)
    engine.analyze(merged)
    workspace.drop(clustered)
    return merged
