"""Persons in place of rows: k, l and t count persons, as brute force over the released rows says."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlanon import check_policy
from sqlanon.algorithms.tree import allowable
from sqlanon.encoding.distinct_tuples import count_tuples
from sqlanon.errors import ProtectionError, VerificationError
from sqlanon.runs import search_source
from sqlanon.verification.release import verify_release
from tests.persons_support import COLUMNS, DRAWN, ORACLE, ROLES, ROWS, K, changing_tables, groups, persons_by, refused
from tests.run_support import OPTIONS, Database, Row, anonymize, duckdb_url, open_database


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


@ORACLE
@given(rows=changing_tables(), k=st.integers(2, 4))
def test_classes_hold_k_persons_whose_rows_may_differ(database: Database, rows: list[Row], k: int) -> None:
    roles = ROLES | {"who": DRAWN | {"nulls": "each"}}
    shown = database.release_once(COLUMNS, rows, roles, privacy=[K | {"k": k}], subject="who")
    known = {who for who, *_ in rows} - {None}
    whole = len(known) + sum(who is None for who, *_ in rows)
    assert (shown is None) == (whole < k)
    if shown is not None:
        assert Counter(row[3:] for row in shown) == Counter(row[3:] for row in rows)
        persons, _ = groups(shown)
        assert min(map(len, persons.values())) >= k


@ORACLE
@given(rows=changing_tables(), name=st.sampled_from(sorted(MODELS)))
def test_values_of_persons_whose_rows_may_differ_meet_models(database: Database, rows: list[Row], name: str) -> None:
    model, holds = MODELS[name]
    roles = ROLES | {"who": DRAWN | {"nulls": "each"}}
    models = [K | {"k": 2}, model, *([MODELS["closeness"][0]] if name == "of two columns" else [])]
    shown = database.release_once(COLUMNS, rows, roles, privacy=models, subject="who")
    if shown is None:
        return
    persons, ill = groups(shown)
    assert min(map(len, persons.values())) >= 2
    of_all = persons_with(persons_by(rows, 3))
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


def test_nulls_are_refused_with_their_number(database: Database) -> None:
    refused(database, [*ROWS, (None, 20, "a", "flu", 1)], "'who' is NULL in 1 of 13 rows")


def test_a_tree_that_takes_tuples_for_persons_is_not_published(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two persons with ten tuples each: sizes of children are of tuples, and the staged table is judged by persons."""
    rows = [(f"p{n // 10}", 20 + n, "a", "flu", n) for n in range(20)]
    monkeypatch.setattr(allowable, "list_splits_short_of_persons", lambda *_: (None, []))
    table = database.create(COLUMNS, rows)
    with pytest.raises(VerificationError, match="k-anonymity"):
        database.release(table, ROLES, subject="who")


ALPHA = {"model": "alpha-k", "attribute": "ill", "alpha": 0.9, "k": 2}
WRONG = [
    (ROLES, {"privacy": [ALPHA]}, "alpha-k counts rows with a sensitive value, and not persons"),
    (ROLES, {"subject": "whom"}, "'whom' is not among the attributes; did you mean"),
    (ROLES, {"subject": "ill"}, "'ill' tells persons apart: its role must be identifier"),
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

    monkeypatch.setattr(search_source, "count_persons", of_rows)
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
