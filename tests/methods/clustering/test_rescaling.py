"""Centres that are rescaled, so that columns keep mean and variance: figures, claims, and what is refused."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sqlanon import run_report
from sqlanon.errors import PolicyError, ProtectionError, VerificationError
from sqlanon.results.search_facts import ClusterFacts
from tests.methods.clustering.test_microaggregation import COLUMNS, QUASI, ROLES, anonymity, numbers, plain
from tests.random_cases import many
from tests.run_support import Database, anonymize, duckdb_url, open_database

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]


def mean_and_variance(values: Sequence[float]) -> tuple[float, float]:
    """Mean and variance, exactly, of the doubles."""
    exact = [Fraction(value) for value in values]
    mean = sum(exact) / len(exact)
    return float(mean), float(sum((one - mean) ** 2 for one in exact) / len(exact))


RESCALED = {"name": "microaggregation", "refine": False, "keep": "variance"}


@pytest.mark.either_engine
@settings(max_examples=many(3), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), rows=st.integers(12, 40))
def test_columns_keep_mean_and_variance(database: Database, seed: int, rows: int) -> None:
    draw = random.Random(seed)
    values = [
        (draw.randrange(-(10**6), 10**6), 1e9 + draw.gauss(0, 10), Decimal(draw.randrange(10**5)) / 100, 7)
        for _ in range(rows)
    ]
    types = {"a": "INTEGER", "b": "DOUBLE PRECISION", "c": "DECIMAL(9,2)", "d": "INTEGER"}
    released = database.release_once(types, values, dict.fromkeys(types, QUASI), algorithm=RESCALED)
    assert released is not None
    for before, after in zip(zip(*values, strict=True), zip(*released, strict=True), strict=True):
        (mean, variance), (kept_mean, kept_variance) = mean_and_variance(before), mean_and_variance(after)
        slack = 1e-15 * max(map(abs, map(float, before)))
        assert abs(kept_mean - mean) <= 4 * slack
        assert math.sqrt(kept_variance) == pytest.approx(math.sqrt(variance), rel=1e-9, abs=4 * slack)


def test_rescaled_centres_are_those_of_the_formula(database: Database) -> None:
    rows = numbers(60)
    plain, rescaled = (
        database.release_once(COLUMNS, rows, ROLES, algorithm={**RESCALED, "keep": keep}, privacy=anonymity(4))
        for keep in (None, "variance")
    )
    assert plain is not None
    assert rescaled is not None
    of_row = {row[-1]: row for row in plain}
    for column in range(3):
        (mean, variance), (shown_mean, shown) = (
            mean_and_variance([row[column] for row in table]) for table in (rows, plain)
        )
        for row in rescaled:
            centre = of_row[row[-1]][column]
            expected = mean + (centre - shown_mean) * math.sqrt(variance / shown)
            assert row[column] == pytest.approx(expected, rel=1e-12, abs=1e-15)


def test_engines_rescale_to_the_same_bytes(tmp_path: Path, postgres_url: str) -> None:
    released = []
    for url in (duckdb_url(tmp_path / "a.duckdb"), postgres_url):
        with open_database(url) as database:
            table = database.create(COLUMNS, numbers(200))
            result = anonymize(database.policy(table, ROLES, algorithm=RESCALED, privacy=anonymity(3)))
            assert isinstance(result.algorithm.facts, ClusterFacts)
            assert result.algorithm.facts.keep == "variance"
            assert result.checks is not None
            assert result.checks["variances_equal"].violations == 0
            released.append([tuple(map(repr, map(plain, row))) for row in database.sql(f"SELECT * FROM {table}_r")])
    assert released[0] == released[1]


def test_rescaling_needs_centres_that_differ(database: Database) -> None:
    table = database.create({"a": "INTEGER", "b": "INTEGER"}, [(a, b) for a in (1, 9) for b in (1, 2)] * 4)
    policy = database.policy(table, {"a": QUASI, "b": QUASI}, algorithm=RESCALED, privacy=anonymity(8))
    with pytest.raises(ProtectionError, match="All clusters have the same mean in column 'b'"):
        anonymize(policy)
    assert database.leftovers() == []


def test_rescaling_is_of_numbers(database: Database) -> None:
    table = database.create({"a": "VARCHAR"}, [("x",)] * 5)
    with pytest.raises(PolicyError, match=r"algorithm\.keep: variance is one of numbers"):
        anonymize(database.policy(table, {"a": QUASI}, algorithm=RESCALED))


def test_wrongly_rescaled_centres_are_not_published(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlanon.methods.clustering.releases.centres.FIXED", 2**59)
    table = database.create(COLUMNS, numbers(60))
    with pytest.raises(VerificationError, match=r"centres_true.*variances_equal"):
        anonymize(database.policy(table, ROLES, algorithm=RESCALED, privacy=anonymity(4)))


def test_the_report_says_that_variances_are_kept(database: Database) -> None:
    table = database.create({"a": "INTEGER", "s": "INTEGER"}, [(n, n % 3) for n in range(12)])
    policy = database.policy(table, {"a": QUASI, "s": "sensitive"}, algorithm=RESCALED, privacy=anonymity(3))
    page = run_report(anonymize(policy).run, policy=policy)
    assert "rescaled, so that each column has the mean and the variance of its source" in page
