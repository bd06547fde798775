"""Histories belong to the tables beneath: whatever view asks, answers together tell of no few persons."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlanon.engines import connect
from sqlanon.errors import PolicyError, ProtectionError
from sqlanon.inquiries.questions.ask import ask
from sqlanon.plan.beneath import table_beneath
from sqlanon.policy import Policy
from sqlanon.sql import Relation
from tests.postgres_server import PostgresServer
from tests.run_support import OPTIONS, Database, duckdb_url, open_database

pytestmark = pytest.mark.slow

ROLES = {"age": "quasi-identifier", "job": "quasi-identifier", "income": "sensitive"}
COLUMNS = {"age": "INTEGER", "job": "TEXT", "income": "INTEGER"}
ROWS = [(age, ["cook", "nurse"][age % 2], 7 * age * age % 101) for age in range(20, 40)]
RENAMED = {"years": "quasi-identifier", "Trade": "quasi-identifier", "pay": "sensitive"}


def policy_of(database: Database, table: str, roles: dict[str, str] | None = None) -> Policy:
    return database.policy(
        table, roles or ROLES, release={"table": "released"}, privacy=[{"model": "k-anonymity", "k": 3}]
    )


def answer(policy: Policy, text: str) -> str | None:
    """The answer; None where the question is denied."""
    try:
        return ask(policy, text, OPTIONS).value
    except ProtectionError:
        return None


VIEWS: dict[str, tuple[list[str], dict[str, str]]] = {
    "all columns": (["CREATE VIEW {v} AS SELECT * FROM {t}"], ROLES),
    "renamed": (['CREATE VIEW {v} AS SELECT x.income AS pay, x.age AS years, x.job AS "Trade" FROM {t} AS x'], RENAMED),
    "named in the head": (['CREATE VIEW {v} (years, "Trade", pay) AS SELECT age, job, income FROM {t}'], RENAMED),
    "some": (["CREATE VIEW {v} AS SELECT income, age FROM {t}"], {name: ROLES[name] for name in ("age", "income")}),
    "a view of a view": (
        [
            'CREATE VIEW {v}_1 AS SELECT age AS "a ""b", job, income AS age FROM {t}',
            'CREATE VIEW {v} AS SELECT age AS income, "a ""b" AS age, job FROM {v}_1',
        ],
        ROLES,
    ),
}


@pytest.mark.parametrize("kind", VIEWS)
@pytest.mark.parametrize("view_first", [False, True])
def test_views_that_name_columns_have_the_tables_history(database: Database, kind: str, view_first: bool) -> None:
    table, view = database.create(COLUMNS, ROWS), "v_asked"
    statements, roles = VIEWS[kind]
    for statement in statements:
        database.sql(statement.format(v=view, t=table))
    sources = [(policy_of(database, table), "age", "income")]
    sources.append(
        (
            policy_of(database, view, roles),
            "years" if "years" in roles else "age",
            "pay" if "pay" in roles else "income",
        )
    )
    (first, age, income), (second, other_age, other_income) = reversed(sources) if view_first else sources
    assert answer(first, f"sum({income}) where {age} <= 29") == str(sum(row[2] for row in ROWS[:10]))
    assert answer(second, f"sum({other_income}) where {other_age} <= 30") is None
    assert answer(second, f"sum({other_income}) where {other_age} <= 32") == str(sum(row[2] for row in ROWS[:13]))
    assert answer(first, f"sum({income}) where {age} <= 33") is None


def test_a_view_has_no_columns_but_its_own(database: Database) -> None:
    table = database.create(COLUMNS, ROWS)
    database.sql(f"CREATE VIEW v_renamed AS SELECT age AS years, job AS age, income AS pay FROM {table}")
    roles = {"years": "quasi-identifier", "age": "quasi-identifier", "pay": "sensitive"}
    policy = policy_of(database, "v_renamed", roles)
    for text, words in {
        "sum(pay) where job = 'cook'": "'job' is no quasi-identifier",
        "sum(income) where years < 30": "'income' is no sensitive",
        "sum(pay) where age < 30": "'age' has no order",
    }.items():
        with pytest.raises(PolicyError, match=words):
            ask(policy, text, OPTIONS)
    assert answer(policy, "count(*) where age = 'cook' and years < 30") == "5"


OTHERS = [
    "SELECT * FROM {t} WHERE age > 20",
    "SELECT DISTINCT age, job, income FROM {t}",
    "SELECT age, job, income * 2 AS income FROM {t}",
    "SELECT age, upper(job) AS job, income FROM {t}",
    "SELECT age, job, income FROM {t} LIMIT 15",
    "SELECT age, job, income FROM {t} ORDER BY income LIMIT 15 OFFSET 2",
    "SELECT a.age, a.job, b.income FROM {t} AS a JOIN {t} AS b ON a.age = b.age",
    "SELECT a.age, a.job, a.income FROM {t} AS a, (SELECT 1 AS one) AS b",
    "SELECT age, job, income FROM {t} UNION ALL SELECT age, job, income FROM {t}",
    "SELECT age, job, sum(income) AS income FROM {t} GROUP BY age, job",
    "WITH w AS (SELECT * FROM {t}) SELECT age, job, income FROM w",
    "SELECT age, job, income FROM (SELECT * FROM {t}) AS w",
    "SELECT age, job, CAST(income AS BIGINT) AS income FROM {t}",
    "SELECT x.a AS age, x.b AS job, x.c AS income FROM {t} AS x (a, b, c)",
    "SELECT 30 AS age, 'cook' AS job, 1 AS income",
]


@pytest.mark.parametrize("query", OTHERS)
def test_views_that_choose_or_compute_are_refused(database: Database, query: str) -> None:
    table = database.create(COLUMNS, ROWS)
    database.sql(f"CREATE VIEW v_other AS {query.format(t=table)}")
    with pytest.raises(PolicyError, match="chooses, joins or computes"):
        ask(policy_of(database, "v_other"), "sum(income) where age <= 29", OPTIONS)


def test_a_history_of_a_view_by_an_earlier_version_ends_its_tables(database: Database) -> None:
    table = database.create(COLUMNS, ROWS)
    database.sql(f"CREATE VIEW v_old AS SELECT * FROM {table} WHERE age > 0")
    assert answer(policy_of(database, table), "sum(income) where age <= 29") is not None
    database.sql(f"UPDATE sqlanon.history_sources SET identity = replace(identity, '{table}', 'v_old')")
    database.sql("UPDATE sqlanon.history_sources SET identity = identity || '_' WHERE identity LIKE 'object %'")
    with pytest.raises(ProtectionError, match=r"v_old.*which has rows of"):
        ask(policy_of(database, table), "sum(income) where age <= 29", OPTIONS)


def test_spellings_of_a_table_are_one(database: Database) -> None:
    table = database.create(COLUMNS, ROWS)
    schema = "main" if database.url.startswith("duckdb") else "public"
    assert answer(policy_of(database, table), "sum(income) where age <= 29") is not None
    for other in (f"{schema}.{table}", f'"{schema}"."{table}"', f'"{table}"'):
        assert answer(policy_of(database, other), "sum(income) where age <= 30") is None


def test_parts_of_tables_are_asked_as_the_whole(postgres_url: str) -> None:
    with open_database(postgres_url) as database:
        database.sql("CREATE TABLE whole (age INTEGER, job TEXT, income INTEGER) PARTITION BY RANGE (age)")
        database.sql("CREATE TABLE young PARTITION OF whole FOR VALUES FROM (0) TO (30)")
        database.sql("CREATE TABLE older PARTITION OF whole FOR VALUES FROM (30) TO (130)")
        database.sql("CREATE TABLE plain (age INTEGER, job TEXT, income INTEGER)")
        database.sql("CREATE TABLE heir (more INTEGER) INHERITS (plain)")
        for name in ("whole", "plain"):
            database.insert(name, ROWS)
        assert answer(policy_of(database, "whole"), "sum(income) where age <= 25") is not None
        assert answer(policy_of(database, "plain"), "sum(income) where age <= 25") is not None
        for part, whole in (("young", "whole"), ("heir", "plain")):
            roles = ROLES | ({"more": "insensitive"} if part == "heir" else {})
            with pytest.raises(PolicyError, match=f'is a part of .*"{whole}"'):
                ask(policy_of(database, part, roles), "sum(income) where age <= 24", OPTIONS)
        database.sql('CREATE VIEW "only" AS SELECT age, job, income FROM ONLY plain')
        database.sql("CREATE VIEW v_young AS SELECT age, job, income FROM young")
        database.sql("CREATE MATERIALIZED VIEW m AS SELECT * FROM whole")
        for source, words in (('"only"', "chooses"), ("v_young", "is a part of"), ("m", "materialized view")):
            with pytest.raises(PolicyError, match=words):
                ask(policy_of(database, source), "sum(income) where age <= 24", OPTIONS)
        database.sql("DELETE FROM sqlanon.history_sources WHERE identity NOT LIKE '%young%'")
        database.sql("UPDATE sqlanon.histories SET digest = '0'")  # of the part, which had a history of its own once
        assert answer(policy_of(database, "whole"), "sum(income) where age <= 25") is None


def test_two_parents_of_a_table_have_one_history(postgres_url: str) -> None:
    with open_database(postgres_url) as database:
        for name in ("one", "other"):
            database.sql(f"CREATE TABLE {name} (age INTEGER, job TEXT, income INTEGER)")
        database.sql("CREATE TABLE heir () INHERITS (one, other)")
        database.insert("heir", ROWS)
        assert answer(policy_of(database, "one"), "sum(income) where age <= 25") is not None
        assert answer(policy_of(database, "other"), "sum(income) where age <= 24") is None


def test_a_search_path_changes_nothing(postgres_url: str) -> None:
    with open_database(postgres_url) as database:
        database.sql("CREATE SCHEMA clinic")
        database.create(COLUMNS, ROWS, name="clinic.people")
        database.create(COLUMNS, ROWS[:12], name="public.people")
        database.sql("CREATE VIEW clinic.shown AS SELECT age, job, income FROM clinic.people")
        ((name,),) = database.sql("SELECT quote_ident(current_database())")
        database.sql(f"ALTER DATABASE {name} SET search_path = clinic, public")
        with open_database(postgres_url) as later:
            assert answer(policy_of(later, "people"), "sum(income) where age <= 29") == str(
                sum(r[2] for r in ROWS[:10])
            )
            assert answer(policy_of(later, "shown"), "sum(income) where age <= 30") is None
            assert answer(policy_of(later, "clinic.people"), "sum(income) where age <= 30") is None


def test_a_file_of_duckdb_is_one_by_whatever_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "alias.duckdb").symlink_to(tmp_path / "real" / "a.duckdb")
    monkeypatch.chdir(tmp_path)
    with open_database(duckdb_url(tmp_path / "real" / "a.duckdb")) as database:
        database.create(COLUMNS, ROWS, name="people")
    asked = []
    for last, path in enumerate(("real/a.duckdb", "link/a.duckdb", "./real/../real/a.duckdb", "alias.duckdb")):
        with open_database(duckdb_url(Path(path))) as database:
            policy = database.policy("people", ROLES, privacy=[{"model": "k-anonymity", "k": 3}])
        policy = policy.model_copy(update={"source": policy.source.model_copy(update={"url": f"duckdb:///{path}"})})
        asked.append(answer(policy, f"sum(income) where age <= {29 + last}"))
    assert [one is None for one in asked] == [False, True, True, False]  # three persons more are enough


def test_a_role_that_may_read_the_view_alone_has_the_tables_history(
    postgres_url: str, postgres_server: PostgresServer
) -> None:
    """The table is held against the columns that the role could read at first; questions on others are not answered."""
    with open_database(postgres_url) as owner:
        owner.create(COLUMNS, ROWS, name="people")
        owner.sql("CREATE VIEW shown AS SELECT income AS pay, age AS years FROM people")
        ((name,),) = owner.sql("SELECT quote_ident(current_database())")
        owner.sql("CREATE ROLE viewer LOGIN")
        for granted in (f"CREATE ON DATABASE {name}", "SELECT ON shown"):
            owner.sql(f"GRANT {granted} TO viewer")
        viewer = Database(postgres_url.replace("//postgres@", "//viewer@"), None, "")
        seen = policy_of(viewer, "shown", {"years": "quasi-identifier", "pay": "sensitive"})
        assert answer(seen, "sum(pay) where years <= 29") == str(sum(row[2] for row in ROWS[:10]))
        assert answer(seen, "sum(pay) where years <= 30") is None
        owner.sql("GRANT SELECT ON people TO viewer")
        assert answer(policy_of(viewer, "people"), "sum(income) where age <= 30") is None
        assert answer(policy_of(viewer, "people"), "sum(income) where age <= 29") is not None
        with pytest.raises(ProtectionError, match="could not read job"):
            ask(policy_of(viewer, "people"), "count(*) where job = 'cook'", OPTIONS)
        owner.sql("UPDATE people SET job = 'smith'")
        assert answer(policy_of(viewer, "people"), "sum(income) where age <= 29") is not None
        owner.sql("UPDATE people SET income = 0 WHERE age = 20")
        with pytest.raises(ProtectionError, match="no longer what"):
            ask(seen, "sum(pay) where years <= 29", OPTIONS)
        owner.sql("DROP OWNED BY viewer CASCADE")
    postgres_server.run("DROP ROLE viewer")


@pytest.mark.parametrize(
    "definition",
    [
        "CREATE VIEW v AS SELECT s.age, job, income FROM people",
        "CREATE VIEW v AS SELECT rowid AS age, job, income FROM people",
        "CREATE VIEW v AS FROM people SELECT * EXCLUDE (s)",
        "CREATE VIEW v AS SELECT * FROM read_csv('people.csv')",
    ],
)
def test_what_only_looks_like_a_column_is_refused(
    definition: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text("age,job,income\n30,cook,1\n")
    with open_database(duckdb_url(tmp_path / "a.duckdb")) as database:
        database.sql("CREATE TABLE people (age INTEGER, job TEXT, income INTEGER, s STRUCT(age INTEGER))")
        database.sql(definition)
    with connect(duckdb_url(tmp_path / "a.duckdb")) as engine:
        found = engine.resolve(Relation("v"))
        assert found is not None
        with pytest.raises(PolicyError, match="chooses, joins or computes"):
            table_beneath(engine, found)
