"""The whole flow with the grants of the script and no others: runner and reader each do their part."""

from __future__ import annotations

import contextlib
import itertools
import subprocess
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from sqlanon.catalog.tables import TABLE_NAMES
from sqlanon.errors import PolicyError, ProtectionError
from sqlanon.methods.differential_privacy.audit import audit_private
from sqlanon.methods.differential_privacy.granting import grant_budget
from sqlanon.policy.grants import grant_script
from sqlanon.policy.loading import build_policy
from sqlanon.support.roles import Roles
from sqlanon.verification.release import verify_release
from tests.jobs_support import carry_out, frozen
from tests.postgres_server import PostgresServer, find_binaries
from tests.private_support import Known, run_private
from tests.roles_support import ATTRIBUTES, Place, open_place
from tests.run_support import Database, anonymize, open_database, quoted

pytestmark = pytest.mark.slow

_numbers = itertools.count()


@pytest.fixture
def place(postgres_server: PostgresServer, postgres_url: str) -> Iterator[Place]:
    with open_place(postgres_server, postgres_url) as place:
        yield place


@pytest.fixture
def administrator(place: Place, postgres_server: PostgresServer) -> Iterator[str]:
    """A role that owns the database and the source and may create roles, and is no superuser."""
    name = f"administrator_{next(_numbers)}"
    ((database,),) = place.owner.sql("SELECT current_database()")
    place.owner.sql(f"CREATE ROLE {name} LOGIN CREATEROLE")
    place.owner.sql(f"ALTER DATABASE {quoted(database)} OWNER TO {name}")
    place.owner.sql(f"ALTER SCHEMA people OWNER TO {name}")
    place.owner.sql(f'ALTER TABLE people."The patients" OWNER TO {name}')
    place.owner.sql(f"REVOKE ALL ON DATABASE {quoted(database)} FROM PUBLIC")
    yield name
    place.owner.sql(f"ALTER DATABASE {quoted(database)} OWNER TO postgres")
    place.owner.sql(f"DROP OWNED BY {name} CASCADE")
    # On PostgreSQL 16 and later it has granted roles, which go first.
    place.owner.sql(f"REVOKE {quoted(place.roles.runner)} FROM {name} CASCADE")
    postgres_server.run(f"DROP ROLE {name}")


def _granted(place: Place, by: str = "postgres") -> None:
    place.grant(by)
    place.owner.sql(f"ALTER ROLE {quoted(place.roles.reader)} LOGIN")


def _allowed(database: Database, *statements: str) -> list[str]:
    """Those of the statements that are not refused for want of a privilege."""
    found = []
    for statement in statements:
        with contextlib.suppress(psycopg.errors.InsufficientPrivilege):
            database.sql(statement)
            found.append(statement)
    return found


def test_each_role_can_do_its_part(place: Place) -> None:
    _granted(place)
    _require_each_part(place)


def test_the_script_takes_no_superuser(place: Place, administrator: str) -> None:
    _granted(place, by=administrator)
    _require_each_part(place)


def test_a_superuser_becomes_no_member(place: Place) -> None:
    _granted(place)
    members = "SELECT 1 FROM pg_auth_members WHERE roleid = ?::regrole"
    assert place.owner.sql(members, [quoted(place.roles.runner)]) == []


def test_a_population_is_read_by_its_quasi_identifiers_alone(place: Place) -> None:
    columns = ", ".join(quoted(name) for name in ('the "age"', "job", "Disease"))
    place.owner.sql(f'CREATE TABLE people."all of us" AS SELECT {columns} FROM people."The patients"')
    hidden = {"hierarchy": "suppress"}
    more: dict[str, Any] = {
        "attributes": ATTRIBUTES | {'the "age"': ATTRIBUTES['the "age"'] | hidden},
        "privacy": [{"model": "k-map", "k": 3, "population": 'people."all of us"'}],
        "algorithm": {"name": "optimal"},
    }
    place.grant(**more)
    policy = place.policy(place.roles.runner, **more)
    assert anonymize(policy).published
    assert verify_release(policy).satisfied
    with open_database(place.url(place.roles.runner)) as runner:
        select = 'SELECT count({}) FROM people."all of us"'
        statements = [select.format(quoted(name)) for name in ("job", "Disease")]
        assert _allowed(runner, *statements) == statements[:1]


def test_the_script_says_what_a_distant_population_needs() -> None:
    there = {"url": "postgresql://u@h/other", "table": "people"}
    data: dict[str, Any] = {
        "source": {"url": "postgresql://h/d", "table": "t"},
        "release": {"table": "r"},
        "attributes": {"age": {"role": "quasi-identifier", "hierarchy": "suppress"}},
        "privacy": [{"model": "k-map", "k": 3, "population": there}],
        "algorithm": {"name": "optimal"},
    }
    script = grant_script(build_policy(data), Roles("runner", "reader"))
    assert "population that models hold the release against is in another database" in script
    assert "people" not in script.partition("-- The source")[2]


def _require_each_part(place: Place) -> None:
    policy = place.policy(place.roles.runner)
    with open_database(place.url(place.roles.runner)) as runner, open_database(place.url(place.roles.reader)) as reader:
        assert anonymize(policy).published
        run = anonymize(policy, replace=True).run
        assert verify_release(policy).satisfied
        frozen(runner, run)
        assert carry_out(runner)["published"]
        assert reader.sql("SELECT count(*) FROM released.patients") == [(120,)]
        assert runner.leftovers() == []
    made = place.owner.sql("SELECT DISTINCT schemaname FROM pg_tables WHERE tableowner = ?", [place.roles.runner])
    assert sorted(made) == [("released",), ("sqlanon",)]


def test_a_private_run_needs_no_more_than_the_grants(place: Place) -> None:
    """The column of persons is read though it is an identifier; the ledger is the runner's alone."""
    values = {"role": "quasi-identifier", "values": ["a", "b"]}
    identifiers = {name: {"role": "identifier"} for name in ATTRIBUTES}
    private: dict[str, Any] = {
        "attributes": identifiers | {"job": values},
        "privacy": [{"model": "differential-privacy", "epsilon": 1, "unit": {"column": "ssn", "rows": 1}}],
        "algorithm": {"name": "contingency"},
        "budget": {"ledger": "patients"},
    }
    place.grant(**private)
    place.owner.sql(f"ALTER ROLE {quoted(place.roles.reader)} LOGIN")
    policy = place.policy(place.roles.runner, **private)
    grant_budget(policy, 2, "a test")
    result = run_private(policy, mechanisms=Known())
    assert result.budget is not None
    assert result.budget.left == "1"
    assert audit_private(policy).satisfied
    ledger = [f"SELECT * FROM sqlanon.{name}" for name in TABLE_NAMES if name.startswith("budget")]
    assert len(ledger) == 4
    with open_database(place.url(place.roles.reader)) as reader:
        assert reader.sql("SELECT count(*) FROM released.patients") == [(4,)]
        assert _allowed(reader, *ledger) == []
    with open_database(place.url(place.roles.runner)) as runner:
        assert _allowed(runner, 'SELECT "Disease" FROM people."The patients"') == []


@pytest.mark.parametrize("lacking", ["people.nobody", "cron", None])
def test_the_script_holds_as_a_whole_or_not_at_all(place: Place, lacking: str | None) -> None:
    """All that the script made goes too, where the source is missing, or at its very end the schema of pg_cron.

    psql sends it statement by statement: what is sent at once is one transaction anyway.
    """
    table = "people.nobody" if lacking == "people.nobody" else 'people."The patients"'
    policy = place.policy("postgres", source={"url": place.postgres_url, "table": table})
    script, binaries = grant_script(policy, place.roles, pg_cron=lacking == "cron"), find_binaries()
    assert binaries is not None
    psql = [binaries / "psql", "-X", "-d", place.postgres_url, "-f", "-"]
    done = subprocess.run(psql, input=script, capture_output=True, text=True, check=False)
    assert ("ERROR" in done.stderr, (lacking or "") in done.stderr) == (lacking is not None, True)
    schemas = place.owner.sql("SELECT nspname FROM pg_namespace WHERE nspname IN ('sqlanon', 'released')")
    both = [place.roles.runner, place.roles.reader]
    roles = place.owner.sql("SELECT rolname FROM pg_roles WHERE rolname IN (?, ?)", both)
    assert (len(schemas), len(roles)) == ((2, 2) if lacking is None else (0, 0))


def test_no_role_can_do_more(place: Place) -> None:
    _granted(place)
    anonymize(place.policy(place.roles.runner))
    with open_database(place.url(place.roles.runner)) as runner:
        allowed = _allowed(
            runner,
            'SELECT ssn FROM people."The patients"',
            'SELECT * FROM people."The patients"',
            "SELECT * FROM people.others",
            'DELETE FROM people."The patients"',
            "CREATE TABLE people.mine (n INT)",
            "CREATE ROLE anyone",
            "CREATE SCHEMA another",
        )
    assert allowed == []
    with open_database(place.url(place.roles.reader)) as reader:
        allowed = _allowed(
            reader,
            "SELECT * FROM sqlanon.runs",
            'SELECT "Disease" FROM people."The patients"',
            "DELETE FROM released.patients",
            "CREATE TABLE released.mine (n INT)",
        )
    assert allowed == []


def test_readers_never_see_what_is_not_published(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Staged rows are the runner's alone while they are checked, and gone when the check fails."""
    _granted(place)
    seen: list[Any] = []
    readable: list[str] = []

    def check(*_: Any) -> None:
        with open_database(place.url(place.roles.reader)) as reader:
            staged = reader.sql("SELECT tablename FROM pg_tables WHERE schemaname = 'released'")
            seen.extend(staged)
            readable.extend(_allowed(reader, *(f"SELECT * FROM released.{quoted(name)}" for (name,) in staged)))
        raise ProtectionError("enough seen")

    monkeypatch.setattr("sqlanon.releases.equivalence_classes.check_release", check)
    with pytest.raises(ProtectionError, match="enough seen"):
        anonymize(place.policy(place.roles.runner))
    assert (len(seen), readable) == (1, [])
    assert place.owner.sql("SELECT tablename FROM pg_tables WHERE schemaname = 'released'") == []


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"source": {"url": "duckdb:///x.duckdb", "table": "t"}}, "PostgreSQL"),
        ({"source": {"file": "x.csv"}, "release": {"file": "y.csv"}}, "PostgreSQL"),
        ({"release": {"file": "x.csv"}}, "elsewhere"),
        ({"release": {"url": "duckdb:///x.duckdb", "table": "t"}}, "elsewhere"),
        ({"catalog": {"url": "postgresql:///other"}}, "elsewhere"),
        ({"source": {"url": "postgresql://", "table": "t"}}, "names no database"),
        ({"source": {"url": "postgresql://u:p%zz@/d", "table": "t"}}, "//u@/d can't be read"),
        ({"source": {"url": "postgresql://u:p@q/w@h/d", "table": "t"}}, "percent-encoded"),
    ],
)
def test_what_the_script_is_not_for(more: dict[str, Any], problem: str) -> None:
    place = Place(None, Roles(), "postgresql://postgres@/clinic")  # type: ignore[arg-type]
    with pytest.raises(PolicyError, match=problem):
        grant_script(place.policy("postgres", **more), Roles())


def test_roles_are_two() -> None:
    place = Place(None, Roles(), "postgresql://postgres@/clinic")  # type: ignore[arg-type]
    with pytest.raises(PolicyError, match="two roles"):
        grant_script(place.policy("postgres"), Roles(runner="me", reader="me"))
