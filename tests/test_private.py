"""Differentially private releases on both engines, against a plain-Python DiffGen with the same draws."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest

from tests.private_support import Ample, Column, Known, cells, draw, private_policy, specialize
from tests.run_support import Database

JOBS = {"clerk": ["office", "*"], "lawyer": ["office", "*"], "smith": ["shop", "*"], "baker": ["shop", "*"]}
COLUMNS = {"age": "INTEGER", "job": "VARCHAR", "pay": "VARCHAR"}
ATTRIBUTES: dict[str, Any] = {
    "age": {"role": "quasi-identifier", "domain": {"from": 20, "below": 60, "step": 10}},
    "job": {"role": "quasi-identifier", "hierarchy": {"mapping": JOBS, "unknown": "OTHER"}},
    "pay": {"role": "sensitive", "values": ["low", "high"]},
}
CLASSES = ("low", "high")
EPSILON = [{"model": "differential-privacy", "epsilon": 1}]


def place_of_age(age: int | None) -> int:
    return 4 if age is None else min(3, max(0, (age - 20) // 10))


def place_of_job(job: str | None) -> int:
    return 5 if job is None else list(JOBS).index(job) if job in JOBS else 4


ORACLE = [Column(place_of_age, 5), Column(place_of_job, 6, [[0, 1], [2, 3], 4, 5])]


def rows_of(count: int, seed: int) -> list[tuple[Any, ...]]:
    draw_from = random.Random(seed)
    return [
        (
            draw_from.choice([None, *range(10, 75)]),
            draw_from.choice([None, "tailor", *JOBS]),
            draw_from.choice(["low", "high", "high", None, "unknown"]),
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("seed", range(6))
def test_the_same_draws_give_the_cells_of_the_oracle(database: Database, seed: int) -> None:
    rows, draws = rows_of(40 * seed, seed), random.Random(seed)
    picked: list[int] = []

    def pick(scores: Sequence[int]) -> int:
        picked.append(draws.randrange(len(scores)) if seed % 2 else scores.index(max(scores)))
        return picked[-1]

    table = database.create(COLUMNS, rows)
    known = Known(pick, lambda counts: [count - 2 + place % 5 for place, count in enumerate(counts)])
    result = draw(private_policy(database, table, ATTRIBUTES, target="pay", specializations=4), known)
    counted = [row for row in rows if row[-1] in CLASSES]
    again = iter(picked)
    asked = iter(known.asked)

    def replay(scores: Sequence[int]) -> int:
        assert next(asked)[0] == scores
        return next(again)

    cut = specialize(counted, ORACLE, 2, 4, 100_000, replay, Fraction(1))
    exact = cells(counted, ORACLE, CLASSES, cut)
    assert known.counted[0][0] == exact
    released = database.sql(f"SELECT * FROM {table}_r")
    assert [row[-1] for row in released] == [count - 2 + place % 5 for place, count in enumerate(exact)]
    assert [row[-2] for row in released] == list(CLASSES) * (len(exact) // 2)
    assert result.release.cells == len(exact)
    assert all(check.violations == 0 for check in result.checks.values())
    assert database.leftovers() == []


def test_labels_say_which_values_a_cell_holds(database: Database) -> None:
    table = database.create(COLUMNS, rows_of(30, 1))
    algorithm = {"name": "contingency", "target": "pay"}
    result = draw(database.policy(table, ATTRIBUTES, privacy=EPSILON, algorithm=algorithm))
    assert result.labels == {
        "age": ("[*-29]", "[30-39]", "[40-49]", "[50-*]", "NULL"),
        "job": ("clerk", "lawyer", "smith", "baker", "OTHER", "NULL"),
        "pay": CLASSES,
    }
    assert database.sql(f"SELECT count(*) FROM {table}_r") == [(60,)]


def test_shares_add_up_to_epsilon(database: Database) -> None:
    table = database.create(COLUMNS, rows_of(30, 1))
    for variant, choices in (("joint", 4), ("published", 9)):
        account = Ample()
        policy = private_policy(database, table, ATTRIBUTES, 0.3, target="pay", specializations=4, variant=variant)
        draw(policy, account=account)
        ((*charged, noise),) = account.charged
        assert len(charged) == choices
        assert noise.epsilon == Fraction(3, 20)
        assert sum(one.epsilon for one in charged) + noise.epsilon == Fraction(3, 10)
