"""Accounts of releases about the same people: no group of persons in all of them is of fewer than k unnoticed."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlanon import check_policy
from sqlanon.catalog import Catalog
from sqlanon.catalog.accounts import Accounts
from sqlanon.engines import connect
from sqlanon.errors import ConflictError, EngineError, PolicyError, ProtectionError
from sqlanon.policy import Policy
from sqlanon.policy.writer import policy_text
from sqlanon.runs.class_source import ClassSource
from sqlanon.runs.execution import ClassRun
from sqlanon.staging.staging import Staged
from tests.cli.support import call
from tests.jobs_support import carry_out, frozen
from tests.persons_support import CASES
from tests.rules_support import apply
from tests.run_support import Database, Row, anonymize

COLUMNS = {"who": "VARCHAR(9)", "age": "INTEGER", "to wn": "VARCHAR(9)", "signature": "VARCHAR(9)", "nr": "INTEGER"}
ROLES: dict[str, Any] = {
    "who": "identifier",
    "age": "quasi-identifier",
    "to wn": "quasi-identifier",
    "signature": "sensitive",
    "nr": "insensitive",
}
K, DIVERSITY = 3, 2
MODELS = [
    {"model": "k-anonymity", "k": K},
    {"model": "distinct-l-diversity", "attribute": "signature", "l": DIVERSITY},
]
State = dict[int, Row]  # the rows of a table by person
Classes = dict[int, Row]  # the class of each person of a release


def policy_of(database: Database, table: str, mode: str, **more: Any) -> Policy:
    history = {} if mode == "none" else {"history": {"mode": mode}, "release": {"table": f"{table}_r"}}
    plain = {"release": {"table": f"{table}_plain"}}
    return database.policy(table, ROLES, **({"privacy": MODELS, "subject": "who"} | plain | history | more))


def fill(database: Database, table: str, state: State) -> None:
    database.sql(f"DELETE FROM {table}")
    database.insert(table, list(state.values()))


def person(number: int, age: int | None, town: str | None, ill: str) -> Row:
    return (f"p{number}", age, town, ill, number)


def classes_of(database: Database, table: str) -> Classes:
    """The class of each person in a release, who is known by the number that the release keeps."""
    return {row[-1]: row[:2] for row in database.sql(f"SELECT * FROM {table}")}


def groups_of(releases: list[Classes]) -> dict[tuple[Row | None, ...], set[int]]:
    """The persons with the same classes in all releases."""
    groups: dict[tuple[Row | None, ...], set[int]] = defaultdict(set)
    for one in {person for release in releases for person in release}:
        groups[tuple(release.get(one) for release in releases)].add(one)
    return groups


def expected(releases: list[Classes], state: State) -> tuple[bool, dict[str, int]]:
    """Tell by brute force whether releases together protect everybody, and count what the account counts."""
    groups = groups_of(releases)
    sizes = [len(one) for one in groups.values()]
    diverse = all(
        len({state[one][3] for one in persons}) >= DIVERSITY for vector, persons in groups.items() if vector[-1]
    )
    before = set(releases[-2]) if len(releases) > 1 else set()
    figures = {
        "releases": len(releases),
        "persons": sum(sizes),
        "groups": len(groups),
        "smallest": min(sizes),
        "below_k": sum(size for size in sizes if size < K),
        "came": len(set(releases[-1]) - before),
        "left": len(before - set(releases[-1])),
    }
    return min(sizes) >= K and diverse, figures


@st.composite
def nights(draw: st.DrawFn) -> list[tuple[State, bool]]:
    """States of a table, each with whether the rules of the first release are applied to it."""
    ages, towns = st.sampled_from([None, *range(20, 29)]), st.sampled_from(["a", "b", None])
    row = st.tuples(ages, towns, st.sampled_from(["flu", "rash", "gout"]))
    state = {number: person(number, *draw(row)) for number in range(draw(st.integers(8, 16)))}
    states = [(dict(state), False)]
    for _ in range(draw(st.integers(1, 4))):
        size = draw(st.sampled_from([0, 1, 2, 6, 9]))
        came, moved = draw(st.booleans()), draw(row)
        for number in range(size):
            new = len(state) + 100 * len(states) + number
            alike = draw(st.booleans())
            if came:
                state[new] = person(new, *(moved[:2] if alike else draw(row)[:2]), draw(row)[2])
            elif len(state) > 8:
                gone = draw(st.sampled_from(sorted(state)))
                if alike:
                    del state[gone]
                else:
                    state[gone] = person(gone, *moved)
        states.append((dict(state), draw(st.booleans())))
    return states


def kept(database: Database) -> list[list[Row]]:
    """The accounts of the catalog."""
    tables = ("accounts", "account_releases", "account_persons")
    return [sorted(database.sql(f"SELECT * FROM sqlanon.{table}"), key=str) for table in tables]


@contextmanager
def full_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Inside, nothing can be entered in an account, and what is called ends with that error."""

    def fail(*_: Any) -> None:
        raise EngineError("The disk is full.")

    with monkeypatch.context() as patched:
        patched.setattr(Accounts, "enter_within", fail)
        with pytest.raises(EngineError, match="disk"):
            yield


@pytest.mark.parametrize("mode", ["watch", "refresh"])
@settings(max_examples=5, **CASES)
@given(states=nights())
def test_releases_together_are_judged_as_by_brute_force(
    database: Database, mode: str, states: list[tuple[State, bool]]
) -> None:
    table, releases = database.create(COLUMNS, []), list[Classes]()
    plain, policy = policy_of(database, table, "none"), policy_of(database, table, mode)
    rules: tuple[str, str] | None = None
    for state, applies in states:
        fill(database, table, state)
        try:
            if applies and rules is not None:
                apply(database, rules[0], table, f"{table}_plain", replace=True)
            else:
                found = anonymize(plain, replace=True).run
        except ProtectionError:
            continue
        now = [*releases, classes_of(database, f"{table}_plain")]
        holds, figures = expected(now, state)
        before = kept(database) if releases else []
        try:
            if applies and rules is not None:
                result = apply(database, rules[1], table, f"{table}_r", replace=True)
            else:
                result = anonymize(policy, replace=True)
        except ProtectionError:
            assert mode == "refresh"
            assert not holds
            assert not releases or kept(database) == before
            assert not releases or classes_of(database, f"{table}_r") == releases[-1]
            continue
        assert classes_of(database, f"{table}_r") == now[-1]
        assert mode == "watch" or holds
        assert result.history is not None
        assert {name: getattr(result.history, name) for name in figures} == figures
        assert any("Together with" in one for one in result.warnings) is not holds
        releases = now
        rules = rules or (None if applies else (found, result.run))
    assert database.leftovers() == []


PEOPLE = {n: person(n, 20 + n // 4, "ab"[n // 8], ["flu", "rash"][n % 2]) for n in range(16)}
NEWCOMER = person(99, 21, "a", "gout")


def test_one_person_who_came_between_two_nights(database: Database) -> None:
    """Without an account the difference of both releases is the row of that person; with one nothing is published."""
    nights: dict[str, list[list[Row]]] = {}
    for mode in ("none", "refresh"):
        table = database.create(COLUMNS, list(PEOPLE.values()))
        policy = policy_of(database, table, mode, release={"table": f"{table}_r"}, people='it\'s "ours"')
        first = anonymize(policy).run
        nights[mode] = [database.sql(f"SELECT * FROM {table}_r")]
        before = kept(database) if mode == "refresh" else []
        database.insert(table, [NEWCOMER])
        for again in (partial(apply, database, first, table, f"{table}_r"), partial(anonymize, policy)):
            if mode == "none":
                again(replace=True)
                continue
            with pytest.raises(ProtectionError, match=r"1 person among fewer than 3.*1 came, 0 left.*mode: watch"):
                again(replace=True)
        nights[mode].append(database.sql(f"SELECT * FROM {table}_r"))
    came = [row for row in nights["none"][1] if row[-1] not in PEOPLE]
    assert [row[2] for row in came] == ["gout"]
    assert sorted(nights["refresh"][0], key=str) == sorted(nights["refresh"][1], key=str)
    assert kept(database) == before
    assert database.leftovers() == []


def test_newcomers_who_all_have_one_illness_are_refused_though_they_are_many(database: Database) -> None:
    """Their class is diverse by those who were there before; the difference of both releases is not."""
    table = database.create(COLUMNS, list(PEOPLE.values()))
    first = anonymize(policy_of(database, table, "refresh")).run
    before = kept(database)
    database.insert(table, [person(n, 21, "a", "gout") for n in range(100, 110)])
    with pytest.raises(ProtectionError, match="groups of persons that violate distinct-l-diversity"):
        apply(database, first, table, f"{table}_r", replace=True)
    assert kept(database) == before


def test_no_value_of_a_person_is_kept(database: Database) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    anonymize(policy_of(database, table, "refresh"))
    (accounts, releases, persons) = kept(database)
    assert [len(one) for one in (accounts, releases, persons)] == [1, 1, len(PEOPLE)]
    text = str((releases, persons))
    assert not [one for one in PEOPLE.values() if f"{one[0]}'" in text]
    other = database.create(COLUMNS, list(PEOPLE.values()))
    anonymize(policy_of(database, other, "refresh"))
    digests = [row[1] for row in kept(database)[2]]
    assert len(digests) == len(set(digests)) == 2 * len(PEOPLE)
    for identifier, key in database.sql("SELECT id, key FROM sqlanon.accounts"):
        known = {row[1] for row in kept(database)[2] if row[0] == identifier}
        assert known == {UUID(sha256(f"{key}{one[0]}".encode()).hexdigest()[:32]) for one in PEOPLE.values()}


def test_a_failed_publication_leaves_the_account_as_it_was(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    policy = policy_of(database, table, "refresh")
    anonymize(policy)
    before, released = kept(database), classes_of(database, f"{table}_r")
    database.insert(table, [person(n, 21, "a", ["flu", "rash"][n % 2]) for n in range(100, 110)])

    with full_disk(monkeypatch):
        anonymize(policy, replace=True)
    assert (kept(database), classes_of(database, f"{table}_r")) == (before, released)
    database.sql(f"CREATE VIEW {table}_v AS SELECT * FROM {table}_r")  # so that rows are replaced in place
    result = anonymize(policy, replace=True)
    assert result.history is not None
    assert (result.history.releases, result.history.came, result.history.left) == (2, 10, 0)
    assert len(kept(database)[2]) == 26
    assert database.leftovers() == []


def test_two_runs_at_once_enter_one_after_the_other(database: Database) -> None:
    tables = [database.create(COLUMNS, list(PEOPLE.values())) for _ in range(2)]
    policies = [policy_of(database, table, "watch", people="ours") for table in tables]
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(anonymize, policies))
    entered = [result.history for result in results if result.history is not None]
    assert sorted(one.releases for one in entered) == [1, 2]
    assert {(one.persons, one.left, one.below_k) for one in entered} == {(16, 0, 0)}
    assert len(kept(database)[2]) == 16


def test_a_release_that_is_not_entered_is_warned_of(database: Database) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    plain = policy_of(database, table, "none")
    assert not any("account" in one for one in anonymize(plain).warnings)
    assert not any("has no `history`" in one for one in anonymize(policy_of(database, table, "watch")).warnings)
    assert any("has no `history`" in one for one in anonymize(plain, replace=True).warnings)


def test_an_earlier_release_that_is_not_entered_is_warned_of_whatever_its_rules(database: Database) -> None:
    """The account begins after the first release, and by the same rules; who came since then is told by both."""
    table = database.create(COLUMNS, list(PEOPLE.values()))
    plain = anonymize(policy_of(database, table, "none"))
    database.insert(table, [NEWCOMER])
    refresh = policy_of(database, table, "refresh")
    for _ in range(2):
        warnings = anonymize(refresh, replace=True).warnings
        assert [one for one in warnings if f"1 published run about these people is not entered ({plain.run})" in one]
        assert len([one for one in warnings if plain.run in one]) == 1


@pytest.mark.parametrize("change", ["DELETE FROM {0} WHERE nr = 3", "UPDATE {0} SET signature = 'none' WHERE nr = 3"])
def test_a_release_that_others_changed_is_warned_of(database: Database, tmp_path: Path, change: str) -> None:
    """A catalog that was restored lacks what was released since; as many other rows are told by the digest."""
    table = database.create(COLUMNS, list(PEOPLE.values()))
    policy = policy_of(database, table, "refresh", digest="run")
    results = [anonymize(policy, replace=True) for _ in range(2)]
    assert not [one for result in results for one in result.warnings if "is not the release" in one]
    database.sql(change.format(f"{table}_r"))
    file = tmp_path / "policy.yml"
    file.write_text(policy_text(policy), encoding="utf-8")
    (account,) = json.loads(call("account", file, "--json").stdout)["accounts"]
    (said,) = account["changed"]
    assert f"is not the release of run {results[-1].run}" in said
    assert said in call("account", file).stdout
    assert said in anonymize(policy, replace=True).warnings
    assert json.loads(call("account", file, "--json").stdout)["accounts"][0]["changed"] == []


def test_each_release_is_compared_with_the_last_of_its_name(database: Database) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    database.sql(f"CREATE VIEW {table}_v AS SELECT * FROM {table} WHERE nr > 3")
    for one in (table, f"{table}_v") * 2:
        said = anonymize(policy_of(database, one, "watch"), replace=True).warnings
        assert not [warning for warning in said if "is not the release" in warning]


def test_an_account_that_is_forgotten_meanwhile_lets_nothing_out(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    verify = ClassSource.verify

    def interrupted(self: ClassSource, run: ClassRun, staged: Staged) -> Any:
        checks = verify(self, run, staged)
        assert call("account", "forget", "ours", "--url", database.url, "--yes").exit_code == 0
        return checks

    monkeypatch.setattr(ClassSource, "verify", interrupted)
    with pytest.raises(ConflictError, match="The account of ours was forgotten meanwhile: run again"):
        anonymize(policy_of(database, table, "watch", people="ours"))
    assert kept(database) == [[], [], []]
    assert not database.sql(f"SELECT * FROM information_schema.tables WHERE table_name = '{table}_r'")
    assert database.leftovers() == []


@pytest.mark.parametrize("mode", ["watch", "refresh", "increments"])
def test_a_release_that_nobody_knows_of_is_warned_of(database: Database, mode: str) -> None:
    """A catalog that was restored out of a backup from before the first release knows neither it nor its run."""
    table = database.create(COLUMNS, list(PEOPLE.values()))
    policy = policy_of(database, table, mode)
    anonymize(policy_of(database, database.create(COLUMNS, list(PEOPLE.values())), mode))
    database.sql(f"CREATE TABLE {table}_r AS SELECT age, nr FROM {table}")
    warned = "neither the account of .* nor the catalog knows who released it"
    for expected_now in (True, False, False):
        try:
            said = anonymize(policy, replace=True).warnings
        except ProtectionError:  # nobody came
            continue
        assert any(re.search(warned, one) for one in said) is expected_now


def test_a_job_enters_its_releases(database: Database) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    run = anonymize(policy_of(database, table, "refresh")).run
    assert (frozen(database, run).routine is None) is (database.engine == "duckdb")
    carry_out(database)
    assert [row[1] for row in kept(database)[1]] == [1, 2]
    database.insert(table, [NEWCOMER])
    with pytest.raises(ProtectionError, match="1 came"):
        carry_out(database)
    assert [row[1] for row in kept(database)[1]] == [1, 2]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"subject": "none"}, "subject"),
        ({"who": {"role": "identifier", "show": "surrogate"}}, "shows 'who' as a surrogate"),
        ({"who": {"role": "identifier", "nulls": "each"}}, "nobody who could be known again"),
        ({"algorithm": {"name": "microaggregation"}}, "no classes with labels"),
        ({"suppressed": {"star": "unprotected"}}, "suppressed: star"),
        ({"release": {"file": "released.csv"}}, "release a table"),
        ({"release": {"table": "r", "url": "duckdb:///other.duckdb"}}, "one database"),
        ({"catalog": {"url": "duckdb:///other.duckdb"}}, "the catalog must be"),
        ({"privacy": [{"model": "distinct-l-diversity", "attribute": "signature", "l": 2}]}, "give history.k"),
        ({"history": {"mode": "refresh", "k": 17}}, "k is 17, but the table holds 16 rows"),
        ({"history": {"mode": "increments", "k": 17}}, "k is 17, but the table holds 16 rows"),
    ],
)
def test_what_can_not_be_entered_is_refused_before_any_work(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: dict[str, Any], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    table = database.create(COLUMNS, list(PEOPLE.values()))
    roles = ROLES | {"who": more.get("who", "identifier")}
    given = {key: value for key, value in more.items() if key != "who"}
    policy = database.policy(table, roles, **({"subject": "who", "history": {"mode": "watch"}} | given))
    for refused in (anonymize, check_policy):
        with pytest.raises(PolicyError, match=f"history: .*{message}"):
            refused(policy)
    assert not database.sql("SELECT * FROM information_schema.tables WHERE table_name = 'r'")


def test_stars_and_other_layouts_are_entered(database: Database) -> None:
    """The rows of stars are a class as any other; persons are the same whatever the tables of a release."""
    table = database.create(COLUMNS, list(PEOPLE.values()))
    k = {"privacy": [{"model": "k-anonymity", "k": 3}]}
    figures = [anonymize(policy_of(database, table, "watch", **k)).history]
    star = {"table": f"{table}_s", "layout": "star"}
    figures.append(anonymize(policy_of(database, table, "watch", release=star, **k)).history)
    levels = {"role": "quasi-identifier", "hierarchy": {"intervals": [3]}}
    stars = database.policy(
        table,
        ROLES | {"age": levels, "to wn": "insensitive"},
        release={"table": f"{table}_l"},
        algorithm={"name": "optimal"},
        suppression=0.3,
        suppressed="star",
        subject="who",
        history={"mode": "watch"},
        **k,
    )
    figures.append(anonymize(stars).history)
    before = groups_of([classes_of(database, f"{table}_r")])
    shown = {row[-1]: row[:1] for row in database.sql(f"SELECT * FROM {table}_l")}
    together = groups_of([classes_of(database, f"{table}_r"), shown])
    assert [one and (one.releases, one.groups, one.persons) for one in figures] == [
        (1, len(before), 16),
        (2, len(before), 16),
        (3, len(together), 16),
    ]


def test_a_person_of_several_rows_is_refused(database: Database) -> None:
    rows = [*PEOPLE.values(), (*PEOPLE[3][:-1], 77)]
    table = database.create(COLUMNS, rows)
    with pytest.raises(PolicyError, match="history: 'who' repeats"):
        anonymize(policy_of(database, table, "watch"))
    database.sql(f"UPDATE {table} SET who = 'one'")
    with pytest.raises((PolicyError, ProtectionError)):
        anonymize(policy_of(database, table, "watch"))


def test_a_row_that_a_person_gets_after_the_plan_is_refused(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    plan = ClassSource.require_plan

    def interrupted(self: ClassSource, run: ClassRun) -> None:
        plan(self, run)
        database.insert(table, [(*PEOPLE[3][:-1], 77)])

    monkeypatch.setattr(ClassSource, "require_plan", interrupted)
    with pytest.raises(PolicyError, match="history: a person has several rows"):
        anonymize(policy_of(database, table, "watch"))
    assert kept(database)[1:] == [[], []]


def test_the_command_shows_an_account_and_forgets_it(database: Database, tmp_path: Path) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    file = tmp_path / "policy.yml"
    file.write_text(policy_text(policy_of(database, table, "watch")), encoding="utf-8")
    assert call("account", file).exit_code in (0, 2)  # nothing is recorded yet
    first = json.loads(call("run", file, "--json").stdout)
    assert first["history"]["releases"] == 1
    database.insert(table, [NEWCOMER])
    second = call("run", file, "--replace")
    assert "2 releases about" in second.stdout
    assert "1 person among fewer than 3" in second.stderr + second.stdout
    (account,) = json.loads(call("account", file, "--json").stdout)["accounts"]
    counted = [{name: one[name] for name in ("number", "persons", "below_k", "came")} for one in account["releases"]]
    assert counted == [
        {"number": 1, "persons": 16, "below_k": 0, "came": 16},
        {"number": 2, "persons": 17, "below_k": 1, "came": 1},
    ]
    assert f"People: {account['people']}" in call("account", file).stdout
    assert "1 (k = 3)" in call("account", "--url", database.url).stdout
    people = account["people"]
    refused = call("account", "forget", people, "--policy", file)
    assert (refused.exit_code, "--yes" in refused.stderr) == (2, True)
    assert call("account", "forget", "somebody", "--policy", file, "--yes").exit_code == 2
    assert call("account", "forget", people, "--policy", file, "--yes").exit_code == 0
    assert kept(database) == [[], [], []]
    assert call("account", file).exit_code == 0


def test_a_catalog_with_an_account_is_not_downgraded_past_it(database: Database) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    anonymize(policy_of(database, table, "watch"))
    with connect(database.url) as engine, Catalog.open(engine) as catalog:
        with pytest.raises(ConflictError, match="1 accounts of releases"):
            catalog.downgrade("0008")
        (account,) = catalog.accounts()
        catalog.forget_account(account)
        catalog.downgrade("0008")
        catalog.upgrade()
        assert catalog.accounts() == []
    assert anonymize(policy_of(database, table, "watch"), replace=True).history is not None
