"""Tables without quasi-identifiers: every row as it is, with identifiers masked or left out."""

from __future__ import annotations

import csv
import datetime
import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from markupsafe import Markup

from sqlanon.engines.spark.dialect import SparkSQL
from sqlanon.errors import PolicyError, VerificationError
from sqlanon.methods.masking.verify import check_masked
from sqlanon.policy import Recodes
from sqlanon.policy.loading import build_policy, parse_stored
from sqlanon.policy.writer import policy_text
from sqlanon.runs.sources import run
from sqlanon.sql import Statement
from tests.cli.support import call_main
from tests.masking_support import mask, masked, masking_data, masking_policy
from tests.run_support import Database, open_database

KEY = "a key of more than sixteen bytes"
NAMED = {"role": "identifier", "show": "pseudonym", "key": "${SQLANON_TEST_KEY}"}
COLUMNS = {
    'Wa"rd né': "VARCHAR(20)",
    "beds": "INTEGER",
    "cost": "DECIMAL(9,2)",
    "load": "DOUBLE PRECISION",
    "since": "DATE",
    "seen": "TIMESTAMP WITH TIME ZONE",
    "open": "BOOLEAN",
    "boss": "VARCHAR(9)",
}
_MOMENT = datetime.datetime(2024, 3, 31, 1, 30, tzinfo=datetime.UTC)
ROWS: list[tuple[Any, ...]] = [
    ("north", 7, Decimal("1.50"), 0.1, datetime.date(2024, 2, 29), _MOMENT, True, "ann"),
    ("", None, None, -0.0, None, None, None, "bob"),
    ("", 0, Decimal("-0.25"), 0.0, datetime.date(1, 1, 1), _MOMENT, False, None),
    ("Ünïcode 😀", 7, Decimal("0.00"), float("inf"), datetime.date(9999, 12, 31), None, True, "ann"),
    (None, 7, Decimal("1.50"), None, datetime.date(2024, 2, 29), _MOMENT, True, "it's"),
    (None, 7, Decimal("1.50"), None, datetime.date(2024, 2, 29), _MOMENT, True, "it's"),
]
KEPT: dict[str, Any] = dict.fromkeys(COLUMNS, "insensitive")
MASKED = KEPT | {"boss": "identifier", "cost": "sensitive", "open": "omit"}


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQLANON_TEST_KEY", KEY)


def comparable(row: tuple[Any, ...]) -> str:
    """A row with moments in UTC, and zeros of both signs told apart."""
    return repr([one.astimezone(datetime.UTC) if isinstance(one, datetime.datetime) else one for one in row])


def test_kept_columns_hold_the_rows_of_the_source(database: Database) -> None:
    table = database.create(COLUMNS, ROWS)
    rows = masked(database, table, MASKED)
    assert Counter(map(comparable, rows)) == Counter(comparable(row[:-2]) for row in ROWS)
    types = dict(database.columns(table))
    assert database.columns(f"{table}_r") == [(name, types[name]) for name in COLUMNS if name not in ("open", "boss")]
    assert database.leftovers() == []


def test_nothing_is_left_of_the_order_of_the_source(database: Database) -> None:
    stored = [masked(database, database.create(COLUMNS, rows), KEPT) for rows in (ROWS, ROWS[::-1])]
    assert list(map(comparable, stored[0])) == list(map(comparable, stored[1]))


def test_both_engines_release_rows_in_one_order_and_digest(databases: tuple[Database, Database]) -> None:
    released = []
    for database in databases:
        table = database.create(COLUMNS, ROWS, "wards")
        result = mask(masking_policy(database, table, KEPT | {"boss": NAMED}, digest="run"))
        released.append((result.digest, list(map(comparable, database.sql("SELECT * FROM wards_r")))))
    assert released[0] == released[1]


def test_a_table_without_rows_is_released(database: Database) -> None:
    assert masked(database, database.create(COLUMNS, []), MASKED) == []


def test_other_types_are_kept(database: Database) -> None:
    types = {"duckdb": ("INTEGER[]", "JSON"), "postgres": ("INTEGER[]", "JSONB")}[database.engine]
    table = database.create({"a": types[0], "j": types[1]}, [([2, 1], '{"k": 1}'), (None, None), ([], "[]")])
    rows = masked(database, table, {"a": "insensitive", "j": "insensitive"})
    assert Counter(map(repr, rows)) == Counter(map(repr, database.sql(f"SELECT * FROM {table}")))


def test_pseudonyms_are_those_of_releases_of_classes(database: Database) -> None:
    from tests.test_pseudonyms import keyed

    table = database.create({"who": "VARCHAR(9)", "n": "INTEGER"}, [("ann", 1), ("bob", 2), ("ann", 3), (None, 4)])
    rows = masked(database, table, {"who": NAMED, "n": "insensitive"})
    assert {n: who for who, n in rows} == {1: keyed("ann"), 2: keyed("bob"), 3: keyed("ann"), 4: None}


def test_a_table_of_identifiers_alone_is_released(database: Database) -> None:
    table = database.create({"who": "VARCHAR(9)"}, [("ann",), ("bob",), ("ann",)])
    rows = masked(database, table, {"who": {"role": "identifier", "show": "surrogate"}})
    assert sorted(Counter(rows).values()) == [1, 2]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_releases_may_be_files_and_are_verified(
    database: Database, tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table = database.create(COLUMNS, ROWS)
    file = tmp_path / f"wards.{suffix}"
    data = masking_data(database, table, MASKED, release={"file": str(file)}, catalog={"url": database.url})
    (policy := tmp_path / "policy.yml").write_text(json.dumps(data))
    code, told, said = call_main(capsys, "run", policy, "--json")
    assert code == 0, said
    page = tmp_path / "page.html"
    assert call_main(capsys, "report", json.loads(told)["run"], "--policy", policy, "-o", page)[0] == 0
    assert f"wards.{suffix}" in page.read_text()
    with open_database(f"duckdb:///{tmp_path / 'read.duckdb'}") as reader:
        assert reader.sql(f"SELECT count(*), count(beds), sum(cost) FROM '{file}'") == [(6, 5, Decimal("4.25"))]
    code, told, said = call_main(capsys, "verify", policy)
    assert (code, "passed" in told) == (0, True), said
    file.write_bytes(file.read_bytes().replace(b"north", b"south"))
    assert call_main(capsys, "verify", policy)[0] == 3


def test_a_file_is_copied_to_a_table_of_another_engine(tmp_path: Path, postgres_url: str) -> None:
    with (tmp_path / "wards.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("ward", "beds"), ("north", 7), ("süd", ""), ("a,b", 3)])
    data = {
        "source": {"file": str(tmp_path / "wards.csv")},
        "release": {"url": postgres_url, "table": "wards"},
        "attributes": {"ward": {"role": "insensitive"}, "beds": {"role": "insensitive"}},
        "algorithm": {"name": "masking"},
    }
    mask(build_policy(data))
    with open_database(postgres_url) as target:
        assert Counter(target.sql("SELECT * FROM wards")) == Counter([("north", 7), ("süd", None), ("a,b", 3)])


def test_text_is_written_to_parquet_where_the_policy_asks_for_it(database: Database, tmp_path: Path) -> None:
    table = database.create({"cost": "DECIMAL(9,2)", "n": "INTEGER"}, [(Decimal("1.50"), 1), (None, 2)])
    file = tmp_path / "r.parquet"
    roles = {"cost": {"role": "insensitive", "as": "text"}, "n": "insensitive"}
    where = {"release": {"file": str(file)}, "catalog": {"url": database.url}}
    mask(masking_policy(database, table, roles, **where))
    with open_database(f"duckdb:///{tmp_path / 'read.duckdb'}") as reader:
        assert Counter(reader.sql(f"SELECT cost, n FROM '{file}'")) == Counter([("1.50", 1), (None, 2)])


@pytest.mark.parametrize("layout", ["view", "quoted"])
def test_sources_may_be_views_and_have_odd_names(database: Database, layout: str) -> None:
    name = {"view": "seen", "quoted": '"A ""b"" é"'}[layout]
    table = database.create({"n": "INTEGER"}, [(1,), (2,)], None if layout == "view" else name)
    if layout == "view":
        database.sql(f"CREATE VIEW seen AS SELECT n FROM {table} WHERE n > 1")
    mask(masking_policy(database, name, {"n": "insensitive"}, release={"table": "odd_r"}))
    assert len(database.sql("SELECT * FROM odd_r")) == (1 if layout == "view" else 2)


def test_a_release_is_replaced_where_that_is_allowed_alone(database: Database) -> None:
    table = database.create({"n": "INTEGER"}, [(1,)])
    policy = masking_policy(database, table, {"n": "insensitive"})
    mask(policy)
    database.sql(f"INSERT INTO {table} VALUES (2)")
    with pytest.raises(PolicyError, match="--replace"):
        mask(policy)
    assert database.sql(f"SELECT n FROM {table}_r") == [(1,)]
    mask(policy, replace=True)
    assert sorted(database.sql(f"SELECT n FROM {table}_r")) == [(1,), (2,)]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a quasi-identifier": ({"attributes": {"beds": {"role": "quasi-identifier"}}}, "would be released as it is"),
    "a model": ({"privacy": [{"model": "k-anonymity", "k": 2}]}, "privacy: masking makes no classes for models"),
    "suppression": ({"suppression": 0.1}, "suppression: masking does not use it"),
    "a subject": ({"subject": "none"}, "subject: masking does not use it"),
    "a history": ({"history": {"mode": "watch"}}, "history: masking does not use it"),
    "a star": ({"release": {"table": "r", "layout": "star"}}, "layout: star is for releases of classes"),
    "nothing released": ({"attributes": {"beds": {"role": "omit"}}}, "every column is left out"),
    "a domain": (
        {"attributes": {"beds": {"role": "insensitive", "values": ["a", "b"]}}},
        "masking does not use values",
    ),
    "another algorithm without models": ({"algorithm": {"name": "mondrian"}}, "privacy is missing"),
    "no algorithm and no model": ({"algorithm": None}, "privacy is missing"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_sense_is_refused_by_name(case: str) -> None:
    more, message = REFUSED[case]
    data = {
        "source": {"url": "duckdb:///x.duckdb", "table": "t"},
        "release": {"table": "r"},
        "attributes": {"beds": {"role": "insensitive"}},
        "algorithm": {"name": "masking"},
    } | more
    with pytest.raises(PolicyError, match=message):
        build_policy({key: value for key, value in data.items() if value is not None})


def test_policies_without_models_are_stored_and_read_again() -> None:
    data = {
        "source": {"url": "duckdb:///x.duckdb", "table": "t"},
        "release": {"table": "r"},
        "attributes": {"beds": {"role": "insensitive"}},
        "algorithm": {"name": "masking"},
    }
    policy = build_policy(data)
    assert parse_stored(policy_text(policy)) == policy


def test_columns_and_null_that_the_policy_refuses_are_told_before_work(database: Database) -> None:
    table = database.create({"a": "INTEGER", "b": "INTEGER"}, [(1, None)])
    roles = {"a": "insensitive", "c": "insensitive"}
    with pytest.raises(PolicyError, match="no such column") as error:
        masked(database, table, roles)
    assert "without a role: 'b'" in str(error.value)
    with pytest.raises(PolicyError, match="NULL, which the policy refuses"):
        masked(database, table, {"a": "insensitive", "b": {"role": "insensitive", "nulls": "refuse"}})


TAMPERED = {
    "a kept value": ("UPDATE {rows} SET n = 9 WHERE n = 1", "values_equal"),
    "values exchanged": ("UPDATE {rows} SET m = CASE m WHEN 1 THEN 2 WHEN 2 THEN 1 ELSE m END", "values_equal"),
    "a row too few": ("DELETE FROM {rows} WHERE n = 1", "rows_equal"),
    "pseudonyms of other rows": (
        "UPDATE {rows} SET who = CASE n WHEN 1 THEN (SELECT max(who) FROM {rows} WHERE n = 2)"
        " WHEN 2 THEN (SELECT max(who) FROM {rows} WHERE n = 1) ELSE who END WHERE n IN (1, 2)",
        "pseudonyms_of_rows",
    ),
    "an identifier": ("UPDATE {rows} SET who = 'bob' WHERE n = 2", "pseudonyms_distinct"),
    "a column": ("ALTER TABLE {rows} ADD COLUMN x INTEGER", "columns_equal"),
}


@pytest.mark.parametrize("case", TAMPERED)
def test_nothing_is_published_that_was_tampered_with(
    database: Database, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    statement, check = TAMPERED[case]
    columns = {"who": "VARCHAR(9)", "n": "INTEGER", "m": "INTEGER"}
    table = database.create(columns, [("ann", 1, 1), ("bob", 2, 2), ("ann", 3, 3), ("cy", 4, 4)])

    def tampered(engine: Any, workspace: Any, plan: Any, figures: Any, staged: Any, shifts: Any) -> Any:
        engine.execute(Statement("tamper", Markup(statement.format(rows=staged.final))))
        return check_masked(engine, workspace, plan, figures, staged, shifts)

    monkeypatch.setattr("sqlanon.methods.masking.source.check_masked", tampered)
    with pytest.raises(VerificationError, match=check):
        masked(database, table, {"who": NAMED, "n": "insensitive", "m": "insensitive"})
    assert database.sql("SELECT 1 FROM information_schema.tables WHERE table_name = ?", [f"{table}_r"]) == []
    assert database.leftovers() == []


def test_commands_know_the_policy(database: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = database.create(COLUMNS, ROWS)
    (policy := tmp_path / "policy.yml").write_text(json.dumps(masking_data(database, table, MASKED)))
    code, told, said = call_main(capsys, "check", policy)
    assert (code, "Left out: 'open', 'boss'" in told or "Left out: 'boss', 'open'" in told) == (0, True), said
    assert "sensitive, and released as it is" in told
    code, told, said = call_main(capsys, "run", policy, "--dry-run")
    assert (code, "methods/masking/stage_rows" in told) == (0, True), said
    assert database.sql("SELECT 1 FROM information_schema.tables WHERE table_name = ?", [f"{table}_r"]) == []
    code, told, said = call_main(capsys, "run", policy, "--json")
    made = json.loads(told)
    assert {one["name"]: one["shown"] for one in made["columns"]}["cost"] == "kept"
    assert (made["rows"], sorted(made["omitted"]), made["published"]) == (6, ["boss", "open"], True)
    assert call_main(capsys, "run", policy)[0] == 2
    assert call_main(capsys, "verify", policy)[0] == 0
    page = tmp_path / "page.html"
    code, _, said = call_main(capsys, "report", made["run"], "--policy", policy, "-o", page)
    assert code == 0, said
    assert "left out" in page.read_text()
    for refused in (("utility", policy, "--target", "beds"), ("run", policy, "--levels", "beds=1")):
        code, _, said = call_main(capsys, *refused)
        assert (code, "masking" in said) == (2, True), said
    database.sql(f"UPDATE {table}_r SET beds = 8 WHERE beds = 7")
    assert call_main(capsys, "verify", policy)[0] == 3


def test_a_later_release_of_the_source_is_told(database: Database) -> None:
    table = database.create(COLUMNS, ROWS)
    policy = masking_policy(database, table, KEPT)
    first = mask(policy)
    warnings = " ".join(mask(policy, replace=True).warnings)
    assert "can be joined by what they have in common" in warnings
    assert first.run in warnings


def test_spark_refuses_it_by_name() -> None:
    assert "DuckDB or PostgreSQL" in SparkSQL.carries_out(Recodes.ROWS).lacking


def test_runs_of_other_engines_options_are_refused(database: Database) -> None:
    table = database.create(COLUMNS, ROWS)
    with pytest.raises(PolicyError, match="masking"):
        run(masking_policy(database, table, KEPT), levels={"beds": 1})
