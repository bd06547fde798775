"""Releases with noise on both engines, against a plain-Python draw for the same key; refusals and verification."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pytest

from sqlanon.catalog import Catalog
from sqlanon.engines import connect
from sqlanon.errors import PolicyError, VerificationError
from sqlanon.models.randomization.draws import TAIL_BITS, kept_or_moved, noise_draws
from sqlanon.models.randomization.noise import GaussianNoise, UniformNoise
from sqlanon.work.journal import Silent
from tests.randomize_support import KEY, cents, randomize, randomized_policy, released_rows
from tests.run_support import Database

COLUMNS = {"id": "INTEGER", "age": "INTEGER", "pay": "DECIMAL(10,2)", "job": "VARCHAR(9)", "town": "VARCHAR(9)"}
ROLES = {
    "id": "identifier",
    "age": "quasi-identifier",
    "pay": "quasi-identifier",
    "job": "sensitive",
    "town": "insensitive",
}
JOBS = ("clerk", "smith", "baker")
CHANGES: dict[str, Any] = {
    "age": {"noise": "gaussian", "deviation": 10},
    "pay": {"noise": "uniform", "half-width": 500},
    "job": {"response": "keep", "epsilon": 1, "values": list(JOBS)},
}


def rows_of(count: int, seed: int = 1) -> list[tuple[Any, ...]]:
    """Rows of which many are equal, but for the identifier."""
    draw = random.Random(seed)
    return [
        (
            number,
            draw.choice([20, 30, 31, 44]),
            (Decimal(draw.choice([100, 200050, 99999])) / 100).quantize(Decimal("0.01")),
            draw.choice(JOBS),
            draw.choice(["north", "south", None]) or None,
        )
        for number in range(count)
    ]


def expected(rows: list[tuple[Any, ...]], key: str = KEY) -> list[tuple[Any, ...]]:
    age, pay = noise_draws(GaussianNoise(10.0), 1.0), noise_draws(UniformNoise(500.0), 0.01)
    kept = kept_or_moved(0.5761168847658291, 2)

    def change(place: int, value: Any, number: int) -> Any:
        if place == 0:
            return value + number
        return Decimal(cents(value) + number) / 100 if place == 1 else JOBS[(JOBS.index(value) + number) % 3]

    shown = [(row[1], row[2], row[3], row[4] or "") for row in rows]
    return released_rows(shown, [age, pay, kept, None], change, key)


def test_a_key_decides_every_released_cell(database: Database) -> None:
    rows = [(*row[:4], row[4] or "") for row in rows_of(400)]
    table = database.create(COLUMNS, rows)
    result = randomize(randomized_policy(database, table, ROLES, CHANGES))
    assert database.sql(f"SELECT * FROM {table}_r") == expected(rows)
    assert result.rows == 400
    assert not any(check.violations for check in result.checks.values())
    assert database.leftovers() == []


def test_the_tail_of_a_bound_decides_where_its_head_does_not(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Heads of two bits in place of sixteen are often equal to what is held against them."""
    for module in ("sqlanon.models.randomization.draws", "sqlanon.methods.randomization.release"):
        monkeypatch.setattr(f"{module}.HEAD_BITS", 2)
    monkeypatch.setattr("sqlanon.models.randomization.draws.CAPACITY", 1 << 2 + TAIL_BITS)
    rows = [(*row[:4], row[4] or "") for row in rows_of(200)]
    table = database.create(COLUMNS, rows)
    randomize(randomized_policy(database, table, ROLES, CHANGES))
    assert database.sql(f"SELECT * FROM {table}_r") == expected(rows)


def test_the_order_of_rows_and_further_identifiers_change_nothing(database: Database) -> None:
    rows = rows_of(200)
    one, other = (
        database.create(COLUMNS, rows),
        database.create(COLUMNS, [(n, *r[1:]) for n, r in enumerate(rows[::-1])]),
    )
    released = []
    for table in (one, other):
        randomize(randomized_policy(database, table, ROLES, CHANGES))
        released.append(database.sql(f"SELECT * FROM {table}_r"))
    assert released[0] == released[1]


def test_equal_rows_get_noise_of_their_own(database: Database) -> None:
    table = database.create({"age": "INTEGER"}, [(30,)] * 300)
    randomize(randomized_policy(database, table, {"age": "quasi-identifier"}, {"age": CHANGES["age"]}))
    ages = [age for (age,) in database.sql(f"SELECT age FROM {table}_r")]
    assert len(set(ages)) > 20
    assert ages == sorted(ages)


def test_keys_are_secret_and_new(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    table = database.create(COLUMNS, rows_of(100))
    policy = randomized_policy(database, table, ROLES, CHANGES)
    statements: list[str] = []
    with connect(database.url) as engine:
        catalog = Catalog.open(engine)
        runs = [randomize(policy, replace=True, key=KEY).run]
        statements += [step.statement for step in catalog.steps(runs[0])]
    assert statements
    assert not any(KEY in statement for statement in statements)
    assert KEY not in caplog.text


def test_the_table_of_changes_tells_what_was_added(database: Database) -> None:
    table = database.create(COLUMNS, rows_of(100))
    result = randomize(randomized_policy(database, table, ROLES, CHANGES))
    assert result.changes.endswith(f'"{table}_r_noise"')
    told = database.sql(f"SELECT attribute, method, parameter, true_value, amount FROM {table}_r_noise")
    assert ("age", "gaussian", "deviation", None, 10.0) in told
    assert ("pay", "uniform", "half-width", None, 500.0) in told
    assert ("pay", "uniform", "unit", None, 0.01) in told
    assert ("job", "response", "epsilon", None, 1.0) in told
    assert {value for *_, parameter, value, _ in told if parameter == "value"} == set(JOBS)


def test_what_a_column_hides_is_stated(database: Database) -> None:
    table = database.create(COLUMNS, rows_of(100))
    changes = {
        "age": {"noise": "gaussian", "interval-privacy": 0.5, "range": [0, 100]},
        "pay": {"noise": "laplace", "epsilon": 2, "range": [0, 3000]},
        "job": CHANGES["job"],
    }
    result = randomize(randomized_policy(database, table, ROLES, changes))
    age, pay, job = result.columns
    assert [round(one.width, 3) for one in age.intervals] == [17.207, 50.0, 83.944]
    assert age.intervals[1].share == pytest.approx(0.5)
    assert (age.epsilon, pay.epsilon, job.epsilon, result.epsilon) == (None, 2.0, 1.0, None)
    assert pay.amounts["scale"] == pytest.approx(1500, rel=0.02)
    assert any("outliers" in warning for warning in result.warnings)


def test_floats_show_no_more_than_the_grid_of_their_noise(database: Database) -> None:
    draw = random.Random(3)
    table = database.create({"x": "DOUBLE PRECISION"}, [(draw.random(),) for _ in range(200)])
    randomize(randomized_policy(database, table, {"x": "quasi-identifier"}, {"x": {"noise": "laplace", "scale": 0.25}}))
    unit = 2.0**-22
    assert all((x / unit).is_integer() for (x,) in database.sql(f"SELECT x FROM {table}_r"))


REFUSED: dict[str, tuple[dict[str, Any], list[tuple[Any, ...]], str]] = {
    "a NULL": ({}, [(1, None, 1, "clerk", "n")], "age: 1 row holds NULL"),
    "a value that is not declared": ({}, [(1, 30, 1, "lawyer", "n")], "job: 1 row holds a value that is not among"),
    "a number out of its range": (
        {"age": {"noise": "laplace", "epsilon": 1, "range": [0, 90]}},
        [(1, 91, 1, "clerk", "n")],
        "age: 1 row holds a number outside of the declared range",
    ),
    "noise that rounds to nothing": ({"age": {"noise": "gaussian", "deviation": 0.5}}, [], "rounds to nothing"),
    "noise of too many units": (
        {"pay": {"noise": "laplace", "scale": 1e10}},
        [],
        "is more than 5.49756e\\+11 multiples",
    ),
    "noise of a text": ({"job": {"noise": "gaussian", "deviation": 1}}, [], "noise is added to numbers"),
    "responses of a decimal": ({"pay": {"response": "keep", "epsilon": 1, "values": [1, 2]}}, [], "response is for"),
    "numbers that don't fit": (
        {"age": {"noise": "gaussian", "deviation": 100}},
        [(1, 2**31 - 500, 1, "clerk", "n")],
        "don't fit into",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_noise_would_not_hide_is_refused(database: Database, name: str) -> None:
    changes, rows, problem = REFUSED[name]
    table = database.create(COLUMNS, rows or rows_of(5))
    with pytest.raises(PolicyError, match=problem):
        randomize(randomized_policy(database, table, ROLES, CHANGES | changes))
    assert database.sql("SELECT 1 FROM information_schema.tables WHERE table_name = ?", [f"{table}_r"]) == []


@pytest.mark.either_engine
@pytest.mark.parametrize("name", ["gaussian", "uniform", "laplace"])
def test_noise_that_floats_can_not_hold_is_refused(database: Database, name: str) -> None:
    key = {"gaussian": "deviation", "uniform": "half-width", "laplace": "scale"}[name]
    table = database.create({"x": "DOUBLE PRECISION"}, [(0.0,), (1.5,)])
    for size, problem in ((5e-324, "is too small to be counted"), (1e308, "is too great for floating-point")):
        with pytest.raises(PolicyError, match=rf"algorithm\.columns\.x: noise of size .* {problem}"):
            randomize(randomized_policy(database, table, {"x": "quasi-identifier"}, {"x": {"noise": name, key: size}}))


def test_no_number_of_floats_is_not_one(database: Database) -> None:
    table = database.create({"x": "DOUBLE PRECISION"}, [(1.0,), (float("nan"),), (float("inf"),)])
    with pytest.raises(PolicyError, match="x: 2 rows hold NaN or an infinity"):
        randomize(
            randomized_policy(database, table, {"x": "quasi-identifier"}, {"x": {"noise": "laplace", "scale": 1}})
        )


MISSPELT: dict[str, tuple[dict[str, Any], str]] = {
    "deviation 0": ({"age": {"noise": "gaussian", "deviation": 0}}, "age.deviation must be a number greater than 0"),
    "epsilon 0": (
        {"job": {"response": "keep", "epsilon": 0, "values": [1, 2]}},
        "job.epsilon must be a number greater",
    ),
    "two sizes": (
        {"age": {"noise": "laplace", "scale": 1, "epsilon": 1}},
        "by one of scale, epsilon, interval-privacy",
    ),
    "the size of another": ({"age": {"noise": "uniform", "deviation": 1}}, "by one of half-width, interval-privacy"),
    "no range": ({"age": {"noise": "laplace", "epsilon": 1}}, "must have a range"),
    "a range of nothing": ({"age": {"noise": "laplace", "epsilon": 1, "range": [5, 5]}}, "the lesser first"),
    "no kind": ({"age": {"deviation": 1}}, "must be a mapping with one of the keys noise, response"),
    "an identifier": ({"id": CHANGES["age"]}, r"left out of the release \(role: identifier\)"),
    "no such column": ({"agee": CHANGES["age"]}, "did you mean 'age'"),
}


@pytest.mark.parametrize("name", MISSPELT)
def test_a_wrong_policy_is_refused_before_anything_is_opened(database: Database, name: str) -> None:
    changes, problem = MISSPELT[name]
    with pytest.raises(PolicyError, match=problem):
        randomized_policy(database, "nothing", ROLES, CHANGES | changes)


def test_quasi_identifiers_are_not_released_as_they_are(database: Database) -> None:
    with pytest.raises(PolicyError, match="pay: a quasi-identifier would be released as it is"):
        randomized_policy(database, "nothing", ROLES, {"age": CHANGES["age"]})


def test_an_epsilon_of_the_row_is_held(database: Database) -> None:
    table = database.create(COLUMNS, rows_of(50))
    changes = {
        "age": {"noise": "laplace", "epsilon": 1, "range": [0, 100]},
        "pay": {"noise": "laplace", "epsilon": 1, "range": [0, 3000]},
        "job": CHANGES["job"],
    }
    asked = {"model": "randomization", "epsilon": 3}
    assert randomize(randomized_policy(database, table, ROLES, changes, privacy=[asked])).epsilon == 3
    for less, problem in ((changes, "have 3 together, and 2 is asked for"), (CHANGES, "has no epsilon")):
        with pytest.raises(PolicyError, match=problem):
            randomize(randomized_policy(database, table, ROLES, less, privacy=[asked | {"epsilon": 2}]), replace=True)


class Tampering(Silent):
    """An observer that alters the staged tables when their verification begins."""

    def __init__(self, database: Database, statement: str) -> None:
        self.database = database
        self.statement = statement

    def phase(self, name: str) -> None:
        if name != "verify":
            return
        staged = [table for table in self.database.leftovers() if table.startswith("sqlanon_staging")]
        told = [table for table in staged if self.database.columns(table)[0][0] == "attribute"]
        (rows,) = set(staged) - set(told)
        self.database.sql(self.statement.format(rows=rows, told=told[0]))


TAMPERING = {
    "a row is lost": ("DELETE FROM {rows} WHERE age = (SELECT max(age) FROM {rows})", "rows_equal"),
    "a kept value is altered": ("UPDATE {rows} SET town = 'west'", "kept_columns_equal"),
    "a column too many": ("ALTER TABLE {rows} ADD COLUMN ssn VARCHAR(9)", "columns_equal"),
    "a number is out of reach": (
        "UPDATE {rows} SET age = 999 WHERE age = (SELECT max(age) FROM {rows})",
        "values_possible",
    ),
    "a cell is NULL": ("UPDATE {rows} SET age = NULL WHERE age = (SELECT max(age) FROM {rows})", "values_possible"),
    "a value is not declared": ("UPDATE {rows} SET job = 'lawyer' WHERE job = 'clerk'", "values_possible"),
    "there is no noise": ("UPDATE {rows} SET age = 30", "distributions_fit"),
    "there is no response": ("UPDATE {rows} SET job = 'clerk'", "distributions_fit"),
    "another noise is told": ("UPDATE {told} SET amount = 5 WHERE parameter = 'deviation'", "changes_told"),
    "a value is not told": ("DELETE FROM {told} WHERE true_value = 'clerk'", "changes_told"),
}


@pytest.mark.parametrize("name", TAMPERING)
def test_nothing_is_published_that_was_tampered_with(database: Database, name: str) -> None:
    statement, check = TAMPERING[name]
    table = database.create(COLUMNS, rows_of(2000))
    policy = randomized_policy(database, table, ROLES, CHANGES)
    with pytest.raises(VerificationError, match=check):
        randomize(policy, observer=Tampering(database, statement))
    names = [f"{table}_r", f"{table}_r_noise"]
    for left in names:
        assert database.sql("SELECT 1 FROM information_schema.tables WHERE table_name = ?", [left]) == []
    assert database.leftovers() == []


def test_noise_that_is_too_small_is_seen(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Draws that are not those of the policy don't pass, though every value is possible."""
    table = database.create(COLUMNS, rows_of(3000))
    policy = randomized_policy(database, table, ROLES, CHANGES)
    monkeypatch.setattr(
        "sqlanon.methods.randomization.columns.numbers.noise_draws",
        lambda _, unit: noise_draws(GaussianNoise(2.0), unit),
    )
    with pytest.raises(VerificationError, match="distributions_fit"):
        randomize(policy)


def test_another_release_of_the_same_rows_is_warned_of(database: Database) -> None:
    table = database.create(COLUMNS, rows_of(100))
    policy = randomized_policy(database, table, ROLES, CHANGES)
    assert not any("before" in warning for warning in randomize(policy).warnings if "Run" in warning)
    again = randomize(policy, replace=True)
    assert any("their mean has less" in warning for warning in again.warnings)
