"""Clusters of k-member against a plain search, on both engines, and what it refuses."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sqlanon.algorithms.clusters.methods import gather
from sqlanon.algorithms.clusters.points import rows_of_block
from sqlanon.encoding.coordinates import Coordinate, Scale
from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError
from sqlanon.policy import Microaggregation
from sqlanon.policy.cluster_algorithms import K_MEMBER_BLOCK
from tests.oracle import clusters as oracle
from tests.point_support import NUMBERS, clusters_of, load_points
from tests.run_support import Database, PlainWorkspace, anonymize

QUASI = "quasi-identifier"
K_MEMBER = {"name": "microaggregation", "method": "k-member"}
COORDINATES = (*NUMBERS, Coordinate(2, None, Scale.NOMINAL, weight=7))  # type: ignore[arg-type]


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), sizes=st.lists(st.integers(4, 14), min_size=1, max_size=3), k=st.integers(2, 4))
def test_clusters_are_those_of_a_plain_search(engine: Engine, seed: int, sizes: list[int], k: int) -> None:
    """Ranges are powers of two, so that sums of shares are exact, and ties are ties."""
    draw = random.Random(seed)
    numbered = [
        (block, draw.randrange(17), draw.randrange(-8, 9), draw.randrange(3))
        for block, n in enumerate(sizes)
        for _ in range(n)
    ]
    numbered[0], numbered[1] = (0, 0, -8, 0), (0, 16, 8, 1)
    workspace = PlainWorkspace(engine)
    points = load_points(engine, [one[1:] for one in numbered], COORDINATES, [one[0] for one in numbered])
    clustered = gather(engine, workspace, points, k, Microaggregation.model_validate(K_MEMBER))
    groups = clusters_of(engine, clustered)
    workspace.drop(clustered)
    expected: list[list[int]] = []
    for block in range(len(sizes)):
        own = [point for point, one in enumerate(numbered) if one[0] == block]
        found = oracle.k_member([one[1:] for one in numbered], (False, False, True), k, own)
        expected += [sorted(one) for one in found]
    assert sorted(map(sorted, groups.values())) == sorted(expected)


def test_a_release_of_k_member_is_verified(database: Database) -> None:
    rows = [(number * number % 50, "xyz"[number % 3], number) for number in range(40)]
    table = database.create({"a": "INTEGER", "b": "VARCHAR", "id": "INTEGER"}, rows)
    roles = {"a": QUASI, "b": QUASI, "id": "insensitive"}
    result = anonymize(database.policy(table, roles, algorithm=K_MEMBER, privacy=[{"model": "k-anonymity", "k": 3}]))
    assert result.published
    assert result.release.rows == 40
    assert result.algorithm.rounds == 1


@pytest.mark.parametrize("blocks", ["exact", 2500])
def test_blocks_that_are_too_large_are_refused(database: Database, blocks: Any) -> None:
    database.sql("CREATE TABLE many AS SELECT i AS a FROM generate_series(1, 2600) AS t(i)")
    policy = database.policy("many", {"a": QUASI}, algorithm=K_MEMBER | {"blocks": blocks})
    with pytest.raises(
        PolicyError, match=r"algorithm\.blocks: k-member holds each row against all .* at most, not 2,[56]00"
    ):
        anonymize(policy)


def test_blocks_are_no_larger_than_the_search_takes() -> None:
    algorithm = Microaggregation.model_validate(K_MEMBER)
    assert rows_of_block(algorithm, K_MEMBER_BLOCK, 3) is None
    assert 2 * (rows_of_block(algorithm, K_MEMBER_BLOCK + 1, 3) or K_MEMBER_BLOCK) <= K_MEMBER_BLOCK
