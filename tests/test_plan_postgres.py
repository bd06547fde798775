"""Planning on PostgreSQL: what a role may do, the kinds of relations, and names in other databases."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.errors import AccessError, PolicyError
from sqlanon.plan import resolve
from sqlanon.policy import Policy
from sqlanon.profile import profile
from sqlanon.sql import Relation, Statement
from tests.postgres_server import PostgresServer
from tests.test_plan import make_table, policy_with, sql


@pytest.fixture
def owner(postgres_url: str) -> Iterator[Engine]:
    """The superuser's session, with a table of patients."""
    with contextlib.closing(connect(postgres_url)) as engine:
        make_table(engine)
        yield engine


@pytest.fixture
def reader(owner: Engine, postgres_server: PostgresServer) -> Iterator[Engine]:
    """A session of a role that owns nothing and may do nothing yet."""
    (database,) = owner.query_one("engine/get_database")
    role = f"reader_of_{database}"
    sql(owner, f"CREATE ROLE {role} LOGIN")
    try:
        with contextlib.closing(connect(postgres_server.url(database, role))) as engine:
            yield engine
    finally:
        sql(owner, f"DROP OWNED BY {role} CASCADE")
        sql(owner, f"DROP ROLE {role}")


def _grant(owner: Engine, reader: Engine, privilege: str) -> None:
    ((role,),) = reader.fetch(Statement("test", "SELECT current_user"))
    sql(owner, f"{privilege} {role}")


def _into(table: str) -> Policy:
    return policy_with(release={"table": table})


def test_a_source_that_may_not_be_read(owner: Engine, reader: Engine) -> None:
    _grant(owner, reader, "GRANT CREATE ON SCHEMA public TO")
    with pytest.raises(AccessError, match="patients"):
        resolve(policy_with(), reader)
    with pytest.raises(AccessError, match="patients"):
        profile(reader, Relation("patients", "public"))


def test_a_schema_that_may_not_be_written(owner: Engine, reader: Engine) -> None:
    _grant(owner, reader, "GRANT SELECT ON patients TO")
    with pytest.raises(AccessError, match="GRANT CREATE"):
        resolve(_into("public.r"), reader)
    with pytest.raises(PolicyError, match="GRANT CREATE") as raised:
        resolve(policy_with(release={"table": "public.r"}, attributes={"note_id": None}), reader)
    assert len(raised.value.problems) == 2


def test_select_on_the_source_and_a_schema_of_ones_own_suffice(owner: Engine, reader: Engine) -> None:
    _grant(owner, reader, "GRANT SELECT ON patients TO")
    _grant(owner, reader, "CREATE SCHEMA own AUTHORIZATION")
    plan = resolve(_into("own.r"), reader)
    assert (plan.release, plan.rows) == (Relation("r", "own"), 100)
    assert profile(reader, plan.source).rows == 100


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE MATERIALIZED VIEW odd AS SELECT * FROM patients",
        "CREATE VIEW odd AS SELECT * FROM patients",
        "CREATE TABLE odd (LIKE patients) PARTITION BY LIST (age);"
        "CREATE TABLE odd_rest PARTITION OF odd DEFAULT; INSERT INTO odd SELECT * FROM patients",
    ],
)
def test_sources_of_all_kinds(owner: Engine, statement: str) -> None:
    for part in statement.split(";"):
        sql(owner, part)
    assert resolve(policy_with(source={"url": "u", "table": "odd"}), owner).rows == 100
    with pytest.raises(PolicyError, match="choose another name"):
        resolve(_into("odd"), owner, replace=True)


def test_names_that_say_the_database(owner: Engine) -> None:
    (database,) = owner.query_one("engine/get_database")
    assert resolve(_into(f"{database}.public.r"), owner).release == Relation("r", "public")
    with pytest.raises(PolicyError, match="the session is connected to"):
        resolve(_into("elsewhere.public.r"), owner)


def test_hidden_rows_are_an_error(owner: Engine, reader: Engine) -> None:
    _grant(owner, reader, "GRANT SELECT ON patients TO")
    _grant(owner, reader, "CREATE SCHEMA own AUTHORIZATION")
    sql(owner, "ALTER TABLE patients ENABLE ROW LEVEL SECURITY")
    sql(owner, "CREATE POLICY young ON patients USING (age < 30)")
    with pytest.raises(AccessError, match=r"row-level security|row_security"):
        resolve(_into("own.r"), reader)


def test_a_release_is_no_part_of_its_source(owner: Engine) -> None:
    sql(owner, "CREATE TABLE part () INHERITS (patients)")
    with pytest.raises(PolicyError, match="overwrite its source"):
        resolve(_into("part"), owner, replace=True)
