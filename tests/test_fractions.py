"""Decimals and doubles that are coded by what they are worth, and those that are looked up."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest

from sqlanon.encoding.dictionaries import Range, measure_fractions
from sqlanon.engines import connect
from sqlanon.plan.plan import resolve
from tests.rules_support import apply
from tests.run_support import Database, anonymize

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]

_MANY = Range(-999_999_999_999_999, -999_999_000_000_000, 10**6)
CODED: dict[str, tuple[str, list[Any], Range]] = {
    "whole numbers": ("DOUBLE PRECISION", [-3.0, None, 1e8], Range(-3, 10**8, 1)),
    "halves": ("DOUBLE PRECISION", [0.5, 2.0], Range(1, 4, 2)),
    "eighths": ("DOUBLE PRECISION", [0.125, -1.0, 168_000.625], Range(-8, 1_344_005, 8)),
    "cents": ("DOUBLE PRECISION", [0.29, 0.57, 1.1, -0.0], Range(0, 110, 100)),
    "halves and tenths": ("DOUBLE PRECISION", [0.5, 0.1], Range(1, 5, 10)),
    "millionths": ("DOUBLE PRECISION", [52.370217, 4.895169], Range(4_895_169, 52_370_217, 10**6)),
    "decimals": ("DECIMAL(12, 2)", [Decimal("-1.50"), Decimal("999999999.99")], Range(-150, 99_999_999_999, 100)),
    "six digits": ("DECIMAL(18, 6)", [Decimal(d) for d in ("0.29", "1234.56", "99999.95")], Range(29, 9_999_995, 100)),
    "many digits before": ("DECIMAL(38, 6)", [Decimal("-999999999.999999"), Decimal(-999999000)], _MANY),
    "decimals without digits": ("DECIMAL(9, 0)", [Decimal(-5), Decimal(70)], Range(-5, 70, 1)),
}
LOOKED_UP: dict[str, tuple[str, list[Any]]] = {
    "thirds": ("DOUBLE PRECISION", [1 / 3, 1.0]),
    "a neighbour of a tenth": ("DOUBLE PRECISION", [math.nextafter(0.1, 1), 1.0]),
    "not a number": ("DOUBLE PRECISION", [math.nan, 1.0]),
    "infinite": ("DOUBLE PRECISION", [-math.inf, 1.0]),
    "large": ("DOUBLE PRECISION", [1e9, 1.0]),
    "decimals of seven digits": ("DECIMAL(9, 7)", [Decimal("0.25"), Decimal("1.75")]),
    "decimals of many digits": ("DECIMAL(38, 30)", [Decimal("0.29"), Decimal("1234.56")]),
    "floats of four bytes": ("REAL", [0.5, 1.0]),
    "nothing known": ("DOUBLE PRECISION", [None, None]),
}


def _measured(database: Database, type_: str, values: list[Any]) -> dict[str, Range]:
    table = database.create({"q": type_}, [(value,) for value in values])
    policy = database.policy(table, {"q": "quasi-identifier"}, privacy=[{"model": "k-anonymity", "k": 1}])
    with connect(database.url) as engine:
        return measure_fractions(engine, resolve(policy, engine))


@pytest.mark.parametrize("name", CODED)
def test_the_largest_unit_that_all_values_are_multiples_of(database: Database, name: str) -> None:
    type_, values, expected = CODED[name]
    assert _measured(database, type_, values) == {"q": expected}


@pytest.mark.parametrize("name", LOOKED_UP)
def test_what_is_no_multiple_is_looked_up(database: Database, name: str) -> None:
    assert _measured(database, *LOOKED_UP[name]) == {}


@pytest.mark.parametrize("type_", ["DOUBLE PRECISION", "DECIMAL(38, 6)"])
def test_a_range_too_wide_for_codes_is_looked_up(database: Database, type_: str) -> None:
    """A billion in millionths: the release is made all the same, by a dictionary."""
    table = database.create({"q": type_}, [(Decimal("0.250001") + 333_333_333 * n,) for n in range(3)] * 2)
    roles = {"q": "quasi-identifier"}
    policy = database.policy(table, roles, privacy=[{"model": "k-anonymity", "k": 2}])
    anonymize(policy)
    released = sorted(str(q) for (q,) in database.sql(f"SELECT q FROM {table}_r"))
    assert released == sorted(2 * ["0.250001", "333333333.250001", "666666666.250001"])


def test_a_range_is_as_wide_as_its_values_are_apart(database: Database) -> None:
    """Half of the ranks of `a` are next to nothing of its range, so where they are all left, `b` is cut on."""
    rows = [(a / 10, float(b), a) for a in range(10) for b in range(10)] + [(1000.0, 9.0, 10)]
    table = database.create({"a": "DOUBLE PRECISION", "b": "DOUBLE PRECISION", "of": "INTEGER"}, rows)
    roles = {"a": "quasi-identifier", "b": "quasi-identifier", "of": "insensitive"}
    anonymize(database.policy(table, roles, privacy=[{"model": "k-anonymity", "k": 5}]))
    released = database.sql(f"SELECT a, b, of FROM {table}_r")
    assert {(a, b) for a, b, of in released if of < 5} == {("[0-0.4]", str(b)) for b in range(10)}


def test_rules_of_units_are_applied(database: Database) -> None:
    """To the source again, of which a unit more than 2^31 is the greatest, and to values between, beside and beyond."""
    values = [1200.000001, 1900.5, 2300.25, 2400.75] * 3
    new = [1900.4, 1900.5, 1900.6, 2300.2, 2300.25 + 1 / 3, -5.0, 1e12, math.inf, math.nan, None]
    table, newer = (database.create({"q": "DOUBLE PRECISION"}, [(v,) for v in some]) for some in (values, new * 3))
    policy = database.policy(table, {"q": "quasi-identifier"}, privacy=[{"model": "k-anonymity", "k": 3}])
    run = anonymize(policy).run
    again = apply(database, run, table, f"{table}_again", "error").run
    assert database.sql(f"SELECT count(*), count(DISTINCT q) FROM {table}_again") == [(12, 4)]
    apply(database, run, newer, f"{newer}_r")
    assert Counter(q for (q,) in database.sql(f"SELECT q FROM {newer}_r")) == {
        "[*-1200.000002]": 3,
        "[1200.000002-1900.500001]": 6,
        "[1900.500001-2300.250001]": 6,
        "[2300.250001-*]": 12,
        "*": 3,
    }
    steps = "SELECT statement FROM sqlanon.steps WHERE run = ? AND name = 'releases/rules/mark_fractions'"
    ((marked,),) = database.sql(steps, [again])
    assert str(2_400_750_000 - 1_200_000_001 + 2) not in marked
