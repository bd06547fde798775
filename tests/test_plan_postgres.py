"""Planning on PostgreSQL: what a role may do, the kinds of relations, and names in other databases."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.errors import AccessError, PolicyError
from sqlanon.inquiries.profile.profiling import profile
from sqlanon.plan.plan import resolve
from sqlanon.policy import Policy, ReleaseSection
from sqlanon.sql import Relation, Statement
from tests.plan_support import ATTRIBUTES, COLUMNS, PRIVACY, make_table, policy_with, sql
from tests.postgres_server import PostgresServer


@pytest.fixture
def owner(postgres_url: str) -> Iterator[Engine]:
    """The superuser's session, with a table of patients."""
    with contextlib.closing(connect(postgres_url)) as engine:
        make_table(engine)
        yield engine


@pytest.fixture
def reader(owner: Engine, postgres_server: PostgresServer) -> Iterator[Engine]:
    """A session of a role that owns nothing and may do nothing yet."""
    (database,) = owner.query_one("engines/get_database")
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
    (database,) = owner.query_one("engines/get_database")
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


CARRIED = {
    "kept": "INTERVAL",
    "pair": "a_pair",
    "host": "INET",
    "doc": "XML",
    "span": "INT4RANGE",
    "flags": "BIT(3)",
}
"""Types without a counterpart elsewhere, of which a release has the texts."""


def test_columns_that_cannot_be_taken_elsewhere_are_named_by_the_plan(owner: Engine, tmp_path: Path) -> None:
    """Before the search, with all other problems; where the release stays in the database they may be of any type."""
    sql(owner, "CREATE TYPE a_pair AS (a INT, b INT)")
    columns = {name: (type_, "NULL") for name, type_ in CARRIED.items()} | {
        "free": ("NUMERIC", "'NaN'"),
        "n": COLUMNS["age"],
    }
    make_table(owner, name="odd", columns=columns)
    roles = {name: {"role": "insensitive"} for name in (*CARRIED, "free")} | {
        "n": {"role": "quasi-identifier", "show": "range"}
    }
    attributes = {**dict.fromkeys(ATTRIBUTES), **roles}
    policy = policy_with(source={"url": "u", "table": "odd"}, attributes=attributes, privacy=PRIVACY[:1])
    assert resolve(policy, owner).rows == 100
    elsewhere = {"url": "postgresql://elsewhere/db", "table": "r"}
    places = {"csv": {"file": str(tmp_path / "o.csv")}, "duckdb": {"url": "duckdb:///o.duckdb", "table": "r"}}
    for name, place in (places | {"postgres": elsewhere}).items():
        moved = policy.model_copy(update={"release": ReleaseSection(**place)})
        with pytest.raises(PolicyError) as raised:
            resolve(moved, owner)
        found = raised.value.problems
        assert [problem for problem in found if "show: range" in problem]
        assert not [one for one in CARRIED if any(f'Column "{one}" ' in problem for problem in found)]
        assert any('Column "free" ' in problem for problem in found) == (name != "csv"), found


def test_a_collation_that_ignores_case_is_named_as_what_is_in_the_way(owner: Engine) -> None:
    sql(owner, "CREATE COLLATION lax (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
    make_table(owner, name="odd", columns={"t": ("TEXT COLLATE lax", "'a'"), "i": ("INTERVAL", "NULL")})
    attributes = {**dict.fromkeys(ATTRIBUTES), **{name: {"role": "quasi-identifier"} for name in ("t", "i")}}
    with pytest.raises(PolicyError) as raised:
        resolve(policy_with(source={"url": "u", "table": "odd"}, attributes=attributes, privacy=PRIVACY[:1]), owner)
    text, interval = raised.value.problems
    assert "type text with this collation cannot" in text
    assert "type interval cannot" in interval
