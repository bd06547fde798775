"""One run, one check and one audit for every policy, from Python as by the commands."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sqlanon
from sqlanon.algorithms.search_options import SearchOptions
from sqlanon.catalog import Catalog, Status
from sqlanon.engines import connect
from sqlanon.errors import PolicyError
from sqlanon.policy import Policy
from sqlanon.policy.writer import policy_text
from sqlanon.runs.flow import carry_out
from sqlanon.runs.sink import Publish
from sqlanon.runs.sources import source_of
from sqlanon.work.journal import Silent
from sqlanon.work.session import open_session
from tests.cli.support import call
from tests.hiding_support import hiding_policy
from tests.masking_support import masking_policy
from tests.methods.differential_privacy.test_private import ATTRIBUTES, COLUMNS, rows_of
from tests.private_support import private_policy
from tests.randomize_support import randomized_policy
from tests.run_support import OPTIONS, Database, open_database

PEOPLE = {"q": "INTEGER", "id": "INTEGER"}
ROLES = {"q": "quasi-identifier", "id": "insensitive"}
BASKETS = {"basket": "INTEGER", "item": "VARCHAR(9)"}


def _classes(database: Database) -> Policy:
    return database.policy(database.create(PEOPLE, [(n % 7, n) for n in range(60)]), ROLES)


def _private(database: Database) -> Policy:
    name = database.create(COLUMNS, rows_of(40, 1))
    budget = {"ledger": name, "epsilon": 3}
    policy = private_policy(database, name, ATTRIBUTES, name="contingency", target="pay", budget=budget)
    sqlanon.grant_budget(policy, 3, "a test", options=OPTIONS)
    return policy


def _randomized(database: Database) -> Policy:
    name = database.create(PEOPLE, [(n % 7, n) for n in range(60)])
    return randomized_policy(database, name, ROLES, {"q": {"noise": "gaussian", "deviation": 3}})


def _hiding(database: Database) -> Policy:
    name = database.create(BASKETS, [(basket, item) for basket in range(6) for item in "abc"])
    return hiding_policy(database, name, BASKETS, [{"if": ["a"], "then": ["b"]}])


def _masking(database: Database) -> Policy:
    name = database.create(BASKETS, [(1, "a"), (2, "b")])
    return masking_policy(database, name, dict.fromkeys(BASKETS, "insensitive"))


KINDS: dict[str, Callable[[Database], Policy]] = {
    "classes": _classes,
    "private": _private,
    "randomized": _randomized,
    "hiding": _hiding,
    "masking": _masking,
}
WITHOUT_CLASSES = [kind for kind in KINDS if kind != "classes"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_policy_is_checked_run_and_audited_by_the_same_calls(
    database_url: str, kind: str, tmp_path: Path
) -> None:
    with open_database(database_url) as database:
        policy = KINDS[kind](database)
    path = tmp_path / "policy.yml"
    path.write_text(policy_text(policy), encoding="utf-8")
    checked: Any = json.loads(json.dumps(sqlanon.check_policy(policy, options=OPTIONS).as_json()))
    assert checked == printed("check", path)
    result = sqlanon.run(policy, options=OPTIONS)
    assert result.published
    assert (recorded := runs_of(database_url)[0]).id == result.run
    assert recorded.status is Status.PUBLISHED
    assert (recorded.source_rows is None) == (kind == "private")
    audit = sqlanon.audit_release(policy, options=OPTIONS)
    assert audit.satisfied
    told = printed("verify", path)
    assert {key: told[key] for key in ("checks", "run", "satisfied")} == {
        key: audit.as_json()[key] for key in ("checks", "run", "satisfied")
    }


@pytest.mark.parametrize("kind", WITHOUT_CLASSES)
@pytest.mark.parametrize("option", [{"levels": {"q": 1}}, {"time_limit": 3.0}, {"any_size": True}])
def test_options_of_a_search_are_refused_where_nothing_is_searched(
    database: Database, kind: str, option: dict[str, Any]
) -> None:
    policy = KINDS[kind](database)
    with pytest.raises(PolicyError, match=f"{next(iter(option))} has no meaning for algorithm: "):
        sqlanon.run(policy, **option)


@pytest.mark.parametrize("kind", WITHOUT_CLASSES)
@pytest.mark.parametrize("option", [{"with_source": False}, {"whole": True}])
def test_options_about_the_source_are_refused_where_it_is_not_read(
    database: Database, kind: str, option: dict[str, Any]
) -> None:
    with pytest.raises(PolicyError, match="has no meaning for"):
        sqlanon.audit_release(KINDS[kind](database), **option)


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_that_does_not_fit_its_table_is_recorded(database: Database, kind: str) -> None:
    policy = KINDS[kind](database)
    database.sql(f"ALTER TABLE {policy.source.table} ADD COLUMN later INTEGER")
    with pytest.raises(PolicyError, match="later"):
        sqlanon.run(policy, options=OPTIONS)
    last = runs_of(database.url)[0]
    assert (last.status, last.error_class, last.algorithm) == (Status.FAILED, "PolicyError", policy.algorithm.name)


def printed(command: str, path: Path) -> Any:
    done = call(command, path, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def runs_of(url: str) -> Any:
    with connect(url) as engine, Catalog.open(engine) as catalog:
        return catalog.runs(5)


class InsertsMeanwhile(Silent):
    """Writes into the source of a run once its search has begun."""

    def __init__(self, database: Database, table: str, values: str) -> None:
        self.database, self.table, self.values = database, table, values

    def phase(self, name: str) -> None:
        if name == "recode":
            self.database.sql(f"INSERT INTO {self.table} VALUES {self.values}")


def test_rows_that_come_meanwhile_are_in_no_part_of_a_run_that_hides_rules(postgres_database: Database) -> None:
    """The search, the staged rows and their check are of one state of the source."""
    policy = _hiding(postgres_database)
    table = policy.source.table or ""
    sqlanon.run(policy, options=OPTIONS, observer=InsertsMeanwhile(postgres_database, table, "(99, 'z')"))
    assert postgres_database.sql(f"SELECT count(*) FROM {table} WHERE item = 'z'") == [(1,)]
    assert postgres_database.sql(f"SELECT count(*) FROM {policy.release.table} WHERE item = 'z'") == [(0,)]


def test_a_session_is_listened_to_as_before_a_run(database: Database) -> None:
    policy = _classes(database)
    with open_session(policy, OPTIONS) as session:
        carry_out(session, policy, source_of(policy, SearchOptions()), Publish(replace=False))
        assert [engine.listener for engine in session.engines] == [None]
