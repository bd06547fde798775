"""Regions as a release shows them."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest

from tests.run_support import Database, open_database

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]

NUMBERS = [-3, 0, 5, 5, 7, 40, None, None]
SHOWN = {
    "label": [("NULL",)] * 2 + [("[-3-0]",)] * 2 + [("5",)] * 2 + [("[7-40]",)] * 2,
    "bounds": [(-3, 0)] * 2 + [(5, 5)] * 2 + [(7, 40)] * 2 + [(None, None)] * 2,
    "mean": [(-1.5,)] * 2 + [(5.0,)] * 2 + [(23.5,)] * 2 + [(None,)] * 2,
    "midpoint": [(-1.5,)] * 2 + [(5.0,)] * 2 + [(23.5,)] * 2 + [(None,)] * 2,
}


@pytest.mark.parametrize("type_", ["INTEGER", "DECIMAL(7, 0)", "DOUBLE PRECISION"])
@pytest.mark.parametrize("show", SHOWN)
def test_shows(database: Database, show: str, type_: str) -> None:
    table = database.create({"q": type_, "id": "INTEGER"}, [(n, i) for i, n in enumerate(NUMBERS)])
    released = database.release(table, {"q": {"role": "quasi-identifier", "show": show}, "id": "insensitive"})
    assert [row[:-1] for row in released] == SHOWN[show]
    assert sorted(row[-1] for row in released) == list(range(8))
    names = ["q_min", "q_max", "id"] if show == "bounds" else ["q", "id"]
    assert [name for name, _ in database.columns(f"{table}_r")] == names


@pytest.mark.parametrize(
    ("type_", "range_type", "least", "greatest", "text"),
    [
        ("INTEGER", "int8range", -3, 40, "[-3,41)"),
        ("NUMERIC", "numrange", Decimal("-1.50"), Decimal("2.25"), "[-1.5,2.25]"),
        ("FLOAT4", "numrange", 0.5, math.inf, "[0.5,Infinity]"),
        ("DATE", "daterange", "1969-12-31", "2024-02-29", "[1969-12-31,2024-03-01)"),
        ("TIMESTAMP", "tsrange", "1969-12-31", "2024-02-29", '["1969-12-31 00:00:00","2024-02-29 00:00:00"]'),
    ],
)
def test_ranges_on_postgres(
    postgres_url: str, type_: str, range_type: str, least: Any, greatest: Any, text: str
) -> None:
    with open_database(postgres_url) as database:
        table = database.create({"q": type_, "id": "INTEGER"}, [(least, 1), (greatest, 2), (None, 3), (None, 4)])
        database.release(table, {"q": {"role": "quasi-identifier", "show": "range"}, "id": "insensitive"})
        assert database.columns(f"{table}_r")[0] == ("q", range_type)
        assert database.sql(f"SELECT CAST(q AS TEXT) FROM {table}_r") == [(text,), (text,), (None,), (None,)]


@pytest.mark.parametrize(("width", "ranges"), [(5, ["[0,5)", "[5,10)"]), (4.25, ["[0,5)", "[5,9)"])])
def test_ranges_of_intervals_of_whole_numbers(postgres_url: str, width: float, ranges: list[str]) -> None:
    with open_database(postgres_url) as database:
        table = database.create({"q": "INTEGER"}, [(value,) for value in (0, 3, 5, 8, None, None)])
        role = {"role": "quasi-identifier", "hierarchy": {"intervals": [width]}, "show": "range"}
        for algorithm in ("mondrian", "optimal"):
            database.release(table, {"q": role}, algorithm={"name": algorithm})
            assert database.columns(f"{table}_r")[0] == ("q", "int8range")
            cells = database.sql(f"SELECT DISTINCT CAST(q AS TEXT) AS q FROM {table}_r ORDER BY 1")
            assert cells == [(text,) for text in [*ranges, None]]


@pytest.mark.parametrize("show", ["bounds", "mean", "midpoint"])
def test_shows_of_extreme_numbers(database: Database, show: str) -> None:
    numbers = [-1.7e308, 1.7e308, 1.7e308, 1.7e308, 1e-300, 1e-300, 1.6e308, 1.7e308]
    halves = [0, 0, 0, 0, 0, 0, 1, 1]
    table = database.create({"q": "DOUBLE PRECISION", "p": "INTEGER"}, list(zip(numbers, halves, strict=True)))
    roles = {"q": {"role": "quasi-identifier", "show": show}, "p": "quasi-identifier"}
    released = database.release(table, roles)
    assert all(math.isfinite(cell) for row in released for cell in row[:-1])


def test_bounds_of_groups_of_a_hierarchy(database: Database) -> None:
    table = database.create({"q": "INTEGER", "id": "INTEGER"}, [(n, i) for i, n in enumerate([1, 4, 6, 6, None, None])])
    attribute = {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 10]}, "show": "bounds"}
    released = database.release(table, {"q": attribute, "id": "insensitive"})
    assert released == [(0, 5, 0), (0, 5, 1), (6, 6, 2), (6, 6, 3), (None, None, 4), (None, None, 5)]


@pytest.mark.parametrize("zeros", [(0.0, -0.0), (-0.0, 0.0)])
@pytest.mark.parametrize("type_", ["DOUBLE PRECISION", "REAL"])
def test_bounds_show_one_zero_whatever_comes_first(database: Database, type_: str, zeros: tuple[float, ...]) -> None:
    table = database.create({"q": type_}, [(n,) for n in (*zeros, 3.0, 4.0)])
    released = database.release(table, {"q": {"role": "quasi-identifier", "show": "bounds"}})
    assert [str(low) for low, _ in released] == ["0.0", "0.0", "3.0", "3.0"]


@pytest.mark.parametrize("number", [62, 63])
def test_sets_hold_all_values(database: Database, number: int) -> None:
    """As many as bits of a number tell apart, and one more; NULL is none of them."""
    values = [f"v{n:02}" for n in range(number)]
    table = database.create({"q": "TEXT"}, [(None,), *((value,) for value in values)])
    k = [{"model": "k-anonymity", "k": number + 1}]
    released = database.release(table, {"q": "quasi-identifier"}, privacy=k)
    assert {label for (label,) in released} == {"{" + ", ".join(["NULL", *values]) + "}"}
