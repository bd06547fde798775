"""Nobody but the runner writes its catalog, or has code of his run when it is written: attacks, each refused."""

from __future__ import annotations

import re
from collections.abc import Iterator

import psycopg
import pytest

from sqlanon.catalog import Catalog
from sqlanon.engines import connect
from sqlanon.errors import AccessError, PolicyError
from sqlanon.policy import Policy
from sqlanon.support.roles import Roles
from tests.jobs_support import carry_out, frozen, runs
from tests.postgres_server import PostgresServer
from tests.roles_support import ATTRIBUTES, Place, open_place
from tests.run_support import anonymize, open_database, quoted

pytestmark = pytest.mark.slow

STEALING = """
CREATE SCHEMA attic AUTHORIZATION other;
CREATE TABLE attic.stolen (who TEXT); GRANT USAGE ON SCHEMA attic TO PUBLIC; GRANT INSERT ON attic.stolen TO PUBLIC;
CREATE FUNCTION attic.steal() RETURNS TRIGGER LANGUAGE plpgsql AS
    'BEGIN INSERT INTO attic.stolen VALUES (current_user); RETURN NEW; END';
CREATE FUNCTION attic.also() RETURNS TEXT LANGUAGE plpgsql AS
    'BEGIN INSERT INTO attic.stolen VALUES (current_user); RETURN current_user; END';
CREATE FUNCTION attic.steals(TEXT) RETURNS BOOLEAN LANGUAGE plpgsql AS
    'BEGIN INSERT INTO attic.stolen VALUES (current_user); RETURN TRUE; END';
CREATE FUNCTION attic.on_ddl() RETURNS EVENT_TRIGGER LANGUAGE plpgsql AS
    'BEGIN INSERT INTO attic.stolen VALUES (current_user); END';
CREATE FUNCTION attic.name(TEXT) RETURNS TEXT LANGUAGE SQL IMMUTABLE AS 'SELECT $1';
CREATE DOMAIN attic.line AS TEXT CHECK (attic.steals(VALUE));
ALTER FUNCTION attic.steal() OWNER TO other; ALTER FUNCTION attic.also() OWNER TO other;
ALTER FUNCTION attic.steals(TEXT) OWNER TO other; ALTER FUNCTION attic.on_ddl() OWNER TO other
"""
# What was put into the catalog in whatever way, how it goes again, and what the refusal says of it.
CODE = [
    (
        "CREATE TRIGGER t AFTER INSERT ON sqlanon.runs FOR EACH ROW EXECUTE FUNCTION attic.steal()",
        "DROP TRIGGER t ON sqlanon.runs",
        "sqlanon.runs has trigger t",
    ),
    (
        "CREATE RULE r AS ON INSERT TO sqlanon.runs DO ALSO INSERT INTO attic.stolen VALUES (current_user)",
        "DROP RULE r ON sqlanon.runs",
        "sqlanon.runs has rule r",
    ),
    (
        "CREATE POLICY p ON sqlanon.jobs USING (attic.steals(name))",
        "DROP POLICY p ON sqlanon.jobs",
        "sqlanon.jobs has row-level security",
    ),
    (
        "ALTER TABLE sqlanon.jobs ENABLE ROW LEVEL SECURITY",
        "ALTER TABLE sqlanon.jobs DISABLE ROW LEVEL SECURITY",
        "sqlanon.jobs has row-level security",
    ),
    (
        "ALTER TABLE sqlanon.runs ALTER seed SET DEFAULT length(attic.also())",
        "ALTER TABLE sqlanon.runs ALTER seed DROP DEFAULT",
        "sqlanon.runs uses function attic.also()",
    ),
    (
        "ALTER TABLE sqlanon.runs ADD CONSTRAINT c CHECK (attic.steals(id)) NOT VALID",
        "ALTER TABLE sqlanon.runs DROP CONSTRAINT c",
        "sqlanon.runs uses function attic.steals(text)",
    ),
    (
        "CREATE INDEX i ON sqlanon.steps (attic.name(run))",
        "DROP INDEX sqlanon.i",
        "sqlanon.steps uses function attic.name(text)",
    ),
    (
        "CREATE INDEX i ON sqlanon.steps (run) WHERE attic.name(run) = run",
        "DROP INDEX sqlanon.i",
        "sqlanon.steps uses function attic.name(text)",
    ),
    (
        "CREATE STATISTICS sqlanon.s ON (attic.name(run)) FROM sqlanon.steps",
        "DROP STATISTICS sqlanon.s",
        "sqlanon.steps uses function attic.name(text)",
    ),
    (
        "ALTER TABLE sqlanon.live ADD more TEXT GENERATED ALWAYS AS (attic.name(run)) STORED",
        "ALTER TABLE sqlanon.live DROP more",
        "sqlanon.live uses function attic.name(text)",
    ),
    (
        "ALTER TABLE sqlanon.live ADD more attic.line",
        "ALTER TABLE sqlanon.live DROP more",
        "sqlanon.live uses type attic.line",
    ),
    (
        "CREATE TABLE attic.child () INHERITS (sqlanon.jobs); ALTER TABLE attic.child OWNER TO other",
        "DROP TABLE attic.child",
        "attic.child inherits from sqlanon.jobs",
    ),
    (
        "CREATE EVENT TRIGGER e ON ddl_command_end EXECUTE FUNCTION attic.on_ddl()",
        "DROP EVENT TRIGGER e",
        "event trigger e calls a function of role other",
    ),
]
RIGHTS = [
    (
        "ALTER TABLE sqlanon.runs OWNER TO other; GRANT ALL ON sqlanon.runs TO {runner}",
        "ALTER TABLE sqlanon.runs OWNER TO {runner}",
        "sqlanon.runs belongs to role other",
    ),
    (
        "ALTER SCHEMA sqlanon OWNER TO other; GRANT ALL ON SCHEMA sqlanon TO {runner}",
        "ALTER SCHEMA sqlanon OWNER TO {runner}",
        "schema sqlanon belongs to role other",
    ),
    (
        "GRANT UPDATE ON sqlanon.jobs TO other",
        "REVOKE ALL ON sqlanon.jobs FROM other",
        "role other has UPDATE on sqlanon.jobs",
    ),
    (
        "GRANT UPDATE (inspection) ON sqlanon.jobs TO other",
        "REVOKE ALL ON sqlanon.jobs FROM other",
        "role other has UPDATE on sqlanon.jobs (inspection)",
    ),
    ("GRANT INSERT ON sqlanon.rule_sets TO PUBLIC", "REVOKE ALL ON sqlanon.rule_sets FROM PUBLIC", "PUBLIC has INSERT"),
    ("GRANT TRIGGER ON sqlanon.runs TO other", "REVOKE ALL ON sqlanon.runs FROM other", "role other has TRIGGER"),
    ("GRANT REFERENCES ON sqlanon.runs TO other", "REVOKE ALL ON sqlanon.runs FROM other", "role other has REFERENCES"),
    ("GRANT CREATE ON SCHEMA sqlanon TO other", "REVOKE CREATE ON SCHEMA sqlanon FROM other", "role other may create"),
    ("GRANT CREATE ON SCHEMA sqlanon TO PUBLIC", "REVOKE CREATE ON SCHEMA sqlanon FROM PUBLIC", "PUBLIC may create"),
    (
        "CREATE FUNCTION sqlanon.count(TEXT) RETURNS BIGINT LANGUAGE SQL AS 'SELECT 0::BIGINT';"
        " ALTER FUNCTION sqlanon.count(TEXT) OWNER TO other",
        "DROP FUNCTION sqlanon.count(TEXT)",
        "routine sqlanon.count belongs to role other",
    ),
    (
        "CREATE PROCEDURE sqlanon.job_nightly() LANGUAGE SQL AS 'INSERT INTO attic.stolen VALUES (current_user)';"
        " ALTER PROCEDURE sqlanon.job_nightly() OWNER TO other",
        "DROP PROCEDURE sqlanon.job_nightly()",
        "routine sqlanon.job_nightly belongs to role other",
    ),
    (
        "CREATE FUNCTION attic.differs(TEXT, TEXT) RETURNS BOOLEAN LANGUAGE SQL AS 'SELECT TRUE';"
        " CREATE OPERATOR sqlanon.= (LEFTARG = TEXT, RIGHTARG = TEXT, FUNCTION = attic.differs);"
        " ALTER OPERATOR sqlanon.= (TEXT, TEXT) OWNER TO other",
        "DROP OPERATOR sqlanon.= (TEXT, TEXT); DROP FUNCTION attic.differs(TEXT, TEXT)",
        "operator = of schema sqlanon belongs to role other",
    ),
    (
        "CREATE TABLE sqlanon.rules_planted (n INT); ALTER TABLE sqlanon.rules_planted OWNER TO other",
        "DROP TABLE sqlanon.rules_planted",
        "sqlanon.rules_planted belongs to role other",
    ),
]


@pytest.fixture
def place(postgres_server: PostgresServer, postgres_url: str) -> Iterator[Place]:
    """A database whose runner has run once, and in which another role has functions that steal."""
    postgres_server.run("CREATE ROLE other LOGIN")
    with open_place(postgres_server, postgres_url) as place:
        place.grant()
        anonymize(place.policy(place.roles.runner))
        place.owner.sql(STEALING)
        yield place
        place.owner.sql("DROP OWNED BY other CASCADE")
    postgres_server.run("DROP ROLE other")


@pytest.mark.parametrize("attacks", [CODE, RIGHTS], ids=["code", "rights"])
def test_a_catalog_that_others_got_into_is_refused(place: Place, attacks: list[tuple[str, str, str]]) -> None:
    runner = place.roles.runner
    for attack, undoing, said in attacks:
        _as_administrator(place, attack)
        with connect(place.url(runner)) as engine, pytest.raises(AccessError, match=re.escape(said)):
            Catalog.open(engine).close()
        _as_administrator(place, undoing)
        with connect(place.url(runner)) as engine:
            Catalog.open(engine).close()
    assert place.owner.sql("SELECT who FROM attic.stolen WHERE who <> 'postgres'") == []


@pytest.mark.parametrize("attacks", [CODE, RIGHTS], ids=["code", "rights"])
def test_a_procedure_looks_by_itself(place: Place, attacks: list[tuple[str, str, str]]) -> None:
    """As pg_cron calls it, without the program; it writes nothing before it has looked."""
    with open_database(place.url(place.roles.runner)) as runner:
        frozen(runner, anonymize(place.policy(place.roles.runner), replace=True).run)
        for attack, undoing, said in attacks:
            if "job_nightly" in attack:  # that one is called in its place: it takes the creator's rights to make it
                continue
            _as_administrator(place, attack)
            with pytest.raises(psycopg.Error, match=re.escape(said)) as error:
                runner.sql("CALL sqlanon.job_nightly()")
            assert error.value.sqlstate == "SA005"
            _as_administrator(place, undoing)
        runner.sql("CALL sqlanon.job_nightly()")
        assert [run.status for run in runs(runner)] == ["published"]
    assert place.owner.sql("SELECT who FROM attic.stolen WHERE who <> 'postgres'") == []


@pytest.mark.parametrize(
    ("rules", "columns"),
    [("tree", ["inspection", "assigning", "showing"]), ("levels", ["inspection", "recoding"])],
)
def test_a_changed_statement_is_not_executed(place: Place, rules: str, columns: list[str]) -> None:
    run = anonymize(_policy_of(place, rules), replace=True).run
    steals = "INSERT INTO attic.stolen VALUES (current_user) RETURNING 1"
    with open_database(place.url(place.roles.runner)) as runner:
        frozen(runner, run)
        before = runner.sql("SELECT * FROM released.patients")
        for column in columns:
            ((kept,),) = runner.sql(f"SELECT {column} FROM sqlanon.jobs")
            for changed in (f"'WITH stolen AS ({steals}) ' || {column}", f"{column} || ' '", "''", "NULL"):
                place.owner.sql(f"UPDATE sqlanon.jobs SET {column} = {changed}")
                with pytest.raises(PolicyError, match="is not what was frozen"):
                    carry_out(runner)
                place.owner.sql(f"UPDATE sqlanon.jobs SET {column} = ?", [kept])
        assert sorted(runner.sql("SELECT * FROM released.patients")) == sorted(before)
        assert carry_out(runner)["published"]
        ((text,),) = runner.sql("SELECT prosrc FROM pg_proc WHERE proname = 'job_nightly'")
        (listed,) = re.findall("INTO STRICT ([^\n]*)\n", text)
        looked_up = listed.split(", ")
        checked = re.findall("convert_to\\(([a-z_]*), 'UTF8'\\)\\), 'hex'\\) IS DISTINCT FROM", text)
        assert {*checked} == {*looked_up} >= {f"sqlanon_{column}" for column in columns}
    assert place.owner.sql("SELECT who FROM attic.stolen") == []


def test_digests_do_not_tell_of_small_statements(place: Place) -> None:
    """Two jobs by the same rules have other digests, but for that of the rules: nobody finds the texts by guessing."""
    seen = []
    with open_database(place.url(place.roles.runner)) as runner:
        run = anonymize(place.policy(place.roles.runner), replace=True).run
        for _ in range(2):
            frozen(runner, run)
            ((text,),) = runner.sql("SELECT prosrc FROM pg_proc WHERE proname = 'job_nightly'")
            seen.append(set(re.findall("[0-9a-f]{64}", text)))
    assert (len(seen[0]), len(seen[0] & seen[1])) == (4, 1)


def _policy_of(place: Place, rules: str) -> Policy:
    if rules == "tree":
        return place.policy(place.roles.runner)
    generalized = {**ATTRIBUTES, 'the "age"': {"role": "quasi-identifier", "hierarchy": {"intervals": [10, 20]}}}
    return place.policy(place.roles.runner, attributes=generalized, algorithm={"name": "incognito"})


def _as_administrator(place: Place, statements: str) -> None:
    place.owner.sql(statements.replace("{runner}", quoted(place.roles.runner)))


def test_every_command_refuses_it(place: Place) -> None:
    policy = place.policy(place.roles.runner)
    place.owner.sql(CODE[0][0])
    with pytest.raises(AccessError, match="grant-script"):
        anonymize(policy, replace=True)
    with open_database(place.url(place.roles.runner)) as runner, pytest.raises(AccessError, match="has trigger t"):
        frozen(runner, "latest")
    assert place.owner.sql("SELECT who FROM attic.stolen WHERE who <> 'postgres'") == []


def test_a_superuser_does_not_run_what_the_runner_wrote(place: Place) -> None:
    with connect(place.postgres_url) as engine, pytest.raises(AccessError, match="belongs to role"):
        Catalog.open(engine).close()


def test_two_runners_have_a_catalog_each(place: Place) -> None:
    """Neither can write in that of the other, and the script gives nobody the catalog of somebody else."""
    second = Roles(place.roles.runner + " 2", place.roles.reader)
    own = {"catalog": {"schema": "50% second"}, "release": {"table": "second.patients"}}
    try:
        with pytest.raises(psycopg.errors.RaiseException, match="must be one runner's alone"):
            place.grant(roles=second)
        place.grant(roles=second, **own)
        policy = place.policy(second.runner, **own)
        assert anonymize(policy).published
        run = anonymize(place.policy(place.roles.runner), replace=True).run
        with open_database(place.url(place.roles.runner)) as runner, open_database(place.url(second.runner)) as other:
            frozen(runner, run)
            for attack in (
                "UPDATE sqlanon.jobs SET inspection = 'SELECT 1'",
                "CREATE TABLE sqlanon.more (n INT)",
                "CREATE TRIGGER t AFTER INSERT ON sqlanon.runs FOR EACH ROW EXECUTE FUNCTION attic.steal()",
                "SELECT * FROM sqlanon.runs",
                "CALL sqlanon.job_nightly()",
            ):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    other.sql(attack)
            assert carry_out(runner)["published"]
    finally:
        place.owner.sql(f"DROP OWNED BY {quoted(second.runner)} CASCADE; DROP ROLE {quoted(second.runner)}")


def test_the_script_takes_back_what_others_were_granted(place: Place) -> None:
    place.owner.sql(
        "GRANT CREATE, USAGE ON SCHEMA sqlanon TO other; GRANT ALL ON ALL TABLES IN SCHEMA sqlanon TO other;"
        " GRANT UPDATE (inspection) ON sqlanon.jobs TO PUBLIC"
    )
    with connect(place.url(place.roles.runner)) as engine, pytest.raises(AccessError, match="role other has"):
        Catalog.open(engine).close()
    place.grant()
    with connect(place.url(place.roles.runner)) as engine:
        Catalog.open(engine).close()
    assert place.owner.sql("SELECT has_table_privilege('other', 'sqlanon.runs', 'SELECT')") == [(True,)]


def test_a_catalog_that_is_given_away_as_it_is_made_is_refused(place: Place) -> None:
    """Default privileges give others the tables that are made from now on."""
    runner = place.roles.runner
    place.owner.sql(f"CREATE SCHEMA fresh AUTHORIZATION {quoted(runner)}")
    place.owner.sql(
        f"ALTER DEFAULT PRIVILEGES FOR ROLE {quoted(runner)} IN SCHEMA fresh GRANT INSERT ON TABLES TO other"
    )
    with connect(place.url(runner)) as engine, pytest.raises(AccessError, match="role other has INSERT"):
        Catalog.open(engine, "fresh").close()
