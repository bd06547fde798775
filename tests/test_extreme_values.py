"""Extreme values of every type, their regions, and the numbers and dates that show these."""

from __future__ import annotations

import datetime
import math
from pathlib import Path
from typing import Any

import pytest

from sqlanon.errors import PolicyError
from tests.random_cases import many
from tests.run_support import Database, anonymize, duckdb_url, open_database

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]

EXTREME: dict[str, list[Any]] = {
    "BIGINT": [-(2**63), -(2**63) + 1, -1, 0, 2**63 - 2, 2**63 - 1],
    "SMALLINT": [-(2**15), -1, 0, 1, 2**15 - 2, 2**15 - 1],
    "DOUBLE PRECISION": [-math.inf, -1.7e308, 5e-324, 1.7e308, math.inf, math.nan],
    "REAL": [-math.inf, -3.4e38, 1e-45, 3.4e38, math.inf, math.nan],
    "DATE": [
        datetime.date(1, 1, 1),
        datetime.date(1582, 10, 15),
        datetime.date(1969, 12, 31),
        datetime.date(9999, 12, 31),
    ],
    "TIMESTAMP": [
        datetime.datetime(1901, 12, 31, 23, 59, 59, 999999),
        datetime.datetime(1970, 1, 1),
        "infinity",
        "-infinity",
    ],
    "TIMESTAMPTZ": ["1900-01-01 00:00:00+05:30", "1969-12-31 23:59:59-08", "2024-06-01 12:00:00+02", "infinity"],
    "TIME": ["00:00:00", "12:30:00.5", "23:59:59.999999", "00:00:01"],
    "VARCHAR": ["", " ", "a\nb", 'it\'s "x"', "😀", "NULL", "\\", "*", "x" * 100_000],
    "UUID": [f"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a{n:02}" for n in range(6)],
    "BOOLEAN": [True, False],
    "DECIMAL(38, 10)": ["-9999999999999999999999999999.9999999999", "0", "0.0000000001", "1234567890.5", "1", "2"],
    "DECIMAL(38, 38)": [f"-0.{'9' * 38}", "0", f"0.{'0' * 37}1", "0.5"],
}


@pytest.mark.parametrize("k", [1, 2, 4])
def test_extreme_values_in_quasi_identifiers(database: Database, k: int) -> None:
    columns = {f"q{i}": type_ for i, type_ in enumerate(EXTREME)}
    rows = [tuple(pool[n % len(pool)] if n < 9 else None for pool in EXTREME.values()) for n in range(9 + k)]
    rows = [(*row, n) for n, row in enumerate(rows)]
    table = database.create({**columns, "id": "INTEGER"}, rows)
    roles = {**dict.fromkeys(columns, "quasi-identifier"), "id": "insensitive"}
    released = database.release(table, roles, privacy=[{"model": "k-anonymity", "k": k}])
    assert sorted(row[-1] for row in released) == list(range(9 + k))
    unknown = {cell for row in released if row[-1] >= 9 for cell in row[:-1]}
    assert all(cell.startswith(("NULL", "{NULL, ")) for cell in unknown)
    if k == 1:
        assert unknown == {"NULL"}
        assert all("NULL" not in row[:6] for row in released if row[-1] < 9)


SPANS: dict[str, tuple[list[str], str]] = {
    "INTEGER": (["-5", "-1"], "-5--1"),
    "DECIMAL(9, 2)": (["-4", "-1.5"], "-4.00--1.50"),
    "DOUBLE PRECISION": (["-1e-7", "1e22"], "-1e-07-1e+22"),
    "DATE": (["2020-01-01", "2020-02-01"], "2020-01-01-2020-02-01"),
    "TIMESTAMP": (["2020-01-01 05:00:00", "2020-01-01 07:30:00"], "2020-01-01 05:00:00-2020-01-01 07:30:00"),
    "TIMESTAMPTZ": (["2020-01-01 05:00+00", "2020-01-01 07:30+00"], "2020-01-01 05:00:00+00-2020-01-01 07:30:00+00"),
    "TIME": (["05:00:00", "07:00:00.5"], "05:00:00-07:00:00.5"),
    "VARCHAR": (["a-b", "c--d"], "a-b, c--d"),
}


@pytest.mark.parametrize("has_null", [False, True])
def test_regions_whose_text_holds_hyphens_and_null(database: Database, has_null: bool) -> None:
    """Of every kind: a span beside NULL is not taken for one value, whatever hyphens it holds."""
    columns = {f"q{i}": type_ for i, type_ in enumerate(SPANS)}
    rows: list[Any] = list(zip(*(ends for ends, _ in SPANS.values()), strict=True))
    rows += [(None,) * len(SPANS)] if has_null else []
    table = database.create(columns, rows)
    privacy = [{"model": "k-anonymity", "k": len(rows)}]
    released = database.release(table, dict.fromkeys(columns, "quasi-identifier"), privacy=privacy)
    spans = [span for _, span in SPANS.values()]
    left, right = ("{NULL, ", "}") if has_null else ("[", "]")
    last = f"{{NULL, {spans[-1]}}}" if has_null else f"{{{spans[-1]}}}"
    assert set(released) == {(*(f"{left}{span}{right}" for span in spans[:-1]), last)}


@pytest.mark.parametrize("number", ["1e400", "-1e400", "1e-400", "'NaN'", "'Infinity'", "1.0", "1.00"])
def test_decimals_beyond_doubles(postgres_url: str, number: str) -> None:
    with open_database(postgres_url) as database:
        table = database.create({"q": "NUMERIC", "s": "NUMERIC"}, [])
        number = f"CAST({number} AS NUMERIC)"
        database.sql(f"INSERT INTO {table} VALUES ({number}, {number}), (1, 1), (2, 2), (3, 3)")
        models = [{"model": "k-anonymity", "k": 2}, {"model": "variance-diversity", "attribute": "s", "v": 0.0}]
        assert len(database.release(table, {"q": "quasi-identifier", "s": "sensitive"}, privacy=models)) == 4


def test_enums_as_quasi_identifiers(database: Database) -> None:
    database.sql("CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')")
    moods = ["sad", "ok", "happy", "ok", "sad", "happy"]
    table = database.create({"q": "mood", "id": "INTEGER"}, [(mood, n) for n, mood in enumerate(moods)])
    released = database.release(table, {"q": "quasi-identifier", "id": "insensitive"})
    assert [row[1] for row in released if row[0] == "ok"] == [1, 3]


ZEROS = [*zip(["postgres", "duckdb"] * 3, [["0", "-0.0"], ["-0.0", "0"], ["-0.0", "-0.0"]] * 2, strict=True)]


@pytest.mark.parametrize(("engine_name", "zeros"), ZEROS[: many(3)], indirect=["engine_name"])
def test_minus_zero_is_shown_as_zero(database: Database, zeros: list[str]) -> None:
    """Whichever of the two equal zeros comes first."""
    shows, types = ("bounds", "mean", "midpoint"), ("DOUBLE PRECISION", "REAL")
    columns = {f"{show}_{type_[0]}": (show, type_) for show in shows for type_ in types}
    table = database.create({name: type_ for name, (_, type_) in columns.items()}, [])
    for zero in zeros:
        cells = ", ".join(f"CAST('{zero}' AS {type_})" for _, type_ in columns.values())
        database.sql(f"INSERT INTO {table} VALUES ({cells})")
    roles = {name: {"role": "quasi-identifier", "show": show} for name, (show, _) in columns.items()}
    released = database.release(table, roles)
    assert len(released[0]) == len(columns) + len(types)
    assert {str(value) for row in released for value in row} == {"0.0"}


INFINITE: dict[str, tuple[list[str], set[str]]] = {
    "from -Infinity to a number": (["-Infinity", "5", "6", "7"], {"-inf", "6.5"}),
    "from a number to Infinity": (["1", "6", "7", "Infinity"], {"3.5", "inf"}),
    "Infinity alone": (["1", "2", "Infinity", "Infinity"], {"1.5", "inf"}),
    "greatest doubles": (["-1.7e308", "-1.7e308", "-Infinity", "-Infinity"], {"-1.7e+308", "-inf"}),
    "least doubles": (["5e-324", "5e-324", "-Infinity", "-5e-324"], {"5e-324", "-inf"}),
}


@pytest.mark.parametrize("show", ["mean", "midpoint"])
@pytest.mark.parametrize("name", INFINITE)
def test_an_infinite_end_gives_an_infinite_number(database: Database, name: str, show: str) -> None:
    values, shown = INFINITE[name]
    table = database.create({"q": "DOUBLE PRECISION"}, [(float(value),) for value in values])
    released = database.release(table, {"q": {"role": "quasi-identifier", "show": show}})
    assert {str(value) for (value,) in released} == shown


@pytest.mark.parametrize("greatest", [2.0, 1.7e308])
def test_the_loss_of_a_span_beside_zero_is_none(database: Database, greatest: float) -> None:
    table = database.create({"q": "DOUBLE PRECISION"}, [(number,) for number in (-0.0, 5e-324, greatest, greatest)])
    result = anonymize(database.policy(table, {"q": "quasi-identifier"}))
    assert result.as_json()["metrics"]["gcp"] == 0.0


@pytest.mark.parametrize("show", ["mean", "midpoint"])
def test_between_both_infinities_is_no_number(database: Database, show: str) -> None:
    table = database.create({"q": "DOUBLE PRECISION"}, [(value,) for value in (-math.inf, 1.0, 2.0, math.inf)])
    role = {"role": "quasi-identifier", "show": show}
    with pytest.raises(PolicyError, match=r"attributes.q: it holds Infinity and -Infinity.*use show: bounds"):
        database.release(table, {"q": role})
    for limit in ({"top": 10}, {"bottom": 0}):
        assert len(database.release(table, {"q": role | limit})) == 4


@pytest.mark.parametrize("show", ["bounds", "midpoint"])
def test_single_values_keep_their_decimals_beside_intervals(database: Database, show: str) -> None:
    table = database.create({"q": "DECIMAL(10, 2)"}, [("0.99",), ("0.99",)])
    attribute = {"role": "quasi-identifier", "hierarchy": {"intervals": [0.5, 1]}, "show": show}
    released = database.release(table, {"q": attribute})
    assert {str(value) for row in released for value in row} == {"0.99"}


def test_regions_of_enums(database: Database) -> None:
    """Intervals in the order of the type; values with quotes, hyphens and commas."""
    database.sql("""CREATE TYPE size AS ENUM ('x-small', 'a "b"', 'm, l', 'NULL')""")
    sizes = ["x-small", 'a "b"', "m, l", "NULL"]
    rows = [(sizes[n % 4], n) for n in range(8)]
    table = database.create({"q": "size", "id": "INTEGER"}, rows)
    roles = {"q": "quasi-identifier", "id": "insensitive"}
    shown = [
        (2, ["x-small", '"a ""b"""', '"m, l"', '"NULL"']),
        (4, ['["x-small"-"a ""b"""]', '["m, l"-"NULL"]']),
    ]
    for k, labels in shown:
        released = database.release(table, roles, privacy=[{"model": "k-anonymity", "k": k}])
        assert list(dict.fromkeys(row[0] for row in released)) == labels
    database.insert(table, [(None, 8)])
    (label,) = {row[0] for row in database.release(table, roles, privacy=[{"model": "k-anonymity", "k": 9}])}
    assert label == '{NULL, "x-small"-"NULL"}'


def test_collations_that_take_different_texts_for_equal(database: Database) -> None:
    collation = "NOCASE"
    if database.engine == "postgres":
        collation = "ci"
        database.sql("CREATE COLLATION ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
    rows = [(n // 2, "aAbB"[n], n) for n in range(4)]
    table = database.create({"q": "INTEGER", "s": f'TEXT COLLATE "{collation}"', "id": "INTEGER"}, rows)
    roles = {"q": "quasi-identifier", "s": "sensitive", "id": "insensitive"}
    models = [{"model": "k-anonymity", "k": 2}, {"model": "distinct-l-diversity", "attribute": "s", "l": 2}]
    for privacy in ({}, {"privacy": models}):
        released = database.release(table, roles, **privacy)
        assert sorted(row[1:] for row in released) == sorted(row[1:] for row in rows)
    if database.engine == "postgres":
        assert database.sql(f"SELECT count(*) FROM {table}_r WHERE s = 'A'") == [(2,)]
    with pytest.raises(PolicyError, match="with this collation cannot be generalized"):
        anonymize(
            database.policy(table, {"q": "insensitive", "s": "quasi-identifier", "id": "insensitive"}), replace=True
        )


@pytest.mark.parametrize("show", ["bounds", "mean", "midpoint"])
@pytest.mark.parametrize("type_", ["DATE", "TIMESTAMP", "TIMESTAMPTZ"])
def test_shows_of_dates(database: Database, type_: str, show: str) -> None:
    days = [datetime.date(1969, 12, 30 + n % 2) for n in range(4)]
    table = database.create({"q": type_, "id": "INTEGER"}, [(day, n) for n, day in enumerate(days)])
    policy = database.policy(table, {"q": {"role": "quasi-identifier", "show": show}, "id": "insensitive"})
    if show == "bounds":
        assert anonymize(policy).published
    else:
        with pytest.raises(PolicyError, match=f"show: {show} needs numbers"):
            anonymize(policy)


def test_integers_beyond_signed_ones(tmp_path: Path) -> None:
    with open_database(duckdb_url(tmp_path / "test.duckdb")) as database:
        table = database.create({"q": "UHUGEINT", "p": "HUGEINT", "s": "UHUGEINT"}, [])
        for n in range(6):
            database.sql(f"INSERT INTO {table} VALUES ('{2**128 - 1 - n}', '{n - 2**127}', '{2**128 - 1 - n}')")
        released = database.release(table, {"q": "quasi-identifier", "p": "quasi-identifier", "s": "sensitive"})
    assert {row[0] for row in released} == {f"[{2**128 - 1 - n - 2}-{2**128 - 1 - n}]" for n in (0, 3)}
    assert sorted(row[2] for row in released) == [2**128 - 1 - n for n in reversed(range(6))]
