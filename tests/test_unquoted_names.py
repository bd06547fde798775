"""Names without quotes mean what SQL takes them for: folded on PostgreSQL, and refused where two tables fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml

from sqlanon.errors import PolicyError
from sqlanon.policy import Policy
from sqlanon.policy.grants import grant_script
from sqlanon.report.release_audit.auditing import audit_classes
from sqlanon.support.roles import Roles
from tests.cli.support import call
from tests.run_support import Database, anonymize, duckdb_url, open_database

pytestmark = pytest.mark.slow

_PEOPLE = {"age": "INTEGER", "job": "TEXT"}
_SPELT: dict[str, str] = {"age": "quasi-identifier", "job": "insensitive"}


def _rows_of(job: str) -> list[tuple[Any, ...]]:
    return [(30 + i % 4, job) for i in range(12)]


def _policy_of(database: Database, source: str, release: str, **more: Any) -> Policy:
    k = [{"model": "k-anonymity", "k": 2}]
    return database.policy(source, _SPELT, privacy=k, release={"table": release}, **more)


@pytest.mark.parametrize("name", ["Users", "public.Users"])
def test_a_name_without_quotes_is_refused_where_it_can_mean_two_tables(postgres_url: str, name: str) -> None:
    with open_database(postgres_url) as database:
        database.create(_PEOPLE, _rows_of("folded"), name="users")
        database.create(_PEOPLE, _rows_of("quoted"), name='"Users"')
        for place in ((name, "r"), ("users", "R_of_users"), ('"Users"', "Users")):
            if place[0] == "users":
                database.sql('CREATE TABLE r_of_users (i INT); CREATE TABLE "R_of_users" (i INT)')
            with pytest.raises(PolicyError, match=r"can mean .*: write the one that is meant in quotes"):
                anonymize(_policy_of(database, *place), replace=True)
        for written, job in (("users", "folded"), ('"Users"', "quoted")):
            anonymize(_policy_of(database, written, "r"), replace=True)
            assert database.sql("SELECT DISTINCT job FROM r") == [(job,)]
        for command in (("init", postgres_url, name), ("risk", postgres_url, name, "--qi", "age")):
            ended = call(*command)
            assert (ended.exit_code, "in quotes" in ended.stderr) == (2, True)


def test_a_name_without_quotes_is_folded_or_is_the_only_one_that_fits(postgres_url: str) -> None:
    with open_database(postgres_url) as database:
        database.create(_PEOPLE, _rows_of("quoted"), name='"Users"')
        anonymize(_policy_of(database, "Users", "Users_r"))
        assert database.sql("SELECT count(*) FROM users_r") == [(12,)]
        with pytest.raises(psycopg.errors.UndefinedTable):
            database.sql('SELECT 1 FROM "Users_r"')
        assert audit_classes(_policy_of(database, "Users", "Users_r")).satisfied
        database.sql('ALTER TABLE users_r RENAME TO "Users_r"')  # as earlier versions made it
        anonymize(_policy_of(database, "Users", "Users_r"), replace=True)
        assert database.sql("SELECT count(*) FROM pg_class WHERE relname IN ('users_r', 'Users_r')") == [(1,)]
        database.sql('ALTER TABLE "Users" RENAME TO users')
        anonymize(_policy_of(database, "Users", '"Users_r"'), replace=True)
        with pytest.raises(PolicyError, match="no table"):
            anonymize(_policy_of(database, '"Users"', '"Users_r"'), replace=True)


def test_duckdb_ignores_the_case_of_all_names(tmp_path: Path) -> None:
    with open_database(duckdb_url(tmp_path / "names.duckdb")) as database:
        database.create(_PEOPLE, _rows_of("one"), name='"Users"')
        for written in ("users", "Users", '"USERS"'):
            anonymize(_policy_of(database, written, "Users_r"), replace=True)
        assert database.sql("SELECT table_name FROM duckdb_tables() WHERE table_name = 'Users_r'") == [("Users_r",)]


def test_schemas_and_grants_follow_the_same_rule(postgres_url: str) -> None:
    with open_database(postgres_url) as database:
        database.sql('CREATE SCHEMA "Shop"; CREATE SCHEMA shop')
        database.create(_PEOPLE, _rows_of("folded"), name="shop.users")
        anonymize(_policy_of(database, "Shop.Users", "Shop.R"))
        assert database.sql("SELECT count(*) FROM shop.r") == [(12,)]
        database.create(_PEOPLE, _rows_of("quoted"), name='"Shop".users')
        with pytest.raises(PolicyError, match="can mean"):
            anonymize(_policy_of(database, "Shop.Users", "r"))
        script = grant_script(_policy_of(database, 'Shop."Users"', "Released.R"), Roles())
        assert 'ON "shop"."Users" TO' in script
        assert 'IN SCHEMA "released"' in script


def test_a_drafted_release_is_named_in_quotes_where_its_source_is(postgres_url: str) -> None:
    with open_database(postgres_url) as database:
        database.create(_PEOPLE, _rows_of("quoted"), name='"Users"')
    for written, released in (('"Users"', '"\\"Users_released\\""'), ("Users", "Users_released")):
        drafted = call("init", postgres_url, written).stdout
        assert yaml.safe_load(drafted)["release"]["table"] == yaml.safe_load(released)
