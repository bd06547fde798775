"""Odd names, extreme values, missing privileges, protection that can't be had: named errors, no traceback, no data."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from sqlanon.errors import AccessError, PolicyError, ProtectionError, SqlanonError
from tests.random_cases import many
from tests.run_support import Database, anonymize, duckdb_url, open_database, quoted

pytestmark = pytest.mark.either_engine

TABLE_NAMES = ["group", 'say "hi". {{ n }} {% if %}', "UPPER 100% %s :x $1", "n" * 62 + "m", "名前😀"]
NAMES = [
    "select",
    "group",
    'say "hi"',
    "a.b",
    "two  spaces ",
    "UPPER Case",
    "100%",
    "%s %(x)s",
    ":x :1 $1 ?",
    "{{ n }} {% if %}",
    "it's",
    "back\\slash",
    "-- /*",
    "n" * 59,  # with _min it has 63 bytes
    "ä" * 29 + "x",
    "名前😀",
    "n",
    "leaf",
    "q0",
    "p0",
    "value",
    "code",
    "region",
    "part",
]


# --- names


@pytest.mark.parametrize("name", TABLE_NAMES)
def test_names_of_tables(database: Database, name: str) -> None:
    table, release = quoted(name), quoted(name[:30] + "r")
    database.create({name: "INTEGER", name[:20] + "2": "INTEGER"}, [(n, n) for n in range(6)], name=table)
    policy = database.policy(
        table, {name: "quasi-identifier", name[:20] + "2": "insensitive"}, release={"table": release}
    )
    assert anonymize(policy).published
    assert anonymize(policy, replace=True).published
    assert database.columns(release)[0][0] == name
    assert database.sql(f"SELECT count(*) FROM {release}") == [(6,)]


@pytest.mark.parametrize("turn", range(3))
def test_names_of_columns(database: Database, turn: int) -> None:
    """Every name is that of a quasi-identifier, of a sensitive and of an insensitive column in turn."""
    kinds: list[Any] = [
        ("INTEGER", ("quasi-identifier", {"show": "bounds"}), lambda n: n),
        ("VARCHAR(5)", ("quasi-identifier", {"hierarchy": {"mask": "right"}}), lambda n: f"1{n:02}"),
        ("VARCHAR(5)", ("sensitive", {}), lambda n: "xy"[n % 2]),
        ("DECIMAL(5, 2)", ("insensitive", {}), lambda n: n),
    ]
    taken = [kinds[(place + turn) % len(kinds)] for place in range(len(NAMES))]
    columns = {name: kind[0] for name, kind in zip(NAMES, taken, strict=True)}
    roles = {name: {"role": kind[1][0], **kind[1][1]} for name, kind in zip(NAMES, taken, strict=True)}
    models = [
        {"model": "distinct-l-diversity", "attribute": name, "l": 2}
        for name, attribute in roles.items()
        if attribute["role"] == "sensitive"
    ]
    table = database.create(columns, [tuple(kind[2](n) for kind in taken) for n in range(8)])
    assert len(database.release(table, roles, privacy=models)) == 8
    released = [name for name, _ in database.columns(f"{table}_r")]
    bounds = [name for name, kind in zip(NAMES, taken, strict=True) if kind is kinds[0]]
    assert len(released) == len(NAMES) + len(bounds)
    assert {name for name in released if name in NAMES} == set(NAMES) - set(bounds)


def test_a_schema_with_an_odd_name(database: Database) -> None:
    database.sql('CREATE SCHEMA "Odd.schema 100%"')
    table = database.create({"q": "INTEGER"}, [(n,) for n in range(6)], name='"Odd.schema 100%"."T t"')
    policy = database.policy(table, {"q": "quasi-identifier"}, release={"table": '"Odd.schema 100%"."R r"'})
    assert anonymize(policy).as_json()["release"]["rows"] == 6


def test_columns_that_differ_only_in_case(postgres_url: str) -> None:
    with open_database(postgres_url) as database:
        columns = {"age": "INTEGER", "Age": "INTEGER", "AGE": "INTEGER", "aGe": "VARCHAR(3)"}
        table = database.create(columns, [(n, -n, n * 2, "x") for n in range(8)])
        roles = {"age": "quasi-identifier", "Age": "quasi-identifier", "AGE": "sensitive", "aGe": "insensitive"}
        assert len(database.release(table, roles)) == 8
        assert [name for name, _ in database.columns(f"{table}_r")] == list(columns)


def test_62_quasi_identifiers(database: Database) -> None:
    columns = {f"q{i}": "INTEGER" for i in range(62)}
    table = database.create(columns, [tuple((n * (i + 1)) % 13 for i in range(62)) for n in range(12)])
    assert len(database.release(table, dict.fromkeys(columns, "quasi-identifier"))) == 12


def test_more_quasi_identifiers_than_can_be_searched(database: Database) -> None:
    columns = {f"q{i}": "INTEGER" for i in range(63)}
    table = database.create(columns, [tuple(range(63))] * 3)
    with pytest.raises(PolicyError, match="63 quasi-identifiers"):
        anonymize(database.policy(table, dict.fromkeys(columns, "quasi-identifier")))


# --- values

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


# --- privileges


@pytest.fixture
def owned(postgres_url: str) -> Iterator[Database]:
    """The superuser's database, with a table of people."""
    with open_database(postgres_url) as database:
        database.create({"q": "INTEGER", "s": "VARCHAR(9)"}, [(n, "xy"[n % 2]) for n in range(9)], name="people")
        yield database


ROLES = {"q": "quasi-identifier", "s": "insensitive"}


def test_select_and_a_schema_of_ones_own_suffice(owned: Database, restricted_role: tuple[str, str]) -> None:
    role, url = restricted_role
    owned.sql(f"GRANT SELECT ON people TO {role}")
    owned.sql(f"CREATE SCHEMA own AUTHORIZATION {role}")
    with open_database(url) as database:
        policy = database.policy("people", ROLES, release={"table": "own.released"})
        assert anonymize(policy).published
        assert anonymize(policy, replace=True).published
        assert database.sql("SELECT count(*) FROM own.released") == [(9,)]
    made = {schema for (schema,) in owned.sql("SELECT schemaname FROM pg_tables WHERE tableowner = ?", [role])}
    assert {schema for schema in made if not schema.startswith("pg_temp")} == {"own"}  # sessions may be ending still


def test_no_privilege_is_an_access_error(owned: Database, restricted_role: tuple[str, str]) -> None:
    role, url = restricted_role
    owned.sql(f"CREATE SCHEMA own AUTHORIZATION {role}")
    with open_database(url) as database:
        with pytest.raises(AccessError, match="people"):
            anonymize(database.policy("people", ROLES, release={"table": "own.released"}))
        owned.sql(f"GRANT SELECT ON people TO {role}")
        with pytest.raises(AccessError, match='nor create tables in schema "public"'):
            anonymize(database.policy("people", ROLES, release={"table": "public.released"}))


def test_row_level_security_is_an_error(owned: Database, restricted_role: tuple[str, str]) -> None:
    role, url = restricted_role
    owned.sql(f"GRANT SELECT ON people TO {role}")
    owned.sql(f"CREATE SCHEMA own AUTHORIZATION {role}")
    owned.sql("ALTER TABLE people ENABLE ROW LEVEL SECURITY")
    owned.sql(f"CREATE POLICY few ON people TO {role} USING (q < 5)")
    with open_database(url) as database, pytest.raises(AccessError, match="security"):
        anonymize(database.policy("people", ROLES, release={"table": "own.released"}))


# --- protection that can't be had, and what errors say

SECRETS = [(n, f"secret{n % 2}", float(n % 2)) for n in range(6)]
SECRET_COLUMNS = {"q": "INTEGER", "s": "VARCHAR(9)", "f": "DOUBLE PRECISION"}
SECRET_ROLES = {"q": "quasi-identifier", "s": "sensitive", "f": "sensitive"}
UNATTAINABLE = [
    ({"model": "distinct-l-diversity", "attribute": "s", "l": 3}, "l: 2"),
    ({"model": "entropy-l-diversity", "attribute": "s", "l": 2.5}, "l: 2"),
    ({"model": "recursive-l-diversity", "attribute": "s", "c": 0.5, "l": 2}, "c: "),
    ({"model": "recursive-l-diversity", "attribute": "s", "c": 3, "l": 4}, "l"),
    ({"model": "variance-diversity", "attribute": "f", "v": 9.0}, "v: 0.25"),
]


def test_more_than_all_rows(database: Database) -> None:
    table = database.create(SECRET_COLUMNS, SECRETS)
    with pytest.raises(PolicyError, match=r"k is 7, but .* holds 6 rows"):
        anonymize(database.policy(table, SECRET_ROLES, privacy=[{"model": "k-anonymity", "k": 7}]))


@pytest.mark.parametrize(("model", "attainable"), UNATTAINABLE)
def test_models_that_no_release_can_meet(database: Database, model: dict[str, Any], attainable: str) -> None:
    table = database.create(SECRET_COLUMNS, SECRETS)
    with pytest.raises(ProtectionError, match="Attainable: ") as raised:
        anonymize(database.policy(table, SECRET_ROLES, privacy=[model, {"model": "k-anonymity", "k": 2}]))
    assert attainable in str(raised.value).partition("Attainable: ")[2]
    assert "k-anonymity" not in str(raised.value)
    _says_no_secret(raised.value)
    assert database.sql("SELECT status, error_class FROM sqlanon.runs") == [("refused", "ProtectionError")]
    assert database.leftovers() == []
    assert database.sql("SELECT count(*) FROM sqlanon.steps WHERE name = 'tree/scan/split_rows'") == [(0,)]


def _says_no_secret(error: BaseException) -> None:
    said = str(error) + "".join(getattr(error, "__notes__", []))
    assert "secret" not in said
    assert error.__cause__ is None
    assert error.__context__ is None or error.__suppress_context__


def test_errors_of_the_data_quote_no_value(database: Database) -> None:
    table = database.create({"q": "VARCHAR(20)", "s": "VARCHAR(20)"}, [("secret0", "1"), ("secret1", "x")] * 2)
    database.sql(f"CREATE VIEW bad AS SELECT CAST(q AS INTEGER) AS q, s FROM {table}")
    with pytest.raises(SqlanonError) as raised:
        anonymize(database.policy("bad", {"q": "quasi-identifier", "s": "sensitive"}))
    _says_no_secret(raised.value)
    mapped = {"role": "quasi-identifier", "hierarchy": {"mapping": {"secret0": "a"}}}
    with pytest.raises(PolicyError, match="lacks 1 of the distinct values") as raised:
        anonymize(database.policy(table, {"q": mapped, "s": "sensitive"}))
    _says_no_secret(raised.value)
    assert "secret" not in str(database.sql("SELECT error_message FROM sqlanon.runs"))


def test_a_database_that_is_gone(postgres_url: str) -> None:
    with open_database(postgres_url) as database:
        policy = database.policy("t", {"q": "quasi-identifier"})
    gone = policy.model_copy(
        update={"source": policy.source.model_copy(update={"url": postgres_url.replace("test_", "no_")})}
    )
    with pytest.raises(AccessError):
        anonymize(gone)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(postgres_url.replace("test_", "no_"))
