"""Numbers drawn from the statistics of a group have its means and covariances, within what chance allows."""

from __future__ import annotations

import math
import random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sqlanon.engines.base import Engine
from sqlanon.methods.clustering.releases.synthetic import create_rows
from sqlanon.sql import Identifier, RedactedValue, Relation, Statement
from tests.random_cases import many

ROWS = 4_000
SIGMAS = 5


def measure(rows: list[tuple[float, ...]]) -> tuple[list[float], list[list[float]]]:
    """Measure means and covariances."""
    means = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
    centred = [[value - mean for value, mean in zip(row, means, strict=True)] for row in rows]
    return means, [[sum(row[i] * row[j] for row in centred) / len(rows) for j in range(3)] for i in range(3)]


@settings(max_examples=many(3), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), shared=st.sampled_from([0.0, 0.5, 1.0]))
def test_draws_have_the_means_and_covariances_of_their_group(engine: Engine, seed: int, shared: float) -> None:
    """`shared` 1 makes all numbers multiples of one: the factor then has columns of zeros."""
    draw = random.Random(seed)
    rows: list[tuple[float, ...]] = []
    for _ in range(ROWS):
        common = draw.gauss(0, 1)
        own = [shared * common + (1 - shared) * draw.gauss(0, 1) for _ in range(3)]
        rows.append((own[0], 1e6 + 100 * own[1], 1e-3 * own[2]))
    drawn = draw_one_group(engine, rows)
    means, covariances = measure(rows)
    drawn_means, drawn_covariances = measure(drawn)
    for i in range(3):
        deviation = math.sqrt(covariances[i][i])
        assert abs(drawn_means[i] - means[i]) <= SIGMAS * deviation / math.sqrt(ROWS)
        for j in range(3):
            bound = SIGMAS * math.sqrt(2 / ROWS) * deviation * math.sqrt(covariances[j][j])
            assert abs(drawn_covariances[i][j] - covariances[i][j]) <= bound


def draw_one_group(engine: Engine, rows: list[tuple[float, ...]]) -> list[tuple[float, ...]]:
    """Draw as many synthetic rows by the statements of a run."""
    members, factors, regions = Relation("members"), Relation("factors"), Relation("regions")
    for table in (members, factors, regions):
        engine.execute(Statement("test", f"DROP TABLE IF EXISTS {table}"))
    engine.execute(
        Statement("test", "CREATE TABLE members (number BIGINT, leaf BIGINT, x0 FLOAT8, x1 FLOAT8, x2 FLOAT8)")
    )
    engine.load(members, ["number", "leaf", "x0", "x1", "x2"], [(n, 7, *row) for n, row in enumerate(rows)])
    numbers = [
        {
            "number": i,
            "mean": RedactedValue(rows[0][i]),
            "floor": RedactedValue(0.0),
            "grid": RedactedValue(2.0**-40),
            "cell": Identifier(f"c{i}"),
        }
        for i in range(3)
    ]
    engine.run("methods/clustering/condensation/create_factors", factors=factors, members=members, numbers=numbers)
    create_rows(engine, regions, members=members, factors=factors, numbers=numbers, names=["x0", "x1", "x2"])
    drawn = engine.fetch(Statement("test", "SELECT c0, c1, c2 FROM regions ORDER BY region"))
    return [tuple(map(float, row)) for row in drawn]
