"""Values that are swapped between rows: against plain Python, on both engines, and what is refused and seen."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from sqlanon import reconstruct
from sqlanon.errors import PolicyError, VerificationError
from tests.methods.randomization.test_randomize import Tampering
from tests.randomize_support import KEY, digest_of, line_of, randomize, randomized_policy
from tests.run_support import Database, open_database

COLUMNS = {"id": "INTEGER", "the job": "VARCHAR(9)", "pay": "DECIMAL(10,2)", "age": "INTEGER"}
ROLES = {"id": "identifier", "the job": "sensitive", "pay": "quasi-identifier", "age": "insensitive"}
SWAPS: dict[str, Any] = {"the job": {"swap": 0.3}, "pay": {"swap": 0.05}}
WORD = 2**32


def people(count: int) -> list[tuple[Any, ...]]:
    jobs = ["clerk", "smith", None, ""]
    return [(n, jobs[n * n % 11 % 4], Decimal(n % 17) + Decimal("0.50"), n % 23) for n in range(count)]


def in_python(rows: list[tuple[Any, ...]], shares: list[Fraction | None], key: str = KEY) -> list[tuple[Any, ...]]:
    """Put rows into a random order for each column, and exchange the values of neighbours, as far as a share goes."""
    turns: Counter[tuple[Any, ...]] = Counter()
    identities, word = [], 0
    for row in rows:
        turns[row] += 1
        identities.append((turns[row], line_of(row)))
    columns = [list(column) for column in zip(*rows, strict=True)]
    for column, share in zip(columns, shares, strict=True):
        if share is None:
            continue

        def order(place: int, first: int = word) -> list[int]:
            turn, line = identities[place]
            return [
                digest_of(key, number // 4, turn, line) >> 32 * (number % 4) & (WORD - 1)
                for number in range(first, first + 3)
            ]

        shuffled = sorted(range(len(rows)), key=order)
        pairs = int(share * len(rows)) // 2
        for one, other in zip(shuffled[: 2 * pairs : 2], shuffled[1 : 2 * pairs : 2], strict=True):
            column[one], column[other] = column[other], column[one]
        word += 3
    return list(zip(*columns, strict=True))


def text(row: tuple[Any, ...]) -> str:
    return repr(tuple(map(str, row)))


@pytest.mark.parametrize("count", [40, 41, 333])
def test_a_key_decides_every_released_row(database: Database, count: int) -> None:
    rows = people(count)
    table = database.create(COLUMNS, rows)
    result = randomize(randomized_policy(database, table, ROLES, SWAPS))
    released = database.sql(f"SELECT * FROM {table}_r")
    expected = in_python([row[1:] for row in rows], [Fraction("0.3"), Fraction("0.05"), None])
    assert sorted(map(text, released)) == sorted(map(text, expected))
    assert result.epsilon is None
    assert "swapped_columns_equal" in result.checks
    assert not any(check.violations for check in result.checks.values())
    for column in ('"the job"', "pay"):
        one, other = (
            database.sql(f"SELECT {column}, count(*) FROM {name} GROUP BY 1") for name in (table, f"{table}_r")
        )
        assert Counter(one) == Counter(other)
    assert database.leftovers() == []


def test_swaps_and_noise_draw_by_words_of_their_own(database: Database) -> None:
    """A column that is randomized besides changes the words, and nothing else; floats keep their last bit."""
    odd = [0.1 + 0.2, -0.0, 0.0, float("nan"), float("inf")]
    rows = [(odd[n % 5], n % 9) for n in range(200)]
    table = database.create({"x": "DOUBLE PRECISION", "age": "INTEGER"}, rows)
    roles = {"x": "sensitive", "age": "quasi-identifier"}
    changes = {"x": {"swap": 1}, "age": {"noise": "uniform", "half-width": 4}}
    assert not any(
        check.violations for check in randomize(randomized_policy(database, table, roles, changes)).checks.values()
    )
    released = Counter(repr(x) for (x,) in database.sql(f"SELECT x FROM {table}_r"))
    assert released == Counter(repr(x) for x, _ in rows)


def test_what_is_not_exchanged_is_refused(database: Database) -> None:
    table = database.create(COLUMNS, people(39))
    with pytest.raises(PolicyError, match=r"pay: a share of 0\.05 of 39 rows is less than two"):
        randomize(randomized_policy(database, table, ROLES, SWAPS))
    for swap, problem in {
        0: "a number greater than 0",
        1.5: "must be a number from|at most 1",
        0.00000000001: "more than nine",
    }.items():
        with pytest.raises(PolicyError, match=problem):
            randomized_policy(database, table, ROLES, SWAPS | {"pay": {"swap": swap}})
    asked = {"model": "randomization", "epsilon": 1}
    table = database.create(COLUMNS, people(80))
    with pytest.raises(PolicyError, match="the change of 'the job', 'pay' has no epsilon"):
        randomize(randomized_policy(database, table, ROLES, SWAPS, privacy=[asked]))


def test_a_value_that_nobody_had_is_not_published(database: Database) -> None:
    table = database.create(COLUMNS, people(100))
    policy = randomized_policy(database, table, ROLES, SWAPS)
    with pytest.raises(VerificationError, match="swapped_columns_equal"):
        randomize(policy, observer=Tampering(database, "UPDATE {rows} SET pay = 0.5 WHERE pay = 3.5"))


def test_there_is_nothing_to_reconstruct(database_url: str) -> None:
    with open_database(database_url) as database:
        table = database.create(COLUMNS, people(100))
        policy = randomized_policy(database, table, ROLES, SWAPS)
    assert any("hides no value" in warning for warning in randomize(policy).warnings)
    with pytest.raises(PolicyError, match="'pay' were swapped"):
        reconstruct(policy, "pay")
