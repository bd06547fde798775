"""A published release that was altered, in whatever way, is found by `verify` with its policy and source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

from sqlanon.catalog import Catalog
from sqlanon.encoding import coded_table
from sqlanon.engines import connect
from sqlanon.policy import Policy
from sqlanon.report.release_audit.auditing import Audit, audit_classes
from sqlanon.runs.applying import apply_rules
from sqlanon.runs.stored import Application
from tests.run_support import OPTIONS, Database, anonymize, duckdb_url, open_database

JOBS = {"nurse": ["health", "*"], "doctor": ["health", "*"], "smith": ["craft", "*"], "baker": ["craft", "*"]}
COLUMNS = {
    "id": "INTEGER",
    "age": "INTEGER",
    "zip": "VARCHAR(9)",
    "job": "VARCHAR(9)",
    "disease": "VARCHAR(9)",
    "ward": "INTEGER",
}
ROWS = [
    (n, 20 + n * 7 % 40, f"1{n % 3}{n * 5 % 7}", list(JOBS)[n % 4], ["flu", "cold", "hiv"][n // 3 % 3], n % 5)
    for n in range(60)
] + [(100, 99, "999", "baker", "flu", 1), (101, 98, "998", "smith", "cold", 2), (102, 97, "997", "smith", "hiv", 3)]
ATTRIBUTES: dict[str, Any] = {
    "id": "identifier",
    "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [10, 20]}},
    "zip": {"role": "quasi-identifier", "hierarchy": {"mask": "right", "length": 3}},
    "job": {"role": "quasi-identifier", "hierarchy": {"mapping": JOBS}},
    "disease": "sensitive",
    "ward": "insensitive",
}
PLAIN = ATTRIBUTES | {"age": "quasi-identifier"}
KINDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "tree": (PLAIN, {"algorithm": {"name": "mondrian"}}),
    "lattice": (ATTRIBUTES, {"algorithm": {"name": "optimal"}, "suppression": 0.05}),
    "starred": (ATTRIBUTES, {"algorithm": {"name": "optimal"}, "suppression": 0.05, "suppressed": "star"}),
}
ANY = "(SELECT min(disease || '/' || age || '/' || zip || '/' || job) FROM {r} WHERE age <> '*')"
FIRST = f"disease || '/' || age || '/' || zip || '/' || job = {ANY}"
ONE_CLASS = "age || '/' || zip || '/' || job = (SELECT min(age || '/' || zip || '/' || job) FROM {r} WHERE age <> '*')"
ALTERATIONS: dict[str, tuple[str, ...]] = {
    "a raw identifier is added": (
        "ALTER TABLE {r} ADD COLUMN id INTEGER",
        "UPDATE {r} SET id = (SELECT min(s.id) FROM {t} AS s WHERE s.ward = {r}.ward AND s.disease = {r}.disease)",
    ),
    "a raw quasi-identifier is added": (
        "ALTER TABLE {r} ADD COLUMN raw_age INTEGER",
        "UPDATE {r} SET raw_age = (SELECT min(s.age) FROM {t} AS s WHERE s.ward = {r}.ward)",
    ),
    "a class shows a raw value": (
        f"UPDATE {{r}} SET zip = (SELECT min(s.zip) FROM {{t}} AS s WHERE s.zip <> '*') WHERE {ONE_CLASS}",
    ),
    "sensitive values are swapped between classes": (
        "CREATE TABLE {r}_x AS SELECT age, zip, job, row_number() OVER (ORDER BY age, zip, job, ward, disease) AS n"
        " FROM {r}",
        "CREATE TABLE {r}_y AS SELECT disease, ward, row_number() OVER (ORDER BY disease, ward, age, zip, job) AS n"
        " FROM {r}",
        "DELETE FROM {r}",
        "INSERT INTO {r} SELECT x.age, x.zip, x.job, y.disease, y.ward FROM {r}_x AS x JOIN {r}_y AS y ON y.n = x.n",
    ),
    "all labels are false": ("UPDATE {r} SET age = '1' || age, job = 'x' || job",),
    "labels of two groups are exchanged": (
        "UPDATE {r} SET job = CASE job WHEN 'health' THEN 'craft' WHEN 'craft' THEN 'health' WHEN 'smith' THEN 'nurse'"
        " WHEN 'nurse' THEN 'smith' WHEN 'doctor' THEN 'baker' WHEN 'baker' THEN 'doctor' ELSE 'nurse' END",
    ),
    "a row is added": (f"INSERT INTO {{r}} SELECT age, zip, job, disease, ward FROM {{r}} WHERE {FIRST}",),
    "rows are removed": (f"DELETE FROM {{r}} WHERE {FIRST}",),
    "all rows are doubled": ("INSERT INTO {r} SELECT * FROM {r}",),
    "a label is widened": (f"UPDATE {{r}} SET zip = '*' WHERE {ONE_CLASS}",),
    "another label is widened": (f"UPDATE {{r}} SET age = '*' WHERE {ONE_CLASS}",),
    "a type is changed": ("ALTER TABLE {r} ALTER COLUMN ward TYPE VARCHAR(9)",),
    "a column is renamed": ("ALTER TABLE {r} RENAME COLUMN ward TO room",),
    "the order of columns is changed": (
        "CREATE TABLE {r}_x AS SELECT ward, disease, job, zip, age FROM {r}",
        "DROP TABLE {r}",
        "ALTER TABLE {r}_x RENAME TO {r}",
    ),
    "a column is dropped": ("ALTER TABLE {r} DROP COLUMN ward",),
    "a kept value is changed": (f"UPDATE {{r}} SET disease = 'mumps' WHERE {FIRST}",),
    "a kept value is NULL": (f"UPDATE {{r}} SET ward = NULL WHERE {FIRST}",),
    "a suppressed row is put back": (
        "INSERT INTO {r} SELECT '[90-100)', '9**', 'craft', s.disease, s.ward FROM {t} AS s WHERE s.id = 100",
    ),
    "a suppressed row is put into a class": (
        f"INSERT INTO {{r}} SELECT age, zip, job, 'flu', 1 FROM {{r}} WHERE {FIRST}",
    ),
    "a label is NULL": (f"UPDATE {{r}} SET job = NULL WHERE {ONE_CLASS}",),
}


TABLE = "people"


def release(url: str, attributes: dict[str, Any], asked: dict[str, Any]) -> Policy:
    with open_database(url) as database:
        database.create(COLUMNS, ROWS, TABLE)
        policy = database.policy(TABLE, attributes, **({"privacy": [{"model": "k-anonymity", "k": 3}]} | asked))
        anonymize(policy)
        database.sql(f"CREATE TABLE {TABLE}_kept AS SELECT * FROM {TABLE}_r")
    return policy


def audit(policy: Policy, **more: Any) -> Audit:
    return audit_classes(policy, options=OPTIONS, **more)


def alter(url: str, *statements: str) -> None:
    with open_database(url) as database:
        change(database, *statements)


def change(database: Database, *statements: str) -> None:
    for statement in statements:
        database.sql(statement.format(t=TABLE, r=f"{TABLE}_r"))


def contents(database: Database, table: str) -> tuple[list[tuple[str, str]], list[str]]:
    """The columns of a table, and its rows in an order of their own."""
    return database.columns(table), sorted(map(repr, database.sql(f"SELECT * FROM {table}")))


RESTORE = (
    *(f"DROP TABLE IF EXISTS {{r}}{left}" for left in ("", "_x", "_y")),
    f"CREATE TABLE {{r}} AS SELECT * FROM {TABLE}_kept",
)


@pytest.mark.either_engine
@pytest.mark.parametrize("kind", KINDS)
def test_a_release_holds_and_every_alteration_is_found(database_url: str, kind: str) -> None:
    policy = release(database_url, *KINDS[kind])
    found = audit(policy)
    assert found.satisfied, (found.checks, found.columns)
    assert found.unchecked == {}
    assert found.same_source
    assert set(found.checks) == {
        "columns_equal", "rows_add_up", "values_equal", "regions_contain", "classes_equal", "labels_fit",
    }  # fmt: skip
    missed = []
    for name, statements in ALTERATIONS.items():
        with open_database(database_url) as database:
            change(database, *RESTORE, *statements)
            assert contents(database, f"{TABLE}_r") != contents(database, f"{TABLE}_kept"), name
        found = audit(policy)
        assert not found.unchecked or found.columns, name
        if found.satisfied:
            missed.append(name)
    assert missed == []
    alter(database_url, *RESTORE)
    assert audit(policy).satisfied


LARGE: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "starred": KINDS["starred"],
    "lattice": KINDS["lattice"],
    "intervals": (PLAIN, {"algorithm": {"name": "mondrian"}}),
}


@pytest.mark.either_engine
@pytest.mark.parametrize("kind", LARGE)
def test_of_a_large_release_a_sample_of_rows_is_looked_at(
    database_url: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows, kept values and models are checked on all rows all the same; with `whole` everything is."""
    policy = release(database_url, *LARGE[kind])
    monkeypatch.setattr(coded_table, "WITNESS_ROWS", 10)
    monkeypatch.setattr(coded_table, "WITNESS_SAMPLE", 50)
    found = audit(policy)
    assert found.satisfied, (found.failed, found.checks)
    sampled = {name for name, check in found.checks.items() if check.sample}
    assert sampled == {"regions_contain", "classes_equal"} | ({"labels_fit"} - set(found.unchecked))
    assert set(found.unchecked) == ({"labels_fit"} if kind == "intervals" else set())
    assert all((found.checks[name].rows < len(ROWS)) == (name in sampled) for name in found.checks)
    for name in ("all labels are false", "a kept value is changed", "a row is added", "a label is NULL"):
        alter(database_url, *RESTORE, *ALTERATIONS[name])
        assert not audit(policy).satisfied, name
    for name in ("sensitive values are swapped between classes", "a label is widened"):
        alter(database_url, *RESTORE, *ALTERATIONS[name])
        assert not audit(policy, whole=True).satisfied, name
    alter(database_url, *RESTORE)
    every = audit(policy, whole=True)
    assert (every.satisfied, every.unchecked) == (True, {})
    assert not any(check.sample for check in every.checks.values())


SHAPES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "boxes": (PLAIN, {"ranges": "cuts"}),
    "sets and bounds": (PLAIN | {"age": {"role": "quasi-identifier", "show": "bounds"}, "job": "quasi-identifier"}, {}),
    "passes": (ATTRIBUTES, {"algorithm": {"name": "optimal"}, "suppression": 0.2, "remainder": "recode"}),
    "limits": (PLAIN | {"age": {"role": "quasi-identifier", "top": 50, "bottom": 25}}, {}),
    "limited intervals": (
        ATTRIBUTES | {"age": ATTRIBUTES["age"] | {"top": 55}},
        {"algorithm": {"name": "optimal"}, "suppression": 0.05},
    ),
    "intervals": (
        PLAIN | dict.fromkeys(("zip", "job"), "quasi-identifier"),
        {"algorithm": {"name": "ordered-sets"}},
    ),
    "subtrees": (ATTRIBUTES, {"algorithm": {"name": "top-down"}}),
}


@pytest.mark.either_engine
@pytest.mark.parametrize("shape", SHAPES)
def test_releases_of_all_shapes_hold(database_url: str, shape: str) -> None:
    policy = release(database_url, *SHAPES[shape])
    found = audit(policy)
    assert (found.satisfied, found.unchecked) == (True, {}), (found.failed, found.checks)
    with open_database(database_url) as database:
        rows = database.sql(f"SELECT * FROM {TABLE}_r")
        database.sql(f"DELETE FROM {TABLE}_r")
        kept = [row[-2:] for row in rows]
        database.insert(f"{TABLE}_r", [row[:-2] + other for row, other in zip(rows, kept[1:] + kept[:1], strict=True)])
    assert audit(policy).failed == ("classes_equal",)


@pytest.mark.either_engine
def test_what_means_hide_is_said(database_url: str) -> None:
    shown = PLAIN | {"age": {"role": "quasi-identifier", "show": "mean"}, "zip": "insensitive", "job": "insensitive"}
    policy = release(database_url, shown, {})
    found = audit(policy)
    assert found.satisfied
    assert "age" in found.unchecked["classes_equal"]
    assert found.checks["values_equal"].rows == len(ROWS)


@pytest.mark.either_engine
def test_a_source_that_changed_is_no_falsified_release(database_url: str) -> None:
    policy = release(database_url, *KINDS["tree"])
    alter(database_url, "UPDATE {t} SET ward = ward + 1 WHERE id = 3")
    found = audit(policy)
    assert found.satisfied
    assert not found.same_source
    assert "the source has changed since run " in found.unchecked["classes_equal"]
    alter(database_url, "ALTER TABLE {r} ADD COLUMN id INTEGER")
    assert audit(policy).failed == ("columns_equal",)


@pytest.mark.either_engine
def test_without_a_record_it_is_not_known_what_changed(database_url: str) -> None:
    policy = release(database_url, *KINDS["tree"])
    alter(database_url, "DROP SCHEMA sqlanon CASCADE")
    assert audit(policy).satisfied
    alter(database_url, "UPDATE {t} SET ward = ward + 1 WHERE id = 3")
    found = audit(policy)
    assert (found.run, found.same_source) == (None, False)
    assert "values_equal" in found.failed


@pytest.mark.either_engine
def test_a_class_that_was_removed_is_no_suppressed_one(database_url: str) -> None:
    policy = release(database_url, ATTRIBUTES, {"algorithm": {"name": "optimal"}, "suppression": 0.9})
    before = audit(policy)
    assert before.satisfied
    alter(database_url, f"DELETE FROM {{r}} WHERE {ONE_CLASS}")
    found = audit(policy)
    assert found.failed == ("rows_add_up",)
    assert (before.omitted or 0) < (found.omitted or 0)
    alter(database_url, "DROP SCHEMA sqlanon CASCADE")
    assert (audit(policy).satisfied, audit(policy).omitted) == (True, found.omitted)


@pytest.mark.either_engine
def test_a_source_that_is_not_there_is_said(database_url: str) -> None:
    policy = release(database_url, *KINDS["tree"])
    without = audit(policy, with_source=False)
    assert without.satisfied
    assert set(without.unchecked.values()) == {"the source was not to be read (--no-source)"}
    alter(database_url, "DROP TABLE {t}")
    found = audit(policy)
    assert found.satisfied
    assert "there is no table" in found.unchecked["values_equal"]
    alter(database_url, "ALTER TABLE {r} ADD COLUMN id INTEGER")
    assert not audit(policy).satisfied


@pytest.mark.either_engine
def test_applied_rules_hold(database_url: str) -> None:
    policy = release(database_url, *KINDS["tree"])
    with connect(database_url) as engine, Catalog.open(engine) as catalog:
        found = catalog.runs(1)[0]
    application = Application(found.id, TABLE, on_violation="suppress", replace=True)
    apply_rules(application, found, (database_url, "sqlanon"), policy, options=OPTIONS)
    again = audit(policy)
    assert (again.satisfied, again.unchecked) == (True, {}), (again.failed, again.checks)
    alter(database_url, *ALTERATIONS["a kept value is changed"])
    assert not audit(policy).satisfied


@pytest.mark.either_engine
@pytest.mark.parametrize("name", ["r.csv", "r.parquet"])
def test_files_are_held_against_their_source(database_url: str, tmp_path: Path, name: str) -> None:
    with open_database(database_url) as database:
        database.create(COLUMNS, ROWS, TABLE)
        policy = database.policy(TABLE, PLAIN, release={"file": str(tmp_path / name)})
        anonymize(policy)
    found = audit(policy)
    assert (found.satisfied, found.unchecked) == (True, {}), (found.failed, found.checks)
    with duckdb.connect() as session:
        session.execute(f"CREATE TABLE t AS SELECT * FROM '{tmp_path / name}'")
        session.execute("UPDATE t SET disease = 'mumps' WHERE rowid = 0")
        session.execute(f"COPY t TO '{tmp_path / name}'")
    assert "values_equal" in audit(policy).failed


def test_a_release_in_another_database(tmp_path: Path, postgres_url: str) -> None:
    embedded = duckdb_url(tmp_path / "test.duckdb")
    for source, target in ((embedded, postgres_url), (postgres_url, embedded)):
        with open_database(source) as database:
            database.create(COLUMNS, ROWS, TABLE)
            policy = database.policy(TABLE, PLAIN, release={"url": target, "table": f"{TABLE}_r"})
        anonymize(policy)
        found = audit(policy)
        assert (found.satisfied, found.unchecked) == (True, {}), (found.failed, found.checks)
        alter(target, *ALTERATIONS["a kept value is changed"])
        assert "values_equal" in audit(policy).failed
