"""Mondrian against brute force: random small tables, policies and models, on both engines, through whole runs."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, currently_in_test_context, given, note, settings
from hypothesis import strategies as st

from sqlanon.algorithms.tree import forest, growth, medians
from sqlanon.engines.base import Engine
from sqlanon.engines.duckdb.dialect import DuckDB
from sqlanon.engines.session_limits import EngineOptions
from tests import run_support
from tests.methods.partitioning.mondrian_oracle import (
    FLAVOURS,
    Attribute,
    are_disjoint,
    describes,
    satisfies,
    splittable,
)
from tests.random_cases import many
from tests.run_support import Database, Row

FEW = settings(
    max_examples=many(3),
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@dataclass(frozen=True)
class Case:
    """A table `(q0, q1, …, s, id)`, its quasi-identifiers, and the models asked for."""

    attributes: tuple[Attribute, ...]
    rows: tuple[Row, ...]
    models: tuple[dict[str, Any], ...]
    sensitive: str  # its type
    order: tuple[int, ...]  # in which the rows are stored the second time

    @property
    def columns(self) -> dict[str, str]:
        quasi = {f"q{i}": a.type for i, a in enumerate(self.attributes)}
        return {**quasi, "s": self.sensitive, "id": "INTEGER"}

    @property
    def roles(self) -> dict[str, Any]:
        quasi = {f"q{i}": a.policy for i, a in enumerate(self.attributes)}
        sensitive: dict[str, Any] = {"role": "sensitive"}
        if any(model.get("distance") == "hierarchical" for model in self.models):
            sensitive["hierarchy"] = {"mapping": {"x": "1", "y": "1", "z": "2"}}
        return {**quasi, "s": sensitive, "id": "insensitive"}

    def surely_satisfies(self, part: Sequence[Row]) -> bool:
        """Tell whether a part of the rows meets the models, and not by rounding."""
        return satisfies(self.models, part, self.rows, hair=-1e-8)


_SENSITIVE = {
    "VARCHAR(3)": st.sampled_from(["x", "y", "z", None]),
    "INTEGER": st.sampled_from([0, 1, 2, 5, None]),
}
_MODELS = {
    "VARCHAR(3)": [
        {"model": "distinct-l-diversity", "l": 2},
        {"model": "entropy-l-diversity", "l": 1.6},
        {"model": "recursive-l-diversity", "c": 2.5, "l": 2},
        {"model": "t-closeness", "distance": "equal", "t": 0.35},
        {"model": "t-closeness", "distance": "kl", "t": 0.6},
        {"model": "t-closeness", "distance": "hierarchical", "t": 0.3},
    ],
    "INTEGER": [
        {"model": "variance-diversity", "v": 0.7},
        {"model": "t-closeness", "distance": "ordered", "t": 0.2},
    ],
}


@st.composite
def cases(draw: st.DrawFn) -> Case:
    flavours = draw(st.lists(st.sampled_from(FLAVOURS), min_size=1, max_size=4))
    sensitive = draw(st.sampled_from(sorted(_SENSITIVE)))
    cells = st.tuples(*(st.sampled_from(a.pool) for a in flavours), _SENSITIVE[sensitive])
    rows = draw(st.lists(cells, min_size=1, max_size=40))
    models: list[dict[str, Any]] = [{"model": "k-anonymity", "k": draw(st.integers(1, min(5, len(rows))))}]
    if draw(st.booleans()):
        models.append({"attribute": "s", **draw(st.sampled_from(_MODELS[sensitive]))})
    order = draw(st.permutations(range(len(rows))))
    return Case(tuple(flavours), tuple((*row, i) for i, row in enumerate(rows)), tuple(models), sensitive, tuple(order))


def _released(database: Database, case: Case, rows: list[Row]) -> list[Row] | None:
    return database.release_once(case.columns, rows, case.roles, privacy=list(case.models))


@FEW
@given(case=cases())
def test_releases_of_random_tables(databases: tuple[Database, Database], case: Case) -> None:
    duck, postgres = databases
    released = _released(duck, case, list(case.rows))
    assert released == _released(postgres, case, list(case.rows)), "the engines differ"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(growth.Growth, "cells_at_once", 0)
        again = _released(duck, case, [case.rows[i] for i in case.order])
    assert released == again, "the order of the source shows, or attributes tried one by one give other splits"
    if released is None:
        assert not satisfies(case.models, list(case.rows), list(case.rows))
        return
    check_release(case, released)


def check_release(case: Case, released: list[Row]) -> None:
    width = len(case.attributes)
    source = {row[-1]: row for row in case.rows}
    assert sorted(row[-1] for row in released) == sorted(source), "rows were lost"
    assert all(row[-2] == source[row[-1]][-2] for row in released), "a kept value moved"
    leaves: dict[Row, list[Row]] = {}
    for row in released:
        leaves.setdefault(row[:width], []).append(source[row[-1]])
    for region, leaf in leaves.items():
        if currently_in_test_context():
            note(f"{region}: {leaf}")
        assert satisfies(case.models, leaf, list(case.rows))
        for attribute, cell, values in zip(case.attributes, region, zip(*leaf, strict=True), strict=False):
            assert describes(attribute, cell, values)
        assert splittable(case.attributes, leaf, case.surely_satisfies) == [], "the partition is not minimal"
    assert are_disjoint(case.attributes, list(leaves.values()))


def _many_numbers(rows: int) -> Case:
    """Three columns of numbers that depend on each other, with ties and NULLs; no hierarchy."""
    rng = random.Random(5)
    numbers = [(rng.randrange(4000), rng.choice([None, *range(9)])) for _ in range(rows)]
    cells = tuple((a, b, (a * (b or 0)) // 300, "xyz"[a % 3], i) for i, (a, b) in enumerate(numbers))
    attribute = Attribute("INTEGER", (None, *range(12)))
    order = tuple(rng.sample(range(rows), rows))
    return Case((attribute,) * 3, cells, ({"model": "k-anonymity", "k": 2},), "VARCHAR(3)", order)


def test_ranges_of_parents_serve_one_session_and_several_alike(
    databases: tuple[Database, Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []
    monkeypatch.setattr(Engine, "_tell", lambda _self, statement, *_: heard.append(statement.name))
    case = _many_numbers(700)
    released = _released(databases[0], case, list(case.rows))
    assert released is not None
    check_release(case, released)
    assert heard.count("algorithms/tree/decide/inherit_ranges") == 2
    assert heard.count("algorithms/tree/scan/measure_nodes") < heard.count("algorithms/tree/decide/choose_attributes")
    monkeypatch.setattr(forest, "PARALLEL_ROWS", 1)
    monkeypatch.setattr(run_support, "OPTIONS", EngineOptions(threads=2))
    heard.clear()
    assert _released(databases[1], case, [case.rows[i] for i in case.order]) == released
    assert "algorithms/tree/decide/branch_ranges" in heard, "no ranges were handed on"


def test_values_of_bins_are_counted_only_where_one_holds_several(
    databases: tuple[Database, Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On an engine that asks first, as Spark does."""
    case = _many_numbers(300)
    released = _released(databases[0], case, list(case.rows))
    heard: list[str] = []
    monkeypatch.setattr(Engine, "_tell", lambda _self, statement, *_: heard.append(statement.name))
    monkeypatch.setattr(DuckDB, "weighs_scans", True)
    monkeypatch.setattr(medians, "WEIGHED_BIN_BITS", medians.MOST_BIN_BITS)
    assert _released(databases[0], case, list(case.rows)) == released
    assert 0 < heard.count("algorithms/tree/scan/count_median_values") < heard.count("algorithms/tree/scan/count_bins")


_NUMBERS: dict[str, list[Any]] = {
    "INTEGER": [-7, 0, 1, 2, 3, 1000],
    "BIGINT": [-(2**63), -1, 0, 3, 2**53 + 1, 2**63 - 1],
    "DECIMAL(9, 2)": [Decimal("-1.50"), Decimal("0.10"), Decimal("0.30"), Decimal("2.25")],
    "DECIMAL(38, 10)": [Decimal("0.1000000001"), Decimal("1234567890123456789012345678"), Decimal(-3), Decimal(7) / 8],
    "DOUBLE PRECISION": [-0.5, 0.1, 0.2, 0.3, 1e-7, 2.5e20, 1.7e308, -1.7e308],
    "FLOAT8": [-0.5, 0.1, 0.2, 0.3, 0.57, 1.1, 98765.4321],
}


@settings(FEW, max_examples=many(3))
@given(data=st.data())
def test_shows_of_numbers(databases: tuple[Database, Database], data: st.DataObject) -> None:
    type_ = data.draw(st.sampled_from(sorted(_NUMBERS)))
    numbers = data.draw(st.lists(st.sampled_from([*_NUMBERS[type_], None]), min_size=3, max_size=30))
    shows = ("bounds", "mean", "midpoint")
    columns = {**dict.fromkeys(shows, type_), "id": "INTEGER"}
    roles = {
        **{show: {"role": "quasi-identifier", "show": show, "nulls": "allow"} for show in shows},
        "id": "insensitive",
    }
    k = [{"model": "k-anonymity", "k": data.draw(st.integers(1, 3))}]
    rows = [(number, number, number, place) for place, number in enumerate(numbers)]
    first, second = (database.release(database.create(columns, rows), roles, privacy=k) for database in databases)
    assert first == second
    classes: dict[Row, list[Any]] = {}
    for *region, place in first:
        classes.setdefault(tuple(region), []).append(numbers[place])
    for (low, high, mean, middle), members in classes.items():
        known = [number for number in members if number is not None]
        assert (low, high) == ((min(known), max(known)) if known else (None, None))
        if known:
            rounding = 1e-13 * float(max(map(abs, known)))
            assert mean == pytest.approx(float(sum(map(Fraction, known)) / len(known)), rel=1e-12, abs=rounding)
            assert middle == pytest.approx(float((Fraction(low) + Fraction(high)) / 2), rel=1e-12, abs=rounding)
        else:
            assert (mean, middle) == (None, None)
