"""Departures: whoever holds the release of every night learns of those who left what their groups tell, and no more."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlanon.errors import ConflictError, ProtectionError
from sqlanon.results.history import DepartureFigures
from sqlanon.results.run_result import RunResult
from tests.persons_support import CASES
from tests.run_support import Database, Row, anonymize
from tests.test_accounts import COLUMNS, PEOPLE, State, fill, kept, person
from tests.test_increments import ALGORITHMS, DIVERSITY, K, difference, policy_of, result_of, weakest

ERASE, RETRACT = ({"mode": "increments", "departures": way} for way in ("erase", "retract"))


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
    lines = database.sql("SELECT kind, rows, came, departed FROM sqlanon.account_releases ORDER BY number")
    assert lines == [("batch", 16, 16, 0), ("departure", -len(left), 0, 1)]
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
            assert "left, and stay until others of their groups leave." in waits.value.__notes__[0]
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


@pytest.mark.parametrize("history", [ERASE, RETRACT], ids=["erase", "retract"])
def test_an_answer_divides_those_who_leave(database: Database, history: dict[str, Any]) -> None:
    """Three of one class leave, of whom an answer was about one: three others stay with it, or all go together."""
    table = database.create(COLUMNS, [person(n, 25 + n % 2, "a", ["flu", "rash"][n // 2 % 2]) for n in range(8)])
    policy = policy_of(database, table, history=history, attributes=COARSE, algorithm={"name": "optimal"})
    anonymize(policy)
    assert len({row[:2] for row in result_of(database, table)}) == 1
    ask(policy, "count where age = 25", options=OPTIONS)
    forget(database, table, 0, 1, 2)
    with pytest.raises(ProtectionError, match="Nobody came"):
        anonymize(policy)
    assert len(shown(database, table)) == (0 if history == ERASE else 8)
    if history == ERASE:
        return
    forget(database, table, 4, 6)
    with pytest.raises(ConflictError, match="Nobody of the") if False else pytest.raises(ProtectionError):
        anonymize(policy)
    assert shown(database, table) == {1, 3, 5, 7}  # all of the group that the answer was about, and 1 waits
