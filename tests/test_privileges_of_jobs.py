"""Procedures of jobs by a role that has what the guide gives, and less."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from sqlanon.catalog import Catalog
from sqlanon.engines import connect
from sqlanon.errors import AccessError
from tests.jobs_support import COLUMNS, ROLES, K, carry_out, frozen, runs, table
from tests.run_support import Database, anonymize, open_database


@pytest.fixture
def owner_and_name(postgres_url: str, restricted_role: tuple[str, str]) -> Iterator[tuple[Database, str]]:
    """The owner's session, and a table of which a role has what the guide gives: SELECT, and two schemas of its own."""
    role, _ = restricted_role
    with open_database(postgres_url) as owner:
        owner.sql(f"CREATE SCHEMA released AUTHORIZATION {role}; CREATE SCHEMA sqlanon AUTHORIZATION {role}")
        name = owner.create(COLUMNS, table(1, 120, 0))
        owner.sql(f"GRANT SELECT ON {name} TO {role}")
        yield owner, name


def test_a_role_without_more_than_the_guide_gives_it_runs_jobs(
    owner_and_name: tuple[Database, str], restricted_role: tuple[str, str]
) -> None:
    (owner, name), (role, url) = owner_and_name, restricted_role
    with open_database(url) as database:
        policy = database.policy(name, ROLES, privacy=[K], release={"table": "released.people"})
        frozen(database, anonymize(policy).run)
        assert carry_out(database)["published"]
        owner.sql(f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY; CREATE POLICY few ON {name} USING (n < 15)")
        assert 0 < database.sql(f"SELECT count(*) FROM {name}")[0][0] < 120
        with pytest.raises(psycopg.Error, match=r"row-level security|SQLSTATE 42501"):
            database.sql("CALL sqlanon.job_nightly()")
        assert database.sql("SELECT count(*) FROM released.people") == [(120,)]
        owner.sql(f"ALTER TABLE {name} DISABLE ROW LEVEL SECURITY")
        owner.sql(f"REVOKE SELECT ON {name} FROM {role}")
        with pytest.raises(AccessError):
            carry_out(database)
        assert runs(database)[0].error_class == "AccessError"
        assert database.sql("SELECT count(*) FROM released.people") == [(120,)]


def test_without_temporary_nothing_is_frozen_and_that_is_a_privilege(
    owner_and_name: tuple[Database, str], restricted_role: tuple[str, str]
) -> None:
    (owner, name), (role, url) = owner_and_name, restricted_role
    ((own,),) = owner.sql("SELECT current_database()")
    with open_database(url) as database:
        policy = database.policy(name, ROLES, privacy=[K], release={"table": "released.people"})
        run = anonymize(policy).run
    owner.sql(f"REVOKE TEMPORARY ON DATABASE {own} FROM PUBLIC")
    with open_database(url) as database:
        with pytest.raises(AccessError, match="temporary tables"):
            anonymize(policy, replace=True)
        with pytest.raises(AccessError, match="temporary tables"):
            frozen(database, run)
        with connect(url) as engine, Catalog.open(engine) as catalog:
            assert catalog.jobs() == []
        owner.sql(f"GRANT TEMPORARY ON DATABASE {own} TO {role}")
        frozen(database, run)
        assert carry_out(database)["published"]
