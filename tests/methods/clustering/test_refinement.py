"""Rounds of refinement against plain ones, and what every round keeps."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sqlanon.encoding.coordinates import Coordinate, Scale
from sqlanon.engines.base import Engine
from sqlanon.methods.clustering.search import refining
from sqlanon.releases.clustering import Points
from sqlanon.sql import Relation
from tests.methods.clustering.point_support import NUMBERS, clusters_of, load_points, load_table
from tests.oracle import refinement as oracle
from tests.random_cases import many
from tests.run_support import PlainWorkspace

MIXED = (
    *NUMBERS,
    Coordinate(2, None, Scale.ORDINAL, weight=1000),  # type: ignore[arg-type]
    Coordinate(3, None, Scale.NOMINAL, weight=10**6),  # type: ignore[arg-type]
)


def load(
    engine: Engine, rows: list[tuple[Any, ...]], coordinates: tuple[Coordinate, ...], k: int
) -> tuple[Points, Relation]:
    """Points, and clusters of k of them in their order, of which the last may be larger."""
    clustered, last = Relation("clustered"), len(rows) // k - 1
    load_table(engine, clustered, ["point", "cluster"], [(point, min(point // k, last)) for point in range(len(rows))])
    return load_points(engine, rows, coordinates), clustered


@pytest.mark.either_engine
@settings(max_examples=many(3), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**32),
    rows=st.integers(9, 40),
    k=st.integers(2, 4),
    effort=st.sampled_from([refining.THOROUGH, refining.QUICK]),
)
def test_a_round_accepts_what_a_plain_one_does(
    engine: Engine, seed: int, rows: int, k: int, effort: refining.Effort
) -> None:
    draw = random.Random(seed)
    points = [(float(draw.randrange(10**6)), float(draw.randrange(10**6))) for _ in range(rows)]
    workspace = PlainWorkspace(engine)
    at, clustered = load(engine, points, NUMBERS, k)
    refinement = refining._Refinement(engine, workspace, at, k, clustered, effort)
    expected = clusters_of(engine, clustered)
    for _ in range(3):
        expected = oracle.change(points, expected, k, effort)
        refinement.change([])
        changed = clusters_of(engine, refinement.clustered)
        assert sorted(map(sorted, changed.values())) == sorted(map(sorted, expected.values()))
    workspace.drop(refinement.clustered, refinement.classes)


@pytest.mark.either_engine
@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), rows=st.integers(9, 40), k=st.integers(2, 4))
def test_every_cluster_keeps_its_least_size(engine: Engine, seed: int, rows: int, k: int) -> None:
    draw = random.Random(seed)
    mixed = [
        (draw.randrange(3000), draw.randrange(9), 1000 * draw.randrange(4), draw.randrange(3)) for _ in range(rows)
    ]
    workspace = PlainWorkspace(engine)
    at, clustered = load(engine, mixed, MIXED, k)
    reported: list[Any] = []
    refined, rounds = refining.refine(engine, workspace, at, clustered, k, reported.append)
    members = clusters_of(engine, refined)
    assert [one.refined for one in reported] == list(range(1, rounds + 1))
    assert (reported[-1].of, reported[-1].clusters) == (refining.rounds_for(rows), len(members))
    assert sorted(point for one in members.values() for point in one) == list(range(rows))
    assert all(k <= len(one) < 2 * k for one in members.values())
    workspace.drop(refined)


def test_large_clusters_are_halved_where_points_are_apart(engine: Engine) -> None:
    points = [(0.0, 1.0), (900.0, 0.0), (1.0, 0.0), (901.0, 3.0), (3.0, 3.0), (902.0, 2.0)]
    workspace = PlainWorkspace(engine)
    at, clustered = load(engine, points, NUMBERS, 6)
    refinement = refining._Refinement(engine, workspace, at, 3, clustered)
    refinement.halve()
    assert sorted(map(sorted, clusters_of(engine, refinement.clustered).values())) == [[0, 2, 4], [1, 3, 5]]
    workspace.drop(refinement.clustered, refinement.classes)
