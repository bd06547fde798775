"""m-invariance: by its definition over nights, by the attack of its paper, and by what is refused."""

from __future__ import annotations

import itertools
import json
import re
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlanon.errors import ConflictError, PolicyError, ProtectionError
from sqlanon.methods.invariance.search import most_classes
from sqlanon.policy import Policy
from sqlanon.policy.writer import policy_text
from sqlanon.results.history import SetFigures
from sqlanon.results.run_result import RunResult
from sqlanon.results.search_facts import BucketFacts
from tests.cli.support import call
from tests.persons_support import CASES
from tests.run_support import Database, Row, anonymize, open_database

pytestmark = pytest.mark.slow

COLUMNS = {"who": "VARCHAR(9)", "age": "INTEGER", "name": "VARCHAR(9)", "ill": "VARCHAR(12)"}
ROLES: dict[str, Any] = {
    "who": "identifier",
    "age": "quasi-identifier",
    "name": "quasi-identifier",  # another one for each person: labels are the sets of persons in classes
    "ill": {"role": "sensitive", "nulls": "refuse"},
}
State = dict[int, tuple[int, str]]  # the age and the illness of each person
M = 2
ILLNESSES = ["flu", "rash", "gout", "burn", "ache"]


def policy_of(database: Database, table: str, **more: Any) -> Policy:
    given: dict[str, Any] = {
        "privacy": [{"model": "m-invariance", "attribute": "ill", "m": M}],
        "algorithm": {"name": "buckets", "counterfeits": 0.2},
        "suppression": 0.9,
        "subject": "who",
        "history": {"mode": "refresh"},
    }
    return database.policy(table, ROLES, **(given | more))


def fill(database: Database, table: str, state: State) -> None:
    database.sql(f"DELETE FROM {table}")
    database.insert(table, [(f"p{number}", age, f"n{number}", ill) for number, (age, ill) in state.items()])


def classes_of(database: Database, table: str) -> list[tuple[set[int], list[str], str]]:
    """The persons of each class, by the label that lists them, the values that it shows, and the label of ages."""
    classes: dict[int, list[Row]] = defaultdict(list)
    for row in database.sql(f"SELECT age, name, ill, class_number FROM {table}"):
        classes[row[-1]].append(row)
    listed = []
    for rows in classes.values():
        ((age, names),) = {row[:2] for row in rows}
        listed.append(({int(name) for name in re.findall(r"n(\d+)", names)}, [row[2] for row in rows], age))
    return listed


def sets_of(result: RunResult) -> SetFigures:
    assert result.history is not None
    assert result.history.sets is not None
    return result.history.sets


@st.composite
def nights(draw: st.DrawFn) -> list[State]:
    """States of a table: persons come, go, come back, and some of them change."""
    row = st.tuples(st.integers(20, 60), st.sampled_from(ILLNESSES[: draw(st.integers(2, 5))]))
    everybody = {number: draw(row) for number in range(draw(st.integers(4, 14)))}
    state = dict(everybody)
    states = [dict(state)]
    for night in range(1, draw(st.integers(2, 5))):
        for gone in draw(st.lists(st.sampled_from(sorted(state)), max_size=4)):
            if len(state) > M:
                state.pop(gone, None)
        for number in range(draw(st.sampled_from([0, 1, 4]))):
            state[100 * night + number] = draw(row)
        everybody |= state
        for back in draw(st.lists(st.sampled_from(sorted(everybody)), max_size=2)):
            state[back] = everybody[back]
        for changed in draw(st.lists(st.sampled_from(sorted(state)), max_size=1)):
            state[changed] = draw(row)
        states.append(dict(state))
    return states


@settings(max_examples=10, **CASES)
@given(states=nights(), counterfeits=st.sampled_from([0, 0.2, 0.9]))
def test_persons_show_the_same_values_in_all_releases(
    database: Database, states: list[State], counterfeits: float
) -> None:
    """By the definition: classes are m-unique, and the set of a person's class never changes, absence or not."""
    table = database.create(COLUMNS, [])
    policy = policy_of(database, table, algorithm={"name": "buckets", "counterfeits": counterfeits})
    known: dict[int, set[str]] = {}
    for state in states:
        fill(database, table, state)
        try:
            result = anonymize(policy, replace=True)
        except ProtectionError as refused:
            assert "No m-invariant release" in str(refused)  # noqa: PT017
            continue
        classes = classes_of(database, f"{table}_r")
        persons = [one for members, _, _ in classes for one in members]
        assert len(persons) == len(set(persons))
        assert set(persons) <= set(state)
        for members, values, age in classes:
            assert len(values) == len(set(values)) >= M
            assert {state[one][1] for one in members} <= set(values)
            ages = [state[one][0] for one in members]
            assert age == (f"[{min(ages)}-{max(ages)}]" if min(ages) < max(ages) else str(ages[0]))
            for one in members:
                assert known.setdefault(one, set(values)) == set(values)
        rows = sum(len(values) for _, values, _ in classes)
        assert sets_of(result).counterfeits == rows - len(persons) <= counterfeits * len(state)
        facts = result.algorithm.facts
        assert isinstance(facts, BucketFacts)
        assert facts.newcomers + facts.lacking + facts.changed + facts.unknown == len(state) - len(persons)
    assert database.leftovers() == []


OF_PAPER = {
    "who": "VARCHAR(9)",
    "name": "VARCHAR(9)",
    "age": "INTEGER",
    "zip": "INTEGER",
    "disease": "VARCHAR(12)",
}
FIRST = [
    ("Bob", 21, 12000, "dyspepsia"),
    ("Alice", 22, 14000, "bronchitis"),
    ("Andy", 24, 18000, "flu"),
    ("David", 23, 25000, "gastritis"),
    ("Gary", 41, 20000, "flu"),
    ("Helen", 36, 27000, "gastritis"),
    ("Jane", 37, 33000, "dyspepsia"),
    ("Ken", 40, 35000, "flu"),
    ("Linda", 43, 26000, "gastritis"),
    ("Paul", 52, 33000, "dyspepsia"),
    ("Steve", 56, 34000, "gastritis"),
]
GONE = {"Alice", "Andy", "Helen", "Ken", "Paul"}
CAME = [
    ("Emily", 25, 21000, "flu"),
    ("Mary", 46, 30000, "gastritis"),
    ("Ray", 54, 31000, "dyspepsia"),
    ("Tom", 60, 44000, "gastritis"),
    ("Vince", 65, 36000, "flu"),
]
SECOND = [*(row for row in FIRST if row[0] not in GONE), *CAME]


def possible(release: list[Row], name: str) -> set[str]:
    """The diseases of the class of a person, whom the label of names lists."""
    return {disease for names, disease in release if name in re.findall(r"\w+", names)}


@pytest.mark.parametrize(
    ("protection", "singled_out"),
    [
        (
            {
                "privacy": [
                    {"model": "k-anonymity", "k": 2},
                    {"model": "distinct-l-diversity", "attribute": "disease", "l": 2},
                ],
            },
            True,
        ),
        (
            {
                "privacy": [{"model": "m-invariance", "attribute": "disease", "m": 2}],
                "algorithm": {"name": "buckets", "counterfeits": 0.5},
                "history": {"mode": "refresh"},
            },
            False,
        ),
    ],
    ids=["2-diverse", "2-invariant"],
)
def test_two_releases_of_the_paper_single_out_nobody(
    database: Database, protection: dict[str, Any], singled_out: bool
) -> None:
    """The two microdata tables of the paper: who holds both releases knows the disease of a person for certain."""
    table = database.create(OF_PAPER, [])
    roles: dict[str, Any] = dict.fromkeys(OF_PAPER, "quasi-identifier") | {"who": "identifier"}
    roles["disease"] = {"role": "sensitive", "nulls": "refuse"}
    policy = database.policy(table, roles, subject="who", suppression=0.1, **protection)
    releases = []
    for rows in (FIRST, SECOND):
        database.sql(f"DELETE FROM {table}")
        database.insert(table, [(row[0], *row) for row in rows])
        anonymize(policy, replace=True)
        releases.append(database.sql(f"SELECT name, disease FROM {table}_r"))
    both = [row[0] for row in FIRST if row[0] not in GONE]
    left = [set.intersection(*(possible(release, name) for release in releases)) for name in both]
    assert (min(map(len, left)) < 2) == singled_out


OF_THREE = {"privacy": [{"model": "m-invariance", "attribute": "ill", "m": 3}]}  # so that STATE has one set of values
STATE: State = {number: (20 + number, ILLNESSES[number % 3]) for number in range(12)}


def test_counterfeits_are_counted_and_look_like_others(database_url: str, tmp_path: Path) -> None:
    """Whoever has gout left: the sets show it still, in rows of nobody, which are stored where the others are."""
    with open_database(database_url) as database:
        table = database.create(COLUMNS, [])
        policy = policy_of(
            database, table, **OF_THREE, algorithm={"name": "buckets", "counterfeits": 0.5}, suppression=0.0
        )
        fill(database, table, STATE)
    file = str(tmp_path / "policy.yml")
    Path(file).write_text(policy_text(policy))
    assert call("run", file).exit_code == 0
    with open_database(database_url) as database:
        fill(database, table, {number: one for number, one in STATE.items() if one[1] != "gout"})
    result = json.loads(call("run", file, "--replace", "--json").stdout)
    assert result["history"]["sets"] == {"known": 8, "other": 0, "counterfeits": 4}
    assert result["checks"]["counterfeits_counted"]["violations"] == 0
    with open_database(database_url) as database:
        rows = database.sql(f"SELECT class_number, ill FROM {table}_r")
    assert len(rows) == 12
    assert rows == sorted(rows)
    (account,) = json.loads(call("account", file, "--json").stdout)["accounts"]
    assert [line["counterfeits"] for line in account["releases"]] == [0, 4]
    assert "12 (4 counterfeits)" in call("account", file).stdout
    assert "4 counterfeits" in call("report", result["run"], "--policy", file).stdout
    record = json.loads(call("record", result["run"], "--policy", file).stdout)
    assert record["verification"]["sets"] == result["history"]["sets"]
    assert call("verify", file).exit_code == 0
    assert "4 counterfeits" in call("run", file, "--replace").stdout
    with open_database(database_url) as database:
        database.sql(f"UPDATE {table}_r SET ill = 'flu' WHERE ill = 'gout'")
    assert call("verify", file).exit_code == 3


@pytest.mark.parametrize("counterfeits", [0, 0.01])
def test_rows_that_lack_partners_are_left_out_within_the_limit(database: Database, counterfeits: float) -> None:
    table = database.create(COLUMNS, [])
    strict = policy_of(
        database, table, **OF_THREE, algorithm={"name": "buckets", "counterfeits": counterfeits}, suppression=0.1
    )
    fill(database, table, STATE)
    anonymize(strict)
    before = database.sql(f"SELECT * FROM {table}_r")
    fill(database, table, {number: one for number, one in STATE.items() if number not in (0, 3)})  # both have the flu
    with pytest.raises(ProtectionError, match=r"4 of 10 rows would be left out \(4 of sets of values that lack rows\)"):
        anonymize(strict, replace=True)
    assert database.sql(f"SELECT * FROM {table}_r") == before
    lenient = policy_of(database, table, **OF_THREE, algorithm=strict.algorithm, suppression=0.4)
    result = anonymize(lenient, replace=True)
    assert sets_of(result) == SetFigures(6, 0, 0)


def test_who_changed_is_left_out(database: Database) -> None:
    """A person of {flu, rash, gout} who has a burn now can be in no class of this set."""
    table = database.create(COLUMNS, [])
    policy = policy_of(database, table, **OF_THREE, algorithm={"name": "buckets", "counterfeits": 0.1})
    fill(database, table, STATE)
    anonymize(policy)
    fill(database, table, STATE | {0: (20, "burn")})
    facts = anonymize(policy, replace=True).algorithm.facts
    assert isinstance(facts, BucketFacts)
    assert (facts.changed, facts.counterfeits) == (1, 1)


def test_sets_that_the_release_does_not_show_are_unknown(database: Database) -> None:
    """Others changed the release: no class shows the set of some persons, who are left out, and nothing is guessed."""
    table = database.create(COLUMNS, [])
    fill(database, table, STATE)
    policy = policy_of(database, table, **OF_THREE)
    anonymize(policy)
    database.sql(f"UPDATE {table}_r SET ill = 'burn' WHERE ill = 'gout'")
    with pytest.raises(ProtectionError, match="12 of sets that the release before does not show"):
        anonymize(policy, replace=True)
    database.sql(f"ALTER TABLE {table}_r RENAME COLUMN class_number TO number")
    with pytest.raises(ConflictError, match="the release before, has no numbered classes"):
        anonymize(policy, replace=True)
    database.sql(f"DROP TABLE {table}_r")
    with pytest.raises(ConflictError, match="the release before, is gone"):
        anonymize(policy)


def test_two_runs_at_once_show_the_same_sets(database: Database) -> None:
    """Two tables of the same people: a run that read the account before the other one entered is refused."""
    tables = [database.create(COLUMNS, []) for _ in range(2)]
    policies = [policy_of(database, table, people="ours") for table in tables]
    for table in tables:
        fill(database, table, {number: (20 + number, ILLNESSES[number % 5]) for number in range(14)})

    def attempt(policy: Policy) -> bool:
        try:
            return anonymize(policy).published
        except ConflictError as refused:
            assert "meanwhile" in str(refused)  # noqa: PT017
            return False

    with ThreadPoolExecutor(2) as pool:
        assert any(pool.map(attempt, policies))
    shown = []
    for policy, table in zip(policies, tables, strict=True):
        assert sets_of(anonymize(policy, replace=True)).other == 0
        classes = classes_of(database, f"{table}_r")
        shown.append({one: set(values) for members, values, _ in classes for one in members})
    assert all(shown[0][one] == shown[1][one] for one in shown[0].keys() & shown[1].keys())
    assert len(shown[0].keys() & shown[1].keys()) == 14


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "another algorithm": ({"algorithm": {"name": "mondrian"}}, "mondrian does not know which values"),
    "another model": ({"privacy": [{"model": "k-anonymity", "k": 2}]}, "buckets are for m-invariance alone"),
    "no history": ({"history": {"mode": "none"}}, "write history: {mode: refresh}"),
    "increments": ({"history": {"mode": "increments"}}, "write history: {mode: refresh}"),
    "stars": ({"suppressed": "star"}, "suppressed: buckets have no tree"),
    "cuts": ({"ranges": "cuts"}, "ranges: buckets have no tree"),
    "a star of tables": ({"release": {"table": "r", "layout": "star"}}, "layout: buckets number their classes"),
    "no subject": ({"subject": "none"}, "name the column that tells them apart"),
    "a repair": ({}, "--repair: buckets makes no classes that can be merged"),
    "too few rows": ({"privacy": [{"model": "m-invariance", "attribute": "ill", "m": 13}]}, "the table holds 12 rows"),
}


@pytest.mark.parametrize("case", sorted(REFUSED))
def test_what_does_not_go_with_it_is_refused(database: Database, case: str) -> None:
    more, message = REFUSED[case]
    table = database.create(COLUMNS, [])
    fill(database, table, STATE)
    with pytest.raises(PolicyError, match=message):
        anonymize(policy_of(database, table, **more), repair=case == "a repair")


@pytest.mark.parametrize(
    ("roles", "type_", "message"),
    [
        ({"age": "insensitive"}, "VARCHAR(12)", "give 'age' the role omit"),
        ({"age": "sensitive"}, "VARCHAR(12)", "give 'age' the role omit"),
        ({"who": {"role": "identifier", "show": "surrogate"}}, "VARCHAR(12)", "give 'who' the role omit"),
        ({"ill": {"role": "sensitive"}}, "VARCHAR(12)", "write nulls: refuse"),
        ({}, "DOUBLE PRECISION", "have several texts"),
    ],
)
def test_columns_that_do_not_go_with_it_are_refused(
    database: Database, roles: dict[str, Any], type_: str, message: str
) -> None:
    table = database.create(COLUMNS | {"ill": type_}, [])
    database.sql(f"INSERT INTO {table} VALUES ('p1', 1, 'a', '1'), ('p2', 1, 'b', '2')")
    policy = {"privacy": [{"model": "m-invariance", "attribute": "ill", "m": 2}], "algorithm": {"name": "buckets"}}
    with pytest.raises(PolicyError, match=message):
        anonymize(database.policy(table, ROLES | roles, subject="who", history={"mode": "refresh"}, **policy))


@pytest.mark.parametrize("type_", ["INTEGER", "NUMERIC(6, 2)", "BOOLEAN", "DATE", "TIMESTAMP", "UUID", "CHAR(4)"])
def test_values_of_all_types_make_sets(database: Database, type_: str) -> None:
    values = {
        "BOOLEAN": ["true", "false"],
        "DATE": ["2026-01-01", "2026-01-02"],
        "TIMESTAMP": ["2026-01-01 10:00:00", "2026-01-02 10:00:00"],
        "UUID": [f"{n}0000000-0000-0000-0000-000000000000" for n in "12"],
    }.get(type_, ["1", "2"])
    table = database.create(COLUMNS | {"ill": type_}, [])
    for persons in ([0, 1, 2, 3], [0, 2, 3]):
        database.sql(f"DELETE FROM {table}")
        for one in persons:
            database.sql(f"INSERT INTO {table} VALUES ('p{one}', {one}, 'n{one}', '{values[one % 2]}')")
        result = anonymize(policy_of(database, table, algorithm={"name": "buckets", "counterfeits": 0.5}), replace=True)
    assert sets_of(result) == SetFigures(3, 0, 1)
    assert database.columns(f"{table}_r")[2][1] == database.columns(table)[3][1]


def test_an_account_that_knows_other_releases_is_refused(database: Database) -> None:
    table = database.create(COLUMNS, [])
    fill(database, table, STATE)
    other = {"privacy": [{"model": "k-anonymity", "k": 2}], "algorithm": {"name": "mondrian"}, "suppression": 0.0}
    anonymize(policy_of(database, table, **other))
    with pytest.raises(PolicyError, match=r"knows a release of run .* that shows no such sets of 'ill'"):
        anonymize(policy_of(database, table), replace=True)


@given(counts=st.lists(st.integers(1, 6), max_size=5), m=st.integers(2, 4))
def test_there_are_no_more_classes_of_different_values(counts: list[int], m: int) -> None:
    """By brute force: take a row of each of the m most frequent values, again and again."""
    left, classes = sorted(counts), 0
    while len(left) >= m:
        left = sorted([n for n in [*left[:-m], *(n - 1 for n in left[-m:])] if n])
        classes += 1
    assert most_classes([(n, len(list(group))) for n, group in itertools.groupby(sorted(counts))], m) == classes
