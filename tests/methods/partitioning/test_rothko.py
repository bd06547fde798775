"""Rothko-T with splits by gain against brute force: whole trees on random small tables, on both engines."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import assume
from hypothesis import strategies as st

from sqlanon.algorithms.tree import forest
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import PolicyError
from sqlanon.methods.partitioning.gain import packed, scanning
from sqlanon.runs.dry_run import run_dry
from tests.methods.partitioning.mondrian_oracle import satisfies
from tests.oracle.rothko import LETTERS, Rothko, Row, axes_of, information, squares
from tests.random_cases import random_cases
from tests.run_support import Database, anonymize

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]

EXAMPLES = {"duckdb": 3, "postgres": 3}
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
TEXTS: list[dict[str, Any]] = [
    {"attribute": "s", **model}
    for model in (
        {"model": "distinct-l-diversity", "l": 2},
        {"model": "entropy-l-diversity", "l": 1.803},
        {"model": "recursive-l-diversity", "c": 1.503, "l": 2},
        {"model": "recursive-l-diversity", "c": 2.503, "l": 3},
        {"model": "t-closeness", "distance": "equal", "t": 0.3001},
        {"model": "t-closeness", "distance": "kl", "t": 0.3001},
        {"model": "t-closeness", "distance": "hierarchical", "t": 0.2501},
    )
]
NUMBERS: list[dict[str, Any]] = [
    {"attribute": "u", **model}
    for model in (
        {"model": "variance-diversity", "v": 4.003},
        {"model": "t-closeness", "distance": "ordered", "t": 0.1501},
        {"model": "distinct-l-diversity", "l": 3},
        {"model": "recursive-l-diversity", "c": 1.003, "l": 3},
    )
]
"""Models with parameters that no class meets exactly, but for counts."""


@pytest.fixture(autouse=True)
def coarse_bins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few bins, so that small tables have bins to look into."""
    monkeypatch.setattr(scanning, "FINE_BINS", ((0, 4),))


@dataclass(frozen=True)
class Case:
    """A table `(q0, …, s, u, y, id)`, which quasi-identifiers have a hierarchy, the target's type, and the models."""

    nested: tuple[bool, ...]
    rows: tuple[Row, ...]
    target: str
    models: tuple[dict[str, Any], ...]
    least: float  # gain

    @property
    def columns(self) -> dict[str, str]:
        quasi = {f"q{i}": "VARCHAR(1)" if nested else "INTEGER" for i, nested in enumerate(self.nested)}
        return {**quasi, "s": "VARCHAR(3)", "u": "INTEGER", "y": self.target, "id": "INTEGER"}

    @property
    def roles(self) -> dict[str, Any]:
        quasi = {f"q{i}": NESTED if nested else "quasi-identifier" for i, nested in enumerate(self.nested)}
        text: dict[str, Any] = {"role": "sensitive"}
        if any(model.get("distance") == "hierarchical" for model in self.models):
            text["hierarchy"] = {"mapping": {"x": "1", "y": "1", "z": "2"}}
        return {**quasi, "s": text, "u": "sensitive", "y": "sensitive", "id": "insensitive"}

    def satisfied_by(self, rows: list[Row]) -> bool:
        return satisfies(self.models, rows, self.rows, {"s": -4, "u": -3})


@st.composite
def cases(draw: st.DrawFn, targets: Sequence[str], models: Sequence[dict[str, Any]] = ()) -> Case:
    nested = tuple(draw(st.lists(st.sampled_from([False, False, True]), min_size=1, max_size=3)))
    type_, values = TARGETS[draw(st.sampled_from(targets))]
    widest = draw(st.sampled_from([3, 40]))  # few distinct tuples are searched in place of rows
    number = st.integers(0, widest) | st.none() if draw(st.booleans()) else st.integers(-3, widest)
    letter = st.sampled_from([*LETTERS, None] if draw(st.booleans()) else [*LETTERS])
    judged = (
        (st.sampled_from(["x", "y", "z", None]), st.sampled_from([*range(9), None]))
        if models
        else (st.just("x"), st.just(0))
    )
    cells = st.tuples(*(letter if n else number for n in nested), *judged, values)
    rows = draw(st.lists(cells, min_size=1, max_size=60))
    k, least = draw(st.integers(1, min(4, len(rows)))), draw(st.sampled_from([0, 0.01, 0.25]))
    wanted = draw(st.lists(st.sampled_from(models), min_size=1, max_size=2)) if models else []
    smallest = {"model": "k-anonymity", "k": k}
    case = Case(nested, tuple((*row, i) for i, row in enumerate(rows)), type_, (smallest, *wanted), least)
    assume(case.satisfied_by(list(case.rows)))  # there is a release
    return case


def classes(database: Database, case: Case, **algorithm: Any) -> set[frozenset[int]]:
    """The classes of a release, as sets of ids."""
    table = database.create(case.columns, case.rows)
    wanted = {"name": "rothko-t", "target": "y", **algorithm}
    try:
        released = database.release(table, case.roles, privacy=list(case.models), algorithm=wanted)
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
    leaves = Rothko(axes, case.satisfied_by, measure, least, extents).grow(list(case.rows))
    return {frozenset(row[-1] for row in leaf) for leaf in leaves}


def by_information(database: Database, case: Case) -> set[frozenset[int]]:
    return classes(database, case, split="information-gain", least_gain=case.least)


def most_information(case: Case) -> set[frozenset[int]]:
    measure, scale = information(len(case.rows))
    units = max(case.least * math.log(2) * scale, 4.0)
    return expected(case, measure, lambda rows: len(rows) * units)


def test_every_split_gains_most_information(database: Database) -> None:
    @random_cases(EXAMPLES[database.engine], cases(("two", "null", "four")))
    def check(case: Case) -> None:
        assert by_information(database, case) == most_information(case)

    check()


@pytest.mark.parametrize(("bits", "words"), [(13, 6), (52, 0)], ids=["in several words", "one by one"])
def test_every_split_gains_most_information_however_classes_are_counted(
    database: Database, monkeypatch: pytest.MonkeyPatch, bits: int, words: int
) -> None:
    monkeypatch.setattr(packed, "EXACT_BITS", bits)
    monkeypatch.setattr(packed, "MOST_WORDS", words)

    @random_cases(EXAMPLES[database.engine], cases(("four",), TEXTS[:1]))
    def check(case: Case) -> None:
        assert by_information(database, case) == most_information(case)

    check()


@pytest.mark.parametrize("models", [TEXTS, NUMBERS], ids=["texts", "numbers"])
def test_every_split_gains_most_information_of_those_that_models_allow(
    database: Database, models: list[dict[str, Any]]
) -> None:
    @random_cases(EXAMPLES[database.engine], cases(("two", "four"), models))
    def check(case: Case) -> None:
        assert by_information(database, case) == most_information(case)

    check()


def test_a_split_that_violates_a_model_on_both_sides_is_looked_past_once(database: Database) -> None:
    """As the cut of most information of the first node does, with one value alone above it."""
    ages = [28, 0, 31, 0, 0, 0, 0, 0, 0, 0, 0, 28, 40, 40, 27, 30, 25, 27, 40]
    places = [0, 27, 0, 33, 8, 10, 9, 31, 20, 14, 21, 0, 0, 0, 21, 26, 11, 0, 0]
    values = "xyxxxxyxxxx-x-zxyz-"
    rows = [
        (age, place, value, 0, "y" if i == 14 else "x", i)
        for i, (age, place, value) in enumerate(zip(ages, places, values, strict=True))
    ]
    diversity = {"model": "recursive-l-diversity", "attribute": "s", "c": 1.503, "l": 2}
    case = Case((False, False), tuple(rows), "VARCHAR(3)", ({"model": "k-anonymity", "k": 1}, diversity), 0.0)
    assert by_information(database, case) == most_information(case)


def by_squares(database: Database, case: Case) -> set[frozenset[int]]:
    return classes(database, case, split="regression", least_gain=case.least)


def least_squares(case: Case) -> set[frozenset[int]]:
    units = in_units(case)

    def needed(rows: list[Row]) -> float:
        known = [y for row in rows if (y := units[row[-1]]) is not None]
        if not known:
            return math.inf
        error = sum(y * y for y in known) - sum(known) * sum(known) / len(known)
        return max(1e-9, error * case.least)

    return expected(case, squares(lambda row: units[row[-1]]), needed)


def test_every_split_lowers_the_squared_error_most(database: Database) -> None:
    @random_cases(EXAMPLES[database.engine], cases(("integer", "decimal", "double")))
    def check(case: Case) -> None:
        assert by_squares(database, case) == least_squares(case)

    check()


@pytest.mark.parametrize("models", [TEXTS, NUMBERS], ids=["texts", "numbers"])
def test_every_split_lowers_the_squared_error_most_of_those_that_models_allow(
    database: Database, models: list[dict[str, Any]]
) -> None:
    @random_cases(EXAMPLES[database.engine], cases(("integer",), models))
    def check(case: Case) -> None:
        assert by_squares(database, case) == least_squares(case)

    check()


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


DIVERSE = [{"model": "k-anonymity", "k": 2}, {"model": "distinct-l-diversity", "attribute": "s", "l": 2}]


def test_where_the_best_split_violates_a_model_the_best_allowable_one_is_taken(database: Database) -> None:
    """The class changes at 3, the left side would hold one sensitive value; from 4 on both hold two."""
    rows = [(n, "xy"[n > 2], s) for n, s in enumerate([7, 7, 8, 7, 8, 7, 8, 7], 1)]
    by_gain = database.release(small(database, rows), PLAIN, algorithm=rothko())
    assert {row[0] for row in by_gain} == {"[1-2]", "[3-5]", "[6-8]"}
    judged = database.release(small(database, rows), PLAIN, algorithm=rothko(), privacy=DIVERSE)
    assert {row[0] for row in judged} == {"[1-3]", "[4-6]", "[7-8]"}


def test_where_no_split_that_gains_enough_is_allowable_medians_are_tried(database: Database) -> None:
    """Only the middle leaves two sensitive values on either side, and tells nothing of the class."""
    rows = [(n, "xyyx"[n], s) for n in range(4) for s in (7, 8 if n in (1, 2) else 7)]
    judged = database.release(small(database, rows), PLAIN, algorithm=rothko(), privacy=DIVERSE)
    assert {row[0] for row in judged} == {"[0-1]", "[2-3]"}


def test_of_cuts_that_gain_alike_the_most_even_one_is_found_inside_a_bin(database: Database) -> None:
    """The numbers at 0 and 1 are not known, so that cuts before and after 0 gain alike; NULL and 0 are in one bin."""
    rows = [(None, 25), (None, 38), (None, 24), (None, 26), (0, None), (0, None), (1, None), (2, 0), (2, 0)]
    table = database.create({"a": "INTEGER", "y": "INTEGER"}, rows)
    wanted = {"privacy": [{"model": "k-anonymity", "k": 3}], "algorithm": rothko(split="regression", least_gain=0.5)}
    released = database.release(table, {"a": "quasi-identifier", "y": "sensitive"}, **wanted)
    assert {row[0] for row in released} == {"NULL", "[0-2]"}


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
    """A level of many nodes takes as many statements as one of two: 32 letters, halved again and again."""
    counts = []
    for letters in (2, 32):
        rows = [(n, chr(ord("A") + n // 2), 0) for n in range(2 * letters)]
        outcome = anonymize(database.policy(small(database, rows), PLAIN, algorithm=rothko(least_gain=0)))
        told = outcome.as_json()
        assert told["release"]["classes"] == letters
        assert told["algorithm"]["rounds"] < 10
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


def test_a_dry_run_shows_the_statements_of_a_gain(database: Database) -> None:
    table = small(database, [(n, "xyz"[n % 3], 0) for n in range(9)])
    steps = run_dry(database.policy(table, PLAIN, algorithm=rothko())).steps
    names = [step.name for step in steps]
    assert names.count("methods/partitioning/gain/decide/choose_splits") == 1
    assert names.count("methods/partitioning/gain/scan/defer_rows") == 1
    assert "algorithms/tree/decide/find_medians" in names


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
