"""Persons in place of rows: k, l and t count persons, as brute force over the released rows says."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sqlanon import check_policy, policy_risk
from sqlanon.encoding.distinct_tuples import count_tuples
from sqlanon.errors import PolicyError, ProtectionError, VerificationError
from sqlanon.plan.streams import stream_problems
from sqlanon.runs import source
from sqlanon.runs.tradeoffs.sweeping import sweep
from sqlanon.verification.release import verify_release
from tests.jobs_support import frozen
from tests.rules_support import apply
from tests.run_support import OPTIONS, Database, Row, anonymize, duckdb_url, open_database
from tests.test_resuming import cleared, resumed, stopped

COLUMNS = {"who": "VARCHAR(9)", "age": "INTEGER", "town": "VARCHAR(9)", "ill": "VARCHAR(9)", "paid": "INTEGER"}
DRAWN = {"role": "identifier", "show": "surrogate"}
QUASI = {"role": "quasi-identifier"}
KEPT = {"ill": {"role": "sensitive"}, "paid": {"role": "sensitive"}}
ROLES: dict[str, Any] = {"who": DRAWN, "age": QUASI, "town": QUASI, **KEPT}
Classes = dict[Row, set[Any]]


def groups(rows: list[Row]) -> tuple[Classes, dict[Row, dict[Any, set[Any]]]]:
    """The persons of each released class, and of each of its illnesses; NULL is another person in each row."""
    persons: Classes = defaultdict(set)
    ill: dict[Row, dict[Any, set[Any]]] = defaultdict(lambda: defaultdict(set))
    for place, (who, age, town, value, _) in enumerate(rows):
        person = ("row", place) if who is None else who
        persons[age, town].add(person)
        ill[age, town][value].add(person)
    return persons, ill


@st.composite
def tables(draw: st.DrawFn) -> list[Row]:
    """Rows of persons, whose quasi-identifiers are the same in all."""
    people = draw(st.lists(st.tuples(st.integers(20, 40), st.sampled_from("abc")), min_size=6, max_size=14))
    visits = st.tuples(st.sampled_from(["flu", "rash", "burn", None]), st.integers(1, 3))
    return [
        (None if number == 0 else f"p{number}", age, town, ill, paid)
        for number, (age, town) in enumerate(people)
        for ill, paid in draw(st.lists(visits, min_size=1, max_size=4))
    ]


def entropy(counts: Counter[Any]) -> float:
    total = sum(counts.values())
    return -sum(n / total * math.log(n / total) for n in counts.values())


def distance(counts: Counter[Any], of_all: Counter[Any]) -> float:
    here, there = sum(counts.values()), sum(of_all.values())
    return sum(abs(counts[v] / here - of_all[v] / there) for v in of_all) / 2


def persons_with(values: dict[Any, set[Any]]) -> Counter[Any]:
    return Counter({value: len(persons) for value, persons in values.items()})


def is_recursive(counts: Counter[Any], c: float, least: int) -> bool:
    ordered = sorted((n for value, n in counts.items() if value is not None), reverse=True)
    return bool(ordered) and ordered[0] + counts[None] < c * sum(ordered[least - 1 :])


K = {"model": "k-anonymity", "k": 3}
MODELS: dict[str, tuple[dict[str, Any], Callable[[Counter[Any], Counter[Any]], bool]]] = {
    "distinct": (
        {"model": "distinct-l-diversity", "attribute": "ill", "l": 2},
        lambda counts, _: len([value for value in counts if value is not None]) >= 2,
    ),
    "recursive": (
        {"model": "recursive-l-diversity", "attribute": "ill", "c": 3, "l": 2},
        lambda counts, _: is_recursive(counts, 3, 2),
    ),
    "closeness": (
        {"model": "t-closeness", "attribute": "ill", "t": 0.4},
        lambda counts, of_all: distance(counts, of_all) <= 0.4 + 1e-9,
    ),
    "of two columns": (
        {"model": "t-closeness", "attribute": "paid", "t": 0.5},
        lambda _, of_all: bool(of_all),
    ),
}
ORACLE = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@ORACLE
@given(rows=tables())
def test_classes_hold_k_persons(database: Database, rows: list[Row]) -> None:
    roles = ROLES | {"who": DRAWN | {"nulls": "each"}}
    shown = database.release_once(COLUMNS, rows, roles, privacy=[K], subject="who")
    assert shown is not None
    assert Counter(row[3:] for row in shown) == Counter(row[3:] for row in rows)
    persons, _ = groups(shown)
    assert min(map(len, persons.values())) >= 3
    known = {who for who, *_ in rows} - {None}
    assert sum(map(len, persons.values())) == len(known) + sum(who is None for who, *_ in rows)


@ORACLE
@given(rows=tables(), name=st.sampled_from(sorted(MODELS)))
def test_sensitive_values_occur_as_often_as_persons_have_them(database: Database, rows: list[Row], name: str) -> None:
    model, holds = MODELS[name]
    roles = ROLES | {"who": DRAWN | {"nulls": "each"}}
    models = [K | {"k": 2}, model, *([MODELS["closeness"][0]] if name == "of two columns" else [])]
    shown = database.release_once(COLUMNS, rows, roles, privacy=models, subject="who")
    if shown is None:
        return
    persons, ill = groups(shown)
    assert min(map(len, persons.values())) >= 2
    of_all: Counter[Any] = Counter()
    for values in ill.values():
        of_all += persons_with(values)
    assert all(holds(persons_with(values), of_all) for values in ill.values())


def test_many_rows_of_few_persons_make_no_class(database: Database) -> None:
    """Rows of one person hide nobody: by rows there would be two classes, by persons there is one."""
    rows = [(f"p{n % 2}", 20 + n % 2, "a", "flu", n) for n in range(20)]
    by_rows = database.release_once(COLUMNS, rows, ROLES, subject="none")
    by_persons = database.release_once(COLUMNS, rows, ROLES, subject="who")
    assert by_rows is not None
    assert by_persons is not None
    assert len({row[1] for row in by_rows}) == 2
    assert {row[1] for row in by_persons} == {"[20-21]"}


def test_a_value_of_one_person_is_one_however_many_rows_have_it(database: Database) -> None:
    """Nine rows of one person with flu, and one of another with a rash: each value is of one person in two."""
    rows = [("p0", 20, "a", "flu", n) for n in range(9)] + [("p1", 20, "a", "rash", 9)]
    diverse = {"model": "recursive-l-diversity", "attribute": "ill", "c": 1.5, "l": 2}
    assert database.release_once(COLUMNS, rows, ROLES, privacy=[diverse], subject="who") is not None
    assert database.release_once(COLUMNS, rows, ROLES, privacy=[diverse], subject="none") is None


def test_results_tell_of_persons(database: Database) -> None:
    rows = [(f"p{n % 6}", 20 + n % 6, "a", "flu", n) for n in range(24)]
    table = database.create(COLUMNS, rows)
    policy = database.policy(table, ROLES, privacy=[K], subject="who")
    result = anonymize(policy)
    assert (result.release.rows, result.subject.persons) == (24, 6)
    assert result.release.min_class_size == 3
    assert result.risk.prosecutor_max == pytest.approx(1 / 3)
    assert result.source.figures.min_class_size == 1
    assert "24 rows of 6 persons" in result.subject.note
    assert {model.worst for model in result.models} == {3}


def test_the_risk_of_a_policy_is_of_its_persons(database_url: str) -> None:
    """Persons are at a greater risk than their rows, in the source and in the release."""
    rows = [(f"p{n // 3}", 20 + n // 12, "a", "flu", 1) for n in range(48)]
    with open_database(database_url) as database:
        table = database.create(COLUMNS, rows)
        policy = database.policy(table, ROLES, privacy=[K], subject="who")
        anonymize(policy)
        released = database.sql(f"SELECT count(DISTINCT who) FROM {table}_r GROUP BY age, town")
    measured = policy_risk(policy)
    assert measured.release is not None
    for one in (measured.source, measured.release):
        assert (one.rows, one.persons, one.subject) == (48, 16, "who")
    assert measured.source.prosecutor.max == 1 / 4
    assert measured.release.prosecutor.max == 1 / min(persons for (persons,) in released)


def refused(database: Database, rows: list[Row], message: str, roles: Any = ROLES, **more: Any) -> None:
    table = database.create(COLUMNS, rows)
    with pytest.raises(PolicyError, match=message):
        database.release(table, roles, **{"subject": "who", **more})


ROWS = [(f"p{n % 4}", 20 + n % 4, "a", "flu", n) for n in range(12)]


def test_nulls_are_refused_with_their_number(database: Database) -> None:
    refused(database, [*ROWS, (None, 20, "a", "flu", 1)], "'who' is NULL in 1 of 13 rows")


def test_changing_quasi_identifiers_are_refused_with_the_number_of_persons(database: Database) -> None:
    moved = [*ROWS, ("p0", 99, "a", "flu", 1), ("p1", None, "a", "flu", 1)]
    refused(database, moved, "2 of 4 persons have rows that differ in quasi-identifiers")


@pytest.mark.parametrize("algorithm", ["rothko-t", "optimal", "top-down", "microaggregation", "condensation"])
def test_other_algorithms_refuse_persons_by_name(database: Database, algorithm: str) -> None:
    refused(database, ROWS, f"{algorithm} counts rows, and not persons", algorithm={"name": algorithm})


ALPHA = {"model": "alpha-k", "attribute": "ill", "alpha": 0.9, "k": 2}
WRONG = [
    (ROLES, {"privacy": [ALPHA]}, "alpha-k counts rows with a sensitive value, and not persons"),
    (ROLES, {"subject": "whom"}, "'whom' is not among the attributes; did you mean"),
    (ROLES, {"subject": "ill"}, "'ill' tells persons apart: its role must be identifier"),
    (ROLES | {"who": {"role": "identifier"}}, {}, "it shows nothing of 'who'"),
    (ROLES | {"paid": {"role": "identifier", "nulls": "each"}}, {}, "nulls: each is for the subject"),
]


@pytest.mark.parametrize(("roles", "more", "message"), WRONG)
def test_what_is_no_subject_is_refused(database: Database, roles: Any, more: Any, message: str) -> None:
    refused(database, ROWS, message, roles, **more)


def test_a_subject_of_single_rows_is_warned_of(database: Database) -> None:
    table = database.create(COLUMNS, ROWS[:4])
    result = anonymize(database.policy(table, ROLES, subject="who"))
    plan = check_policy(database.policy(table, ROLES, subject="who"), replace=True, options=OPTIONS)
    assert plan.repetition.sentence == "Persons are counted, not rows: those that 'who' tells apart."
    assert any("no value of 'who' is in two rows" in warning for warning in result.warnings)


def test_more_persons_than_there_are_can_not_be_met(database: Database) -> None:
    table = database.create(COLUMNS, ROWS)
    with pytest.raises(ProtectionError, match="k: 4"):
        database.release(table, ROLES, privacy=[{"model": "k-anonymity", "k": 5}], subject="who")


def test_a_tree_that_counts_rows_is_not_published(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search is told that it counts persons, and gets rows: the check of the staged table counts for itself."""

    def of_rows(engine: Any, workspace: Any, coded: Any, *_: Any) -> Any:
        return count_tuples(engine, workspace, coded, coded.quasi_identifiers)

    monkeypatch.setattr(source, "count_persons", of_rows)
    table = database.create(COLUMNS, ROWS)
    with pytest.raises(VerificationError, match="k-anonymity"):
        database.release(table, ROLES, subject="who")


def test_a_published_table_that_lost_a_person_fails_its_check(tmp_path: Path) -> None:
    url = duckdb_url(tmp_path / "t.duckdb")
    with open_database(url) as database:
        policy = database.policy(database.create(COLUMNS, ROWS, "t"), ROLES, subject="who")
        anonymize(policy)
    assert verify_release(policy).satisfied
    with open_database(url) as database:
        ((one, other),) = database.sql("SELECT min(who), max(who) FROM t_r WHERE age = (SELECT min(age) FROM t_r)")
        database.sql("UPDATE t_r SET who = ? WHERE who = ?", [one, other])
    verified = verify_release(policy)
    assert [model.worst for model in verified.models] == [1]
    assert not verified.satisfied


@pytest.mark.parametrize("doer", ["a sweep", "a job", "the check of rules"])
def test_what_counts_rows_refuses_persons_by_name(database: Database, doer: str) -> None:
    table = database.create(COLUMNS, ROWS)
    policy = database.policy(table, ROLES, subject="who")
    made = anonymize(policy)
    acts: dict[str, Callable[[], object]] = {
        "a sweep": lambda: sweep(policy, [2, 3]),
        "a job": lambda: frozen(database, made.run),
        "the check of rules": lambda: apply(database, made.run, table, f"{table}_again"),
    }
    with pytest.raises(PolicyError, match=f"subject: {doer}.* counts rows, and not the persons of 'who'"):
        acts[doer]()


def test_a_stopped_run_goes_on_with_persons_and_the_same_pseudonyms(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SQLANON_TEST_KEY", "a key of more than sixteen bytes")
    named = {"role": "identifier", "show": "pseudonym", "key": "${SQLANON_TEST_KEY}"}
    table = database.create(COLUMNS, ROWS)
    policy = database.policy(table, ROLES | {"who": named}, subject="who")
    anonymize(policy)
    expected = database.sql(f"SELECT * FROM {table}_r")
    result = resumed(policy, stopped(policy, "verify", monkeypatch))
    assert result.resumed is not None
    assert result.resumed.reused
    assert result.subject.persons == 4
    assert database.sql(f"SELECT * FROM {table}_r") == expected
    cleared(database, policy)


def test_streams_refuse_persons_and_pseudonyms_by_name() -> None:
    database = Database("duckdb:///t.duckdb", None, "")
    policy = database.policy("t", ROLES, subject="who", algorithm={"name": "condensation"})
    problems = " ".join(stream_problems(policy, "job"))
    assert "subject: a stream counts rows" in problems
    assert "attributes.who: a stream releases no row of anybody" in problems
