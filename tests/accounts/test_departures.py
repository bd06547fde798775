"""Departures: whoever holds the release of every night learns of those who left what their groups tell, and no more."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlanon.catalog import Catalog
from sqlanon.engines import connect
from sqlanon.errors import ConflictError, PolicyError, ProtectionError
from sqlanon.inquiries.questions.ask import ask
from sqlanon.policy.writer import policy_text
from sqlanon.results.history import DepartureFigures, HistoryFigures
from sqlanon.results.run_result import RunResult
from sqlanon.sql import Relation
from tests.accounts.test_accounts import COLUMNS, MODELS, PEOPLE, ROLES, State, fill, full_disk, kept, person
from tests.accounts.test_adopted_releases import adopt
from tests.accounts.test_increments import (
    ALGORITHMS,
    BY_AGE,
    BY_TOWN,
    DIVERSITY,
    K,
    difference,
    policy_of,
    result_of,
    weakest,
)
from tests.accounts.test_repair import swapped
from tests.cli.support import call
from tests.jobs_support import carry_out, frozen
from tests.persons_support import CASES
from tests.rules_support import apply
from tests.run_support import OPTIONS, Database, Row, anonymize, open_database

ERASE, RETRACT = ({"mode": "increments", "departures": way} for way in ("erase", "retract"))
RISK = {"model": "average-risk", "risk": 0.3}
PRESENCE = {"model": "delta-presence", "population": "everybody", "minimum": 0.1, "maximum": 0.9}
CLOSE = {"model": "t-closeness", "attribute": "signature", "t": 0.5}


def forget(database: Database, table: str, *persons: int) -> None:
    database.sql(f"DELETE FROM {table} WHERE nr IN ({', '.join(map(str, persons))})")


def shown(database: Database, table: str) -> set[int]:
    """The persons of a release, who are known by the number that it keeps."""
    return {row[-1] for row in result_of(database, table)}


def departed(result: RunResult) -> DepartureFigures:
    assert result.history is not None
    assert result.history.departures is not None
    return result.history.departures


@st.composite
def nights(draw: st.DrawFn) -> list[State]:
    """States of a table: persons come, go, change, and come back."""
    ages, towns = st.sampled_from([None, *range(20, 29)]), st.sampled_from(["a", "b", None])
    row = st.tuples(ages, towns, st.sampled_from(["flu", "rash", "gout"]))
    everybody = {number: person(number, *draw(row)) for number in range(draw(st.integers(6, 16)))}
    state = dict(everybody)
    states = [dict(state)]
    for night in range(1, draw(st.integers(3, 6))):
        for number in range(draw(st.sampled_from([0, 1, 4, 8]))):
            state[100 * night + number] = person(100 * night + number, *draw(row))
        everybody |= state
        for gone in draw(st.lists(st.sampled_from(sorted(state)), max_size=draw(st.sampled_from([2, 12])))):
            if len(state) > 1:
                state.pop(gone, None)
        for back in draw(st.lists(st.sampled_from(sorted(everybody)), max_size=2)):
            state[back] = everybody[back]
        states.append(dict(state))
    return states


@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
@pytest.mark.parametrize("history", [ERASE, RETRACT], ids=["erase", "retract"])
@settings(max_examples=6, **CASES)
@given(states=nights())
def test_no_difference_of_two_nights_is_below_the_models(
    database: Database, history: dict[str, Any], algorithm: str, states: list[State]
) -> None:
    """Somebody holds the release of every night; whoever left it never comes back."""
    table = database.create(COLUMNS, [])
    policy = policy_of(database, table, algorithm, history=history)
    releases = [list[Row]()]
    for state in [one for one in states if len(one) >= K]:  # of fewer no table can be released
        fill(database, table, state)
        try:
            anonymize(policy)
        except (ProtectionError, ConflictError) as refused:
            if "Nobody of the" in str(refused):
                assert not {row[-1] for row in releases[-1]} & set(state)
                continue
            if len(releases) == 1:
                continue
        now = database.sql(f"SELECT * FROM {table}_r")
        went = difference(releases[-1], now)[1]
        gone_before = {row[-1] for earlier in releases for row in earlier} - {row[-1] for row in releases[-1]}
        assert not gone_before & {row[-1] for row in now}
        if history["departures"] == "erase":
            assert {row[-1] for row in now} <= set(state)
        else:
            assert not {row[-1] for row in went} & set(state)
        releases.append(now)
    for number, earlier in enumerate(releases):
        for later in releases[number:]:
            for changed in difference(earlier, later):
                size, different = weakest(changed)
                assert (size >= K, different >= DIVERSITY) == (True, True)
    assert database.leftovers() == []


def test_those_who_left_are_erased_with_their_class(database: Database) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    policy = policy_of(database, table, history=ERASE)
    anonymize(policy)
    before, rows = shown(database, table), {row[-1]: row[:2] for row in result_of(database, table)}
    forget(database, table, 3)
    with pytest.raises(ProtectionError, match="Nobody came") as waits:
        anonymize(policy)
    left = {number for number, labels in rows.items() if labels == rows[3]}
    assert shown(database, table) == before - left
    (note,) = waits.value.__notes__
    assert note == (
        f"1 person left, and {len(left)} rows were erased, {len(left) - 1} of others, who are not released again."
    )
    assert lines_of(database) == [("batch", 16, 16, 0), ("departure", -len(left), 0, 1)]
    again = kept(database)
    database.insert(table, [person(3, *PEOPLE[3][1:4])])
    with pytest.raises(ProtectionError, match="Nobody came"):
        anonymize(policy)
    assert (shown(database, table), kept(database)) == (before - left, again)
    database.insert(table, [person(n, 21, "a", ["flu", "rash"][n % 2]) for n in range(30, 36)])
    forget(database, table, *sorted(before - left)[:1])
    result = anonymize(policy)
    figures = departed(result)
    assert (figures.left, figures.waiting, figures.unknown) == (1, 0, 0)
    assert result.history is not None
    assert result.history.added_to == 16 - len(left) - figures.rows
    groups = {row[2]: row[3] for row in kept(database)[2]}  # two of them of those who left, at two times
    assert len(groups) == result.history.groups == len({row[2:4] for row in kept(database)[2]})
    assert figures.sentences in result.notes


def test_those_who_left_stay_until_a_group_can_leave(database: Database) -> None:
    """A class of eight; three leave, of whom all have the flu, and then others, until both parts are diverse."""
    table = database.create(COLUMNS, [person(n, 25, "a", ["flu", "rash"][n % 2]) for n in range(8)])
    policy = policy_of(database, table, history=RETRACT)
    anonymize(policy)
    everybody = shown(database, table)
    forget(database, table, 0, 2)
    for gone, left in (((), everybody), ((4,), everybody), ((1,), everybody - {0, 1, 2, 4})):
        before = kept(database)
        if gone:
            forget(database, table, *gone)
        with pytest.raises(ProtectionError, match="Nobody came") as waits:
            anonymize(policy)
        assert shown(database, table) == left
        if left == everybody:
            assert kept(database) == before
            assert "left, and stay until others of their class leave." in waits.value.__notes__[0]
    assert waits.value.__notes__ == ["4 persons left, and 4 rows were retracted."]
    database.insert(table, [PEOPLE[1], *(person(n, 21, "a", ["flu", "rash"][n % 2]) for n in range(30, 36))])
    forget(database, table, 3, 5)
    figures = departed(anonymize(policy))
    assert (figures.left, figures.rows, figures.waiting, figures.unknown) == (0, 0, 2, 0)
    assert shown(database, table) == {3, 5, 6, 7, *range(30, 36)}
    forget(database, table, 6, 7)
    with pytest.raises(ProtectionError, match="Nobody came"):
        anonymize(policy)
    assert shown(database, table) == set(range(30, 36))


def test_nobody_leaves_too_few_others_behind(database: Database) -> None:
    """Three of five have two illnesses, and so have the two who would stay."""
    table = database.create(COLUMNS, [person(n, 25, "a", ["flu", "rash"][n % 2]) for n in range(5)])
    policy = policy_of(database, table, history=RETRACT)
    anonymize(policy)
    forget(database, table, 0, 1, 2)
    database.insert(table, [person(n, 21, "a", ["flu", "rash"][n % 2]) for n in range(30, 36)])
    assert departed(anonymize(policy)).waiting == 3
    assert shown(database, table) == {*range(5), *range(30, 36)}


@pytest.mark.parametrize("history", [ERASE, RETRACT], ids=["erase", "retract"])
def test_groups_of_another_release_leave_as_groups(database: Database, history: dict[str, Any]) -> None:
    """Three of a class of eight leave, two of a group of four by another release: five of the class would stay."""
    rows = [person(n, 25 + n % 2, "a", ["flu", "rash"][n // 2 % 2]) for n in range(8)]
    table = database.create(COLUMNS, rows)
    policy = policy_of(database, table, history=history, attributes=BY_TOWN)
    anonymize(policy)
    other = {"attributes": BY_AGE, "history": {"mode": "refresh"}, "release": {"table": f"{table}_o"}}
    anonymize(policy_of(database, table, **other))
    forget(database, table, 0, 1, 2)
    with pytest.raises(ProtectionError, match="Nobody came") as waits:
        anonymize(policy)
    assert len(shown(database, table)) == (0 if history == ERASE else 8)
    if history == RETRACT:
        forget(database, table, 4, 6)
        with pytest.raises(ProtectionError, match="Nobody came") as waits:
            anonymize(policy)
        assert shown(database, table) == {1, 3, 5, 7}
    assert f"may show who left: {stored_name(database, f'{table}_o')}." in waits.value.__notes__[0]


def test_those_who_stay_in_a_class_satisfy_the_models(database: Database) -> None:
    """Four of a class of eight leave, whom an answer was about apart from the others; the others all have the flu."""
    rows = [person(n, 25 + n % 2, "a", "rash" if n % 4 == 1 else "flu") for n in range(8)]
    table = database.create(COLUMNS, rows)
    policy = policy_of(database, table, history=RETRACT)
    anonymize(policy)
    assert ask(policy, "count(*) where age = 25", OPTIONS).value == "4"
    forget(database, table, 1, 3, 5, 7)
    with pytest.raises(ProtectionError, match="Nobody came"):
        anonymize(policy)
    assert shown(database, table) == set(range(8))
    database.insert(table, [person(n, 21, "a", ["flu", "rash"][n % 2]) for n in range(30, 36)])
    assert departed(anonymize(policy)).waiting == 4
    assert shown(database, table) == {*range(8), *range(30, 36)}


def test_no_fewer_than_k_stay_in_a_class(database: Database) -> None:
    """Six of a class of eight leave, apart from two by another release of a smaller k."""
    rows = [person(n, 25 + n // 6, "a", ["flu", "rash"][n % 2]) for n in range(8)]
    table = database.create(COLUMNS, rows)
    policy = policy_of(database, table, history=RETRACT, attributes=BY_TOWN)
    anonymize(policy)
    lesser = [{"model": "k-anonymity", "k": 2}]
    other = {"attributes": BY_AGE, "history": {"mode": "refresh"}, "release": {"table": f"{table}_o"}}
    anonymize(policy_of(database, table, **other, privacy=lesser))
    forget(database, table, *range(6))
    database.insert(table, [person(n, 21, "b", ["flu", "rash"][n % 2]) for n in range(30, 36)])
    with pytest.raises(ProtectionError, match="fewer than 3"):
        anonymize(policy)
    assert shown(database, table) == set(range(8))


def stored_name(database: Database, table: str) -> str:
    with connect(database.url) as engine:
        return str(engine.resolve(Relation.parse(table)))


def test_nobody_leaves_where_the_source_has_nobody_of_the_release(database: Database) -> None:
    """Another account has persons, too."""
    table, other = (database.create(COLUMNS, list(PEOPLE.values())) for _ in range(2))
    policy = policy_of(database, table, history=ERASE)
    anonymize(policy)
    anonymize(policy_of(database, other, history=ERASE))
    before = (result_of(database, table), kept(database))
    database.sql(f"UPDATE {table} SET who = upper(who)")
    with pytest.raises(
        ConflictError, match=r"Nobody of the 16 persons who were released is in .* not taken for departed"
    ):
        anonymize(policy)
    assert (result_of(database, table), kept(database)) == before


@pytest.mark.parametrize("departures", ["erase", "retract"])
def test_nobody_leaves_by_other_labels_than_those_of_the_batch(database: Database, departures: str) -> None:
    """A column that was sensitive then would divide the classes now, of which a part would leave."""
    table = database.create(COLUMNS, list(PEOPLE.values()))
    history = {"mode": "increments", "departures": departures}
    first = policy_of(database, table, history=history)
    anonymize(first)
    database.sql(f"DELETE FROM {table} WHERE nr = 3")
    before = kept(database), result_of(database, table)
    roles = ROLES | {"signature": "quasi-identifier"}
    other = database.policy(table, roles, subject="who", history=history, privacy=MODELS[:1])
    with pytest.raises(PolicyError, match="'signature' had another role in run"):
        anonymize(other)
    assert (kept(database), result_of(database, table)) == before


def test_a_release_that_was_changed_lets_nobody_go(database: Database) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    policy = policy_of(database, table, history=ERASE)
    anonymize(policy)
    database.sql(f"UPDATE {table}_r SET signature = 'none' WHERE nr = 5")
    before = (result_of(database, table), kept(database))
    forget(database, table, 3)
    with pytest.raises(ConflictError, match="lacks 1 row as they were released"):
        anonymize(policy)
    assert (result_of(database, table), kept(database)) == before
    assert database.leftovers() == []


def test_a_departure_that_fails_to_be_entered_changes_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that is killed between the account and the release has changed neither: both are one transaction."""
    table = database.create(COLUMNS, list(PEOPLE.values()))
    policy = policy_of(database, table, history=ERASE)
    anonymize(policy)
    before = (result_of(database, table), kept(database))
    forget(database, table, 3)

    with full_disk(monkeypatch):
        anonymize(policy)
    assert (result_of(database, table), kept(database)) == before
    with pytest.raises(ProtectionError, match="Nobody came"):
        anonymize(policy)
    assert len(result_of(database, table)) < 16


def test_batches_of_a_time_that_kept_all_stay(database: Database) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    anonymize(policy_of(database, table))
    assert {row[-1] for row in kept(database)[2]} == {None}
    policy = policy_of(database, table, history=ERASE)
    database.insert(table, [person(n, 21, "a", ["flu", "rash"][n % 2]) for n in range(30, 36)])
    anonymize(policy)
    forget(database, table, 3, 31)
    with pytest.raises(ProtectionError, match="Nobody came") as waits:
        anonymize(policy)
    assert shown(database, table) == set(PEOPLE) | {n for n in range(30, 36) if n not in erased(database, table)}
    assert "1 person left, and stay: their batch was added before history.departures" in waits.value.__notes__[0]
    after = kept(database)
    with pytest.raises(ProtectionError, match="Nobody came"):
        anonymize(policy)
    assert kept(database) == after


def erased(database: Database, table: str) -> set[int]:
    """The persons of the second batch who are no more in the release."""
    return set(range(30, 36)) - shown(database, table)


def test_a_release_that_is_adopted_lets_persons_go(database: Database) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    first = anonymize(policy_of(database, table, history={"mode": "none"})).run
    policy = policy_of(database, table, history=ERASE)
    adopt(database, first, policy)
    assert None not in {row[-1] for row in kept(database)[2]}
    forget(database, table, 3)
    with pytest.raises(ProtectionError, match="Nobody came"):
        anonymize(policy)
    assert 3 not in shown(database, table)


WIDE = {
    "who": "VARCHAR(9)",
    "Age Ü": "INTEGER",
    "town": "VARCHAR(9)",
    "ILL": "VARCHAR(9)",
    "cents": "DECIMAL(9, 2)",
    "real": "DOUBLE PRECISION",
    "day": "DATE",
    "moment": "TIMESTAMP",
    "flag": "BOOLEAN",
    'text, "odd"': "VARCHAR(20)",
}


@pytest.mark.parametrize("history", [ERASE, RETRACT], ids=["erase", "retract"])
@pytest.mark.parametrize("show", ["label", "bounds"])
def test_rows_of_all_types_leave_as_many_as_persons(database: Database, show: str, history: dict[str, Any]) -> None:
    """Rows are equal but for their labels: as many leave of equal ones as persons leave."""
    value = ("1.50", -0.0, "0001-01-01", "2020-02-29 12:00:00.000001", None, "a,b:-'\\")
    rows = [(f"p{n}", [None, 20, 30][n // 6], None, ["flu", "rash"][n % 2], *value) for n in range(18)]
    table = database.create(WIDE, rows)
    quasi = {"role": "quasi-identifier"}
    attributes = dict.fromkeys(WIDE, "insensitive") | {"who": "identifier", "ILL": "sensitive"}
    attributes |= {"Age Ü": quasi | {"show": show}, "town": quasi}
    privacy = [{"model": "k-anonymity", "k": 3}, {"model": "distinct-l-diversity", "attribute": "ILL", "l": 2}]
    policy = database.policy(
        table, attributes, privacy=privacy, subject="who", history=history, release={"table": f"{table}_r"}
    )
    anonymize(policy)
    before = Counter(database.sql(f"SELECT * FROM {table}_r"))
    database.sql(f"DELETE FROM {table} WHERE who IN ('p0', 'p1', 'p2')")
    with pytest.raises(ProtectionError, match="Nobody came"):
        anonymize(policy)
    after = Counter(database.sql(f"SELECT * FROM {table}_r"))
    went = before - after
    assert (after - before, went.total()) == (Counter(), 6 if history == ERASE else 3)
    assert len({row[:-7] for row in went}) == 1


def test_what_people_attached_to_a_release_stays(database: Database) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    policy = policy_of(database, table, history=ERASE)
    anonymize(policy)
    database.sql(f"CREATE INDEX {table}_i ON {table}_r (nr)")
    database.sql(f"CREATE VIEW {table}_v AS SELECT count(*) AS n FROM {table}_r")
    forget(database, table, 3)
    with pytest.raises(ProtectionError, match="Nobody came"):
        anonymize(policy)
    assert database.sql(f"SELECT n FROM {table}_v") == [(len(result_of(database, table)),)]
    assert len(result_of(database, table)) < 16
    database.sql(f"DROP INDEX {table}_i")


@pytest.mark.parametrize("engine_name", ["postgres"])
def test_triggers_keep_no_row_unnoticed(database: Database) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    policy = policy_of(database, table, history=ERASE)
    anonymize(policy)
    database.sql(f"CREATE MATERIALIZED VIEW {table}_m AS SELECT * FROM {table}_r")
    database.sql(f"CREATE RULE stay AS ON DELETE TO {table}_r DO INSTEAD NOTHING")
    before = (result_of(database, table), kept(database))
    forget(database, table, 3)
    with pytest.raises(PolicyError, match=f"Triggers or rules of .*{table}_r.* may alter rows that leave"):
        anonymize(policy)
    assert (result_of(database, table), kept(database)) == before
    database.sql(f"DROP RULE stay ON {table}_r")
    with pytest.raises(ProtectionError, match="Nobody came") as waits:
        anonymize(policy)
    assert f"{table}_m" in waits.value.__notes__[0]


def test_jobs_and_rules_let_persons_go(database: Database) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    run = anonymize(policy_of(database, table, ranges="cuts", history=ERASE)).run
    frozen(database, run, procedure=False)
    forget(database, table, 3)
    database.insert(table, [person(n, 21, "a", ["flu", "rash"][n % 2]) for n in range(30, 36)])
    carry_out(database)
    assert [line[0] for line in lines_of(database)] == ["batch", "departure", "batch"]
    assert 3 not in shown(database, table)
    forget(database, table, 30)
    with pytest.raises(ProtectionError, match="Nobody came"):
        apply(database, run, table, f"{table}_r")
    assert [line[0] for line in lines_of(database)][-1] == "departure"
    assert 30 not in shown(database, table)


def lines_of(database: Database) -> list[Row]:
    return database.sql("SELECT kind, rows, came, departed FROM sqlanon.account_releases ORDER BY number")


def test_the_commands_say_who_left(tmp_path: Path) -> None:
    url = f"duckdb:///{tmp_path}/clinic.duckdb"
    file = tmp_path / "policy.yml"
    with open_database(url) as database:
        table = database.create(COLUMNS, list(PEOPLE.values()))
        file.write_text(policy_text(policy_of(database, table, history=ERASE)), encoding="utf-8")
    assert call("run", file).exit_code == 0
    with open_database(url) as database:
        forget(database, table, 3)
    waits = call("run", file)
    assert (waits.exit_code, "1 person left, and" in waits.stderr) == (3, True)
    with open_database(url) as database:
        left = 16 - len(result_of(database, table))
        forget(database, table, 12)
        database.insert(table, [person(n, 21, "a", ["flu", "rash"][n % 2]) for n in range(30, 36)])
    assert call("check", file).exit_code == 0
    result = json.loads(call("run", file, "--json").stdout)
    assert (result["history"]["departures"]["departures"], result["history"]["departures"]["left"]) == ("erase", 1)
    (account,) = json.loads(call("account", file, "--json").stdout)["accounts"]
    lines = [(one["kind"], one["rows"], one["left"]) for one in account["releases"]]
    assert lines[:2] == [("batch", 16, 0), ("departure", -left, 1)]
    assert [kind for kind, _, _ in lines] == ["batch", "departure", "departure", "batch"]
    assert f"-{left}" in call("account", file).stdout
    assert call("verify", file).exit_code == 0
    assert call("risk", file).exit_code == 0
    assert "1 person left, and" in call("report", result["run"], "--policy", file).stdout


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"history": {"mode": "refresh", "departures": "erase"}}, "mode: increments alone"),
        ({"history": {"mode": "increments", "departures": "at once"}}, "departures"),
        ({"history": ERASE, "privacy": [*MODELS, RISK], "algorithm": "optimal"}, "average-risk judges"),
        ({"history": ERASE, "privacy": [*MODELS, PRESENCE]}, "delta-presence judges"),
        ({"history": RETRACT, "privacy": [*MODELS, CLOSE]}, "t-closeness compares"),
    ],
)
def test_what_can_not_leave_is_refused_before_any_work(database: Database, more: dict[str, Any], message: str) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    with pytest.raises(PolicyError, match=message):
        anonymize(policy_of(database, table, **more))


NEWCOMERS = {n: person(n, 21, "a", ["flu", "rash"][n % 2]) for n in range(30, 36)}
THEN: dict[str, State] = {
    "refresh": PEOPLE | NEWCOMERS,
    "repair": swapped(),
    "increments": PEOPLE | NEWCOMERS,
    "erase": {n: one for n, one in (PEOPLE | NEWCOMERS).items() if n != 3},
    "retract": {n: one for n, one in (PEOPLE | NEWCOMERS).items() if n > 3},
}


@pytest.mark.parametrize("kind", THEN)
def test_an_account_beside_another_one_has_the_same_figures(database: Database, kind: str) -> None:
    """Two accounts of equal tables, whose groups have the same numbers; each has its own key."""
    history = {"erase": ERASE, "retract": RETRACT, "increments": {"mode": "increments"}}.get(kind, {"mode": "refresh"})
    tables, told = [database.create(COLUMNS, []) for _ in range(2)], defaultdict[str, list[HistoryFigures]](list)
    for state in (PEOPLE, THEN[kind]):
        for table in tables:
            fill(database, table, state)
            done = anonymize(policy_of(database, table, history=history), replace=True, repair=kind == "repair")
            assert done.history is not None
            told[table].append(replace(done.history, people=""))
    one, other = tables
    assert told[one] == told[other]
    assert told[one][1].came == (0 if kind == "repair" else len(NEWCOMERS))
    assert (told[one][1].repaired is None) is (kind != "repair")
    digests = database.sql("SELECT row_digest FROM sqlanon.account_persons WHERE row_digest IS NOT NULL")
    assert len(digests) == len(set(digests))


def test_rows_of_another_batch_with_the_same_labels_stay(database: Database) -> None:
    batches = [[person(n, 25, "a", ["flu", "rash"][n % 2]) for n in range(first, first + 4)] for first in (0, 10)]
    table = database.create(COLUMNS, [])
    policy = policy_of(database, table, history=ERASE)
    for batch in batches:
        database.insert(table, batch)
        anonymize(policy)
    assert len({row[:2] for row in result_of(database, table)}) == 1
    forget(database, table, 3)
    with pytest.raises(ProtectionError, match="Nobody came"):
        anonymize(policy)
    assert shown(database, table) == set(range(10, 14))


@pytest.mark.parametrize(("k", "left"), [(4, 3), (2, 2)])
def test_those_who_leave_are_as_many_as_the_history_and_the_models_ask(database: Database, k: int, left: int) -> None:
    table = database.create(COLUMNS, [person(n, 25, "a", ["flu", "rash"][n % 2]) for n in range(8)])
    policy = policy_of(database, table, history=RETRACT | {"k": k})
    anonymize(policy)
    forget(database, table, *range(left))
    with pytest.raises(ProtectionError, match="Nobody came") as waits:
        anonymize(policy)
    assert waits.value.__notes__ == [f"{left} persons left, and stay until others of their class leave."]
    assert shown(database, table) == set(range(8))


def test_of_equal_rows_one_that_was_changed_is_missed(database: Database) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    policy = policy_of(database, table, attributes=ROLES | {"nr": "omit"}, history=ERASE)
    anonymize(policy)
    place = "rowid" if database.engine == "duckdb" else "ctid"
    one = f"SELECT {place} FROM {table}_r WHERE signature = 'flu' LIMIT 1"
    database.sql(f"UPDATE {table}_r SET signature = 'rash' WHERE {place} = ({one})")
    forget(database, table, 3)
    with pytest.raises(ConflictError, match="lacks 1 row as they were released"):
        anonymize(policy)
    assert len(result_of(database, table)) == 16


def test_the_labels_of_every_batch_are_compared(database: Database) -> None:
    """The last batch has the roles of the policy, and the one before, whose rows are known, others."""
    label = "TEXT" if database.engine == "duckdb" else 'TEXT COLLATE "C"'
    table = database.create(COLUMNS | {"signature": label}, list(PEOPLE.values()))
    anonymize(policy_of(database, table, history=ERASE))
    database.insert(table, list(NEWCOMERS.values()))
    roles = ROLES | {"signature": "quasi-identifier"}
    given = {"privacy": MODELS[:1], "subject": "who"}
    anonymize(database.policy(table, roles, history={"mode": "increments"}, **given))
    before = kept(database), result_of(database, table)
    forget(database, table, 3)
    with pytest.raises(PolicyError, match="'signature' had another role in run"):
        anonymize(database.policy(table, roles, history=ERASE, **given))
    assert (kept(database), result_of(database, table)) == before


def test_nobody_leaves_by_a_source_that_was_replaced(database: Database) -> None:
    """A job refuses a view in the place of its table before a row leaves."""
    table = database.create(COLUMNS, list(PEOPLE.values()))
    run = anonymize(policy_of(database, table, history=ERASE, people="ours")).run
    frozen(database, run, procedure=False)
    before = kept(database), result_of(database, table)
    database.sql(f"ALTER TABLE {table} RENAME TO {table}_old")
    database.sql(f"CREATE VIEW {table} AS SELECT * FROM {table}_old WHERE nr <> 3")
    with pytest.raises(PolicyError, match="that it was when the rules were made"):
        carry_out(database)
    assert (kept(database), result_of(database, table)) == before


def test_nobody_leaves_while_others_hold_the_account(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    policy = policy_of(database, table, history=ERASE, people="ours")
    anonymize(policy)
    before = kept(database), result_of(database, table)
    forget(database, table, 3)
    monkeypatch.setattr("sqlanon.catalog.accounts.ACCOUNT_WAIT", 0.1)
    busy = pytest.raises(ConflictError, match="Another run is entering a release about ours")
    with connect(database.url) as engine, Catalog.open(engine) as catalog, catalog.entering("ours"), busy:
        anonymize(policy)
    assert (kept(database), result_of(database, table)) == before


def test_releases_that_are_gone_are_not_named(database: Database) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    policy = policy_of(database, table, history=ERASE)
    anonymize(policy)
    anonymize(policy_of(database, table, history={"mode": "watch"}, release={"table": f"{table}_o"}))
    database.sql(f"DROP TABLE {table}_o")
    forget(database, table, 3)
    with pytest.raises(ProtectionError, match="Nobody came") as waits:
        anonymize(policy)
    assert "Other releases" not in " ".join(waits.value.__notes__)
