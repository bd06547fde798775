"""Distributions of columns before and after: as counted by hand, and of no fewer rows than a bar may stand for."""

from __future__ import annotations

import json
import random
import re
from collections import Counter, defaultdict
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sqlanon import run_report
from sqlanon.encoding import coded_table, dictionaries
from sqlanon.measures.witness_columns import (
    Band,
    grid_of_months,
    grid_of_numbers,
    label_of_months,
    label_of_numbers,
    merged,
)
from sqlanon.policy import Policy, Role
from tests.run_support import Database, anonymize, duckdb_url, open_database

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]

K = 6
COLUMNS = {
    "age": "INTEGER",
    "job": "VARCHAR(9)",
    "income": "DECIMAL(12,2)",
    "born": "DATE",
    "illness": "VARCHAR(9)",
    "score": "DOUBLE PRECISION",
}
ROLES: dict[str, Any] = {
    **dict.fromkeys(("age", "job", "income", "born"), "quasi-identifier"),
    "illness": "sensitive",
    "score": "insensitive",
}
LEVELS = ROLES | {
    "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 20]}},
    "job": {"role": "quasi-identifier", "hierarchy": "suppress"},
    "income": {"role": "quasi-identifier", "hierarchy": {"intervals": [10, 100]}},
    "born": {"role": "quasi-identifier", "hierarchy": {"date": ["month", "year", "decade"]}},
}
RUNS: dict[str, dict[str, Any]] = {
    "mondrian": {"attributes": ROLES},
    "cuts": {"attributes": ROLES, "ranges": "cuts"},
    "top-down": {"attributes": LEVELS},
    "optimal": {"attributes": LEVELS, "suppression": 0.1},
    "stars": {"attributes": LEVELS, "suppression": 0.1, "suppressed": "star"},
}


def _rows() -> list[tuple[Any, ...]]:
    chance = random.Random(4)
    return [
        (
            int(chance.gauss(40, 15)) if n != 7 else 121,
            "xylophone" if n == 3 else chance.choice(["baker", "baker", "smith", "baker", "cook"]),
            None if n % 10 == 0 else Decimal(f"{chance.lognormvariate(3, 1):.2f}"),
            date(1950, 1, 1) + timedelta(days=chance.randrange(20_000)),
            chance.choice(["flu", "flu", "cold"]) if n != 5 else "rabies",
            chance.random() * 100,
        )
        for n in range(600)
    ]


ROWS = _rows()


def _policy(database: Database, name: str, rows: list[tuple[Any, ...]] = ROWS) -> Policy:
    given = dict(RUNS[name])
    algorithm = {"cuts": "mondrian", "stars": "optimal"}.get(name, name)
    privacy = [{"model": "k-anonymity", "k": K}]
    return database.policy(
        database.create(COLUMNS, rows),
        given.pop("attributes"),
        privacy=privacy,
        algorithm={"name": algorithm},
        **given,
    )


def _found(policy: Policy) -> dict[str, Any]:
    found: dict[str, Any] = anonymize(policy).as_json()["distributions"]
    return found


def _bars(found: dict[str, Any], column: str) -> dict[str, tuple[float, float]]:
    (one,) = [one for one in found["columns"] if one["name"] == column]
    return {bar["label"]: (bar["before"], bar["after"]) for bar in one["bars"]}


def _share(count: float, rows: int = len(ROWS)) -> float:
    return round(int(count / K + 0.5) * K / rows, 4)


@pytest.mark.parametrize("name", RUNS)
def test_every_column_has_bars_that_add_up(database: Database, name: str) -> None:
    found = _found(_policy(database, name))
    assert (found["rows"], found["least"], found["sampled"]) == (600, K, False)
    assert [one["name"] for one in found["columns"]] == list(COLUMNS)
    for one in found["columns"]:
        for when in ("before", "after"):
            shares = [bar[when] for bar in one["bars"]]
            assert sum(shares) == pytest.approx(1, abs=len(shares) * K / 600), (one["name"], when)
        parts = [bar for bar in one["bars"] if bar["label"] not in ("all other values", "no value")]
        assert all(round(bar["before"] * 600) >= K for bar in parts), one["name"]
        assert all(round(bar["before"] * 600) % K == 0 for bar in one["bars"]), one["name"]
    text = json.dumps(found)
    assert not [word for word in ("baker", "smith", "flu", "cold", "rabies", "xylophone", "121") if word in text]


def test_the_source_is_counted_as_by_hand(database: Database) -> None:
    found = _found(_policy(database, "mondrian"))
    ages = _bars(found, "age")
    assert list(ages) == ["below 20", "20 to 29", "30 to 39", "40 to 49", "50 to 59", "60 and more"]
    bands = Counter(min(60, max(10, row[0] // 10 * 10)) for row in ROWS)
    assert [before for before, _ in ages.values()] == [_share(bands[begin]) for begin in sorted(bands)]
    jobs = Counter(row[1] for row in ROWS).most_common(3)
    assert [before for before, _ in _bars(found, "job").values()] == [_share(rows) for _, rows in jobs]
    assert _bars(found, "income")["no value"][0] == _share(60)
    decades = Counter(row[3].year // 10 * 10 for row in ROWS)
    born = _bars(found, "born")
    assert born["1970 to 1979"][0] == _share(decades[1970])
    assert born["2000 and later"][0] == _share(decades[2000])


def test_a_taxonomy_is_counted_in_the_groups_of_its_finest_level_that_has_few(database: Database) -> None:
    """Labels of the policy name the bars; a group of fewer rows than a bar may stand for is among all other values."""
    few = {"baker": ["oven", "food"], "cook": ["stove", "food"], "smith": ["forge", "craft"]}
    few["xylophone"] = ["stage", "art"]
    many = {f"job {number}": [f"fine {number}", f"coarse {number % 2}"] for number in range(12)}
    twelve = [(row[0], f"job {n % 12}", *row[2:]) for n, row in enumerate(ROWS)]
    for mapping, rows, level in ((few, ROWS, 0), (many, twelve, 1)):
        attributes = ROLES | {"job": {"role": "quasi-identifier", "hierarchy": {"mapping": mapping}}}
        table = database.create(COLUMNS, rows)
        found = _found(database.policy(table, attributes, privacy=[{"model": "k-anonymity", "k": K}]))
        groups = Counter(mapping[row[1]][level] for row in rows)
        shown = {name: before for name, (before, _) in _bars(found, "job").items() if name != "all other values"}
        assert shown == {name: _share(count) for name, count in groups.items() if count >= K}
        assert "xylophone" not in json.dumps(found)


def test_labels_count_as_if_they_were_spread_over_their_values(database: Database) -> None:
    policy = _policy(database, "mondrian")
    ages = _bars(_found(policy), "age")
    shown = [label for (label,) in database.sql(f"SELECT age FROM {policy.release.table}")]
    spread: dict[int, float] = defaultdict(float)
    for label in shown:
        low, high = re.fullmatch(r"\[?(-?\d+)(?:-(\d+)\])?", label).groups()  # type: ignore[union-attr]
        ages_of_label = range(int(low), int(high or low) + 1)
        for age in ages_of_label:
            spread[min(60, max(10, age // 10 * 10))] += 1 / len(ages_of_label)
    expected = [spread[begin] / 600 for begin in sorted(spread)]
    assert [after for _, after in ages.values()] == pytest.approx(expected, abs=0.51 * K / 600)


def test_kept_columns_are_those_of_the_released_rows(database: Database) -> None:
    policy = _policy(database, "optimal")
    found = _found(policy)
    released = database.sql(f"SELECT illness FROM {policy.release.table}")
    assert len(released) < 600
    counts = Counter(value for (value,) in released).most_common(2)
    shares = [after for _, after in _bars(found, "illness").values()]
    assert shares == [_share(rows, len(released)) for _, rows in counts]


def test_both_engines_say_the_same(postgres_url: str, tmp_path: Path) -> None:
    said = []
    for url in (postgres_url, duckdb_url(tmp_path / "one.duckdb")):
        with open_database(url) as database:
            said.append([_found(_policy(database, name)) for name in ("mondrian", "optimal")])
    assert said[0] == said[1]


def test_odd_numbers_are_no_values_and_large_ones_are_in_the_last_band(database: Database) -> None:
    odd = [float("inf"), float("-inf"), float("nan")]
    rows = [(odd[n % 3] if n < 30 else 1.7e308 if n == 30 else n / 10, n % 4) for n in range(200)]
    table = database.create({"x": "DOUBLE PRECISION", "q": "INTEGER"}, rows)
    policy = database.policy(table, {"x": "insensitive", "q": "quasi-identifier"})
    bars = _bars(_found(policy), "x")
    assert bars["no value"][0] == 0.15
    assert sum(before for before, _ in bars.values()) == pytest.approx(1, abs=0.1)


def test_the_report_draws_them(database: Database) -> None:
    policy = _policy(database, "mondrian")
    page = run_report(anonymize(policy).run, policy=policy)
    assert page.count('<title id="column-') == len(COLUMNS)
    assert "60 and more" in page
    assert "at least 6 rows" in page


def test_kept_values_that_are_not_coded_are_counted_too(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    coded = _found(_policy(database, "mondrian"))
    monkeypatch.setattr(dictionaries, "_stays_uncoded", lambda _plan, a: a.role is Role.INSENSITIVE)
    assert _found(_policy(database, "mondrian")) == coded


def test_of_many_rows_a_sample_is_counted(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coded_table, "WITNESS_ROWS", 500)
    monkeypatch.setattr(coded_table, "WITNESS_SAMPLE", 300)
    policy = _policy(database, "mondrian")
    outcome = anonymize(policy)
    found = outcome.as_json()["distributions"]
    assert found["sampled"]
    assert 200 < found["rows"] < 400
    assert all(0 < after < 1 for _, after in _bars(found, "age").values())
    assert "a random sample of" in run_report(outcome.run, policy=policy)


@pytest.mark.parametrize(
    ("low", "high", "whole", "labels"),
    [
        (0, 80, True, ["below 10", "10 to 19", "80 and more"]),
        (1, 3, True, ["below 2", "2", "3 and more"]),
        (0.13, 0.81, False, ["below 0.2", "0.2 to < 0.3", "0.8 and more"]),
        (900, 5_000_000, True, ["below 1,000,000", "1,000,000 to 1,999,999", "5,000,000 and more"]),
    ],
)
def test_bands_lie_between_round_numbers(low: float, high: float, whole: bool, labels: list[str]) -> None:
    grid = grid_of_numbers(low, high, whole=whole)
    assert grid is not None
    numbers = [grid.first, grid.first + 1, grid.last]
    assert [label_of_numbers(grid, Band(n, n, 9, 1, 1), whole=whole) for n in numbers] == labels


def test_a_number_is_in_the_band_that_begins_with_it() -> None:
    grid = grid_of_numbers(0.0, 0.8, whole=False)
    assert grid is not None
    assert [grid.number_of(n / 10) for n in range(9)] == list(range(9))


def test_bands_of_dates_are_months_or_years() -> None:
    months, years = grid_of_months(2020 * 12, 2020 * 12 + 7), grid_of_months(1950 * 12, 2010 * 12)
    assert months is not None
    assert years is not None
    second = Band(2020 * 12 + 1, 2020 * 12 + 1, 9, 1, 1)
    assert label_of_months(months, second) == "2020-02"
    assert label_of_months(years, Band(196, 196, 9, 1, 1)) == "1960 to 1969"
    assert label_of_months(years, Band(195, 195, 9, 1, 1)) == "before 1960"


def test_small_bands_are_joined_with_the_smaller_neighbour() -> None:
    bands = [Band(n, n, rows, 10 * n + 1, 10 * n + 10) for n, rows in enumerate([9, 2, 3, 0, 8, 1])]
    joined = [(band.first, band.last, band.rows, band.low, band.high) for band in merged(bands, 5)]
    assert joined == [(0, 0, 9, 1, 10), (1, 3, 5, 11, 40), (4, 5, 9, 41, 60)]
    assert merged([Band(0, 0, 4, 1, 2)], 5) == []


@pytest.mark.parametrize(
    ("low", "high"), [(0.0, 1e-310), (-1e308, 1e308), (1e200, 1.1e200), (1e16, 1e16 + 2), (5.0, 5.0)]
)
def test_numbers_that_bands_cannot_be_told_apart_by_have_none(low: float, high: float) -> None:
    assert grid_of_numbers(low, high, whole=False) is None
