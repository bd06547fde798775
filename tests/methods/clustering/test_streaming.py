"""Groups of a stream keep their sums and sizes, and split as published; against a plain computation."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sqlanon.engines.base import Engine
from sqlanon.errors import ProtectionError
from sqlanon.methods.clustering.releases.streamed import StreamedRows
from sqlanon.methods.clustering.search.streaming import add_rows, start_group
from sqlanon.sql import Relation, Statement
from tests.random_cases import many
from tests.run_support import PlainWorkspace

pytestmark = pytest.mark.slow

NUMBERS = [{"number": 0}, {"number": 1}]
Groups = dict[int, tuple[float, ...]]
points = st.tuples(st.integers(-9, 9), st.integers(-30, 30))


def create_rows(engine: Engine, rows: list[tuple[int, int]], name: str = "new_rows") -> Relation:
    table = Relation(name)
    engine.execute(Statement("test", f"DROP TABLE IF EXISTS {name}"))
    engine.execute(Statement("test", f"CREATE TABLE {name} (number BIGINT, x0 FLOAT8, x1 FLOAT8)"))
    engine.load(table, ["number", "x0", "x1"], [(place, *row) for place, row in enumerate(sorted(rows))])
    return table


def create_groups(engine: Engine, groups: Groups) -> Relation:
    table, names = Relation("some_groups"), ["group_number", "n", "m0", "m1", "s0_0", "s1_0", "s1_1"]
    engine.execute(Statement("test", f"DROP TABLE IF EXISTS {table}"))
    columns = ", ".join(f"{name} {'BIGINT' if place < 2 else 'FLOAT8'}" for place, name in enumerate(names))
    engine.execute(Statement("test", f"CREATE TABLE {table} ({columns})"))
    engine.load(table, names, [(number, *group) for number, group in groups.items()])
    return table


def groups_in(engine: Engine, table: Relation) -> Groups:
    rows = engine.fetch(Statement("test", f"SELECT group_number, n, m0, m1, s0_0, s1_0, s1_1 FROM {table}"))
    engine.execute(Statement("test", f"DROP TABLE {table}"))
    return {int(row[0]): (int(row[1]), *map(float, row[2:])) for row in rows}


def sums(groups: Groups) -> list[float]:
    """Add up rows, numbers and products of all groups."""
    totals = [0.0] * 6
    for n, m0, m1, s00, s10, s11 in groups.values():
        parts = (n, n * m0, n * m1, s00 + n * m0 * m0, s10 + n * m0 * m1, s11 + n * m1 * m1)
        totals = [total + part for total, part in zip(totals, parts, strict=True)]
    return totals


def sums_of_rows(rows: list[tuple[int, int]]) -> list[float]:
    parts = [(1, x, y, x * x, x * y, y * y) for x, y in rows]
    return [float(sum(column)) for column in zip(*parts, strict=True)]


@pytest.mark.either_engine
@settings(max_examples=many(6), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=st.lists(points, min_size=4, max_size=20), second=st.lists(points, max_size=12), k=st.integers(2, 4))
def test_sums_are_those_of_all_rows_and_sizes_are_from_k_to_2k(
    engine: Engine, first: list[tuple[int, int]], second: list[tuple[int, int]], k: int
) -> None:
    """Many rows are equal, and some numbers constant."""
    workspace = PlainWorkspace(engine)
    groups, rest = start_group(engine, workspace, create_rows(engine, first), NUMBERS, k)
    groups, _ = add_rows(engine, workspace, groups, rest, NUMBERS, k, lambda _: None)
    kept = create_groups(engine, groups_in(engine, groups))
    groups, _ = add_rows(engine, workspace, kept, create_rows(engine, second), NUMBERS, k, lambda _: None)
    updated = groups_in(engine, groups)
    assert sums(updated) == pytest.approx(sums_of_rows(first + second), rel=1e-9, abs=1e-6)
    assert all(k <= group[0] < 2 * k for group in updated.values())
    for _, _, _, s00, s10, s11 in updated.values():
        assert min(s00, s11, s00 * s11 - s10 * s10) >= -1e-6
    assert engine.fetch(Statement("test", workspace.listing)) == []


@settings(max_examples=many(6), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(a=st.integers(0, 20), b=st.integers(-20, 20), c=st.integers(0, 20), k=st.integers(2, 5))
def test_a_full_group_splits_along_its_first_eigenvector(engine: Engine, a: int, b: int, c: int, k: int) -> None:
    """Of a covariance of two numbers the eigenvectors are known in closed form."""
    a, c = a + abs(b), c + abs(b)  # a covariance, as its determinant is not negative
    n = 2 * k
    groups = create_groups(engine, {1: (n - 1, 5.0, -7.0, n * a, n * b, n * c), 2: (k, 1e6, 1e6, 1.0, 0.0, 1.0)})
    engine.execute(Statement("test", f"UPDATE {groups} SET n = {n} WHERE group_number = 1"))
    split = Relation("w_split")
    engine.run("methods/clustering/streams/split_groups", split=split, groups=groups, numbers=NUMBERS, k=k, steps=100)
    one, untouched, other = (group for _, group in sorted(groups_in(engine, split).items()))
    assert untouched == (k, 1e6, 1e6, 1.0, 0.0, 1.0)
    assert one[0] == other[0] == k
    root = math.hypot((a - c) / 2, b)
    eigenvalue = (a + c) / 2 + root
    assert ((one[1] + other[1]) / 2, (one[2] + other[2]) / 2) == pytest.approx((5.0, -7.0))
    apart = math.hypot(one[1] - other[1], one[2] - other[2])
    assert apart == pytest.approx(math.sqrt(12 * eigenvalue) / 2, rel=1e-3)
    for group in (one, other):
        assert (group[3] + group[5]) / k == pytest.approx(a + c - 0.75 * eigenvalue, rel=1e-3, abs=1e-6)
    if root > 0.05 * eigenvalue:  # the first eigenvector is one: along it a fourth of the variance is left
        v = ((one[1] - other[1]) / apart, (one[2] - other[2]) / apart)
        along = (v[0] * v[0] * one[3] + 2 * v[0] * v[1] * one[4] + v[1] * v[1] * one[5]) / k
        assert along == pytest.approx(eigenvalue / 4, rel=1e-3)
        assert (a - eigenvalue) * v[0] + b * v[1] == pytest.approx(0, abs=1e-3 * eigenvalue)


def test_rows_join_the_group_whose_mean_is_nearest(engine: Engine) -> None:
    """Numbers count in their standard deviations: the second one varies a hundred times as much."""
    workspace = PlainWorkspace(engine)
    groups = create_groups(
        engine,
        {1: (4, 0.0, 0.0, 0.01, 0.0, 100.0), 2: (4, 10.0, 0.0, 0.01, 0.0, 100.0), 3: (4, 5.0, 1e3, 0.01, 0.0, 1.0)},
    )
    rows = create_rows(engine, [(1, 90), (9, -80), (5, 900)])
    groups, rounds = add_rows(engine, workspace, groups, rows, NUMBERS, 4, lambda _: None)
    assert rounds == 1
    assert {number: (group[0], group[1]) for number, group in groups_in(engine, groups).items()} == {
        1: (5, pytest.approx(0.2)),
        2: (5, pytest.approx(9.8)),
        3: (5, pytest.approx(5.0)),
    }


@pytest.mark.parametrize("pairs", [4_000_000, 16])
def test_equal_rows_take_few_rounds_and_slices_of_rows_all_join(
    engine: Engine, pairs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups of equal rows are equally near, and double in a round."""
    monkeypatch.setattr("sqlanon.methods.clustering.search.streaming.PAIRS", pairs)
    reported: list[Any] = []
    workspace, rows = PlainWorkspace(engine), [(5, 7)] * (64 if pairs > 64 else 12)
    groups, rest = start_group(engine, workspace, create_rows(engine, rows), NUMBERS, 2)
    groups, rounds = add_rows(engine, workspace, groups, rest, NUMBERS, 2, reported.append)
    assert sums(groups_in(engine, groups)) == pytest.approx(sums_of_rows(rows))
    assert rounds <= 14
    assert [one.round for one in reported] == list(range(1, rounds + 1))
    left = [one.left for one in reported]
    assert left == sorted(set(left), reverse=True)
    assert left[0] == len(rows) - 2


def test_fewer_first_rows_than_a_group_are_refused(engine: Engine) -> None:
    with pytest.raises(ProtectionError, match="at least 4, not 3"):
        start_group(engine, PlainWorkspace(engine), create_rows(engine, [(1, 2), (3, 4), (5, 6)]), NUMBERS, 4)


def test_rows_that_groups_do_not_have_are_found(engine: Engine) -> None:
    workspace, staged = PlainWorkspace(engine), Relation("staged_rows")
    groups = create_groups(engine, {1: (4, 0.0, 0.0, 8.0, 1.0, 30.0), 2: (5, 10.0, 3.0, 5.0, 0.0, 9.0)})
    drawn = StreamedRows.draw(engine, workspace, groups, ["a", "b"])
    for of_regions, of_staged, expected in (
        ("", "", set()),
        (" SET c0 = c0 + 1000", "", {"groups_spread"}),
        (" SET c0 = c0 + 7e-7", "", {"numbers_rounded"}),  # of a grid of 2^-19
        ("", " WHERE a = (SELECT max(a) FROM {})", {"rows_equal", "groups_spread"}),
    ):
        with engine.undone():
            if of_regions:
                engine.execute(Statement("test", f"UPDATE {drawn.regions}{of_regions.format(drawn.regions)}"))
            engine.run(
                "methods/clustering/streams/stage_rows", staging=staged, regions=drawn.regions, numbers=drawn.numbers
            )
            if of_staged:
                engine.execute(Statement("test", f"DELETE FROM {staged}{of_staged.format(staged)}"))
            checks = drawn.check(engine, workspace, staged)
        assert {name for name, check in checks.items() if check.violations} == expected
    workspace.drop(drawn.regions)
