"""Increments: whoever holds the release of every night holds batches, each of which satisfies the models by itself."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlanon.errors import ConflictError, PolicyError, ProtectionError
from sqlanon.inquiries.questions.ask import ask
from sqlanon.policy import Policy
from sqlanon.policy.writer import policy_text
from sqlanon.results.run_result import RunResult
from sqlanon.runs.class_source import ClassSource
from sqlanon.runs.execution import ClassRun
from sqlanon.runs.linking import check_run
from tests.accounts.test_accounts import COLUMNS, MODELS, PEOPLE, ROLES, State, fill, full_disk, kept, person
from tests.cli.support import call
from tests.jobs_support import carry_out, frozen
from tests.persons_support import CASES
from tests.rules_support import apply
from tests.run_support import OPTIONS, Database, Row, anonymize, open_database

K, DIVERSITY = 3, 2
LEVELS = ROLES | {
    "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [3, 9]}},
    "to wn": {"role": "quasi-identifier", "hierarchy": {"suppress": True}},
}
ALGORITHMS: dict[str, dict[str, Any]] = {
    "mondrian": {},
    "optimal": {"attributes": LEVELS, "algorithm": {"name": "optimal"}, "suppression": 0.5},
}


def policy_of(database: Database, table: str, algorithm: str = "mondrian", **more: Any) -> Policy:
    given = {"privacy": MODELS, "subject": "who", "history": {"mode": "increments"}, **ALGORITHMS[algorithm], **more}
    attributes = given.pop("attributes", ROLES)
    return database.policy(table, attributes, **({"release": {"table": f"{table}_r"}} | given))


def difference(earlier: list[Row], later: list[Row]) -> tuple[Counter[Row], Counter[Row]]:
    """The rows that came between two releases, and those that went, as somebody who holds both subtracts them."""
    before, after = Counter(earlier), Counter(later)
    return after - before, before - after


def weakest(rows: Counter[Row], shown: int = 2) -> tuple[int, int]:
    """The fewest rows of a class, and the fewest sensitive values, after `shown` columns of quasi-identifiers."""
    sizes: dict[Row, int] = defaultdict(int)
    values: dict[Row, set[Any]] = defaultdict(set)
    for row, n in rows.items():
        sizes[row[:shown]] += n
        values[row[:shown]].add(row[shown])
    return min(sizes.values(), default=K), min(map(len, values.values()), default=DIVERSITY)


@st.composite
def nights(draw: st.DrawFn) -> list[State]:
    """States of a table: persons come, go, and change."""
    ages, towns = st.sampled_from([None, *range(20, 29)]), st.sampled_from(["a", "b", None])
    row = st.tuples(ages, towns, st.sampled_from(["flu", "rash", "gout"]))
    state = {number: person(number, *draw(row)) for number in range(draw(st.integers(4, 12)))}
    states = [dict(state)]
    for night in range(1, draw(st.integers(2, 5))):
        for number in range(draw(st.sampled_from([0, 1, 2, 4, 8]))):
            state[100 * night + number] = person(100 * night + number, *draw(row))
        for gone in draw(st.lists(st.sampled_from(sorted(state)), max_size=2)):
            if draw(st.booleans()):
                state.pop(gone, None)
            else:
                state[gone] = person(gone, *draw(row))
        states.append(dict(state))
    return states


@pytest.mark.parametrize(
    ("algorithm", "applies"), [("mondrian", False), ("mondrian", True), ("optimal", False), ("optimal", True)]
)
@settings(max_examples=6, **CASES)
@given(states=nights())
def test_each_difference_of_two_nights_satisfies_the_models(
    database: Database, algorithm: str, applies: bool, states: list[State]
) -> None:
    """Batches are searched for, or classified by the rules of the first."""
    table = database.create(COLUMNS, [])
    policy = policy_of(database, table, algorithm)
    releases, first = [list[Row]()], None
    for state in states:
        if len(state) < K:  # which no table can be released of
            continue
        fill(database, table, state)
        before = kept(database) if len(releases) > 1 else None
        try:
            by_rules = first is not None and applies
            result = apply(database, first, table, f"{table}_r") if by_rules else anonymize(policy)
        except ProtectionError:
            assert before is None or kept(database) == before
            continue
        first = first or result.run
        now = database.sql(f"SELECT * FROM {table}_r")
        came, went = difference(releases[-1], now)
        assert not went
        assert result.history is not None
        assert result.history.came == came.total() == len(now) - len(releases[-1])
        assert not {row[-1] for row in came} & {row[-1] for row in releases[-1]}
        assert {row[-1] for row in came} <= set(state)
        releases.append(now)
    for number, earlier in enumerate(releases):
        for later in releases[number:]:
            came, went = difference(earlier, later)
            assert not went
            size, different = weakest(came)
            assert (size >= K, different >= DIVERSITY) == (True, True)
    if len(releases) > 1:
        assert result_of(database, table) == sorted(releases[-1], key=str)
    assert database.leftovers() == []


@settings(max_examples=5, **CASES)
@given(states=nights(), kinds=st.lists(st.sampled_from(["watch", "refresh", "increments"]), min_size=5, max_size=5))
def test_batches_and_releases_by_other_rules_are_judged_together(
    database: Database, states: list[State], kinds: list[str]
) -> None:
    """Persons by their batch and class there, and by their class in each other release, by brute force."""
    table, told, vectors = database.create(COLUMNS, []), list[Row](), dict[int, dict[int, Any]]()
    for number, (state, kind) in enumerate(zip([one for one in states if len(one) >= K], kinds, strict=False)):
        fill(database, table, state)
        to = f"{table}_{'r' if kind == 'increments' else 'o'}"
        policy = policy_of(database, table, history={"mode": kind}, release={"table": to}, suppression=0.5)
        before = kept(database) if told else None
        try:
            result = anonymize(policy, replace=kind != "increments")
        except ProtectionError:
            assert before is None or kept(database) == before
            continue
        rows = database.sql(f"SELECT * FROM {to}")
        came = difference(told if kind == "increments" else [], rows)[0]
        told = rows if kind == "increments" else told
        for row in came:
            vectors.setdefault(row[-1], {})[-1 if kind == "increments" else number] = (number, row[:2])
        groups: dict[Any, set[int]] = defaultdict(set)
        for who, vector in vectors.items():
            groups[tuple(sorted(vector.items()))].add(who)
        assert result.history is not None
        sizes = [len(one) for one in groups.values()]
        assert (result.history.persons, result.history.groups) == (len(vectors), len(groups))
        assert result.history.below_k == sum(size for size in sizes if size < K)
        if kind == "watch":
            continue
        assert min(sizes) >= K
        inside = {row[-1] for row in came}
        values = [{row[2] for row in came if row[-1] in one} for one in groups.values() if one <= inside]
        assert all(len(one) >= DIVERSITY for one in values)


BY_AGE = ROLES | {"to wn": "omit"}
BY_TOWN = ROLES | {"age": "omit"}
NEWCOMERS = [person(n, [21, 28][n // 34], "ab"[n % 2], ["flu", "rash"][n // 2 % 2]) for n in range(30, 38)]


def test_a_source_of_strangers_is_warned_of(database: Database) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    policy = policy_of(database, table)
    anonymize(policy)
    database.insert(table, [person(n, 21, "a", ["flu", "rash"][n % 2]) for n in range(30, 36)])
    assert not any("released twice" in one for one in anonymize(policy).warnings)
    database.sql(f"UPDATE {table} SET who = upper(who)")
    warned = [one for one in anonymize(policy).warnings if "released twice" in one]
    assert [one.split(" is in ")[0] for one in warned] == ["Nobody of the 22 persons who were released before"]


def test_a_trigger_could_alter_a_batch(postgres_database: Database) -> None:
    database = postgres_database
    table = database.create(COLUMNS, list(PEOPLE.values()))
    policy = policy_of(database, table)
    anonymize(policy)
    database.sql(f"CREATE RULE silent AS ON INSERT TO {table}_r DO INSTEAD NOTHING")
    database.insert(table, [person(n, 21, "a", ["flu", "rash"][n % 2]) for n in range(30, 36)])
    account = kept(database)
    with pytest.raises(PolicyError, match="disable them"):
        anonymize(policy)
    assert kept(database) == account
    database.sql(f"ALTER TABLE {table}_r DISABLE RULE silent")
    anonymize(policy)
    assert len(result_of(database, table)) == 22


def test_a_batch_of_persons_who_are_in_another_release(database: Database) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    policy = policy_of(database, table)
    other = partial(policy_of, database, table, release={"table": f"{table}_o"})
    anonymize(policy)
    database.insert(table, NEWCOMERS)
    together = anonymize(other(history={"mode": "refresh"})).history
    assert together is not None
    assert together.came == 8
    batch = anonymize(policy).history
    assert batch is not None
    assert (batch.came, batch.added_to, batch.persons, batch.below_k) == (8, 16, 24, 0)
    persons = kept(database)[2]
    assert len(persons) == len({row[1] for row in persons}) == len(result_of(database, table)) == 24
    assert len({abs(row[2]) for row in persons}) == batch.groups
    database.insert(table, [person(n, 21, "a", ["flu", "rash"][n % 2]) for n in range(50, 56)])
    again = anonymize(policy).history
    assert again is not None
    assert (again.came, again.added_to, again.persons, again.groups) == (6, 24, 30, batch.groups + 1)
    assert len({abs(row[2]) for row in kept(database)[2]}) == again.groups


def test_answers_are_held_against_batches_and_batches_against_answers(database: Database) -> None:
    """After an answer about those who wait, neither another nor a batch tells one more person from them."""
    table = database.create(COLUMNS, list(PEOPLE.values()))
    policy = policy_of(database, table)
    anonymize(policy)
    database.insert(table, [person(n, 21, "a", ["flu", "rash"][n % 2]) for n in range(30, 36)])
    question = "sum(nr) where age between 21 and 21"
    assert ask(policy, question, OPTIONS).value == str(sum([*range(4, 8), *range(30, 36)]))
    database.insert(table, [person(40, 21, "a", "gout")])
    before = (result_of(database, table), kept(database))
    with pytest.raises(ProtectionError, match="no longer what earlier questions"):
        ask(policy, question, OPTIONS)
    with pytest.raises(ProtectionError, match=r"1 earlier release and 1 answer .*leaves 1 person among fewer"):
        anonymize(policy)
    assert (result_of(database, table), kept(database)) == before
    database.insert(table, [person(n, 21, "a", ["flu", "rash"][n % 2]) for n in range(41, 43)])
    batch = anonymize(policy).history
    assert batch is not None
    assert (batch.came, batch.below_k, len(result_of(database, table))) == (9, 0, 25)


def test_a_batch_that_divides_groups_of_another_release_is_refused(database: Database) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    policy = policy_of(database, table, attributes=BY_TOWN)
    by_age = {"attributes": BY_AGE, "history": {"mode": "refresh"}, "release": {"table": f"{table}_o"}}
    anonymize(policy)
    database.insert(table, NEWCOMERS)
    anonymize(policy_of(database, table, **by_age))
    before = (result_of(database, table), kept(database))
    with pytest.raises(ProtectionError, match="leaves 8 persons among fewer than 3") as refused:
        anonymize(policy)
    assert "8 persons came since the last batch, and wait" in " ".join(refused.value.__notes__)
    assert (result_of(database, table), kept(database)) == before


def result_of(database: Database, table: str) -> list[Row]:
    return sorted(database.sql(f"SELECT * FROM {table}_r"), key=str)


def test_those_who_are_too_few_wait_for_others(database: Database) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    policy = policy_of(database, table)
    anonymize(policy)
    first, account = result_of(database, table), kept(database)
    with pytest.raises(ProtectionError, match="Nobody came since"):
        anonymize(policy)
    database.insert(table, [person(n, 21, "a", ["flu", "rash"][n % 2]) for n in range(30, 32)])
    with pytest.raises(ProtectionError) as refused:
        anonymize(policy)
    assert refused.value.__notes__ == [
        "2 persons came since the last batch, and wait for the next. The release is as it was."
    ]
    assert (result_of(database, table), kept(database)) == (first, account)
    database.insert(table, [person(n, 21, "b", ["flu", "rash"][n % 2]) for n in range(40, 42)])
    result = anonymize(policy)
    assert result.history is not None
    assert (result.history.came, result.history.added_to, result.history.persons) == (4, 16, 20)
    assert "larger batches lose less" in " ".join(result.notes)
    assert not any("intersect" in one for one in result.warnings)
    assert set(first) < set(result_of(database, table))


def test_a_batch_waits_until_it_is_full_or_the_hold_ends(database: Database) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    waits = partial(policy_of, database, table)
    anonymize(waits())
    database.insert(table, [person(n, 21, "a", ["flu", "rash"][n % 2]) for n in range(30, 36)])
    for history in ({"batch": 7}, {"batch": 7, "hold": "2 days"}):
        with pytest.raises(ProtectionError, match="A batch is of 7 persons at least"):
            anonymize(waits(history={"mode": "increments", **history}))
    entered = "UPDATE sqlanon.account_releases SET entered = entered {} INTERVAL '49 hours'"
    database.sql(entered.format("+"))
    with pytest.raises(ConflictError, match="set the clock"):
        anonymize(waits(history={"mode": "increments", "batch": 7, "hold": "2 days"}))
    database.sql(entered.format("-"))
    database.sql(entered.format("-"))
    anonymize(waits(history={"mode": "increments", "batch": 7, "hold": "2 days"}))
    assert len(result_of(database, table)) == 22


def test_persons_who_are_suppressed_wait_too(database: Database) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    policy = policy_of(database, table, "optimal", privacy=MODELS[:1])
    anonymize(policy)
    database.insert(table, [person(n, 21, "a", "flu") for n in range(30, 34)] + [person(50, 27, "b", "gout")])
    result = anonymize(policy)
    assert result.history is not None
    assert (result.history.came, len(result_of(database, table)), len(kept(database)[2])) == (4, 20, 20)
    assert "1 person came since the last batch, and wait" in " ".join(result.notes)


def test_a_batch_by_stored_rules_is_cut_by_their_tree_as_far_down_as_it_allows(database: Database) -> None:
    """Eight persons of one leaf have its label; three who are spread over the table have the root's."""
    table = database.create(COLUMNS, list(PEOPLE.values()))
    policy = policy_of(database, table, ranges="cuts")
    first = anonymize(policy).run
    labels = {row[:2] for row in result_of(database, table)}
    assert len(labels) > 2
    database.insert(table, [person(n, 23, "b", ["flu", "rash"][n % 2]) for n in range(30, 38)])
    apply(database, first, table, f"{table}_r")
    batch = {row[:2] for row in result_of(database, table) if row[-1] >= 30}
    assert len(batch) == 1
    assert batch < labels
    spread = [person(50, 20, "a", "flu"), person(51, 23, "b", "rash"), person(52, 22, "a", "gout")]
    database.insert(table, spread)
    result = apply(database, first, table, f"{table}_r")
    assert result.history is not None
    assert (result.history.came, result.history.added_to) == (3, 24)
    (whole,) = {row[:2] for row in result_of(database, table) if row[-1] >= 50}
    assert whole not in labels
    assert {row[-1] for row in result_of(database, table)} == {*PEOPLE, *range(30, 38), 50, 51, 52}


def test_a_job_adds_batches(database: Database) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    run = anonymize(policy_of(database, table)).run
    frozen(database, run, procedure=False)
    database.insert(table, [person(n, 21, "a", ["flu", "rash"][n % 2]) for n in range(30, 36)])
    carry_out(database)
    assert [row[2] for row in kept(database)[1]] == ["batch", "batch"]
    assert len(result_of(database, table)) == 22


def test_a_release_that_is_not_as_the_account_knows_it_gets_no_rows(database: Database) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    policy = policy_of(database, table)
    database.sql(f"CREATE TABLE {table}_r (nr INTEGER)")
    with pytest.raises(PolicyError, match=r"no batch of these people is in it.*--replace"):
        anonymize(policy)
    assert "no batch of these people" in str(check_run(policy)[1])
    assert check_run(policy, replace=True)[1] is None
    anonymize(policy, replace=True)
    database.insert(table, [person(n, 21, "a", ["flu", "rash"][n % 2]) for n in range(30, 36)])
    assert check_run(policy)[1] is None
    assert json.loads(call("account", "--url", database.url, "--json").stdout)["accounts"][0]["changed"] == []
    assert "--replace" not in " ".join(check_run(policy)[0].warnings)
    other = policy_of(database, table, release={"table": f"{table}_other"})
    assert "are added to" in str(check_run(other)[1])
    with pytest.raises(PolicyError, match="are added to"):
        anonymize(other)
    database.sql(f"DELETE FROM {table}_r WHERE nr = 3")
    account = kept(database)
    assert "has 15 rows" in str(check_run(policy)[1])
    with pytest.raises(ConflictError, match=r"has 15 rows, and the account of .* knows 16"):
        anonymize(policy, replace=True)
    (said,) = json.loads(call("account", "--url", database.url, "--json").stdout)["accounts"][0]["changed"]
    assert "it has 15 rows, and had 16" in said
    database.sql(f"DROP TABLE {table}_r")
    with pytest.raises(ConflictError, match="has 0 rows"):
        anonymize(policy)
    assert kept(database) == account


@pytest.mark.parametrize("mode", ["none", "refresh"])
def test_a_release_that_another_run_replaced_gets_no_rows(database: Database, mode: str) -> None:
    """It has as many rows as the batches, and persons whom no batch has: these would be added a second time."""
    table = database.create(COLUMNS, list(PEOPLE.values()))
    policy = policy_of(database, table)
    anonymize(policy)
    fill(database, table, {n: one for n, one in PEOPLE.items() if n > 3})
    database.insert(table, [person(n, 21, "a", ["flu", "rash"][n % 2]) for n in range(30, 34)])
    other = anonymize(policy_of(database, table, history={"mode": mode}), replace=True).run
    before = (result_of(database, table), kept(database))
    assert len(before[0]) == len(PEOPLE)
    with pytest.raises(ConflictError, match=f"Run {other} replaced .* begin anew: `sqlanon account forget`"):
        anonymize(policy)
    assert (result_of(database, table), kept(database)) == before


def test_a_release_of_a_renamed_table_is_not_replaced(database: Database) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    result = anonymize(policy_of(database, table))
    assert result.history is not None
    database.sql(f"ALTER TABLE {table} RENAME TO {table}_n")
    renamed = partial(policy_of, database, f"{table}_n", release={"table": f"{table}_r"})
    if database.engine == "duckdb":  # where a table is known by its name alone
        with pytest.raises(PolicyError, match=rf"has batches of .*write people: '{result.history.people}'"):
            anonymize(renamed(), replace=True)
        assert "has batches of" in str(check_run(renamed(), replace=True)[1])
    else:
        with pytest.raises(ProtectionError, match="Nobody came"):
            anonymize(renamed(), replace=True)
    with pytest.raises(ProtectionError, match="Nobody came"):
        anonymize(renamed(people=result.history.people))
    assert len(result_of(database, table)) == 16


@pytest.mark.parametrize("change", ["ADD COLUMN more INTEGER", "ALTER COLUMN nr TYPE BIGINT"])
def test_a_release_with_other_columns_gets_no_rows(database: Database, change: str) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    policy = policy_of(database, table)
    anonymize(policy)
    account = kept(database)
    database.sql(f"ALTER TABLE {table}_r {change}")
    database.insert(table, [person(n, 21, "a", ["flu", "rash"][n % 2]) for n in range(30, 36)])
    with pytest.raises(PolicyError, match="other columns"):
        anonymize(policy)
    assert kept(database) == account
    assert len(result_of(database, table)) == 16
    assert database.leftovers() == []


def test_what_people_attached_to_a_release_stays(database: Database) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    policy = policy_of(database, table)
    anonymize(policy)
    database.sql(f"CREATE INDEX {table}_i ON {table}_r (nr)")
    database.sql(f"CREATE VIEW {table}_v AS SELECT count(*) AS n FROM {table}_r")
    database.insert(table, [person(n, 21, "a", ["flu", "rash"][n % 2]) for n in range(30, 36)])
    anonymize(policy)
    assert database.sql(f"SELECT n FROM {table}_v") == [(22,)]
    database.sql(f"DROP INDEX {table}_i")


def test_a_batch_that_fails_to_be_entered_is_not_added(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    policy = policy_of(database, table)
    anonymize(policy)
    before = (result_of(database, table), kept(database))
    database.insert(table, [person(n, 21, "a", ["flu", "rash"][n % 2]) for n in range(30, 36)])

    with full_disk(monkeypatch):
        anonymize(policy)
    assert (result_of(database, table), kept(database)) == before
    anonymize(policy)
    assert len(kept(database)[2]) == 22


def test_persons_whom_another_run_has_released_meanwhile_are_not_released_twice(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both runs are planned while there is no release yet; the second finds the persons of its batch taken."""
    table = database.create(COLUMNS, list(PEOPLE.values()))
    policy, plan, others = policy_of(database, table), ClassSource.require_plan, list[RunResult]()

    def interrupted(self: ClassSource, run: ClassRun) -> None:
        plan(self, run)
        if not others:
            monkeypatch.setattr(ClassSource, "require_plan", plan)
            others.append(anonymize(policy))

    monkeypatch.setattr(ClassSource, "require_plan", interrupted)
    with pytest.raises(ConflictError, match="released persons of this batch meanwhile"):
        anonymize(policy, replace=True)
    assert (len(result_of(database, table)), len(kept(database)[1])) == (16, 1)
    assert database.leftovers() == []


def test_a_first_batch_does_not_replace_another_one(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second run, planned while there is no release yet, has other persons, and may replace a release."""
    table = database.create(COLUMNS, list(PEOPLE.values()))
    policy, plan, others = policy_of(database, table), ClassSource.require_plan, list[RunResult]()

    def interrupted(self: ClassSource, run: ClassRun) -> None:
        plan(self, run)
        if not others:
            monkeypatch.setattr(ClassSource, "require_plan", plan)
            others.append(anonymize(policy))
            database.sql(f"DELETE FROM {table}")
            database.insert(table, [person(n, 21, "a", ["flu", "rash"][n % 2]) for n in range(30, 36)])

    monkeypatch.setattr(ClassSource, "require_plan", interrupted)
    with pytest.raises(ConflictError, match=r"first batch of .* meanwhile"):
        anonymize(policy, replace=True)
    assert (len(result_of(database, table)), len(kept(database)[1])) == (16, 1)


def test_the_commands_show_batches_and_judge_the_whole_release(tmp_path: Path) -> None:
    url = f"duckdb:///{tmp_path}/clinic.duckdb"
    file = tmp_path / "policy.yml"
    with open_database(url) as database:
        table = database.create(COLUMNS, list(PEOPLE.values()))
        file.write_text(policy_text(policy_of(database, table)), encoding="utf-8")
    assert "run " in call("run", file).stdout
    with open_database(url) as database:
        database.insert(table, [person(n, 21, "a", ["flu", "rash"][n % 2]) for n in range(30, 36)])
    assert "A batch of 6 persons, added to 16 rows" in call("run", file).stdout
    (account,) = json.loads(call("account", file, "--json").stdout)["accounts"]
    assert [(one["kind"], one["rows"], one["came"]) for one in account["releases"]] == [
        ("batch", 16, 16),
        ("batch", 6, 6),
    ]
    verified = call("verify", file)
    assert (verified.exit_code, "22 rows" in verified.stdout) == (0, True)
    assert "added a batch to 16 rows of others" in verified.stdout
    assert call("risk", file).exit_code == 0


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("INTEGER", "DECIMAL(9, 2)"),
        ("DECIMAL(9, 1)", "DECIMAL(12, 3)"),
        ("DECIMAL(9, 2)", "VARCHAR(12)"),
        ("DOUBLE PRECISION", "DECIMAL(9, 2)"),
        ("DATE", "TIMESTAMP"),
    ],
)
def test_persons_are_known_whatever_type_their_column_has(database: Database, first: str, then: str) -> None:
    columns = {**COLUMNS, "who": first}
    known = [f"1980-01-0{n % 7 + 1}" if first == "DATE" else f"{n}.5" for n in range(7)]
    if first == "INTEGER":
        known = [str(10 * n) for n in range(7)]
    table = database.create(columns, [(who, 21, "a", ["flu", "rash"][n % 2], n) for n, who in enumerate(known)])
    policy = policy_of(database, table)
    anonymize(policy)
    before = kept(database)
    database.sql(f"ALTER TABLE {table} ALTER COLUMN who TYPE {then} USING CAST(who AS {then})")
    if then == "VARCHAR(12)":
        database.sql(f"UPDATE {table} SET who = replace(who, '.50', '.5')")
    with pytest.raises(ProtectionError, match="Nobody came"):
        anonymize(policy)
    assert kept(database) == before


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"release": {"table": "r", "layout": "star"}}, "leave release.layout out"),
        ({"digest": "run"}, "leave digest out"),
        ({"history": {"mode": "watch", "batch": 9}}, "mode: increments alone"),
        ({"history": {"mode": "increments", "hold": "9 days"}}, "hold without batch"),
        ({"history": {"mode": "increments", "batch": 9, "hold": "9 years"}}, "hold"),
    ],
)
def test_what_can_not_grow_is_refused_before_any_work(database: Database, more: dict[str, Any], message: str) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    with pytest.raises(PolicyError, match=message):
        anonymize(policy_of(database, table, **more))
