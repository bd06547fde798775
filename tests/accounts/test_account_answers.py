"""Answers in accounts: with all releases and answers about the same people, none of them tells few persons apart."""

from __future__ import annotations

import json
import os
import threading
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import EngineError, PolicyError, ProtectionError
from sqlanon.inquiries.questions import ask as asking
from sqlanon.inquiries.questions.ask import Answer, ask
from sqlanon.policy import Policy
from sqlanon.policy.loading import parse_policy
from sqlanon.policy.writer import policy_text
from tests.child_run import FORKED
from tests.cli.support import call
from tests.persons_support import CASES
from tests.random_cases import many
from tests.run_support import OPTIONS, Database, Row, anonymize, open_database

COLUMNS = {"who": "VARCHAR(9)", "id": "INTEGER", "to wn": "VARCHAR(9)", "ill": "INTEGER", "nr": "INTEGER"}
ROLES: dict[str, Any] = {
    "who": "identifier",
    "id": "quasi-identifier",  # a column of the catalog's accounts is called so too
    "to wn": "quasi-identifier",
    "ill": "sensitive",
    "nr": "insensitive",
}
K, DIVERSITY = 3, 2
ANONYMOUS = {"model": "k-anonymity", "k": K}
MODELS = [ANONYMOUS, {"model": "distinct-l-diversity", "attribute": "ill", "l": DIVERSITY}]
State = dict[int, Row]  # the rows of a table by person, who is known by the number that releases keep
Line = dict[int, Any]  # the persons of a release with their classes, or those of an answer


def person(number: int, age: int | None, town: str | None, ill: int) -> Row:
    return (f"p{number}", age, town, ill, number)


def policy_of(database: Database, table: str, mode: str, **more: Any) -> Policy:
    history = {} if mode == "none" else {"history": {"mode": mode}}
    suffix = "plain" if mode == "none" else "r"
    given = {"privacy": MODELS, "subject": "who", "people": "ours", "release": {"table": f"{table}_{suffix}"}}
    return database.policy(table, more.pop("roles", ROLES), **(given | history | more))


def kept(database: Database) -> list[list[Row]]:
    """Read all accounts and histories of questions."""
    tables = ("account_releases", "account_persons", "accounts", "questions")
    return [sorted(database.sql(f"SELECT * FROM sqlanon.{table}"), key=str) for table in tables]


def groups_of(lines: list[Line]) -> dict[tuple[Any, ...], set[int]]:
    """The persons with the same classes in all releases, whom the same answers are about."""
    groups: dict[tuple[Any, ...], set[int]] = defaultdict(set)
    for one in {person for line in lines for person in line}:
        groups[tuple(line.get(one) for line in lines)].add(one)
    return groups


def holds(lines: list[Line], state: State) -> bool:
    """Tell by brute force whether a last line that is a release is harmless."""
    groups = groups_of(lines)
    diverse = [len({state[one][3] for one in persons}) for vector, persons in groups.items() if vector[-1]]
    return min(map(len, groups.values())) >= K and min(diverse) >= DIVERSITY


def tells(lines: list[Line], asked: set[int], column: str | None) -> bool:
    """Tell by brute force whether the answer about some persons, and all lines, tell more than they should."""
    before, after = groups_of(lines), groups_of([*lines, dict.fromkeys(asked, True)])
    divided = [group for group in before.values() if group & asked and group - asked]
    few = [group for group in after.values() if len(group) < K]
    if not divided and asked <= {one for group in before.values() for one in group}:
        few = [group for group in few if group <= asked]
    return bool(few) or (bool(divided) and column == "ill")


def among(ages: set[int], town: str | None = None) -> str:
    condition = f'"id" in ({", ".join(map(str, sorted(ages)))})'
    return condition if town is None else f"{condition} and \"to wn\" = '{town}'"


@st.composite
def days(draw: st.DrawFn) -> list[tuple[State, list[Any]]]:
    """States of a table, each with what is done then: None for a release, or a question."""
    row = st.tuples(st.sampled_from([None, *range(20, 26)]), st.sampled_from(["a", "b", None]), st.integers(1, 3))
    ages = st.sets(st.integers(20, 25), min_size=2, max_size=5)
    question = st.tuples(st.sampled_from([None, "nr", "ill"]), ages, st.sampled_from([None, None, "a"]))
    state = {number: person(number, *draw(row)) for number in range(draw(st.integers(12, 20)))}
    done = []
    for day in range(draw(st.integers(1, 3))):
        for number in range(draw(st.sampled_from([0, 1, 4])) if day else 0):
            state[100 * day + number] = person(100 * day + number, *draw(row))
        first = [] if day else draw(st.sampled_from([[], [None]]))
        done.append((dict(state), first + draw(st.lists(st.none() | question | question, min_size=2, max_size=5))))
    return done


def answered(policy: Policy, text: str) -> Answer | None:
    try:
        return ask(policy, text, OPTIONS)
    except ProtectionError:
        return None


@pytest.mark.parametrize("mode", ["watch", "refresh"])
@settings(max_examples=many(6), **CASES)
@given(days=days())
def test_releases_and_answers_together_are_judged_as_by_brute_force(
    database: Database, mode: str, days: list[tuple[State, list[Any]]]
) -> None:
    """The audit of questions decides as without an account, and both must allow."""
    database.sql("CREATE SCHEMA IF NOT EXISTS sqlanon")
    people, lines, kinds = f"people {id(days)}", list[Line](), list[str]()
    for state, done in days:
        table, twin = (database.create(COLUMNS, list(state.values())) for _ in range(2))
        plain = policy_of(database, twin, "none", people="twins")
        policy = policy_of(database, table, mode, people=people)
        for question in done:
            before = kept(database) if lines else None
            if question is None:
                came_out = release(database, plain, policy, mode, lines, state)
            else:
                came_out = answer(database, plain, policy, mode, lines, state, question)
            if came_out is not None:
                lines.append(came_out)
                kinds.append("release" if question is None else "answer")
            elif before is not None:
                assert without_twins(kept(database)) == without_twins(before)
            check_account(database, people, lines, kinds)
    assert database.leftovers() == []


def without_twins(tables: list[list[Row]]) -> list[list[Row]]:
    """The accounts, and the questions of tables other than the twins."""
    return tables[:3]


def release(
    database: Database, plain: Policy, policy: Policy, mode: str, lines: list[Line], state: State
) -> Line | None:
    """Release, first without an account, which tells the classes."""
    try:
        anonymize(plain, replace=True)
    except ProtectionError:
        return None
    classes = {row[-1]: row[:2] for row in database.sql(f"SELECT * FROM {plain.release.table}")}
    harmless = holds([*lines, classes], state)
    try:
        result = anonymize(policy, replace=True)
    except ProtectionError:
        assert mode == "refresh"
        assert not harmless
        return None
    assert mode == "watch" or harmless
    assert result.history is not None
    answers = result.history.answers or 0
    assert result.history.releases + answers == len(lines) + 1
    assert any("Together with" in one for one in result.warnings) is (not harmless)
    return classes


def answer(
    database: Database,
    plain: Policy,
    policy: Policy,
    mode: str,
    lines: list[Line],
    state: State,
    question: tuple[Any, set[int], Any],
) -> Line | None:
    """Ask, first of the twin without an account, whose audit is the same, as it knows the same answers."""
    column, ages, town = question
    text = f"{'count(*)' if column is None else f'sum({column})'} where {among(ages, town)}"
    asked = {one for one, row in state.items() if row[1] in ages and town in (None, row[2])}
    audited, got = answered(plain, text), answered(policy, text)
    if audited is None:
        assert got is None
        return None
    told = tells(lines, asked, column)
    if got is None:
        assert mode == "refresh"
        assert told
        forget(database, audited)
        return None
    assert mode == "watch" or not told
    assert got.value == audited.value
    assert (got.warning is not None) is told
    return dict.fromkeys(asked, True)


def forget(database: Database, answer: Answer) -> None:
    """Take the newest answer out of the history of its table."""
    newest = f"(SELECT history FROM sqlanon.questions WHERE number = {answer.number} ORDER BY written DESC LIMIT 1)"
    database.sql(f"UPDATE sqlanon.histories SET questions = questions - 1 WHERE name = {newest}")
    database.sql(f"DELETE FROM sqlanon.questions WHERE history = {newest} AND number = {answer.number}")


def check_account(database: Database, people: str, lines: list[Line], kinds: list[str]) -> None:
    """Hold what is kept against the groups by brute force."""
    if not lines:
        return
    groups = sorted(map(len, groups_of(lines).values()))
    ((account,),) = database.sql("SELECT id FROM sqlanon.accounts WHERE name = ?", [people])
    signatures = database.sql(
        "SELECT count(*) FROM sqlanon.account_persons WHERE account = ? GROUP BY signature", [account]
    )
    assert sorted(size for (size,) in signatures) == groups
    entered = database.sql(
        "SELECT kind, persons, groups, smallest, below_k FROM sqlanon.account_releases WHERE account = ?"
        " ORDER BY number",
        [account],
    )
    assert [row[0] for row in entered] == kinds
    few = sum(size for size in groups if size < K)
    assert entered[-1][1:] == (sum(groups), len(groups), groups[0], few)


PEOPLE = {n: person(n, 20 + n, "ab"[n // 8], n % 2 + 1) for n in range(16)}


def classes_of(database: Database, policy: Policy) -> list[list[int]]:
    """The persons of each released class."""
    released = database.sql(f"SELECT * FROM {policy.release.table}")
    classes: dict[Row, set[int]] = defaultdict(set)
    for row in released:
        classes[row[:2]].add(row[-1])
    return sorted(map(sorted, classes.values()))


def a_class(database: Database, policy: Policy) -> tuple[set[int], int]:
    """The persons of a released class, and one of another class."""
    first, second = classes_of(database, policy)[:2]
    return set(first), second[0]


def ages_of(persons: set[int]) -> set[int]:
    return {PEOPLE[one][1] for one in persons}


def test_a_question_about_a_class_and_one_more_person(database: Database) -> None:
    """Without an account the answer without the class, which is released, is the value of that person."""
    learnt = dict[str, int]()
    for mode in ("none", "refresh"):
        table = database.create(COLUMNS, list(PEOPLE.values()))
        policy = policy_of(database, table, mode)
        anonymize(policy)
        members, other = a_class(database, policy)
        before = kept(database)
        text = f"sum(nr) where {among(ages_of(members | {other}))}"
        if mode == "none":
            learnt[mode] = int(ask(policy, text, OPTIONS).value) - sum(members)
            continue
        with pytest.raises(ProtectionError, match=r"together with 1 earlier release, its .* 3 persons of ours"):
            ask(policy, text, OPTIONS)
        assert kept(database) == before
        counted = ask(policy, f"count(*) where {among(ages_of(members))}", OPTIONS)
        assert (counted.value, counted.warning) == (str(len(members)), None)
        assert kept(database)[1] == before[1]  # it divides nobody
    assert learnt == {"none": other}


def test_a_question_about_all_but_one_of_a_class(database: Database) -> None:
    """Without an account the class, which is released, without the answer is the value of that person."""
    for mode in ("none", "refresh"):
        policy = policy_of(database, database.create(COLUMNS, list(PEOPLE.values())), mode, privacy=[ANONYMOUS])
        wide = policy_of(database, policy.source.table or "", mode, privacy=[ANONYMOUS | {"k": 5}])
        anonymize(wide)
        members, _ = a_class(database, wide)
        left_out = max(members)
        text = f"sum(nr) where {among(ages_of(members - {left_out}))}"
        if mode == "none":
            assert sum(members) - int(ask(policy, text, OPTIONS).value) == left_out
            continue
        with pytest.raises(ProtectionError, match=r"together with 1 earlier release, its .* 3 persons of ours"):
            ask(policy, text, OPTIONS)


def test_whole_groups_are_free_whatever_else_is_out(database: Database) -> None:
    """Others whom an earlier answer told apart are told no more of."""
    policy = policy_of(database, database.create(COLUMNS, list(PEOPLE.values())), "watch")
    anonymize(policy)
    first, second, *others = classes_of(database, policy)
    told = ask(policy, f"sum(nr) where {among(ages_of({*first, second[0]}))}", OPTIONS)
    assert "could tell of fewer than 3 persons" in (told.warning or "")
    free = ask(policy, f"sum(nr) where {among(ages_of(set(others[0])))}", OPTIONS)
    assert (free.value, free.warning) == (str(sum(others[0])), None)
    again = ask(policy, f"sum(nr) where {among(ages_of({*first, second[0]}))}", OPTIONS)
    assert "could tell of fewer than 3 persons" in (again.warning or "")


def test_a_release_after_an_answer(database: Database) -> None:
    """Without an account the answer without the class that is released later is the value of one person."""
    seen = policy_of(database, database.create(COLUMNS, list(PEOPLE.values())), "none")
    anonymize(seen)
    members, other = a_class(database, seen)
    released = {}
    for mode in ("none", "watch", "refresh"):
        policy = policy_of(database, database.create(COLUMNS, list(PEOPLE.values())), mode, people=mode)
        got = answered(policy, f"sum(nr) where {among(ages_of(members | {other}))}")
        assert got is not None
        assert int(got.value) - sum(members) == other
        try:
            released[mode] = anonymize(policy).warnings
        except ProtectionError as error:
            released[mode] = (str(error),)
    assert not any("Together" in one for one in released["none"])
    assert "Together with 1 answer about watch, this one leaves" in released["watch"][-1]
    assert "Together with 1 answer about refresh, this one leaves" in released["refresh"][-1]
    assert "Nothing was published" in released["refresh"][-1]


def test_parts_of_groups_are_told_of_no_column_that_a_model_protects(database: Database) -> None:
    """The diversity of a part can't be decided without a look at the values, and a denial would tell of them."""
    many = {n: person(n, 20 + n, "a", n % 3) for n in range(24)}
    far = [{"model": "k-anonymity", "k": 3}, {"model": "distinct-l-diversity", "attribute": "ill", "l": 2}]
    table = database.create(COLUMNS, list(many.values()))
    policy = policy_of(database, table, "refresh", privacy=far, ranges="observed")
    anonymize(policy_of(database, table, "watch", privacy=[far[0] | {"k": 12}, far[1]]))
    some = among(set(range(20, 26)))
    with pytest.raises(ProtectionError, match=r"divides 1 group of persons.*distinct-l-diversity.*look at 'ill'"):
        ask(policy, f"sum(ill) where {some}", OPTIONS)
    assert ask(policy, f"sum(nr) where {some}", OPTIONS).warning is None
    assert ask(policy, f"sum(ill) where {some}", OPTIONS).value == str(sum(n % 3 for n in range(6)))


def test_the_newest_release_stays_the_newest_when_answers_follow(database: Database) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    policy = policy_of(database, table, "watch")
    anonymize(policy)
    ask(policy, f"sum(nr) where {among(set(range(20, 25)))}", OPTIONS)
    result = anonymize(policy, replace=True)
    assert result.history is not None
    assert (result.history.releases, result.history.answers) == (2, 1)
    assert (result.history.came, result.history.left) == (0, 0)
    assert "2 releases and 1 answer about ours" in result.history.sentence


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"subject": "none"}, r"history: .*`subject`"),
        ({"roles": ROLES | {"who": {"role": "identifier", "show": "surrogate"}}}, "history: .*surrogate"),
        ({"roles": ROLES | {"who": {"role": "identifier", "nulls": "each"}}}, "history: .*nobody who"),
        ({"catalog": {"url": "duckdb:///other.duckdb"}}, "history: the catalog must be in the source's database"),
        ({"subject": "away", "roles": ROLES | {"away": "identifier"}}, "subject: the table has no column 'away'"),
    ],
)
def test_questions_that_can_not_be_tied_to_persons_are_refused(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: dict[str, Any], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    table = database.create(COLUMNS, list(PEOPLE.values()))
    with pytest.raises(PolicyError, match=message):
        ask(policy_of(database, table, "watch", **more), f"sum(nr) where {among({20, 21, 22, 23})}", OPTIONS)


@pytest.mark.parametrize(
    ("row", "message"), [(PEOPLE[3], "history: 'who' repeats"), ((None, 23, "a", 1, 99), "of nobody known")]
)
def test_tables_whose_rows_are_not_one_a_person_are_refused(database: Database, row: Row, message: str) -> None:
    table = database.create(COLUMNS, [*PEOPLE.values(), row])
    with pytest.raises(PolicyError, match=message):
        ask(policy_of(database, table, "watch"), f"sum(nr) where {among({30, 31, 32, 33})}", OPTIONS)
    assert kept(database)[0] == []


def test_a_view_that_names_columns_has_the_persons_of_its_table(database: Database) -> None:
    """Their names are the view's in the policy, and its people those of the account."""
    table = database.create(COLUMNS, list(PEOPLE.values()))
    policy = policy_of(database, table, "refresh")
    anonymize(policy)
    members, other = a_class(database, policy)
    database.sql(f"CREATE VIEW {table}_v AS SELECT nr AS number, id AS years, who AS name FROM {table}")
    roles = {"name": "identifier", "years": "quasi-identifier", "number": "insensitive"}
    seen = policy_of(database, f"{table}_v", "refresh", roles=roles, subject="name", privacy=[ANONYMOUS])
    years = among(ages_of(members | {other})).replace('"id"', "years")
    assert answered(seen, f"sum(number) where {years}") is None
    years = among(ages_of(members)).replace('"id"', "years")
    assert answered(seen, f"sum(number) where {years}") is not None
    hidden = policy_of(
        database, f"{table}_v", "refresh", roles=roles | {"who": "identifier"}, subject="who", privacy=[ANONYMOUS]
    )
    with pytest.raises(PolicyError, match="no column 'who'"):
        ask(hidden, f"sum(number) where {years}", OPTIONS)


def test_an_answer_that_is_not_entered_is_warned_of(database: Database) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    plain, text = policy_of(database, table, "none"), f"sum(nr) where {among({20, 21, 22, 23})}"
    assert ask(plain, text, OPTIONS).warning is None
    anonymize(policy_of(database, table, "watch"))
    before = kept(database)
    assert "this answer is not entered" in (ask(plain, text, OPTIONS).warning or "")
    assert kept(database)[:3] == before[:3]


def _ask_and_die(policy: str, text: str, moment: str) -> None:
    """Ask, and die like a killed process: while the answer is worked out, or before it is printed."""
    if moment == "worked out":
        asking._Asking._value = lambda _: os._exit(9)  # type: ignore[method-assign,assignment,return-value]
    ask(parse_policy(policy), text, EngineOptions(threads=1))
    os._exit(9)


@pytest.mark.parametrize("moment", ["worked out", "printed"])
def test_what_is_killed_before_it_is_printed_is_entered_or_was_never_out(postgres_url: str, moment: str) -> None:
    with open_database(postgres_url) as database:
        table = database.create(COLUMNS, list(PEOPLE.values()))
        policy = policy_of(database, table, "watch")
        anonymize(policy)
        text = f"count(*) where {among({20, 21, 22, 23, 24, 25})}"
        child = FORKED.Process(target=_ask_and_die, args=(policy_text(policy), text, moment))
        child.start()
        child.join()
        assert child.exitcode == 9
        assert [row[2] for row in kept(database)[0]] == ["release", *(["answer"] if moment == "printed" else [])]
        assert len(kept(database)[3]) == 1  # the question's own history is written first


def test_an_account_that_can_not_be_written_lets_no_answer_out(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    policy = policy_of(database, table, "watch")
    anonymize(policy)
    before = kept(database)

    def fail(*_: object) -> None:
        raise EngineError("The disk is full.")

    monkeypatch.setattr("sqlanon.catalog.accounts.Accounts.enter_within", fail)
    with pytest.raises(EngineError, match="disk"):
        ask(policy, f"sum(nr) where {among({20, 21, 22, 23})}", OPTIONS)
    assert kept(database) == before


def test_of_two_questions_at_once_one_is_denied(database: Database) -> None:
    """Each is of another table of the same people, whose own histories know nothing of each other."""
    ages = [{20, 21, 22, 23}, {20, 21, 22, 23, 24}]
    policies = [policy_of(database, database.create(COLUMNS, list(PEOPLE.values())), "refresh") for _ in ages]
    answers: list[Answer | None] = []
    barrier = threading.Barrier(2)

    def work(policy: Policy, text: str) -> None:
        barrier.wait()
        answers.append(answered(policy, text))

    threads = [
        threading.Thread(target=work, args=(policy, f"sum(nr) where {among(one)}"))
        for policy, one in zip(policies, ages, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one is None for one in answers) == [False, True]
    assert len(kept(database)[0]) == 1


def test_the_commands_tell_of_answers(database: Database, tmp_path: Path) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    file = tmp_path / "policy.yml"
    file.write_text(policy_text(policy_of(database, table, "watch")), encoding="utf-8")
    assert call("run", file).exit_code == 0
    text = f"count(*) where {among({20, 21, 22, 23, 24})}"
    first = call("ask", file, text)
    assert (first.exit_code, first.stdout) == (0, f"{text} = 5\n")
    assert "Warning: The question was answered all the same: together with 1 earlier release, its" in first.stderr
    again = json.loads(call("ask", file, text, "--json").stdout)
    assert set(again) == {"question", "value", "number", "warning"}
    (account,) = json.loads(call("account", file, "--json").stdout)["accounts"]
    lines = account["releases"]
    assert f"{table}_r" in lines[0]["about"]
    assert [(one["kind"], one["run"] == "ask", one["about"], one["came"]) for one in lines] == [
        ("release", False, lines[0]["about"], 16),
        ("answer", True, text, None),
        ("answer", True, text, None),
    ]
    assert lines[1]["below_k"] == lines[2]["below_k"] > 0
    shown = call("account", file).stdout
    assert text in shown.splitlines()[-1]
    assert text in call("account", "--url", database.url).stdout
