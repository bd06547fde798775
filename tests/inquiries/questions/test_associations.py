"""Association rules of small tables: on both engines as by brute force, of rows and of persons."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest

from sqlanon.api.associations import policy_associations, table_associations
from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError
from sqlanon.inquiries.risk import association_mining
from sqlanon.inquiries.risk.association_mining import AssociationOptions, mine_associations
from sqlanon.inquiries.risk.measured_table import risk_source
from sqlanon.results.associations import AssociationRule, Associations
from sqlanon.sql import Statement
from tests.cli.support import call_main
from tests.inquiries.risk.tables import Row, make_table
from tests.run_support import open_database

pytestmark = pytest.mark.slow

COLUMNS = {"a": "VARCHAR(4)", "b": "INTEGER", "c": "NUMERIC(5,2)", "s": "VARCHAR(9)", "who": "INTEGER"}


def mined(engine: Engine, rows: Sequence[Row], asked: AssociationOptions, subject: str | None = None) -> Associations:
    table = make_table(engine, COLUMNS, rows)
    there = {column.name: column for column in engine.columns(table)}
    return mine_associations(risk_source(engine, table, ["a", "b", "c"], subject=subject), [there["s"]], asked)


def random_rows(seed: int) -> list[Row]:
    draw = random.Random(seed)
    return [
        (
            draw.choice(["x", "y", None]),
            draw.choice([1, 2, 3, None]),
            draw.choice(["1.50", "2.00"]),
            draw.choice(["flu", "flu", "cold", None]),
            draw.randrange(12),
        )
        for _ in range(40)
    ]


def by_brute_force(rows: Sequence[Row], asked: AssociationOptions, *, of_persons: bool) -> dict[Any, tuple[Any, ...]]:
    """Every rule: its texts, with its counts and what it tells."""
    members: dict[Any, set[int]] = defaultdict(set)
    for number, row in enumerate(rows):
        texts = [None if value is None else str(value) for value in row]
        for size in range(asked.most + 1):
            for places in combinations(range(3), size):
                left = tuple(("abc"[place], texts[place]) for place in places)
                for side in (left, (left, texts[3])):
                    members[side].add(row[4] if of_persons else number)
    wanted = {}
    for side, both in members.items():
        if len(side) != 2 or not isinstance(side[0], tuple) or not side[0] or not isinstance(side[0][0], tuple):
            continue
        whole = len(members[side[0]])
        share = Fraction(len(both), whole)
        if len(both) >= asked.support and share >= Fraction(str(asked.confidence)):
            gives_away = whole >= asked.k and share > Fraction(str(asked.greatest))
            wanted[side] = (len(both), whole, float(share), whole < asked.k, gives_away)
    return wanted


def told(rule: AssociationRule) -> tuple[Any, tuple[Any, ...]]:
    sides = (tuple(rule.left.items()), *rule.right.values())
    return sides, (rule.support, rule.left_support, rule.confidence, rule.singles_out, rule.gives_away)


@pytest.mark.parametrize("subject", [None, "who"])
@pytest.mark.parametrize(
    "asked",
    [
        AssociationOptions(4, 1, 0.000001, 0.6, 3, 1000),
        AssociationOptions(5, 2, 0.5, None, 2, 1000),
        AssociationOptions(1, 1, 1.0, None, 3, 1000),
        AssociationOptions(3, 1, 0.500001, 0.7, 3, 1000),
    ],
    ids=["all", "some", "sure", "likely"],
)
def test_rules_are_those_of_brute_force(engine: Engine, asked: AssociationOptions, subject: str | None) -> None:
    rows = random_rows(asked.k)
    found = mined(engine, rows, asked, subject)
    wanted = by_brute_force(rows, asked, of_persons=subject is not None)
    assert dict(map(told, found.rules)) == wanted
    assert len(found.rules) == found.total == len(wanted)
    assert found.singling_out == sum(one[3] for one in wanted.values())
    assert found.giving_away == sum(one[4] for one in wanted.values())
    assert found.unit == ("rows" if subject is None else "persons")
    order = [(-one.confidence, -one.support) for one in found.rules]
    assert order == sorted(order)


def uneven_rows(seed: int) -> list[Row]:
    """Rows of which most in a group have one of eight values, some the next one, and others any."""
    draw = random.Random(seed)
    rows: list[Row] = []
    for number in range(60):
        a, b, c = draw.choice("xyz"), draw.randrange(3), draw.choice(["1.50", "2.00"])
        usual = (ord(a) + 3 * b) % 8
        rows.append((a, b, c, f"ill {draw.choice([usual, usual, usual, usual, (usual + 1) % 8, number % 8])}", number))
    return rows


@pytest.mark.parametrize("bits", [62, 12, 5])
def test_rules_are_those_of_brute_force_however_few_bits_are_voted_on(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, bits: int
) -> None:
    """On all bits of the code, on two of them, on none."""
    monkeypatch.setattr(association_mining, "WORD_BITS", bits)
    for number, confidence in enumerate((0.51, 0.6, 0.75, 0.8, 0.999)):
        asked = AssociationOptions(4, 1, confidence, 0.9, 3, 1000)
        rows = uneven_rows(number)
        engine.execute(Statement("test", "DROP TABLE IF EXISTS t"))
        found = mined(engine, rows, asked)
        assert dict(map(told, found.rules)) == by_brute_force(rows, asked, of_persons=False)
        assert found.total == len(found.rules)


def test_of_many_rules_the_surest_are_listed(engine: Engine) -> None:
    asked = AssociationOptions(4, 1, 0.1, None, 3, 7)
    rows = random_rows(3)
    found = mined(engine, rows, asked)
    wanted = by_brute_force(rows, asked, of_persons=False)
    assert found.total == len(wanted)
    best = sorted((-one[2], -one[0]) for one in wanted.values())[:7]
    assert [(-one.confidence, -one.support) for one in found.rules] == best


def test_rows_of_nobody_known_are_refused(engine: Engine) -> None:
    with pytest.raises(PolicyError, match="'who' is NULL in 2 rows"):
        mined(engine, [("x", 1, "1.00", "flu", None)] * 2 + [("x", 1, "1.00", "flu", 1)], AssociationOptions(2), "who")


def test_sensitive_values_are_one_where_models_take_them_for_one(engine: Engine) -> None:
    """Zeros of both signs are: so a rule is as sure as `confidence-bound` has it. Classes hold them apart."""
    table = make_table(
        engine, {"a": "DOUBLE PRECISION", "s": "DOUBLE PRECISION"}, [(0.0, 0.0), (0.0, -0.0), (-0.0, 1.5)]
    )
    there = {column.name: column for column in engine.columns(table)}
    found = mine_associations(risk_source(engine, table, ["a"]), [there["s"]], AssociationOptions(2, bound=0.6))
    assert [(one.right, one.support, one.left_support) for one in found.rules] == [
        ({"s": "0"}, 2, 2),
        ({"s": "1.5"}, 1, 1),
    ]
    assert (found.giving_away, found.singling_out) == (1, 1)


@pytest.mark.parametrize("rows", [[], [(None, None, None, None, 1)]])
def test_tables_of_nothing(engine: Engine, rows: list[Row]) -> None:
    assert mined(engine, rows, AssociationOptions(2, 2)).rules == ()


PATIENTS = {"zip code": "VARCHAR(5)", "age": "INTEGER", "ill": "VARCHAR(9)", "name": "VARCHAR(9)"}
ROLES = {
    "zip code": {"role": "quasi-identifier"},
    "age": {"role": "quasi-identifier"},
    "ill": {"role": "sensitive"},
    "name": {"role": "identifier"},
}


def test_a_policy_says_what_is_mined(database_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    bound = {"model": "confidence-bound", "attribute": "ill", "confidence": 0.7}
    with open_database(database_url) as database:
        rows = [("10", 30, "flu", "a"), ("10", 30, "flu", "b"), ("20", 40, "cold", "c"), ("20", 40, "flu", "d")]
        table = database.create(PATIENTS, rows)
        policy = database.policy(table, ROLES, privacy=[{"model": "k-anonymity", "k": 2}, bound])
    found = policy_associations(policy)
    assert (found.k, found.bound, found.total, found.giving_away, found.singling_out) == (2, 0.7, 3, 3, 0)
    assert {tuple(one.left) for one in found.rules} == {("zip code",), ("age",), ("zip code", "age")}
    asked = AssociationOptions(2, bound=0.7)
    same = table_associations(database_url, table, ["zip code", "age"], ["ill"], asked)
    assert set(map(repr, same.rules)) == set(map(repr, found.rules))
    sides = ["--qi", "zip code,age", "--sensitive", "ill"]
    _, told, _ = call_main(capsys, "associations", database_url, table, *sides, "-k", "2", "--json")
    assert json.loads(told)["total"] == 3
    _, text, _ = call_main(capsys, "associations", database_url, table, *sides, "-k", "2", "--limit", "1")
    assert "3 rules from up to 3 columns" in text
    assert "The first 1 (--limit lists more)" in text
    with open_database(database_url) as database:
        assert database.leftovers() == []


def test_both_sides_must_be_named(database_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, said = call_main(capsys, "associations", database_url, "t", "--qi", "a")
    assert (code, "--sensitive disease" in said) == (2, True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confidence": 0.0}, "confidence must be above 0"),
        ({"confidence": 0.1234567}, "up to 6 digits"),
        ({"bound": 1.5}, "bound must be"),
        ({"limit": 2**40}, "limit must be from 1"),
        ({"support": 0}, "support must be from 1"),
    ],
)
def test_numbers_that_say_nothing_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        AssociationOptions(2, **options)


def test_a_column_is_on_one_side(engine: Engine) -> None:
    table = make_table(engine, COLUMNS, [])
    there = {column.name: column for column in engine.columns(table)}
    with pytest.raises(PolicyError, match="'a' is named for both"):
        mine_associations(risk_source(engine, table, ["a"]), [there["a"]], AssociationOptions(2))
