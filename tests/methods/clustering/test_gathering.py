"""The search for r-gather clusters against all that there are: its bound, and how centres are filled."""

from __future__ import annotations

import math
import random
from collections import Counter
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sqlanon.engines.base import Engine
from sqlanon.methods.clustering.search import gathering
from sqlanon.methods.clustering.search.gathering import Guessing, fill_centres
from sqlanon.sql import Statement
from sqlanon.work.workspace import TemporaryWorkspace
from tests.methods.clustering.point_support import load_points
from tests.oracle.gathering import is_filled, least_radius
from tests.random_cases import many

POINTS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=4, max_size=9)
LINES = st.lists(st.tuples(st.integers(0, 8), st.just(0)), min_size=4, max_size=9)
"""Rows in which centres often have too few of their own."""


@pytest.mark.either_engine
@settings(max_examples=many(8), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(rows=[(8, 0), (0, 0), (4, 0), (10, 0), (9, 0), (11, 0), (11, 0)], r=3, budget=0)  # a row must move
@example(rows=[(2, 0), (11, 0), (1, 0), (6, 0), (6, 0)], r=3, budget=1)  # a distance that does not do proves nothing
@given(rows=POINTS | LINES, r=st.integers(1, 4), budget=st.integers(0, 1))
def test_the_search_is_within_its_bound(engine: Engine, rows: list[tuple[int, int]], r: int, budget: int) -> None:
    workspace = TemporaryWorkspace(engine)
    search = Guessing(engine, workspace, load_points(engine, rows), r, budget)
    with patch.object(gathering, "PLACED", 1 if len(rows) % 2 else gathering.PLACED):  # a step a statement
        found = search.find_least()
    sizes = engine.fetch(Statement("test", f"SELECT count(*) FROM {found.clustered} GROUP BY cluster"))
    assert min(size for (size,) in sizes) >= r
    assert len(rows) - budget <= sum(size for (size,) in sizes) <= len(rows)
    radius, least = math.sqrt(found.away), least_radius(rows, r, budget)
    assert math.sqrt(found.width) <= 2 * least + 1e-9
    assert radius <= (2 * math.sqrt(found.width) if budget else math.sqrt(found.width)) + 1e-9


@settings(max_examples=100, deadline=None)
@given(
    near=st.lists(st.sets(st.integers(0, 3), min_size=1), min_size=1, max_size=12),
    least=st.integers(1, 3),
    draw=st.randoms(use_true_random=False),
)
def test_centres_are_filled_where_any_assignment_fills_them(
    near: list[set[int]], least: int, draw: random.Random
) -> None:
    centres = tuple(sorted(set().union(*near)))
    joined = {point: draw.choice(sorted(choices)) for point, choices in enumerate(near)}
    pairs = [(centre, point) for centre in centres for point, choices in enumerate(near) if centre in choices]
    moves = fill_centres(joined, pairs, least)
    assert (moves is not None) == is_filled([sorted(choices) for choices in near], centres, least)
    if moves is not None:
        assert all(centre in near[point] and centre != joined[point] for point, centre in moves.items())
        assert min(Counter((joined | moves).values())[centre] for centre in centres) >= least
