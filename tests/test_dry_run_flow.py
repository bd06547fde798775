"""A dry run is the flow of a run: the same steps in the same order, with nothing written anywhere."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from sqlanon.errors import PolicyError
from sqlanon.policy.loading import build_policy
from sqlanon.runs.dry_run import run_dry, script_lines
from tests.run_support import OPTIONS, Database, anonymize, open_database

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]

COLUMNS = {"q": "INTEGER", "zip": "VARCHAR(3)", "s": "VARCHAR(3)"}
ROWS = [(n * n % 17, f"z{n % 4}", "ab"[n % 2]) for n in range(40)]
ROLES: dict[str, Any] = {
    "q": {"role": "quasi-identifier", "show": "bounds"},
    "zip": {"role": "quasi-identifier", "hierarchy": {"mask": "right"}},
    "s": "sensitive",
}
QUESTIONS = ("engines/", "catalog/", "work/publish/describe_", "work/publish/list_", "work/publish/find_")


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    with open_database(database_url) as opened:
        yield opened


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catalogs of files are below the test's directory, too."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def in_files(directory: Path) -> dict[str, str]:
    """Every file below a directory, with the digest of its bytes."""
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def in_database(database: Database) -> list[tuple[Any, ...]]:
    """Every table with its rows, and every schema."""
    listed = "SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema NOT IN (?, ?)"
    tables = sorted(database.sql(listed, ["pg_catalog", "information_schema"]))
    rows = [(name, sorted(map(str, database.sql(f'SELECT * FROM "{schema}"."{name}"')))) for schema, name in tables]
    return [*sorted(database.sql("SELECT schema_name FROM information_schema.schemata")), *rows]


@pytest.mark.parametrize("layout", ["flat", "star"])
def test_nothing_is_written_to_the_database(database: Database, layout: str) -> None:
    """Neither before the first run, nor where a catalog and a release are."""
    table = database.create(COLUMNS, ROWS)
    policy = database.policy(table, ROLES, release={"table": f"{table}_r", "layout": layout})
    for has_release in (False, True):
        if has_release:
            anonymize(policy)
        before = in_database(database)
        run_dry(policy, OPTIONS, replace=True)
        assert in_database(database) == before


@pytest.mark.parametrize(("ending", "digest"), [("csv", "record"), ("parquet", "run")])
def test_nothing_is_written_for_files(tmp_path: Path, ending: str, digest: str) -> None:
    """No release, no part of one, no catalog; and none of them changes once they are there."""
    (tmp_path / "people.csv").write_text("age,zip\n" + "".join(f"{n % 9},{n % 3}\n" for n in range(30)))
    policy = build_policy(
        {
            "source": {"file": str(tmp_path / "people.csv")},
            "release": {"file": str(tmp_path / f"released.{ending}")},
            "attributes": {"age": {"role": "quasi-identifier"}, "zip": {"role": "insensitive"}},
            "privacy": [{"model": "k-anonymity", "k": 2}],
            "digest": digest,
        }
    )
    for has_release in (False, True):
        if has_release:
            anonymize(policy)
        before = in_files(tmp_path)
        steps = run_dry(policy, OPTIONS, replace=True).steps
        assert in_files(tmp_path) == before
        names = [step.name for step in steps if step.phase in ("recode", "publish")]
        assert names.index("files/create") < names.index(f"work/publish/write_{ending}") < names.index("files/publish")


def test_nothing_is_written_to_files_of_databases(tmp_path: Path) -> None:
    """The source, the release and the catalog are three DuckDB files, of which two are missing at first."""
    with duckdb.connect(str(tmp_path / "source.duckdb")) as connection:
        connection.execute("CREATE TABLE people AS SELECT i % 50 AS age, 'flu' AS disease FROM range(100) AS r(i)")
    policy = build_policy(
        {
            "source": {"url": f"duckdb:///{tmp_path}/source.duckdb", "table": "people"},
            "release": {"url": f"duckdb:///{tmp_path}/target.duckdb", "table": "released"},
            "catalog": {"url": f"duckdb:///{tmp_path}/catalog.duckdb"},
            "attributes": {"age": {"role": "quasi-identifier"}, "disease": {"role": "sensitive"}},
            "privacy": [{"model": "k-anonymity", "k": 2}],
        }
    )
    for has_release in (False, True):
        if has_release:
            anonymize(policy)
        before = in_files(tmp_path)
        steps = run_dry(policy, OPTIONS, replace=True).steps
        assert in_files(tmp_path) == before
        places = {step.statement.partition("\n")[0] for step in steps}
        assert places >= {"-- In the release's database.", "-- In the catalog's database."}


def test_every_step_of_a_run_is_in_its_place(database: Database) -> None:
    """From the codes to the release, whatever the search did: the same statements in the same order."""
    table = database.create(COLUMNS, ROWS)
    policy = database.policy(table, ROLES)
    steps = run_dry(policy, OPTIONS).steps
    run = anonymize(policy).run
    sent = database.sql("SELECT phase, name FROM sqlanon.steps WHERE run = ? ORDER BY number", [run])
    for phase in ("recode", "verify", "publish"):
        shown = [s.name for s in steps if s.phase == phase and not s.name.startswith(QUESTIONS)]
        assert shown == [name for place, name in sent if place == phase and not name.startswith(QUESTIONS)], phase


def test_a_dry_run_has_no_steps_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dry run leaves out the steps that the flow of runs leaves out."""
    with open_database(f"duckdb:///{tmp_path}/one.duckdb") as database:
        policy = database.policy(database.create(COLUMNS, ROWS), ROLES)
        monkeypatch.setattr("sqlanon.measures.coded_figures.measure_combinations", lambda *_: None)
        monkeypatch.setattr("sqlanon.measures.coded_figures.count_values", lambda *_: {})
        names = [step.name for step in run_dry(policy, OPTIONS).steps if step.phase == "encode"]
    assert "measures/count_unique" not in names
    assert "runs/digest_source" in names


def test_what_goes_on_around_the_data_is_named(database: Database) -> None:
    """Settings, locks, the catalog, what is held and analyzed."""
    table = database.create(COLUMNS, ROWS)
    steps = run_dry(database.policy(table, ROLES), OPTIONS).steps
    texts = [step.statement for step in steps]
    catalog = [text.partition("\n")[0] for text in texts if text.startswith("-- In the catalog:")]
    for what in ("record the run", "record the hierarchy", "note a work table", "record a checkpoint"):
        assert f"-- In the catalog: {what}." in catalog
    assert catalog[-2:] == ["-- In the catalog: record the steps.", "-- In the catalog: record the run's end."]
    assert len([text for text in texts if "lock release" in text and table in text]) == 2  # and given back
    assert any('"releases"' in text and text.startswith("-- With rows") for text in texts)
    assert sum("sqlanon_staging" in text for text in texts) > 1
    if database.engine == "postgres":
        names = [step.name for step in steps]
        assert names[:2] == ["engines/apply_settings", "engines/limit_lock_waits"]
        assert {"engines/prepare_holding", "engines/analyze_tables", "catalog/drop_tables"} <= set(names)


def test_what_a_run_refuses_a_dry_run_refuses(database: Database) -> None:
    table = database.create(COLUMNS, ROWS)
    wrong = database.policy(table, {**ROLES, "nowhere": "quasi-identifier"}, release={"table": f"{table}_w"})
    bound = database.policy(table, ROLES, republish="same-recoding", release={"table": f"{table}_b"})
    anonymize(database.policy(table, ROLES))
    for policy in (wrong, bound):
        with pytest.raises(PolicyError) as by_run:
            anonymize(policy)
        with pytest.raises(PolicyError) as by_dry_run:
            run_dry(policy, OPTIONS)
        assert str(by_dry_run.value) == str(by_run.value)
        assert getattr(by_dry_run.value, "__notes__", []) == []


@pytest.mark.parametrize("kept", ["nothing", "a release"])
def test_the_last_part_can_be_sent(database: Database, kept: str) -> None:
    """The statements that publish are complete: sent as they are, they rename a table of staging to the release."""
    table = database.create(COLUMNS, ROWS)
    policy = database.policy(table, {"q": ROLES["q"], "zip": "insensitive", "s": "sensitive"})
    if kept == "a release":
        anonymize(policy)
        database.sql(f"COMMENT ON TABLE {table}_r IS 'ours'")
    steps = [step for step in run_dry(policy, OPTIONS, replace=True).steps if step.phase == "publish"]
    (rename,) = (step.statement for step in steps if step.name == "work/publish/rename_table")
    staging = rename.split()[2]
    database.sql(f"CREATE TABLE {staging} AS SELECT q AS q_min, q AS q_max, zip, s FROM {table} WHERE q < 9")
    for step in steps:
        if not all(line.startswith("--") for line in step.statement.splitlines()):
            database.sql("\n".join(script_lines([step])))
    assert database.sql(f"SELECT count(*) FROM {table}_r") == database.sql(f"SELECT count(*) FROM {table} WHERE q < 9")
    assert database.leftovers() == []
    if kept == "a release":
        assert "ours" in str(database.sql(COMMENTS[database.engine]))


COMMENTS = {
    "duckdb": "SELECT comment FROM duckdb_tables() WHERE comment IS NOT NULL",
    "postgres": "SELECT description FROM pg_catalog.pg_description WHERE objoid > 16384",
}


def test_a_release_goes_from_one_engine_to_the_other(postgres_url: str, tmp_path: Path) -> None:
    """The statements of both are there, each in its own language and marked."""
    there, here = f"duckdb:///{tmp_path}/other.duckdb", {}
    with open_database(postgres_url) as database:
        table = database.create(COLUMNS, ROWS)
        policy = database.policy(table, ROLES, release={"url": there, "table": "released"})
        here = in_database(database)
        steps = run_dry(policy, OPTIONS).steps
        assert in_database(database) == here
        assert list(tmp_path.iterdir()) == []
        away = [step for step in steps if step.statement.startswith("-- In the release's database.")]
        (created,) = (step.statement for step in away if step.name == "work/publish/create_table")
        assert '"other"."main"."sqlanon_staging' in created
        assert '"q_min" INTEGER, "q_max" INTEGER, "zip" VARCHAR, "s" VARCHAR' in created
        assert {"work/publish/import_rows", "count_rows", "work/publish/rename_table"} <= {step.name for step in away}
        exported = [step.statement for step in steps if step.name == "work/publish/export_rows"]
        assert len(exported) == 1
        assert "TO STDOUT" in exported[0]
        anonymize(policy)
        with duckdb.connect(f"{tmp_path}/other.duckdb") as connection:
            found = connection.execute("SELECT column_name, data_type FROM duckdb_columns()").fetchall()
        assert [f'"{name}" {type_}' for name, type_ in found if name in ("q_min", "q_max", "zip", "s")] == [
            '"q_min" INTEGER',
            '"q_max" INTEGER',
            '"zip" VARCHAR',
            '"s" VARCHAR',
        ]


def test_rules_go_to_a_catalog_elsewhere(postgres_url: str, tmp_path: Path) -> None:
    """They are carried over by the statements that carry releases, with the columns that a run gives them."""
    with open_database(postgres_url) as database:
        table = database.create(COLUMNS, ROWS)
        policy = database.policy(table, ROLES, catalog={"url": f"duckdb:///{tmp_path}/catalog.duckdb"})
        steps = run_dry(policy, OPTIONS).steps
        created = [step.statement for step in steps if step.name == "work/publish/create_table"]
        assert list(tmp_path.iterdir()) == []
        run = anonymize(policy).run
    with duckdb.connect(f"{tmp_path}/catalog.duckdb") as connection:
        sent = "SELECT statement FROM sqlanon.steps WHERE run = ? AND name = 'work/publish/export_rows' ORDER BY number"
        exported = [text for (text,) in connection.execute(sent, [run]).fetchall()]
        columns = connection.execute(
            "SELECT table_name, column_name FROM duckdb_columns() WHERE starts_with(table_name, 'rules_')"
        ).fetchall()
    assert len(created) == len(exported) == 4
    for part, text in zip(("nodes", "leaves", "segments", "domain"), created, strict=True):
        assert text.startswith("-- In the catalog's database.")
        names = [name for table, name in columns if table.endswith(part)]
        assert all(f'"{name}" ' in text for name in names), part
