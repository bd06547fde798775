"""Missing privileges, and protection that can't be had: named errors, no traceback, no data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from sqlanon.errors import AccessError, PolicyError, ProtectionError, SqlanonError
from tests.run_support import Database, anonymize, open_database

pytestmark = pytest.mark.either_engine


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
    assert database.sql("SELECT count(*) FROM sqlanon.steps WHERE name = 'algorithms/tree/scan/split_rows'") == [(0,)]


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
