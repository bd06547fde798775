"""Rothko-T with splits by gain against brute force: whole trees on random small tables, on both engines."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from sqlanon.engines.base import EngineOptions
from sqlanon.errors import PolicyError
from sqlanon.partition import forest, gain
from sqlanon.rehearsal import rehearse
from tests.oracle.rothko import LETTERS, Rothko, Row, axes_of, information, squares
from tests.run_support import Database, anonymize

EXAMPLES = {"duckdb": 12, "postgres": 4}
NESTED = {
    "role": "quasi-identifier",
    "hierarchy": {"mapping": {letter: list(path) for letter, path in LETTERS.items()}},
}
TARGETS: dict[str, tuple[str, Any]] = {
    "two": ("VARCHAR(3)", st.sampled_from(["x", "y"])),
    "null": ("INTEGER", st.sampled_from([3, None])),
    "four": ("INTEGER", st.sampled_from([0, 1, 2, None])),
    "integer": ("INTEGER", st.integers(-50, 50) | st.none()),
    "decimal": ("DECIMAL(9, 2)", st.integers(-300, 300).map(lambda cents: Decimal(cents) / 100)),
    "double": ("DOUBLE PRECISION", st.sampled_from([-0.0, 0.1, 0.2, 1 / 3, 1e5 / 7, None, math.nan, math.inf])),
}


@pytest.fixture(autouse=True)
def coarse_bins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few bins, so that small tables have bins to look into."""
    monkeypatch.setattr(gain, "FINE_BINS", ((0, 4),))


@dataclass(frozen=True)
class Case:
    """A table `(q0, …, y, id)`, which of its quasi-identifiers have a hierarchy, its target's type, and k."""

    nested: tuple[bool, ...]
    rows: tuple[Row, ...]
    target: str
    k: int
    least: float  # gain

    @property
    def columns(self) -> dict[str, str]:
        quasi = {f"q{i}": "VARCHAR(1)" if nested else "INTEGER" for i, nested in enumerate(self.nested)}
        return {**quasi, "y": self.target, "id": "INTEGER"}

    @property
    def roles(self) -> dict[str, Any]:
        quasi = {f"q{i}": NESTED if nested else "quasi-identifier" for i, nested in enumerate(self.nested)}
        return {**quasi, "y": "sensitive", "id": "insensitive"}


@st.composite
def cases(draw: st.DrawFn, *targets: str) -> Case:
    nested = tuple(draw(st.lists(st.sampled_from([False, False, True]), min_size=1, max_size=3)))
    type_, values = TARGETS[draw(st.sampled_from(targets))]
    widest = draw(st.sampled_from([3, 40]))  # few distinct tuples are searched in place of rows
    number = st.integers(0, widest) | st.none() if draw(st.booleans()) else st.integers(-3, widest)
    letter = st.sampled_from([*LETTERS, None] if draw(st.booleans()) else [*LETTERS])
    cells = st.tuples(*(letter if n else number for n in nested), values)
    rows = draw(st.lists(cells, min_size=1, max_size=60))
    k, least = draw(st.integers(1, min(4, len(rows)))), draw(st.sampled_from([0, 0.01, 0.25]))
    return Case(nested, tuple((*row, i) for i, row in enumerate(rows)), type_, k, least)


def for_cases(database: Database, check: Any, *targets: str) -> None:
    quick = settings(
        max_examples=EXAMPLES[database.engine],
        deadline=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
    quick(given(cases(*targets))(lambda case: check(database, case)))()


def classes(database: Database, case: Case, **algorithm: Any) -> set[frozenset[int]]:
    """The classes of a release, as sets of ids."""
    table = database.create(case.columns, case.rows)
    k = [{"model": "k-anonymity", "k": case.k}]
    try:
        released = database.release(
            table, case.roles, privacy=k, algorithm={"name": "rothko-t", "target": "y", **algorithm}
        )
    finally:
        database.sql(f"DROP TABLE IF EXISTS {table}_r")
        database.sql(f"DROP TABLE {table}")
    found: dict[Row, list[int]] = defaultdict(list)
    for row in released:
        found[row[: len(case.nested)]].append(row[-1])
    return {frozenset(ids) for ids in found.values()}


def expected(
    case: Case, measure: Callable[[list[list[Row]]], float], least: Callable[[Any], float]
) -> set[frozenset[int]]:
    axes, extents = axes_of(case.rows, case.nested)
    leaves = Rothko(axes, case.k, measure, least, extents).grow(list(case.rows))
    note(f"expected {[[row[-1] for row in leaf] for leaf in leaves]}")
    return {frozenset(row[-1] for row in leaf) for leaf in leaves}


def test_every_split_gains_most_information(database: Database) -> None:
    for_cases(database, check_information, "two", "null", "four")


def check_information(database: Database, case: Case) -> None:
    measure, scale = information(len(case.rows))
    units = max(case.least * math.log(2) * scale, 4.0)
    found = classes(database, case, split="information-gain", least_gain=case.least)
    assert found == expected(case, measure, lambda rows: len(rows) * units)


def test_every_split_lowers_the_squared_error_most(database: Database) -> None:
    for_cases(database, check_squares, "integer", "decimal", "double")


def check_squares(database: Database, case: Case) -> None:
    units = in_units(case)

    def needed(rows: list[Row]) -> float:
        known = [y for row in rows if (y := units[row[-1]]) is not None]
        if not known:
            return math.inf
        error = sum(y * y for y in known) - sum(known) * sum(known) / len(known)
        return max(1e-9, error * case.least)

    found = classes(database, case, split="regression", least_gain=case.least)
    assert found == expected(case, squares(lambda row: units[row[-1]]), needed)


def in_units(case: Case) -> dict[int, float | None]:
    """The targets in whole units above their mean, by id."""
    known = {row[-1]: float(row[-2]) for row in case.rows if row[-2] is not None and math.isfinite(row[-2])}
    if not known:
        return {row[-1]: None for row in case.rows}
    low, span = min(known.values()), max(known.values()) - min(known.values())
    unit = {"INTEGER": 1.0, "DECIMAL(9, 2)": 100.0}.get(case.target)
    if unit is None:
        bits = min(40, 52 - len(case.rows).bit_length())
        unit = 2.0 ** (bits - 1 - math.floor(math.log2(span))) if span else 1.0
    whole = {number: math.floor((y - low) * unit + 0.5) for number, y in known.items()}
    center = math.floor(sum(whole.values()) / len(whole) + 0.5)
    return {row[-1]: whole[row[-1]] - center if row[-1] in whole else None for row in case.rows}


# --- beside the trees

PLAIN = {"a": "quasi-identifier", "y": "insensitive", "s": "sensitive"}


def small(database: Database, rows: list[Row]) -> str:
    return database.create({"a": "INTEGER", "y": "VARCHAR(1)", "s": "INTEGER"}, rows)


def rothko(**algorithm: Any) -> dict[str, Any]:
    return {"name": "rothko-t", "split": "information-gain", "target": "y", **algorithm}


def test_a_split_that_violates_a_model_is_left_to_medians(database: Database) -> None:
    """The class changes at 3, where the left side would hold one sensitive value; at the median both hold two."""
    rows = [(1, "x", 7), (2, "x", 7), (3, "y", 8), (4, "y", 7), (5, "y", 7), (6, "y", 8)]
    diverse = [{"model": "k-anonymity", "k": 2}, {"model": "distinct-l-diversity", "attribute": "s", "l": 2}]
    by_gain = database.release(small(database, rows), PLAIN, algorithm=rothko())
    assert {row[0] for row in by_gain} == {"[1-2]", "[3-4]", "[5-6]"}
    judged = database.release(small(database, rows), PLAIN, algorithm=rothko(), privacy=diverse)
    assert {row[0] for row in judged} == {"[1-3]", "[4-6]"}


def test_a_run_says_how_it_split(database: Database) -> None:
    table = small(database, [(n, "xy"[n > 3], 0) for n in range(10)])
    outcome = anonymize(database.policy(table, PLAIN, algorithm=rothko(bins=8))).as_json()
    told = outcome["algorithm"]
    assert {key: told[key] for key in ("name", "split", "target", "bins", "least_gain", "groups")} == {
        "name": "rothko-t",
        "split": "information-gain",
        "target": "y",
        "bins": 8,
        "least_gain": 0.01,
        "groups": ["AV", "AVC"],
    }
    assert outcome["verified"]


def test_statements_do_not_grow_with_the_nodes(database: Database) -> None:
    """A level of many nodes takes as many statements as one of two."""
    counts = []
    for copies in (1, 16):
        rows = [(n + 8 * copy, "xy"[(n // 2) % 2], 0) for copy in range(copies) for n in range(8)]
        told = anonymize(database.policy(small(database, rows), PLAIN, algorithm=rothko(least_gain=0))).as_json()
        counts.append(told["algorithm"]["statements"] / told["algorithm"]["rounds"])
    assert counts[1] <= counts[0] * 1.5


def test_few_bins_cut_at_their_borders_alone(database: Database) -> None:
    """Two bins hold 1 to 7 and 8, which is too small a class; that the target changes at 3 is not seen."""
    k = [{"model": "k-anonymity", "k": 4}]
    rows = [(n, "xy"[n > 3], 0) for n in range(1, 9) for _ in range(2)]
    exact, fine, coarse = (
        {row[0] for row in database.release(small(database, rows), PLAIN, privacy=k, algorithm=rothko(bins=bins))}
        for bins in ("exact", 1000, 2)
    )
    assert exact == fine == {"[1-3]", "[4-6]", "[7-8]"}
    assert coarse == {"[1-2]", "[3-4]", "[5-6]", "[7-8]"}


def test_sub_trees_that_grow_side_by_side_are_the_same(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    table = small(database, [(n * n % 101, "xyz"[n * n % 101 % 7 % 3], n % 3) for n in range(200)])
    alone = database.release(table, PLAIN, algorithm=rothko())
    monkeypatch.setattr(forest, "PARALLEL_ROWS", 0)
    policy = database.policy(table, PLAIN, algorithm=rothko())
    anonymize(policy, replace=True, options=EngineOptions(threads=3))
    assert database.sql(f"SELECT * FROM {table}_r") == alone


def test_rothko_at_medians_is_mondrian(database: Database) -> None:
    rows = [(n * n % 37, "xy"[n % 2], n % 3) for n in range(60)]
    table = small(database, rows)
    by_name = [database.release(table, PLAIN, algorithm={"name": name}) for name in ("mondrian", "rothko-t")]
    assert by_name[0] == by_name[1]


def test_a_rehearsal_shows_the_statements_of_a_gain(database: Database) -> None:
    table = small(database, [(n, "xyz"[n % 3], 0) for n in range(9)])
    steps = rehearse(database.policy(table, PLAIN, algorithm=rothko())).steps
    names = [step.name for step in steps]
    assert names.count("gain/choose_splits") == 1
    assert names.count("gain/park_rows") == 1
    assert "partition/find_medians" in names


@pytest.mark.parametrize(
    ("algorithm", "message"),
    [
        ({"target": None}, "must have a target with split: information-gain or regression, and only with those"),
        ({"split": "median"}, "must have a target with split: information-gain or regression, and only with those"),
        ({"split": "median", "target": None, "bins": 9}, "has bins, which split: median does not use"),
        ({"bins": 1}, "bins must be exact, or a whole number from 2 to 1,048,576"),
        ({"bins": "all"}, "bins must be exact, or a whole number from 2 to 1,048,576"),
        ({"least_gain": -1}, "least_gain must be a number of at least 0"),
        ({"target": "z"}, "algorithm.target: .* has no such column; choose from 'y', 's'"),
        ({"target": "a"}, "algorithm.target: it must be sensitive or insensitive, not quasi-identifier"),
        ({"split": "regression"}, "split: regression needs numbers, and 'y' is .*; use split: information-gain"),
    ],
)
def test_wrong_algorithms_are_refused(database: Database, algorithm: dict[str, Any], message: str) -> None:
    table = small(database, [(1, "x", 1), (2, "y", 2)])
    wanted = {key: value for key, value in rothko(**algorithm).items() if value is not None}
    with pytest.raises(PolicyError, match=message):
        anonymize(database.policy(table, PLAIN, algorithm=wanted))


def test_classes_of_real_numbers_are_refused(database: Database) -> None:
    table = database.create({"a": "INTEGER", "y": "DOUBLE PRECISION"}, [(1, 1.5), (2, 2.5)])
    with pytest.raises(PolicyError, match=r"split: information-gain needs classes, and 'y' is .*use split: regression"):
        anonymize(database.policy(table, {"a": "quasi-identifier", "y": "sensitive"}, algorithm=rothko()))
