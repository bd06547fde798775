"""Releases that are entered in an account after they were published: judged as if they had been entered then."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from sqlanon.catalog import Catalog
from sqlanon.catalog.location import CatalogAddress, database_of
from sqlanon.engines import connect
from sqlanon.errors import PolicyError, ProtectionError
from sqlanon.policy import Policy
from sqlanon.policy.writer import policy_text
from sqlanon.runs.accounts.adopting import Adoption, adopt_run
from tests.accounts.test_accounts import (
    COLUMNS,
    MODELS,
    NEWCOMER,
    PEOPLE,
    ROLES,
    Classes,
    State,
    classes_of,
    expected,
    fill,
    kept,
    nights,
    person,
    policy_of,
)
from tests.cli.support import call
from tests.persons_support import CASES
from tests.rules_support import apply
from tests.run_support import OPTIONS, Database, Row, anonymize

LEVELS = {
    "who": "identifier",
    "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [3, 9]}},
    "to wn": {"role": "quasi-identifier", "hierarchy": "suppress"},
    "signature": "sensitive",
    "nr": "insensitive",
}


def adopt(database: Database, run: str, known: Policy | None = None) -> Adoption:
    with connect(database.url) as engine, Catalog.open(engine) as catalog:
        recorded, where = catalog.run(run), database_of(engine)
    return adopt_run(recorded, CatalogAddress(database.url, "sqlanon"), where, known, options=OPTIONS)


def groups_kept(database: Database, people: str) -> list[int]:
    """The sizes of the groups of an account, of persons in its newest release and of others."""
    rows = database.sql(
        "SELECT CASE WHEN p.signature > 0 THEN 1 ELSE -1 END, count(*) FROM sqlanon.account_persons p"
        f" JOIN sqlanon.accounts a ON a.id = p.account WHERE a.name = '{people}' GROUP BY p.signature"
    )
    return sorted(sign * n for sign, n in rows)


@settings(max_examples=3, **CASES)
@given(states=nights())
def test_an_adopted_release_is_judged_as_one_that_was_entered_at_once(
    database: Database, states: list[tuple[State, bool]]
) -> None:
    table, releases = database.create(COLUMNS, []), list[Classes]()
    plain, rules = policy_of(database, table, "none"), None
    at_once, later = (policy_of(database, table, "watch", people=f"{table}_{name}") for name in ("once", "later"))
    for state, applies in states:
        fill(database, table, state)
        try:
            if applies and rules is not None:
                run = apply(database, rules[0], table, f"{table}_plain", replace=True).run
                entered = apply(database, rules[1], table, f"{table}_r", replace=True)
            else:
                run, entered = anonymize(plain, replace=True).run, anonymize(at_once, replace=True)
                rules = rules or (run, entered.run)
        except ProtectionError:
            continue
        releases.append(classes_of(database, f"{table}_plain"))
        holds, figures = expected(releases, state)
        adopted = adopt(database, run, later)
        assert vars(adopted.history) == vars(entered.history) | {"people": f"{table}_later"}
        assert {name: getattr(adopted.history, name) for name in figures} == figures
        assert (adopted.problem is None) is holds
        assert groups_kept(database, f"{table}_later") == groups_kept(database, f"{table}_once")
        assert database.sql(f"SELECT count(*) FROM sqlanon.account_releases WHERE run = '{run}'") == [(1,)]
        assert classes_of(database, f"{table}_plain") == releases[-1]
    assert database.leftovers() == []


@pytest.mark.parametrize(
    ("roles", "more"),
    [
        (ROLES, {}),
        (ROLES, {"digest": "run"}),
        (ROLES, {"ranges": "cuts", "digest": "run"}),
        (ROLES, {"release": {"layout": "star"}, "digest": "run"}),
        (LEVELS, {"algorithm": {"name": "optimal"}, "suppression": 0.4, "digest": "run"}),
        (LEVELS, {"algorithm": {"name": "optimal"}, "suppression": 0.4, "suppressed": "star", "digest": "run"}),
        (LEVELS, {"algorithm": {"name": "top-down"}, "digest": "run"}),
        (LEVELS, {"algorithm": {"name": "datafly"}, "suppression": 0.2}),
    ],
)
def test_the_persons_are_those_of_the_release_by_every_kind_of_rules(
    database: Database, roles: dict[str, Any], more: dict[str, Any]
) -> None:
    rows = [
        *PEOPLE.values(),
        person(20, None, "a", "flu"),
        person(21, None, None, "rash"),
        person(22, None, "b", "gout"),
    ]
    table = database.create(COLUMNS, rows)
    release = {"release": {"table": f"{table}_p"} | more.get("release", {})}
    given = {"subject": "who", "privacy": [{"model": "k-anonymity", "k": 3}]} | more | release
    result = anonymize(database.policy(table, roles, **given))
    history = {"history": {"mode": "refresh"}, "people": f"{table}_p"}
    at_once = database.policy(table, roles, **(given | history | {"release": {"table": f"{table}_r"}}))
    entered = anonymize(at_once).history
    adopted = adopt(database, result.run, database.policy(table, roles, subject="who", people=f"{table}_q"))
    assert entered is not None
    assert vars(adopted.history) == vars(entered) | {"people": f"{table}_q"}
    assert groups_kept(database, f"{table}_q") == groups_kept(database, f"{table}_p")


def test_a_release_that_tells_too_few_is_entered_with_a_warning(database: Database, tmp_path: Path) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    plain, policy = policy_of(database, table, "none"), policy_of(database, table, "refresh")
    file = tmp_path / "policy.yml"
    file.write_text(policy_text(policy), encoding="utf-8")
    run = anonymize(plain).run
    shown = call("account", file)
    assert "1 published run about these people is not entered" in shown.stdout + shown.stderr
    assert "sqlanon account adopt RUN" in shown.stdout + shown.stderr
    assert json.loads(call("account", "adopt", run, file, "--json").stdout)["warnings"] == []
    (account,) = json.loads(call("account", file, "--json").stdout)["accounts"]
    assert (account["unentered"], [one["run"] for one in account["releases"]]) == ([], [run])
    database.insert(table, [NEWCOMER])
    second = apply(database, run, table, f"{table}_plain", replace=True).run
    assert f"1 published run about these people is not entered ({second})" in call("account", file).stdout
    before = database.sql(f"SELECT * FROM {table}_plain")
    adopted = call("account", "adopt", second, file)
    assert adopted.exit_code == 0
    assert "2 releases about" in adopted.stdout
    assert "Warning: Together with 1 earlier release" in adopted.stdout
    assert "1 person among fewer than 3" in adopted.stdout
    assert database.sql(f"SELECT * FROM {table}_plain") == before
    assert not database.sql(f"SELECT * FROM information_schema.tables WHERE table_name = '{table}_r'")
    for again in (second, run):
        refused = call("account", "adopt", again, "--url", database.url)
        assert (refused.exit_code, "is entered already" in refused.stderr) == (2, True)
    with pytest.raises(ProtectionError):
        anonymize(policy)
    assert database.leftovers() == []


CHANGES = {
    "it had 16 rows, and has 15": "DELETE FROM {table} WHERE nr = 3",
    "values or types of its columns": "UPDATE {table} SET age = age + 1 WHERE nr = 3",
    "signature: .* has no such column": "ALTER TABLE {table} DROP COLUMN signature",
    "there is no table": "DROP TABLE {table}",
    "'who' repeats": "UPDATE {table} SET who = 'p1' WHERE nr < 3",
    "is NULL": "UPDATE {table} SET who = NULL WHERE nr = 3",
}


@pytest.mark.parametrize("message", list(CHANGES))
def test_a_source_that_has_changed_is_refused(database: Database, message: str) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    policy = policy_of(database, table, "watch")
    run = anonymize(policy_of(database, table, "none")).run
    database.sql(CHANGES[message].format(table=table))
    before = kept(database)
    with pytest.raises(PolicyError, match=message):
        adopt(database, run, policy)
    assert [len(part) for part in kept(database)[1:]] == [len(part) for part in before[1:]]
    assert database.leftovers() == []


def test_runs_without_rules_or_persons_are_refused(database: Database, tmp_path: Path) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    numbers = {"who": "identifier", "age": "quasi-identifier", "to wn": "omit", "signature": "omit", "nr": "omit"}
    database.sql(f"UPDATE {table} SET age = 20")
    micro = database.policy(table, numbers, algorithm={"name": "microaggregation"}, subject="who")
    with pytest.raises(PolicyError, match="left no rules"):
        adopt(database, anonymize(micro, replace=True).run)
    relaxed = policy_of(database, table, "none", algorithm={"name": "mondrian", "partitioning": "relaxed"})
    with pytest.raises(PolicyError, match="partitioning: relaxed"):
        adopt(database, anonymize(relaxed, replace=True).run)
    failing = policy_of(database, table, "none", privacy=[{"model": "k-anonymity", "k": 99}])
    with pytest.raises((ProtectionError, PolicyError)):
        anonymize(failing)
    (failed,) = database.sql("SELECT id FROM sqlanon.runs WHERE status <> 'published' LIMIT 1")
    with pytest.raises(PolicyError, match="published nothing"):
        adopt(database, failed[0])
    nobody = database.policy(table, ROLES, subject="none", privacy=MODELS[:1])
    run = anonymize(nobody, replace=True).run
    with pytest.raises(PolicyError, match="name the column that tells them apart as `subject`"):
        adopt(database, run)
    assert adopt(database, run, policy_of(database, table, "watch")).history.releases == 1
    file = database.policy(table, ROLES, subject="who", privacy=MODELS[:1], release={"file": str(tmp_path / "r.csv")})
    with pytest.raises(PolicyError, match="a file can't be published together with its account"):
        adopt(database, anonymize(file).run)
    with pytest.raises(PolicyError, match="no run 'nobody'"):
        adopt(database, "nobody")


def test_the_digest_of_the_rows_is_compared(database: Database) -> None:
    """Of another version of the engine the source's digest says nothing; a changed record is told by the figures."""
    table = database.create(COLUMNS, list(PEOPLE.values()))
    run = anonymize(policy_of(database, table, "none", digest="run")).run
    version = database.sql(f"SELECT engine_version FROM sqlanon.runs WHERE id = '{run}'")[0][0]
    rows: list[Row] = database.sql(f"SELECT content_digest FROM sqlanon.releases WHERE run = '{run}'")
    database.sql(f"UPDATE sqlanon.releases SET content_digest = 'another' WHERE run = '{run}'")
    with pytest.raises(PolicyError, match="the digest of its rows"):
        adopt(database, run)
    database.sql(f"UPDATE sqlanon.releases SET content_digest = '{rows[0][0]}' WHERE run = '{run}'")
    database.sql(f"UPDATE sqlanon.runs SET engine_version = 'another' WHERE id = '{run}'")
    assert adopt(database, run).history.releases == 1
    assert version != "another"


def test_no_release_is_adopted_as_a_second_first_batch(database: Database) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    run = anonymize(policy_of(database, table, "none")).run
    growing = policy_of(database, table, "increments")
    anonymize(growing)
    before = kept(database)
    with pytest.raises(PolicyError, match="has batches, and the release of this run is none of them"):
        adopt(database, run, growing)
    assert kept(database) == before
