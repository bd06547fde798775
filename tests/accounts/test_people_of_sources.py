"""The people of tables, views, partitions and renamed tables: one account for the same ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sqlanon import check_policy
from sqlanon.errors import PolicyError
from sqlanon.policy import Policy
from sqlanon.policy.loading import build_policy
from tests.accounts.test_accounts import COLUMNS, PEOPLE, ROLES, policy_of
from tests.cli.support import call_main
from tests.run_support import Database, anonymize, open_database, quoted


def view_of(database: Database, query: str) -> str:
    view = f"v{database.create({'x': 'INTEGER'}, [])}"
    database.sql(f'CREATE VIEW "{view}" AS {query}')
    return view


def releases_of(policy: Policy) -> int:
    history = anonymize(policy, replace=True).history
    assert history is not None
    return history.releases


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM {0}",
        "SELECT * FROM {0} WHERE nr < 12",
        'SELECT who, age + 1 AS age, "to wn", signature, nr FROM {0}',
        'SELECT lower(who) AS who, age, "to wn", signature, nr FROM (SELECT * FROM {0}) AS inner_part',
    ],
)
def test_a_view_of_one_table_has_its_people_in_whatever_order_they_are_released(database: Database, query: str) -> None:
    for order in (1, -1):
        table = database.create(COLUMNS, list(PEOPLE.values()))
        view = view_of(database, query.format(table))
        sources = [table, view, view_of(database, f'SELECT * FROM "{view}"')][::order]
        policies = [policy_of(database, one, "watch") for one in sources]
        assert [releases_of(one) for one in policies] == [1, 2, 3]
        plain = anonymize(policy_of(database, sources[0], "none")).warnings
        assert [one for one in plain if "this one is not entered" in one]


def test_an_account_names_runs_of_views_and_tables_that_it_does_not_know(
    database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    table, other, gone = (database.create(COLUMNS, list(PEOPLE.values())) for _ in range(3))
    view = view_of(database, f"SELECT * FROM {table}")
    plain = {one: anonymize(policy_of(database, one, "none")).run for one in (view, table, other, gone)}
    named = anonymize(policy_of(database, view, "none", people="others", release={"table": f"{view}_others"})).run
    database.sql(f"DROP TABLE {gone}")
    for people in (None, "ours"):
        anonymize(policy_of(database, table, "watch", people=people), replace=people is not None)
    code, printed, _ = call_main(capsys, "account", "--url", database.url, "--json")
    unknown = {one["people"]: one["unentered"] for one in json.loads(printed)["accounts"]}
    assert code == 0
    assert len(unknown) == 2
    assert all(runs == [plain[table], plain[view]] for runs in unknown.values())
    assert named not in str(unknown)


def test_people_of_a_view_of_two_tables_are_to_be_named(database: Database) -> None:
    table, more = (database.create(COLUMNS, list(PEOPLE.values())) for _ in range(2))
    view = view_of(database, f"SELECT a.* FROM {table} AS a JOIN {more} AS b ON a.who = b.who")
    for refused in (anonymize, check_policy):
        with pytest.raises(PolicyError, match=r"people: .* is a view of no table, or of several"):
            refused(policy_of(database, view, "refresh"))
    named = policy_of(database, view, "refresh", people="ours")
    assert check_policy(named) is not None
    assert releases_of(named) == 1
    assert not any("not entered" in one for one in anonymize(policy_of(database, table, "none")).warnings)


def test_a_file_is_to_be_loaded_into_a_table_whoever_named_its_people(tmp_path: Path) -> None:
    url, file = f"duckdb:///{tmp_path}/people.duckdb", tmp_path / "people.csv"
    with open_database(url) as database:
        table = database.create(COLUMNS, list(PEOPLE.values()))
        database.sql(f"COPY {table} TO '{file}' (HEADER)")
        plain = policy_of(database, table, "watch").model_dump(mode="json", exclude_unset=True)
    for more in ({}, {"people": "ours"}, {"catalog": {"url": url}}):
        there = {"source": {"file": str(file)}, "release": {"url": url, "table": "released"}, **more}
        for refused in (anonymize, check_policy):
            with pytest.raises(PolicyError, match="history: a file is in no database with its release; load it"):
                refused(build_policy(plain | there))


def test_a_name_that_a_policy_gives_holds_for_others_of_the_same_table(database: Database) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    assert releases_of(policy_of(database, table, "watch", people="ours")) == 1
    assert releases_of(policy_of(database, table, "watch")) == 2
    more = database.create(COLUMNS, list(PEOPLE.values()))
    assert releases_of(policy_of(database, more, "watch", people="ours")) == 3
    assert releases_of(policy_of(database, more, "watch")) == 4
    assert releases_of(policy_of(database, table, "watch", people="others")) == 1
    with pytest.raises(PolicyError, match="known to the accounts of others and of ours; name one"):
        anonymize(policy_of(database, table, "watch"), replace=True)


def test_another_column_is_of_other_people(database: Database) -> None:
    """Persons who are known by one column can't be found again by another."""
    table = database.create(COLUMNS, list(PEOPLE.values()))
    anonymize(policy_of(database, table, "watch"))
    roles: dict[str, Any] = {"who": "insensitive", "nr": "identifier"}
    by_number = {"history": {"mode": "watch"}, "subject": "nr", "release": {"table": f"{table}_nr"}}
    policy = database.policy(table, ROLES | roles, **by_number)
    view = view_of(database, f'SELECT who AS nr, age, "to wn", signature, nr AS who FROM {table}')
    for refused in (anonymize, check_policy):
        with pytest.raises(PolicyError, match=r"by 'who', and this policy by 'nr'. Write subject: who"):
            refused(policy)
    assert releases_of(database.policy(table, ROLES | roles, people="numbers", **by_number)) == 1
    swapped = database.policy(view, ROLES | roles, **by_number | {"release": {"table": f"{table}_swapped"}})
    with pytest.raises(PolicyError, match="known to the accounts"):
        anonymize(swapped)
    by_both = swapped.model_copy(update={"people": "numbers"})
    for refused in (anonymize, check_policy):
        with pytest.raises(PolicyError, match=r"account of numbers knows .* by 'nr', and this policy by 'who'"):
            refused(by_both)
    assert releases_of(swapped.model_copy(update={"people": f'"{table}"'})) == 1


def test_a_renamed_table_and_partitions_have_the_same_people(postgres_database: Database) -> None:
    """A table that was made anew under the old name has them too, as of every night."""
    database = postgres_database
    table = database.create(COLUMNS, list(PEOPLE.values()))
    assert releases_of(policy_of(database, table, "watch")) == 1
    database.sql(f"ALTER TABLE {table} RENAME TO {table}_old")
    assert releases_of(policy_of(database, f"{table}_old", "watch")) == 2
    database.create(COLUMNS, list(PEOPLE.values()), table)
    assert releases_of(policy_of(database, table, "watch")) == 3
    whole = f"{table}_whole"
    database.sql(f"CREATE TABLE {whole} (LIKE {table}) PARTITION BY RANGE (nr)")
    database.sql(f"CREATE TABLE {whole}_1 PARTITION OF {whole} FOR VALUES FROM (0) TO (1000)")
    database.insert(whole, list(PEOPLE.values()))
    assert [releases_of(policy_of(database, one, "watch")) for one in (whole, f"{whole}_1")] == [1, 2]


@pytest.mark.parametrize("mode", ["none", "watch"])
def test_who_may_read_a_view_needs_no_privilege_beneath(
    postgres_url: str, restricted_role: tuple[str, str], mode: str
) -> None:
    """The database's catalog says which table is beneath; its schema may be closed to the role."""
    role, url = restricted_role
    with open_database(postgres_url) as owner, open_database(url) as database:
        owner.sql(f'CREATE SCHEMA "se cret"; CREATE SCHEMA own AUTHORIZATION {role}')
        owner.sql(f"CREATE SCHEMA sqlanon AUTHORIZATION {role}")
        table = quoted('it\'s "all"')
        owner.create(COLUMNS, list(PEOPLE.values()), table)
        owner.sql(f'ALTER TABLE {table} SET SCHEMA "se cret"')
        owner.sql(f'CREATE VIEW own.people AS SELECT * FROM "se cret".{table}; GRANT SELECT ON own.people TO {role}')
        owner.sql("CREATE VIEW own.again AS SELECT * FROM own.people")
        owner.sql(f"ALTER VIEW own.people OWNER TO postgres; GRANT SELECT ON own.again TO {role}")
        database.sql("CREATE TABLE own.own AS SELECT * FROM own.people")
        first = policy_of(database, "own.own", "watch")
        assert releases_of(first) == 1
        for number, view in enumerate(("own.people", "own.again"), start=1):
            policy = policy_of(database, view, mode)
            assert check_policy(policy) is not None
            history = anonymize(policy).history
            assert (None if history is None else history.releases) == (None if mode == "none" else number)
