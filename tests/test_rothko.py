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

from sqlanon.partition import gain
from tests.oracle.rothko import LETTERS, Rothko, Row, axes_of, information, squares
from tests.run_support import Database

EXAMPLES = {"duckdb": 30, "postgres": 10}
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
    return Case(nested, tuple((*row, i) for i, row in enumerate(rows)), type_, draw(st.integers(1, min(4, len(rows)))))


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


@pytest.mark.parametrize("least", [0.01, 0.3, 0])
def test_every_split_gains_most_information(database: Database, least: float) -> None:
    def check(database: Database, case: Case) -> None:
        measure, scale = information(len(case.rows))
        units = max(least * math.log(2) * scale, 4.0)
        found = classes(database, case, split="information-gain", least_gain=least)
        assert found == expected(case, measure, lambda rows: len(rows) * units)

    for_cases(database, check, "two", "null", "four")


@pytest.mark.parametrize("least", [0, 0.2])
def test_every_split_lowers_the_squared_error_most(database: Database, least: float) -> None:
    def check(database: Database, case: Case) -> None:
        units = in_units(case)
        measure = squares(lambda row: units[row[-1]])

        def needed(rows: list[Row]) -> float:
            known = [units[row[-1]] for row in rows if units[row[-1]] is not None]
            if not known:
                return math.inf
            error = sum(y * y for y in known) - sum(known) * sum(known) / len(known)
            return max(1e-9, error * least)

        found = classes(database, case, split="regression", least_gain=least)
        assert found == expected(case, measure, needed)

    for_cases(database, check, "integer", "decimal", "double")


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
