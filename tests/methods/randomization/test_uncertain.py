"""Uncertain values: the sizes of their noise against a brute force, releases by a known key, refusals, verification."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import strategies as st

from sqlanon import compare_classifiers, measure_noise_filter, reconstruct
from sqlanon.engines import connect
from sqlanon.engines.columns import Column, Kind
from sqlanon.errors import PolicyError, VerificationError
from sqlanon.methods.randomization.audit import audit_randomized
from sqlanon.methods.randomization.columns.numbers import UncertainColumn
from sqlanon.methods.randomization.plan import RandomizedPlan
from sqlanon.methods.randomization.reconstruction.bins import Bins, transitions
from sqlanon.methods.randomization.reconstruction.uncertain import group_of_sizes
from sqlanon.methods.randomization.release import create_spreads
from sqlanon.methods.randomization.verify_uncertain import measure_uncertain
from sqlanon.models.randomization.changes import UncertainNoise, read_changes
from sqlanon.models.randomization.noise import GaussianNoise
from sqlanon.models.randomization.spreads import RULES, is_spread, rounded_up
from sqlanon.policy import Policy
from sqlanon.policy.writer import policy_text
from sqlanon.report.material import collect
from sqlanon.report.page import render
from sqlanon.sql import Relation
from sqlanon.work.journal import Silent
from sqlanon.work.session import open_existing_catalog
from sqlanon.work.workspace import TemporaryWorkspace, Workspace
from tests.cli.support import call_main
from tests.oracle.uncertain import draws_of, expected_fits, spreads_of
from tests.random_cases import for_random
from tests.randomize_support import KEY, cents, drawn, line_of, randomize, randomized_policy
from tests.run_support import OPTIONS, Database, open_database

pytestmark = pytest.mark.slow

COLUMNS = {"id": "INTEGER", "pay": "DECIMAL(10,2)", "age": "INTEGER", "town": "VARCHAR(9)"}
ROLES = {"id": "identifier", "pay": "quasi-identifier", "age": "quasi-identifier", "town": "insensitive"}
CHANGES: dict[str, Any] = {
    "pay": {"condition": "uncertain", "k": 3},
    "age": {"condition": "uncertain", "k": 2, "error": "uniform"},
}


def rows_of(count: int, seed: int = 1) -> list[tuple[Any, ...]]:
    """Rows whose pay is dense at one end and sparse at the other; of the ages some are frequent."""
    draw = random.Random(seed)
    return [
        (
            number,
            (Decimal(round(math.exp(draw.gauss(7, 0.8)) * 100)) / 100).quantize(Decimal("0.01")),
            draw.choice([20, 20, 20, draw.randrange(18, 90)]),
            draw.choice(["north", "south"]),
        )
        for number in range(count)
    ]


def test_sizes_are_four_binary_digits() -> None:
    assert [rounded_up(n) for n in (0, 1, 15, 16, 17, 33, 250, 1000)] == [1, 1, 15, 16, 18, 36, 256, 1024]
    assert [n for n in range(40) if is_spread(n)] == [*range(1, 16), *range(16, 32, 2), 32, 36]


@pytest.mark.parametrize("error", RULES)
def test_a_tangent_is_below_the_tail(error: str) -> None:
    """At distances of up to eight sizes, also as draws round them, of a small and of a large size."""
    rule = RULES[error]
    for spread in (1, 7, 1024, 15 << 20):
        for step in range(1, 160):
            distance = max(1, step * spread // 20)
            fits = expected_fits([0, distance], {0: spread, distance: spread}, error)[0] - 1
            assert fits >= (rule.intercept - rule.slope * distance / (2 * spread)) / 100_000 - 1e-12


numbers = st.one_of(st.integers(0, 4), st.integers(-300, 300), st.integers(-(10**9), 10**9))
cases = st.tuples(
    st.sampled_from(sorted(RULES)), st.integers(2, 4), st.lists(numbers, min_size=14, max_size=90), st.booleans()
)


@for_random(cases, {"duckdb": 20, "postgres": 12})
def test_k_rows_are_expected_to_fit(database: Database, case: tuple[str, int, list[int], bool]) -> None:
    hold_against_brute_force(database, case)


def test_values_of_many_rows_are_joined_by_the_few_around_them(database: Database) -> None:
    """Few rows before the first such value, between two, behind the last; and values of nearly enough rows."""
    values = [-9, -8, *[0] * 6, 3, 4, *[9] * 7, *[10] * 5, 700]
    for case in (values, values[2:], [*[1] * 4, *[2] * 4, *[30] * 4, *[40] * 4, *[50] * 4, *[60] * 4]):
        hold_against_brute_force(database, ("gaussian", 2, case, False))


def hold_against_brute_force(database: Database, case: tuple[str, int, list[int], bool]) -> None:
    """Of those with the same size of noise, by the masses of the draws; and what a run counts is never more."""
    error, k, values, is_float = case
    kind, type_, unit = (Kind.FLOAT, "DOUBLE PRECISION", 0.5) if is_float else (Kind.INTEGER, "BIGINT", 1.0)
    least = RULES[error].least_rows(k)
    values = [*values, *values[: max(0, least - len(values))]]
    table = database.create(
        {"value": type_}, [(value * unit,) for value in values] if is_float else [(v,) for v in values]
    )
    one = UncertainColumn(Column("value", type_, kind), UncertainNoise("value", k, error, unit))
    with connect(database.url, OPTIONS) as engine:
        source = engine.resolve(Relation(table))
        assert source is not None
        plan = cast("RandomizedPlan", SimpleNamespace(uncertain={"value": one}, source=source))
        spreads = create_spreads(engine, cast("Workspace", TemporaryWorkspace(engine)), plan)
        chosen = {
            int(value): int(spread) for value, _, spread in engine.query("engines/select_table", table=spreads["value"])
        }
        figures = measure_uncertain(engine, source, plan.uncertain, spreads)["value"]
    assert chosen == spreads_of(values, k, error)
    fits = expected_fits(values, chosen, error)
    assert min(fits.values()) >= k - 1e-9
    assert k - 1e-5 <= figures.least <= min(fits.values()) + 1e-5
    assert (figures.wrong, figures.failing, figures.checked) == (0, 0, len(values))
    assert {spread: of.rows for spread, of in figures.numbers.items()} == Counter(chosen[value] for value in values)


def expected_rows(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    pays, ages = [cents(row[1]) for row in rows], [row[2] for row in rows]
    of_pay, of_age = spreads_of(pays, 3, "gaussian"), spreads_of(ages, 2, "uniform")
    turns: Counter[Any] = Counter()
    released = []
    for _, pay, age, town in rows:
        turns[pay, age, town] += 1
        line, turn = line_of((pay, age, town)), turns[pay, age, town]
        sizes = of_pay[cents(pay)], of_age[age]
        noise = [
            drawn(draws_of(error, size), KEY, place, 2 * place, turn, line)
            for place, (error, size) in enumerate(zip(("gaussian", "uniform"), sizes, strict=True))
        ]
        released.append((Decimal(cents(pay) + noise[0]) / 100, Decimal(sizes[0]) / 100, age + noise[1], sizes[1], town))
    return sorted(released)


def test_a_key_decides_every_released_cell(database: Database) -> None:
    rows = rows_of(250)
    table = database.create(COLUMNS, rows)
    result = randomize(randomized_policy(database, table, ROLES, CHANGES))
    names = [name for name, _ in database.columns(f"{table}_r")]
    assert names == ["pay", "pay_deviation", "age", "age_half_width", "town"]
    assert database.sql(f"SELECT * FROM {table}_r") == expected_rows(rows)
    assert {"expected_rows_fit", "spreads_equal"} <= set(result.checks)
    assert not any(check.violations for check in result.checks.values())
    pay, age = result.columns
    assert pay.expected is not None
    assert age.expected is not None
    assert pay.expected.rows >= 3
    assert age.expected.least == 1
    assert (pay.amounts, result.epsilon) == ({"k": 3.0, "unit": 0.01}, None)
    assert database.leftovers() == []
    told = [tuple(row) for row in database.sql(f"SELECT * FROM {table}_r_noise")]
    assert read_changes(told) == {
        "pay": UncertainNoise("pay", 3, "gaussian", 0.01),
        "age": UncertainNoise("age", 2, "uniform", 1.0),
    }


def test_values_that_k_rows_have_keep_nearly_what_they_are(database: Database) -> None:
    """As of a constant column: the noise is one unit, which rows with the same value fit all."""
    table = database.create({"age": "INTEGER"}, [(30,)] * 20)
    changes = {"age": {"condition": "uncertain", "k": 5}}
    result = randomize(randomized_policy(database, table, {"age": "quasi-identifier"}, changes))
    assert {size for (size,) in database.sql(f"SELECT age_deviation FROM {table}_r")} == {1}
    assert result.columns[0].expected is not None
    assert result.columns[0].expected.rows == 20


def one_column(type_: str, *values: Any, **change: Any) -> tuple[str, list[tuple[Any]], dict[str, Any]]:
    return type_, [(value,) for value in values], {"condition": "uncertain", "k": 2, **change}


REFUSED = {
    "NULL": (one_column("INTEGER", *range(9), None), "x: 1 row holds NULL"),
    "NaN": (one_column("FLOAT8", *map(float, range(9)), float("nan"), unit=0.1), "x: 1 row holds NaN"),
    "too few rows": (one_column("INTEGER", 1, 2, 3), "3 rows are too few: with k = 2 a neighbourhood has 5 rows"),
    "no rows": (one_column("INTEGER"), "holds no rows"),
    "floats without a unit": (one_column("FLOAT8", 1.5), "no least difference.*give one"),
    "whole numbers with a unit": (one_column("INTEGER", 1, unit=2), "x.unit: released numbers are multiples of 1"),
    "dates": (one_column("DATE"), "noise is added to numbers, and the column is DATE|date"),
    "numbers that don't fit": (one_column("SMALLINT", *range(0, 30_000, 3000)), "x: its greatest .* don't fit into"),
    "a unit that nothing can be divided by": (
        one_column("FLOAT8", *[0.0] * 9, unit=5e-324),
        r"x\.unit: .* give 1e-289",
    ),
    "numbers too far apart": (one_column("FLOAT8", *range(9), 1e12, unit=0.5), "too much for the noise"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_can_not_be_uncertain_is_refused(database: Database, name: str) -> None:
    (type_, rows, change), problem = REFUSED[name]
    table = database.create({"x": type_}, rows)
    with pytest.raises(PolicyError, match=problem):
        randomize(randomized_policy(database, table, {"x": "quasi-identifier"}, {"x": change}))
    assert database.sql("SELECT 1 FROM information_schema.tables WHERE table_name = ?", [f"{table}_r"]) == []


def test_keys_and_names_are_checked(database: Database) -> None:
    for change, problem in {
        "k: 1": ({"condition": "uncertain", "k": 1}, "k must be"),
        "no k": ({"condition": "uncertain"}, "k"),
        "laplace": ({"condition": "uncertain", "k": 2, "error": "laplace"}, "choose from 'gaussian', 'uniform'"),
        "deviation": ({"condition": "uncertain", "k": 2, "deviation": 3}, "unknown key 'deviation'"),
    }.values():
        with pytest.raises(PolicyError, match=problem):
            randomized_policy(database, "nothing", {"x": "quasi-identifier"}, {"x": change})
    table = database.create({"x": "INTEGER", "X_deviation": "INTEGER"}, [(n, n) for n in range(9)])
    roles = {"x": "quasi-identifier", "X_deviation": "insensitive"}
    with pytest.raises(PolicyError, match=r"attributes\.X_deviation: the release has the sizes"):
        randomize(randomized_policy(database, table, roles, {"x": {"condition": "uncertain", "k": 2}}))


def test_a_size_has_a_column_that_the_database_can_name(database: Database) -> None:
    """PostgreSQL would cut the name off, and the run fail at its end."""
    name = "\u00e9" * 27
    table = database.create({name: "INTEGER"}, [(number,) for number in range(9)])
    policy = randomized_policy(database, table, {name: "quasi-identifier"}, {name: CHANGES["age"] | {"k": 2}})
    if database.engine == "postgres":
        with pytest.raises(PolicyError, match=f"'{name}_half_width', the column of the sizes .* than 63 bytes"):
            randomize(policy)
    else:
        assert randomize(policy).rows == 9


@pytest.mark.parametrize(
    "size", ["CAST('NaN' AS FLOAT8)", "CAST('Infinity' AS FLOAT8)", "1e30", "1e308", "0.1", "64", "NULL", "-5"]
)
def test_a_size_that_is_none_is_seen(database_url: str, size: str) -> None:
    with open_database(database_url) as database:
        table = database.create({"x": "FLOAT8", "town": "VARCHAR(9)"}, [(n * n % 97, "ab"[n % 2]) for n in range(60)])
        roles, changes = {"x": "quasi-identifier", "town": "insensitive"}, {"x": CHANGES["pay"] | {"unit": 0.5}}
        policy = randomized_policy(database, table, roles, changes)
    randomize(policy)
    with pytest.raises(PolicyError, match="is left to predict 'town' by"):
        compare_classifiers(policy, "town", options=OPTIONS)
    with open_database(database_url) as database:
        database.sql(f"UPDATE {table}_r SET x_deviation = {size} WHERE x = (SELECT min(x) FROM {table}_r)")
    checks = audit_randomized(policy).checks
    assert checks["spreads_possible"].violations == 1
    with pytest.raises(PolicyError, match="x_deviation has no size of noise in 1 released row"):
        reconstruct(policy, "x", bins=5, range_=(0.0, 97.0))
    with pytest.raises(PolicyError, match="x_deviation has no size of noise in 1 released row"):
        measure_noise_filter(policy)


class Tampering(Silent):
    """An observer that alters the staged rows when their verification begins."""

    def __init__(self, database: Database, statement: str) -> None:
        self.database, self.statement = database, statement

    def phase(self, name: str) -> None:
        if name == "verify":
            staged = [table for table in self.database.leftovers() if table.startswith("sqlanon_staging")]
            (rows,) = [table for table in staged if self.database.columns(table)[0][0] == "pay"]
            self.database.sql(self.statement.format(rows=rows))


LARGEST = "pay_deviation = (SELECT max(pay_deviation) FROM {rows})"
TAMPERING = {
    "another size": (f"UPDATE {{rows}} SET pay_deviation = 0.01 WHERE {LARGEST}", "spreads_equal"),
    "no size": (f"UPDATE {{rows}} SET pay_deviation = NULL WHERE {LARGEST}", "values_possible"),
    "no noise": (
        "UPDATE {rows} SET pay = (SELECT avg(o.pay) FROM {rows} o WHERE o.pay_deviation = {rows}.pay_deviation)",
        "distributions_fit",
    ),
    "out of reach": (f"UPDATE {{rows}} SET pay = 9999999 WHERE {LARGEST}", "values_possible"),
}


@pytest.mark.parametrize("name", TAMPERING)
def test_nothing_is_published_that_was_tampered_with(database: Database, name: str) -> None:
    statement, check = TAMPERING[name]
    table = database.create(COLUMNS, rows_of(600))
    with pytest.raises(VerificationError, match=check):
        randomize(randomized_policy(database, table, ROLES, CHANGES), observer=Tampering(database, statement))
    assert database.leftovers() == []


def test_sizes_that_are_too_small_are_seen(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever chooses half of the sizes publishes nothing, though the release has what was chosen."""
    table = database.create(COLUMNS, rows_of(300))
    half = SimpleNamespace(**{**RULES["gaussian"].__dict__, "slope": 12_000})
    rule = type(RULES["gaussian"])(GaussianNoise, half.intercept, half.slope)
    monkeypatch.setattr("sqlanon.models.randomization.changes.RULES", {**RULES, "gaussian": rule})
    with pytest.raises(VerificationError, match="expected_rows_fit"):
        randomize(randomized_policy(database, table, ROLES, CHANGES))


def released(url: str, count: int = 1000) -> tuple[Policy, list[tuple[Any, ...]]]:
    """A release, whose source is gone."""
    rows = rows_of(count, 4)
    with open_database(url) as database:
        table = database.create(COLUMNS, [])
        for first in range(0, count, 500):
            database.insert(table, rows[first : first + 500])
        policy = randomized_policy(database, table, ROLES, {**CHANGES, "pay": {"condition": "uncertain", "k": 30}})
    randomize(policy)
    return policy, rows


def test_rows_of_each_size_are_estimated_by_its_noise() -> None:
    """Rows of a small size from one bin and of a large one from another, released by their probabilities."""
    change, bins = UncertainNoise("x", 5, "gaussian", 1.0), Bins.over(0, 999, 10, 1.0)
    of = {size: dict[int, int]() for size in (1, 150)}
    for size, place in ((1, 2), (150, 6)):
        for true, shown, probability in transitions(bins, change.noise(size), range(-20, 30), at_middles=False):
            if true == place:
                of[size][shown] = round(100_000 * probability)
    made = group_of_sizes(change, bins, None, of)
    assert made.shares[6].released < 0.2
    assert [round(one.share, 1) for one in made.shares] == [0, 0, 0.5, 0, 0, 0, 0.5, 0, 0, 0]


def test_a_release_is_verified_reported_and_reconstructed(
    database_url: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    policy, rows = released(database_url)
    audit = audit_randomized(policy)
    assert audit.satisfied
    assert audit.checks["spreads_possible"].violations == 0
    with connect(database_url) as engine, open_existing_catalog(policy, engine, None) as catalog:
        assert catalog is not None
        page = render(collect(catalog, catalog.runs(None)[0].id))
    for text in ("noise of a size of each row", "rows or more, with noise of the same size", "No epsilon bounds"):
        assert text in page

    made = reconstruct(policy, "pay", bins=150, range_=(0.0, 15_000.0)).groups[0]
    assert made.rows == len(rows)
    assert sum(share.share for share in made.shares) == pytest.approx(1, abs=1e-6)
    by_town = reconstruct(policy, "age", by="town", bins=10, range_=(18.0, 90.0))
    assert [(one.group, one.rows) for one in by_town.groups] == sorted(Counter(row[3] for row in rows).items())
    with pytest.raises(PolicyError, match="estimated by em alone"):
        reconstruct(policy, "pay", method="bayes")

    sizes = {}
    with open_database(database_url) as database:
        for name, column in (("pay", "pay_deviation"), ("age", "age_half_width")):
            sizes[name] = [float(size) for (size,) in database.sql(f"SELECT {column} FROM {policy.release.table}")]
    filtered = {one.name: one for one in measure_noise_filter(policy).columns}
    assert filtered["pay"].noise == pytest.approx(math.sqrt(sum(s * s for s in sizes["pay"]) / len(rows)), rel=1e-4)
    assert filtered["age"].noise == pytest.approx(math.sqrt(sum(s * (s + 1) for s in sizes["age"]) / 3 / len(rows)))
    with pytest.raises(PolicyError, match="'pay_deviation' has the sizes of noise"):
        compare_classifiers(policy, "pay_deviation", options=OPTIONS)

    file = tmp_path / "policy.yml"
    file.write_text(policy_text(policy), encoding="utf-8")
    with open_database(database_url) as database:
        database.sql(f"UPDATE {policy.release.table} SET age_half_width = 17 WHERE age_half_width = 1")
    code, printed, _ = call_main(capsys, "verify", file, "--json")
    checks = json.loads(printed)["checks"]
    assert code == 3
    assert {name for name, check in checks.items() if check["violations"]} == {"spreads_possible", "contents_equal"}
