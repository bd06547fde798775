"""Places of sources, of releases, and of the catalogs that record runs."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import duckdb
import pytest

from sqlanon.errors import AccessError, PolicyError
from sqlanon.policy.loading import build_policy
from tests.people import PEOPLE, ROLES, ROWS
from tests.postgres_server import PostgresServer
from tests.run_support import Database, Row, anonymize, duckdb_url, open_database

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]

K2 = [{"model": "k-anonymity", "k": 2}]
ATTRIBUTES = {name: {"role": role} for name, role in ROLES.items()}


# --- where the rows come from

SHAPES = {
    "view": ["CREATE VIEW {name} AS SELECT * FROM {table}"],
    "materialized view": ["CREATE MATERIALIZED VIEW {name} AS SELECT * FROM {table}"],
    "partitioned table": [
        "CREATE TABLE {name} (LIKE {table}) PARTITION BY RANGE (id)",
        "CREATE TABLE {name}_low PARTITION OF {name} FOR VALUES FROM (0) TO (4)",
        "CREATE TABLE {name}_rest PARTITION OF {name} DEFAULT",
        "INSERT INTO {name} SELECT * FROM {table}",
    ],
}


def _released(database: Database, shape: str) -> tuple[list[Row], list[Row]]:
    """Release a source of this shape, and a table of the same rows."""
    table = database.create(PEOPLE, ROWS)
    for statement in SHAPES[shape]:
        database.sql(statement.format(name="shaped", table=table))
    return database.release("shaped", ROLES), database.release(table, ROLES)


def test_a_view_as_source(database: Database) -> None:
    of_view, of_table = _released(database, "view")
    assert of_view == of_table


@pytest.mark.parametrize("shape", ["materialized view", "partitioned table"])
def test_sources_that_postgres_has(postgres_url: str, shape: str) -> None:
    with open_database(postgres_url) as database:
        of_shape, of_table = _released(database, shape)
    assert of_shape == of_table


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_as_sources_and_releases(tmp_path: Path, ending: str) -> None:
    source, release = tmp_path / f"people.{ending}", tmp_path / f"released.{ending}"
    with open_database(duckdb_url(tmp_path / "a.duckdb")) as database:
        table = database.create(PEOPLE, ROWS)
        expected = database.release(table, ROLES)
        database.sql(f"COPY {table} TO '{source}'")
    policy = build_policy(
        {
            "source": {"file": str(source)},
            "release": {"file": str(release)},
            "attributes": {name: {"role": role} for name, role in ROLES.items()},
            "privacy": [{"model": "k-anonymity", "k": 2}],
        }
    )
    outcome = anonymize(policy)
    assert outcome.published
    assert duckdb.sql(f"SELECT * FROM '{release}'").fetchall() == expected
    with pytest.raises(PolicyError, match=r"exists|replace"):
        anonymize(policy)
    assert anonymize(policy, replace=True).published
    assert (
        sorted(path.name for path in tmp_path.iterdir() if "part" in path.suffixes or path.name.startswith(".")) == []
    )


# --- where the rows go


def _elsewhere(database: Database, release: dict[str, Any]) -> list[Row]:
    """Release the people to another place; the rows that the same database would have got."""
    table = database.create(PEOPLE, ROWS)
    anonymize(database.policy(table, ROLES, release=release))
    return database.release(table, ROLES)


def test_release_to_another_duckdb_file(database: Database, tmp_path: Path) -> None:
    other = tmp_path / "other.duckdb"
    expected = _elsewhere(database, {"url": duckdb_url(other), "table": "r"})
    with contextlib.closing(duckdb.connect(str(other))) as connection:
        assert connection.execute("SELECT * FROM r").fetchall() == expected


def test_release_to_a_parquet_file(database: Database, tmp_path: Path) -> None:
    file = tmp_path / "released.parquet"
    expected = _elsewhere(database, {"file": str(file)})
    assert duckdb.sql(f"SELECT * FROM '{file}'").fetchall() == expected


def test_a_file_in_no_directory_is_refused_before_anything_is_opened(tmp_path: Path) -> None:
    duckdb.sql("SELECT 1 AS age").write_csv(str(tmp_path / "in.csv"))
    release = {"file": str(tmp_path / "none" / "out.csv")}
    source = {"file": str(tmp_path / "in.csv")}
    data = {"source": source, "release": release, "attributes": {"age": {"role": "quasi-identifier"}}, "privacy": K2}
    with pytest.raises(PolicyError, match=r"release\.file: there is no directory"):
        anonymize(build_policy(data))


def test_release_from_duckdb_to_postgres(tmp_path: Path, postgres_url: str) -> None:
    with open_database(duckdb_url(tmp_path / "a.duckdb")) as source, open_database(postgres_url) as target:
        expected = _elsewhere(source, {"url": postgres_url, "table": "public.r"})
        assert target.sql("SELECT * FROM r") == expected
        assert source.leftovers() + target.leftovers() == []


def test_a_file_into_postgres(tmp_path: Path, postgres_url: str) -> None:
    file = tmp_path / "people.csv"
    with open_database(duckdb_url(tmp_path / "a.duckdb")) as database, open_database(postgres_url) as target:
        table = database.create(PEOPLE, ROWS)
        expected = database.release(table, ROLES)
        database.sql(f"COPY {table} TO '{file}'")
        release = {"url": postgres_url, "table": "public.r"}
        data = {"source": {"file": str(file)}, "release": release, "attributes": ATTRIBUTES, "privacy": K2}
        anonymize(build_policy(data))
        assert target.sql("SELECT * FROM r") == expected
        assert target.sql("SELECT status FROM sqlanon.runs") == [("published",)]


def test_from_postgres_to_another_database(postgres_url: str, postgres_server: PostgresServer) -> None:
    postgres_server.run("CREATE DATABASE elsewhere")
    try:
        with open_database(postgres_url) as source, open_database(postgres_server.url("elsewhere")) as target:
            expected = _elsewhere(source, {"url": target.url, "table": "public.r"})
            assert target.sql("SELECT * FROM r") == expected
            assert source.leftovers() + target.leftovers() == []
    finally:
        postgres_server.run("DROP DATABASE elsewhere WITH (FORCE)")


def test_a_catalog_of_another_name(database: Database) -> None:
    policy = database.policy(database.create(PEOPLE, ROWS), ROLES, catalog={"schema": "Audit log"})
    anonymize(policy)
    assert database.sql('SELECT status FROM "Audit log".runs') == [("published",)]
    assert database.leftovers() == []


def test_a_catalog_in_another_database(database: Database, tmp_path: Path) -> None:
    other = duckdb_url(tmp_path / "catalog.duckdb")
    anonymize(database.policy(database.create(PEOPLE, ROWS), ROLES, catalog={"url": other}))
    with open_database(other) as catalog:
        assert catalog.sql("SELECT status FROM sqlanon.runs") == [("published",)]
        assert catalog.sql("SELECT row_count FROM sqlanon.releases") == [(6,)]
    assert database.leftovers() == []


def test_a_release_is_not_put_among_the_tables_of_the_catalog(database: Database) -> None:
    table = database.create(PEOPLE, ROWS)

    def refused(name: str, **more: Any) -> None:
        with pytest.raises(PolicyError, match="among the tables of the catalog"):
            anonymize(database.policy(table, ROLES, release={"table": name}, **more), replace=True)

    refused("sqlanon.r")
    refused("sqlanon.runs")
    refused("sqlanon_runs")
    anonymize(database.policy(table, ROLES, catalog={"schema": "records"}))
    other = database.create(PEOPLE, ROWS)  # of a source that `records` knows, no other catalog is made
    with pytest.raises(PolicyError, match="among the tables of the catalog"):
        anonymize(database.policy(other, ROLES, release={"table": "records.r"}, catalog={"schema": "elsewhere"}))
    assert database.sql("SELECT status FROM records.runs") == [("published",)]


def test_tables_of_the_catalog_and_of_runs_are_not_offered(database: Database) -> None:
    table = database.create(PEOPLE, ROWS)
    anonymize(database.policy(table, ROLES))
    database.sql("CREATE TABLE w_0123abcd_rows (i INT)")
    with pytest.raises(PolicyError) as raised:
        anonymize(database.policy("nothing_like_it", ROLES))
    assert f"choose from '{table}', '{table}_r'." in str(raised.value)


def test_a_database_that_is_only_read(tmp_path: Path) -> None:
    url, file = duckdb_url(tmp_path / "a.duckdb"), tmp_path / "r.parquet"
    with open_database(url) as database:
        table = database.create(PEOPLE, ROWS)
    before = (tmp_path / "a.duckdb").read_bytes()
    place = {"url": url + "?access_mode=read_only", "table": table}
    data = {"source": place, "release": {"file": str(file)}, "attributes": ATTRIBUTES, "privacy": K2}
    with pytest.raises(AccessError, match="name another"):
        anonymize(build_policy(data))
    catalog = {"url": duckdb_url(tmp_path / "catalog.duckdb")}
    assert anonymize(build_policy({**data, "catalog": catalog})).published
    assert len(duckdb.sql(f"SELECT * FROM '{file}'").fetchall()) == 6
    assert (tmp_path / "a.duckdb").read_bytes() == before
