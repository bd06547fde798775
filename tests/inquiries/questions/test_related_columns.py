"""Columns that follow from each other: sums of the one and sums of the other together tell of no few persons."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from datetime import date, timedelta
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sqlanon.engines.base import Engine
from sqlanon.errors import ProtectionError
from sqlanon.inquiries.questions.ask import ask
from sqlanon.inquiries.questions.dependence import dependent_columns, related_columns
from sqlanon.inquiries.questions.question_audit import AskedTable
from sqlanon.inquiries.questions.row_space import SumVerdict, audit_sum
from sqlanon.policy import Policy
from sqlanon.sql import Relation, Statement
from tests.inquiries.questions.linear import rank
from tests.oracle.mutants import mutated
from tests.random_cases import many
from tests.run_support import OPTIONS, Database

pytestmark = pytest.mark.slow

AGES = range(20, 40)
BASE = [3000 + (7 * age * age) % 611 for age in AGES]
BONUS = [(age * age * age) % 97 for age in AGES]
OTHER = [(age * 37) % 101 for age in AGES]


def policy_of(
    database: Database, types: dict[str, str], values: dict[str, Sequence[Any]], k: int = 3, **more: Any
) -> Policy:
    rows = list(zip(AGES, *values.values(), strict=True))
    table = database.create({"age": "INTEGER"} | types, rows)
    roles = {"age": "quasi-identifier"} | dict.fromkeys(values, "sensitive") | more.pop("roles", {})
    return database.policy(table, roles, privacy=[{"model": "k-anonymity", "k": k}], **more)


def answer(policy: Policy, text: str) -> str | None:
    """The answer; None where the question is denied."""
    try:
        return ask(policy, text, OPTIONS).value
    except ProtectionError:
        return None


def decimals(values: Sequence[Any]) -> list[str]:
    return [f"{value:.2f}" for value in values]


RELATED: dict[str, tuple[dict[str, str], dict[str, Sequence[Any]]]] = {
    "sum": (
        dict.fromkeys(("base", "bonus", "total"), "INTEGER"),
        {"base": BASE, "bonus": BONUS, "total": [a + b for a, b in zip(BASE, BONUS, strict=True)]},
    ),
    "units": (
        {"euros": "DECIMAL(10,2)", "total": "BIGINT"},
        {"euros": decimals(BASE), "total": [100 * a for a in BASE]},
    ),
    "affine": ({"paid": "INTEGER", "total": "SMALLINT"}, {"paid": BONUS, "total": [7 - a for a in BONUS]}),
    "floats": (
        dict.fromkeys(("base", "bonus", "total"), "DOUBLE PRECISION"),
        {
            "base": [a / 10 for a in BASE],
            "bonus": [b / 3e5 for b in BONUS],
            "total": [a / 10 + b / 3e5 for a, b in zip(BASE, BONUS, strict=True)],
        },
    ),
    "half": ({"whole": "INTEGER", "total": "REAL"}, {"whole": BASE, "total": [a / 2 for a in BASE]}),
    "factor": (
        {"usd": "DOUBLE PRECISION", "total": "DOUBLE PRECISION"},
        {"usd": BASE, "total": [a * 0.9137 for a in BASE]},
    ),
    "rounded": (
        {"usd": "INTEGER", "total": "INTEGER"},
        {"usd": [97 * a for a in BASE], "total": [round(97 * a * 0.91) for a in BASE]},
    ),
    "wide": (
        {"a": "DECIMAL(38,0)", "c": "DECIMAL(38,0)", "total": "DECIMAL(38,0)"},
        {
            "a": [10**30 * c + b for c, b in zip(OTHER, BONUS, strict=True)],
            "c": OTHER,
            "total": BONUS,
        },
    ),
    "with a known column": (
        {"base": "INTEGER", "total": "INTEGER"},
        {"base": BONUS, "total": [b + 5 * age for age, b in zip(AGES, BONUS, strict=True)]},
    ),
}


@pytest.mark.either_engine
@pytest.mark.parametrize("kind", RELATED)
def test_sums_of_related_columns_tell_of_no_person(database: Database, kind: str) -> None:
    """The total of one person would be what sums of the total tell more than those of the others."""
    types, values = RELATED[kind]
    policy = policy_of(database, types, values)
    others = [name for name in values if name != "total"]
    for aggregate in ("sum", "avg"):
        answers = [answer(policy, f"{aggregate}({name}) where age between 20 and 23") for name in others]
        assert None not in answers
        assert answer(policy, f"{aggregate}(total) where age between 20 and 24") is None
        assert answer(policy, f"{aggregate}(total) where age between 20 and 23") is not None
        assert answer(policy, f"{aggregate}(total) where age between 30 and 36") is not None


@pytest.mark.either_engine
def test_what_few_rows_tell_apart_is_joined_by_all(database: Database) -> None:
    """Hardly anybody has a bonus: in some rows the total is the base, and the bonus is apart."""
    table = "seldom_paid"
    database.sql(
        f"CREATE TABLE {table} AS SELECT s.age, s.base, s.bonus, s.base + s.bonus AS total FROM (SELECT CAST(g.n AS"
        " INTEGER) AS age, CAST(g.n * 7919 % 1009 AS INTEGER) AS base, CASE WHEN g.n = 24 THEN 500 ELSE 0 END AS bonus"
        " FROM generate_series(1, 9000) AS g (n)) AS s"
    )
    roles = {"age": "quasi-identifier"} | dict.fromkeys(("base", "bonus", "total"), "sensitive")
    policy = database.policy(table, roles, privacy=[{"model": "k-anonymity", "k": 3}])
    assert answer(policy, "sum(total) where age between 20 and 24") is not None
    assert answer(policy, "sum(base) where age between 20 and 24") is not None
    assert answer(policy, "sum(bonus) where age between 20 and 23") is None


PERSONS: dict[str, tuple[list[list[tuple[int, int]]], tuple[str, ...]]] = {
    "what persons have together": ([[(b, 7), (0, b - 7), (3, 3)][: 2 + b % 2] for b in BASE], ("total", "base")),
    "a constant of each row": ([[(b * n % 89, 3) for n in range(1 + b % 3)] for b in BASE], ("base", "*")),
    "a constant beside": ([[(b + n, b + n + 7) for n in range(1 + b % 3)] for b in BASE], ("base", "total", "*")),
}
"""Of each person the total and the base of each row; and what is asked for, which together would tell of one."""


@pytest.mark.either_engine
@pytest.mark.parametrize("kind", PERSONS)
def test_relations_of_persons_are_of_all_their_rows(database: Database, kind: str) -> None:
    """Sums are of persons, who may have several rows, and how many these are is told by no sums either."""
    persons, asked = PERSONS[kind]
    rows = [(age, age, *row) for age, person in zip(AGES, persons, strict=True) for row in person]
    table = database.create(dict.fromkeys(("person", "age", "total", "base"), "INTEGER"), rows)
    roles = {"person": "identifier", "age": "quasi-identifier", "total": "sensitive", "base": "sensitive"}
    policy = database.policy(table, roles, privacy=[{"model": "k-anonymity", "k": 3}], subject="person")
    *others, last = [f"{'count' if name == '*' else 'sum'}({name})" for name in asked]
    assert all(answer(policy, f"{other} where age between 20 and 23") is not None for other in others)
    assert answer(policy, f"{last} where age between 20 and 24") is None
    assert answer(policy, f"{last} where age between 20 and 26") is not None


MEASURED = {"base": (1, 0), "bonus": (0, 1), "total": (1, 1), "twice": (2, -3)}
"""Columns, and what each has of two that nothing joins."""


def tells_of_few_by_columns(rows: Sequence[Sequence[int]], persons: int, k: int) -> bool:
    """Tell whether a linear combination of sums is about fewer than k persons, of whom each has two values."""
    whole = rank(rows)
    groups = itertools.combinations(range(persons), k - 1)
    return any(
        rank([[value for place, value in enumerate(row) if place // 2 not in few] for row in rows]) < whole
        for few in groups
    )


@pytest.mark.either_engine
@settings(max_examples=many(4), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.sampled_from(["INTEGER", "BIGINT", "DECIMAL(12,2)", "NUMERIC", "REAL"]), min_size=4, max_size=4),
    st.lists(
        st.tuples(st.sampled_from(sorted(MEASURED)), st.integers(0, 8), st.integers(2, 9)), min_size=6, max_size=8
    ),
    st.integers(2, 3),
)
@example(["INTEGER"] * 4, [("base", 0, 4), ("bonus", 0, 4), ("total", 0, 5)], 3)
@example(["DECIMAL(12,2)", "BIGINT", "NUMERIC", "REAL"], [("twice", 0, 4), ("bonus", 0, 4), ("base", 0, 5)], 2)
def test_random_sums_of_related_columns_tell_of_no_few(
    database: Database, types: list[str], asked: list[tuple[str, int, int]], k: int
) -> None:
    """Whatever the types of the columns are, each set of answers is held against fractions."""
    persons = 10
    values = {
        name: [a * base + b * bonus for base, bonus in zip(BASE[:persons], BONUS[:persons], strict=True)]
        for name, (a, b) in MEASURED.items()
    }
    columns = {"age": "INTEGER"} | dict(zip(MEASURED, types, strict=True))
    table = database.create(columns, list(zip(AGES, *values.values(), strict=False)))
    roles = {"age": "quasi-identifier"} | dict.fromkeys(MEASURED, "sensitive")
    policy = database.policy(table, roles, privacy=[{"model": "k-anonymity", "k": k}])
    known = [[factor for _ in range(persons) for factor in factors] for factors in MEASURED.values()]
    for name, first, count in asked:
        got = answer(policy, f"sum({name}) where age between {20 + first} and {19 + first + count}")
        if got is not None:
            members = range(first, min(first + count, persons))
            assert Fraction(got) == sum(values[name][one] for one in members)
            known.append([factor * (one in members) for one in range(persons) for factor in MEASURED[name]])
            assert not tells_of_few_by_columns(known, persons, k)


def test_columns_that_nothing_joins_are_asked_apart(database: Database) -> None:
    types = dict.fromkeys(("income", "weight", "height"), "INTEGER")
    policy = policy_of(database, types, {"income": BASE, "weight": OTHER, "height": BONUS})
    for name, last in (("income", 23), ("weight", 24), ("height", 25)):
        assert answer(policy, f"sum({name}) where age between 20 and {last}") is not None
    assert answer(policy, "sum(weight) where age between 20 and 23") is None


def test_a_column_that_was_not_asked_for_relates_no_fewer(database: Database) -> None:
    """The relation is of columns as they are, whatever was asked: the third question finds the others related."""
    policy = policy_of(database, *RELATED["sum"])
    assert answer(policy, "sum(total) where age between 20 and 24") is not None
    assert answer(policy, "sum(base) where age between 20 and 23") is None


def test_a_history_of_columns_apart_is_still_heard(database: Database) -> None:
    """As an earlier version wrote it: each column had a history of its own, and together they are not independent."""
    policy = policy_of(database, *RELATED["sum"])
    for last in (23, 26):
        assert answer(policy, f"sum(base) where age between 20 and {last}") is not None
    adding = (
        "INSERT INTO sqlanon.questions SELECT history, number + {0}, {1}, {2}, asked_by, written FROM sqlanon.questions"
    )
    changed = "replace(question, 'base', 'bonus')", "replace(adds, 'base', 'bonus')"
    database.sql(adding.format(2, *changed) + " WHERE number <= 2")
    union = 'sum("bonus") where "age" between 24 and 26'
    database.sql(adding.format(4, f"'{union}'", "'[\"bonus\"]'") + " WHERE number = 1")
    database.sql("UPDATE sqlanon.histories SET questions = 5")
    assert answer(policy, "sum(total) where age between 24 and 26") is not None  # follows
    assert answer(policy, "sum(total) where age between 20 and 24") is None
    assert answer(policy, "sum(total) where age between 30 and 36") is not None


def test_relations_are_looked_for_where_several_columns_were_asked(database: Database) -> None:
    policy = policy_of(database, *RELATED["sum"])
    samples = [counted_samples(policy, text) for text in ("sum(base) where age <= 23", "avg(base) where age <= 26")]
    assert samples == [0, 0]
    assert counted_samples(policy, "count(*) where age <= 30") == 0
    assert counted_samples(policy, "sum(total) where age <= 23") == 1


def counted_samples(policy: Policy, text: str) -> int:
    sent: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        query = Engine.query

        def counting(self: Engine, template: str, **values: Any) -> Any:
            sent.append(template)
            return query(self, template, **values)

        patch.setattr(Engine, "query", counting)
        ask(policy, text, OPTIONS)
    return sent.count("inquiries/questions/sample_rows")


columns = st.lists(st.lists(st.integers(-9, 9), min_size=12, max_size=12), min_size=1, max_size=4)


@settings(max_examples=many(100), deadline=None)
@given(columns, st.lists(st.lists(st.integers(-3, 3), min_size=5, max_size=5), max_size=3))
def test_all_exact_relations_are_seen(free: list[list[int]], factors: list[list[int]]) -> None:
    """Whichever columns a minimal relation has, they have the same number; the constant is no column."""
    measured = [*free]
    for one in factors:
        parts = list(zip(one, free, strict=False))
        measured.append([one[-1] + sum(factor * column[row] for factor, column in parts) for row in range(12)])
    groups = dependent_columns([[Fraction(value) for value in column] for column in measured])
    for place in range(len(measured)):
        apart = [column for other, column in enumerate(measured) if groups[other] != groups[place]]
        together = [column for other, column in enumerate(measured) if groups[other] == groups[place]]
        ones = [[1] * 12]
        assert rank(ones + apart + together) == rank(ones + apart) + rank(ones + together) - 1


def test_unrelated_columns_have_numbers_of_their_own() -> None:
    draw = random.Random(3)
    measured = [[Fraction(draw.randint(0, 10_000)) for _ in range(200)] for _ in range(20)]
    assert len(set(dependent_columns(measured))) == 20
    assert len(set(dependent_columns([*measured, measured[0]]))) == 20
    sums = [a + b for a, b in zip(measured[0], measured[1], strict=True)]
    assert len(set(dependent_columns([*measured, sums]))) == 19
    exact = mutated("sqlanon.inquiries.questions.dependence:_exact", "rows[row, column + 1]", "False")
    near = mutated("sqlanon.inquiries.questions.dependence:_near", "> _NO_FACTOR", "> 1e9")
    with exact, near:
        assert len(set(dependent_columns([*measured, sums]))) == 21


def test_gaps_days_truth_and_names_are_part_of_relations(engine: Engine) -> None:
    types = {"age": "INTEGER", "day": "DATE", "head": "BOOLEAN", "job": "TEXT", "plain": "INTEGER"}
    wages = ("by_gap", "by_day", "by_head", "by_job", "apart")
    engine.execute(
        Statement(
            "make",
            f"CREATE TEMP TABLE paid ({', '.join(f'{a} {b}' for a, b in types.items())}, "
            + ", ".join(f"{one} DECIMAL(12,2)" for one in wages)
            + ")",
        )
    )
    rows = []
    for number in range(300):
        age, day, head = (None if number % 11 == 0 else number % 83), number * 37 % 1009, number % 7 == 0
        job, plain = ("cook", "nurse", "smith")[number % 3], number * number % 977
        by_job = {"cook": 100, "nurse": 275, "smith": 20}[job]
        written = date(2000, 1, 1) + timedelta(days=day)
        wage = (plain + 3 * (age or 0) + 50 * (age is None), plain - 2 * day, plain + 500 * head, plain + by_job)
        rows.append((age, written, head, job, plain, *wage, number * 331 % 499))
    engine.load(Relation("paid"), [*types, *wages], rows)
    table = AskedTable(engine, Relation("paid"), None, 2)
    related = related_columns(table, engine.columns(Relation("paid")), len(rows))
    assert related["plain"] >= {"plain", *wages[:4]}
    assert related["apart"] == {"apart"}


def test_known_sums_need_not_be_independent() -> None:
    def decide(*rows: str) -> SumVerdict:
        return audit_sum(np.array([[bit == "1" for bit in row] for row in rows]), [1] * len(rows[0]), 2)

    known = ("11111111", "11110000", "00001111", "11000000", "11110000", "00110000")
    assert decide(*known, "00001100") is SumVerdict.NEW
    assert decide(*known, "11001111") is SumVerdict.FOLLOWS
    assert decide(*known, "10000000") is SumVerdict.DENIED
