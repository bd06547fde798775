"""Whole runs: what a release keeps, where it may come from and go to, and what is recorded of it."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sqlanon.errors import ConflictError, PolicyError
from sqlanon.policy.loading import build_policy
from sqlanon.results.records import VERSION
from sqlanon.work.journal import Silent
from tests.people import PEOPLE, ROLES, ROWS
from tests.run_support import Database, anonymize, duckdb_url, run

pytestmark = pytest.mark.either_engine

# --- what goes, and what stays as it is

POSTGRES_KEPT = {
    "varchar(7)": ["'abc  '", "''"],
    "character(5)": ["'ab'", "'ab   '"],
    "numeric": ["1.0", "1.00", "1", "'NaN'", "1e40"],
    "double precision": ["'-0'", "'0'", "'NaN'", "'Infinity'", "1e-310"],
    "real": ["'-0'", "0.1"],
    "json": ["""'{"b":1, "a": [1.0]}'""", """'{"b": 1, "a": [1.0]}'"""],
    "jsonb": ["""'{"b":1}'"""],
    "integer[]": ["'{1,NULL,2}'", "'{}'"],
    "mood": ["'ok'", "'sad'"],
    "uuid": ["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"],
    "timestamp with time zone": ["'1950-01-01 12:00:00.5+03'", "'infinity'"],
    "bytea": [r"'\x00ff'"],
    "interval": ["'1 month'", "'30 days'"],
    "point": ["'(1,2)'"],
    "smallint": ["-32768", "32767"],
    "bigint": ["-9223372036854775808", "9223372036854775807", "0"],
    "text": ["repeat('x', 1000000)", "'😀 a''b\nc'"],
    "boolean": ["true"],
    "time with time zone": ["'12:00+01'", "'11:00+00'"],
}
DUCKDB_KEPT = {
    "VARCHAR": ["'abc  '", "''", "repeat('x', 1000000)", "'😀 a''b\nc'"],
    "DECIMAL(9,3)": ["1.0", "-0.001"],
    "DOUBLE": ["'-0.0'", "0", "'nan'", "'inf'", "1e-310"],
    "FLOAT": ["'-0.0'", "0.1"],
    "JSON": ["""'{"b":1, "a": [1.0]}'""", """'{"b": 1, "a": [1.0]}'"""],
    "INTEGER[]": ["[1, NULL, 2]", "[]"],
    "STRUCT(a INTEGER, b VARCHAR)": ["{'a': 1, 'b': 'x'}"],
    "ENUM('sad', 'ok')": ["'ok'", "'sad'"],
    "UUID": ["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"],
    "TIMESTAMP WITH TIME ZONE": ["'1950-01-01 12:00:00.5+03'", "'infinity'"],
    "TIMESTAMP_NS": ["'1950-01-01 12:00:00.123456789'"],
    "BLOB": [r"'\x00\xff'"],
    "INTERVAL": ["INTERVAL 1 MONTH", "INTERVAL 30 DAY"],
    "BIGINT": ["-9223372036854775808", "9223372036854775807", "0"],
    "HUGEINT": ["-170141183460469231731687303715884105728", "170141183460469231731687303715884105727"],
    "UBIGINT": ["18446744073709551615", "18446744073709551614"],
    "TIME": ["'12:00:00.5'"],
    "BIT": ["'0101'"],
    "MAP(INTEGER, VARCHAR)": ["MAP {1: 'a'}"],
}


@pytest.mark.parametrize("role", ["insensitive", "sensitive"])
def test_kept_columns_stay_as_they_are(database: Database, role: str) -> None:
    kept = POSTGRES_KEPT if database.engine == "postgres" else DUCKDB_KEPT
    if database.engine == "postgres":
        database.sql("CREATE TYPE mood AS ENUM ('sad', 'ok')")
    columns = {f"c{i}": type_ for i, type_ in enumerate(kept)}
    table = database.create({"q": "INTEGER", **columns, "id": "INTEGER"}, [])
    for number in range(6):
        cells = (values[number] if number < len(values) else "NULL" for values in kept.values())
        database.sql(f"INSERT INTO {table} VALUES ({number}, {', '.join(cells)}, {number})")
    judged = [{"model": "distinct-l-diversity", "attribute": name, "l": 1} for name in columns if role == "sensitive"]
    privacy = [{"model": "k-anonymity", "k": 2}, *judged]
    roles = {"q": "quasi-identifier", **dict.fromkeys(columns, role), "id": "insensitive"}
    anonymize(database.policy(table, roles, privacy=privacy))
    assert database.columns(f"{table}_r")[1:] == database.columns(table)[1:]
    exact = ", ".join(f"CAST({name} AS VARCHAR)" for name in columns)
    queries = (f"SELECT {exact}, id FROM {name} ORDER BY id" for name in (table, f"{table}_r"))
    source, released = (database.sql(query) for query in queries)
    assert released == source


def test_identifiers_are_gone_and_nothing_else(database: Database) -> None:
    released = database.release(database.create(PEOPLE, ROWS), ROLES)
    assert released == [
        ("NULL", "sales", "flu", 3),
        ("[20-25]", "clerk", "burn", 2),
    ] or sorted(row[-1] for row in released) == [1, 2, 3, 4, 5, 6]
    assert "123-45" not in str(released)
    assert {row[-1]: row[-2] for row in released} == {row[-1]: row[-2] for row in ROWS}


def test_a_source_by_another_url_is_not_overwritten(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = database.create(PEOPLE, ROWS)
    url = f"{database.url}&application_name=other" if "?" in database.url else f"{database.url}?application_name=other"
    if database.engine == "duckdb":
        monkeypatch.chdir(tmp_path)
        url = "duckdb:///" + Path(database.url).name
    with pytest.raises(PolicyError, match="would overwrite its source"):
        anonymize(database.policy(table, ROLES, release={"url": url, "table": table}), replace=True)
    assert len(database.sql(f"SELECT ssn FROM {table}")) == 6


# --- what is recorded, and what is left


def test_the_steps_in_the_database_of_the_release_are_recorded(database: Database, tmp_path: Path) -> None:
    release = {"url": duckdb_url(tmp_path / "other.duckdb"), "table": "r"}
    anonymize(database.policy(database.create(PEOPLE, ROWS), ROLES, release=release))
    done = set(database.sql("SELECT phase, name FROM sqlanon.steps"))
    assert {("verify", "verification/measure_classes"), ("publish", "work/publish/rename_table")} <= done


@pytest.mark.parametrize("type_", ["VARCHAR(3)", "DATE"])
def test_the_loss_of_a_class_that_holds_everything_is_all(database: Database, type_: str) -> None:
    values = ["2024-01-01", "2024-01-02", None] if type_ == "DATE" else ["a", "b", None]
    table = database.create({"q": type_}, [(value,) for value in values])
    outcome = anonymize(database.policy(table, {"q": "quasi-identifier"}, privacy=[{"model": "k-anonymity", "k": 3}]))
    assert outcome.metrics.gcp == 1.0


def test_the_record_of_a_run(database: Database) -> None:
    outcome = anonymize(database.policy(database.create(PEOPLE, ROWS), ROLES))
    assert database.leftovers() == []
    ((status, rows, result),) = database.sql("SELECT status, source_rows, result FROM sqlanon.runs")
    assert (status, rows) == ("published", 6)
    printed = outcome.as_json()
    recorded = json.loads(result)
    assert (recorded.pop("version"), recorded["algorithm"].pop("kind")) == (VERSION, "tree")
    assert recorded == json.loads(json.dumps(printed))
    assert (printed["verified"], printed["published"]) == (True, True)
    assert (printed["release"]["rows"], printed["release"]["suppressed"]) == (6, 0)
    assert set(printed["seconds"]) == {"plan", "encode", "search", "recode", "verify", "publish", "total"}
    ((relation, kind, released, classes),) = database.sql(
        "SELECT relation, kind, row_count, classes FROM sqlanon.releases"
    )
    assert (kind, released, classes) == ("regions", 6, printed["release"]["classes"])
    assert relation == printed["release"]["table"]
    phases = [p for (p,) in database.sql("SELECT DISTINCT phase FROM sqlanon.steps")]
    assert set(phases) == {"plan", "encode", "search", "recode", "verify", "publish"}
    steps = database.sql("SELECT number FROM sqlanon.steps ORDER BY number")
    assert steps == [(i,) for i in range(len(steps))]


def test_replacing_keeps_views_and_grants(database: Database) -> None:
    table = database.create(PEOPLE, ROWS)
    policy = database.policy(table, ROLES)
    anonymize(policy)
    database.sql(f"CREATE VIEW seen AS SELECT count(*) AS n FROM {table}_r")
    if database.engine == "postgres":
        database.sql(f"GRANT SELECT ON {table}_r TO PUBLIC")
    with pytest.raises(PolicyError, match="replace"):
        anonymize(policy)
    database.insert(table, [("123-45-6795", 33, "clerk", "flu", 7)])
    anonymize(policy, replace=True)
    assert database.sql("SELECT n FROM seen") == [(7,)]
    if database.engine == "postgres":
        assert database.sql(f"SELECT has_table_privilege('pg_monitor', '{table}_r', 'SELECT')") == [(True,)]


def test_two_sensitive_attributes_with_models_of_their_own(database: Database) -> None:
    rows = [(n % 20, "ab"[n % 2], n % 5 * 10) for n in range(60)]
    table = database.create({"q": "INTEGER", "a": "VARCHAR(1)", "b": "INTEGER"}, rows)
    models = [
        {"model": "distinct-l-diversity", "attribute": "a", "l": 2},
        {"model": "t-closeness", "attribute": "b", "distance": "ordered", "t": 0.3},
    ]
    outcome = anonymize(
        database.policy(table, {"q": "quasi-identifier", "a": "sensitive", "b": "sensitive"}, privacy=models)
    )
    printed = outcome.as_json()
    assert [model["satisfied"] for model in printed["models"]] == [True, True]
    assert printed["release"]["classes"] > 1
    classes = database.sql(f"SELECT count(DISTINCT a), count(*) FROM {table}_r GROUP BY q")
    assert all(distinct == 2 for distinct, _ in classes)


def test_equal_numbers_that_look_different_are_one_sensitive_value(database: Database) -> None:
    """They stay as they are, but they protect nobody from being found out."""
    rows = [(1, -0.0, "1.0", 1), (1, 0.0, "1.00", 2), (2, 0.0, "1.0", 3), (2, 5.0, "2", 4)] * 2
    table = database.create({"q": "INTEGER", "f": "DOUBLE PRECISION", "n": "DECIMAL(9, 2)", "id": "INTEGER"}, [])
    if database.engine == "postgres":
        database.sql(f"ALTER TABLE {table} ALTER n TYPE NUMERIC")
    database.insert(table, rows)
    models = [{"model": "distinct-l-diversity", "attribute": name, "l": 2} for name in ("f", "n")]
    roles = {"q": "quasi-identifier", "f": "sensitive", "n": "sensitive", "id": "insensitive"}
    released = database.release(table, roles, privacy=models)
    assert {row[0] for row in released} == {"[1-2]"}
    assert sorted(map(str, (row[1] for row in released))) == ["-0.0"] * 2 + ["0.0"] * 4 + ["5.0"] * 2


def test_hierarchical_closeness_of_numbers(database: Database) -> None:
    rows = [(n, Decimal(n % 4)) for n in range(12)]
    table = database.create({"q": "INTEGER", "n": "DECIMAL(9, 1)"}, rows)
    roles = {"q": "quasi-identifier", "n": {"role": "sensitive", "hierarchy": {"intervals": [2]}}}
    model = {"model": "t-closeness", "attribute": "n", "distance": "hierarchical", "t": 0.3}
    outcome = anonymize(database.policy(table, roles, privacy=[model]))
    assert outcome.as_json()["models"][0]["satisfied"]
    assert outcome.as_json()["release"]["classes"] > 1


# --- tables with nothing to choose

QUASI = {"q": "quasi-identifier", "p": "quasi-identifier", "id": "insensitive"}
COLUMNS = {"q": "INTEGER", "p": "VARCHAR(5)", "id": "INTEGER"}
UNIFORM = {
    "all equal": ([(7, "x", i) for i in range(5)], 3, {("7", "x")}),
    "all distinct": ([(i, "abcde"[i], i) for i in range(5)], 5, {("[0-4]", "{a, b, c, d, e}")}),
    "one row": ([(7, "x", 1)], 1, {("7", "x")}),
    "all NULL": ([(None, None, i) for i in range(5)], 3, {("NULL", "NULL")}),
}


@pytest.mark.parametrize("name", UNIFORM)
def test_tables_that_make_one_class(database: Database, name: str) -> None:
    rows, k, regions = UNIFORM[name]
    table = database.create(COLUMNS, rows)
    released = database.release(table, QUASI, privacy=[{"model": "k-anonymity", "k": k}], suppression=0.2)
    assert {row[:2] for row in released} == regions
    assert [row[2] for row in released] == [row[2] for row in rows]


def test_distinct_rows_at_k_1_are_released_as_they_are(database: Database) -> None:
    table = database.create(COLUMNS, [(3, "b", 1), (1, "a", 2), (2, None, 3)])
    released = database.release(table, QUASI, privacy=[{"model": "k-anonymity", "k": 1}])
    assert released == [("1", "a", 2), ("2", "NULL", 3), ("3", "b", 1)]


def test_an_empty_table_is_refused_before_any_work(database: Database) -> None:
    table = database.create(COLUMNS, [])
    with pytest.raises(PolicyError, match="holds no rows"):
        anonymize(database.policy(table, QUASI))
    assert database.sql("SELECT DISTINCT phase FROM sqlanon.steps") == [("plan",)]


def test_problems_name_a_file_as_its_policy_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty.csv").write_text("q\n")
    policy = build_policy(
        {
            "source": {"file": "empty.csv"},
            "release": {"file": "out.csv"},
            "attributes": {"q": {"role": "quasi-identifier"}},
            "privacy": [{"model": "k-anonymity", "k": 2}],
        }
    )
    with pytest.raises(PolicyError, match=r"^empty\.csv holds no rows"):
        anonymize(policy)


class _Meanwhile(Silent):
    """Somebody else's statement, once the run has planned and before it reads the rows."""

    def __init__(self, database: Database, statement: str) -> None:
        self.database = database
        self.statement = statement

    def phase(self, name: str) -> None:
        if name == "encode":
            self.database.sql(self.statement)


@pytest.mark.parametrize("column", ["age", "id"])
def test_nulls_that_come_after_planning_are_refused(database: Database, column: str) -> None:
    table = database.create({"age": "INTEGER", "id": "INTEGER"}, [(n % 3, n) for n in range(12)])
    roles = {"age": {"role": "quasi-identifier", "nulls": "refuse"}, "id": {"role": "insensitive", "nulls": "refuse"}}
    nulled = _Meanwhile(database, f"UPDATE {table} SET {column} = NULL WHERE id = 3")
    with pytest.raises(ConflictError, match="got NULLs that the policy refuses"):
        anonymize(database.policy(table, roles), observer=nulled)
    assert database.leftovers() == []
    assert not database.sql("SELECT 1 FROM information_schema.tables WHERE table_name = ?", [f"{table}_r"])


def test_every_hierarchy_copes_with_columns_of_null(database: Database) -> None:
    hierarchies: list[tuple[str, Any]] = [
        ("INTEGER", {"intervals": [5]}),
        ("VARCHAR(5)", {"mask": "left"}),
        ("DATE", {"date": ["month"]}),
        ("VARCHAR(5)", {"mapping": {"a": "b"}}),
        ("VARCHAR(5)", "suppress"),
    ]
    columns = {f"q{i}": type_ for i, (type_, _) in enumerate(hierarchies)}
    roles = {f"q{i}": {"role": "quasi-identifier", "hierarchy": h} for i, (_, h) in enumerate(hierarchies)}
    table = database.create(columns, [(None,) * len(columns)] * 3)
    assert database.release(table, roles) == [("NULL",) * len(columns)] * 3


class _TouchWhileCoding(Silent):
    """Rewrites the source file once the run has begun to read it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def phase(self, name: str) -> None:
        if name == "encode":
            self.path.write_text(self.path.read_text() + "99,flu\n")


def test_a_source_file_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "patients.csv"
    source.write_text("age,disease\n" + "".join(f"{20 + i % 40},flu\n" for i in range(200)))
    policy = build_policy(
        {
            "source": {"file": str(source)},
            "release": {"file": str(tmp_path / "released.csv")},
            "attributes": {"age": {"role": "quasi-identifier"}, "disease": {"role": "sensitive"}},
            "privacy": [{"model": "k-anonymity", "k": 5}],
        }
    )
    with pytest.raises(ConflictError, match=r"patients\.csv changed"):
        run(policy, observer=_TouchWhileCoding(source))
    assert not (tmp_path / "released.csv").exists()


def test_how_many_values_there_were(database: Database) -> None:
    """Few codes have bits of their own, more are counted one by one, and those of a wide range aren't counted."""
    columns = dict.fromkeys(("none", "few", "more", "wide"), "INTEGER") | {"cents": "DOUBLE PRECISION", "t": "TEXT"}
    rows = [(None, n % 62 if n else None, n % 63, n * 100_000, n % 40 / 100, "ab"[n % 2]) for n in range(130)]
    table = database.create(columns, rows)
    roles = dict.fromkeys(columns, "quasi-identifier")
    outcome = anonymize(database.policy(table, roles, privacy=[{"model": "k-anonymity", "k": 5}]))
    found = {one.name: one.values for one in (outcome.quasi_identifiers or ())}
    assert found == {"none": 0, "few": 62, "more": 63, "wide": None, "cents": 40, "t": 2}
