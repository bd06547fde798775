"""The journalist's risk in a population: held against the distribution that it is the mean of."""

from __future__ import annotations

import math

import pytest

from sqlanon import run_report
from sqlanon.errors import PolicyError
from sqlanon.measures.population import journalist_risk
from tests.run_support import Database, anonymize

pytestmark = pytest.mark.slow

FRACTIONS = (0.9, 0.5, 0.1, 0.01)


def mean_of_inverse(rows: int, fraction: float) -> float:
    """Add up 1/people times the negative binomial probability of so many people, given so many rows."""
    people, logarithm, total, seen = rows, rows * math.log(fraction), 0.0, 0.0
    while seen < 1 - 1e-12:
        probability = math.exp(logarithm)
        total, seen = total + probability / people, seen + probability
        logarithm += math.log((1 - fraction) * people / (people - rows + 1))
        people += 1
    return total


@pytest.mark.parametrize("fraction", FRACTIONS)
@pytest.mark.parametrize("rows", [1, 2, 3, 5, 20, 99, 100, 400])
def test_the_risk_is_the_mean_of_one_in_the_people(rows: int, fraction: float) -> None:
    assert journalist_risk(rows, fraction) == pytest.approx(mean_of_inverse(rows, fraction), rel=1e-9)


@pytest.mark.parametrize("rows", [1, 4, 250])
def test_a_table_that_holds_everybody_leaves_the_risk_of_the_prosecutor(rows: int) -> None:
    assert journalist_risk(rows, 1.0) == 1 / rows


@pytest.mark.parametrize("fraction", [1e-6, 1e-9])
@pytest.mark.parametrize("rows", [2, 50, 200])
def test_a_small_sample_divides_the_risk_by_one_row_less(rows: int, fraction: float) -> None:
    assert journalist_risk(rows, fraction) == pytest.approx(fraction / (rows - 1), rel=1e-4)


@pytest.mark.parametrize(("rows", "fraction"), [(0, 0.5), (5, 0.0), (5, 1.1)])
def test_what_is_no_sample_is_refused(rows: int, fraction: float) -> None:
    with pytest.raises(ValueError, match="no risk"):
        journalist_risk(rows, fraction)


@pytest.mark.either_engine
def test_the_report_shows_it_for_a_population(database: Database) -> None:
    table = database.create({"age": "INTEGER", "job": "TEXT"}, [(n // 5, "nurse") for n in range(100)])
    roles = {"age": "quasi-identifier", "job": "insensitive"}
    policy = database.policy(table, roles, privacy=[{"model": "k-anonymity", "k": 5}])
    run = anonymize(policy).run
    assert "≤ 20 %" in run_report(run, policy=policy)
    page = run_report(run, policy=policy, population=10_000)
    assert "random sample of 10,000" in page
    assert "0.25 %" in page  # 5 rows at 1 %: 0.00249
    with pytest.raises(PolicyError, match="A population of 99 can't be: the release has 100 rows"):
        run_report(run, policy=policy, population=99)
