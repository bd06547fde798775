"""Functions of other roles that fit a call better than the server's own are never called."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sqlanon.errors import PolicyError, ProtectionError
from tests.jobs_support import ALONE, carry_out, frozen, replaced, simple, table
from tests.postgres_server import PostgresServer
from tests.run_support import Database, open_database

pytestmark = pytest.mark.slow

STEALING = """
CREATE TABLE public.stolen (v TEXT); GRANT INSERT ON public.stolen TO public; GRANT CREATE ON SCHEMA public TO other;
SET SESSION AUTHORIZATION other;
CREATE FUNCTION public.keep(BIGINT, TEXT) RETURNS BIGINT LANGUAGE plpgsql AS
    'BEGIN INSERT INTO public.stolen VALUES ($2); RETURN $1 + 1; END';
CREATE AGGREGATE public.count(TEXT) (SFUNC = public.keep, STYPE = BIGINT, INITCOND = '0');
CREATE FUNCTION public.power(INTEGER, INTEGER) RETURNS FLOAT8 LANGUAGE plpgsql AS
    'BEGIN INSERT INTO public.stolen VALUES (current_user); RETURN 10; END';
CREATE FUNCTION public.format(TEXT, TEXT, BIGINT, BIGINT) RETURNS TEXT LANGUAGE SQL AS 'SELECT NULL::TEXT';
CREATE FUNCTION public.div(BIGINT, BIGINT) RETURNS NUMERIC LANGUAGE SQL AS 'SELECT 0::NUMERIC';
"""

ORDERED = {"attribute": "x", "distance": "ordered", "t": 0.9}


@pytest.fixture
def database(postgres_server: PostgresServer, postgres_url: str) -> Iterator[Database]:
    """A database in which another role exists."""
    postgres_server.run("CREATE ROLE other")
    with open_database(postgres_url) as database:
        yield database
        database.sql("DROP OWNED BY other CASCADE")
    postgres_server.run("DROP ROLE other")


def make_functions(database: Database) -> None:
    for statement in (*STEALING.split(";\n"), "RESET SESSION AUTHORIZATION"):
        if statement.strip():
            database.sql(statement)


def test_a_run_and_its_job_call_none(database: Database) -> None:
    make_functions(database)
    name, run = simple(database, privacy=[{"model": "k-anonymity", "k": 3}, {"model": "t-closeness", **ORDERED}])
    frozen(database, run)
    assert carry_out(database)["verified"] is True
    replaced(database, name, [*table(1, 120, 0), ALONE])
    with pytest.raises((ProtectionError, PolicyError)):
        carry_out(database)
    assert database.sql("SELECT count(*) FROM public.stolen") == [(0,)]


def test_a_job_ends_where_others_have_come_to_make_functions(database: Database) -> None:
    _, run = simple(database)
    frozen(database, run)
    assert carry_out(database)["published"]
    make_functions(database)
    with pytest.raises(PolicyError, match=r'looked up in "public".* revoke CREATE'):
        carry_out(database)
    frozen(database, run)
    assert carry_out(database)["published"]
    assert database.sql("SELECT count(*) FROM public.stolen") == [(0,)]
