"""Groups of a random row and its nearest, against a plain search, and releases that are drawn from them."""

from __future__ import annotations

import hashlib
import random
import secrets
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sqlanon.engines.base import Engine
from sqlanon.methods.clustering.policy import Condensation
from sqlanon.methods.clustering.search.microaggregation import gather
from sqlanon.results.search_facts import CondensedFacts
from tests.methods.clustering.point_support import clusters_of, load_points
from tests.oracle import clusters as oracle
from tests.random_cases import many
from tests.run_support import Database, PlainWorkspace, anonymize

pytestmark = pytest.mark.slow

QUASI = "quasi-identifier"
KEY = "an open secret"


def turn(point: int) -> tuple[int, int]:
    """The place of a point in the random order of the key."""
    return int(hashlib.md5(f"{KEY}:{point}".encode()).hexdigest()[:15], 16), point


@settings(max_examples=many(15), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    blocks=st.lists(
        st.lists(st.tuples(st.integers(0, 9), st.integers(-9, 9)), min_size=4, max_size=14), min_size=1, max_size=3
    ),
    k=st.integers(2, 4),
)
def test_groups_are_those_of_a_plain_search(engine: Engine, blocks: list[list[tuple[int, int]]], k: int) -> None:
    """Few different values: distances are often equal."""
    numbered = [(block, *values) for block, members in enumerate(blocks) for values in members]
    workspace = PlainWorkspace(engine)
    points = load_points(engine, [one[1:] for one in numbered], blocks=[one[0] for one in numbered])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(secrets, "token_hex", lambda _: KEY)
        clustered = gather(engine, workspace, points, k, Condensation(name="condensation", groups="nearest"))
    groups = clusters_of(engine, clustered)
    workspace.drop(clustered)
    expected: list[set[int]] = []
    for block in range(len(blocks)):
        own = [point for point, one in enumerate(numbered) if one[0] == block]
        expected += oracle.nearest([one[1:] for one in numbered], sorted(own, key=turn), k)
    assert sorted(map(sorted, groups.values())) == sorted(map(sorted, expected))
    assert all(k <= len(group) < 2 * k for group in expected) or any(len(members) < 2 * k for members in blocks)


@pytest.mark.either_engine
@pytest.mark.parametrize("more", [{}, {"blocks": 30}, {"refine": True}])
def test_a_release_of_nearest_groups_is_verified(database: Database, more: dict[str, Any]) -> None:
    draw = random.Random(5)
    rows = [(draw.randrange(1000), draw.gauss(0, 1), draw.choice("xyz"), number) for number in range(150)]
    table = database.create({"a": "INTEGER", "b": "DOUBLE PRECISION", "c": "VARCHAR", "id": "INTEGER"}, rows)
    policy = database.policy(
        table,
        {"a": QUASI, "b": QUASI, "c": QUASI, "id": "insensitive"},
        algorithm={"name": "condensation", "groups": "nearest", **more},
        privacy=[{"model": "k-anonymity", "k": 7}],
    )
    facts = anonymize(policy).algorithm.facts
    assert isinstance(facts, CondensedFacts)
    assert facts.smallest >= 7
    assert len(database.sql(f"SELECT * FROM {table}_r")) == 150
    assert database.leftovers() == []


def test_nearest_groups_are_as_published_unless_refinement_is_asked_for() -> None:
    plain = Condensation(name="condensation", groups="nearest")
    assert not plain.refines
    assert Condensation(name="condensation", groups="nearest", refine=True).refines
    assert Condensation(name="condensation").refines
