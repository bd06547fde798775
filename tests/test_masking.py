"""Loss and risk of a release beside its source: against their definitions and published figures, on both engines."""

from __future__ import annotations

import csv
import dataclasses
import math
import re
import statistics
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError
from sqlanon.measures.masking.all_measures import PERCENTS, measure_masking
from sqlanon.measures.masking.compared import JoinedColumn, compare, compare_grouped
from sqlanon.report.material import collect
from sqlanon.report.page import render
from sqlanon.results.codec import from_json, to_json
from sqlanon.results.masking import Masking
from sqlanon.sql import Relation
from sqlanon.work.session import catalog_place, open_recorded
from tests.adult import DATA
from tests.oracle import masking as oracle
from tests.random_cases import many
from tests.run_support import Database, anonymize
from tests.test_verify import FEW, Row, create

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]

CASC = DATA / "casc"
COLUMNS = {"id": "BIGINT", "a": "FLOAT8", 'b"x': "BIGINT", "d": "DECIMAL(9,2)", "c": "VARCHAR(9)", "e": "VARCHAR(9)"}
NUMBERS, CATEGORIES = ("a", 'b"x', "d"), ("c", "e")

numbers = st.tuples(
    st.sampled_from([None, -1.5, 0.0, 0.1, 2.0, 1000.0]),
    st.sampled_from([None, 10**12 - 3, 10**12, 10**12 + 5]),
    st.sampled_from([None, "0.00", "1.50", "-7.25"]),
)
known_numbers = st.tuples(st.integers(-4, 4).map(float), st.integers(0, 9), st.sampled_from(["0.00", "1.50", "-7.25"]))
categories = st.tuples(st.sampled_from([None, "", "a", "A"]), st.sampled_from(["x", "y", None]))


def table(values: st.SearchStrategy[Row]) -> st.SearchStrategy[list[tuple[Row, Row | None]]]:
    """Rows of a source, each with the released row, if there is one; at least one row is released."""
    released = st.tuples(values, categories)
    rows = st.lists(st.tuples(released, st.none() | released), max_size=14)
    first = st.tuples(released, released)
    return st.tuples(first, rows).map(lambda found: [found[0], *found[1]])


def tables_of(
    engine: Engine, rows: Sequence[tuple[Any, Any]]
) -> tuple[Relation, Relation, list[list[Any]], list[list[Any]]]:
    """Source and release in a database, the release in another order, and as lists of rows."""
    source = [[number, *row[0], *row[1]] for number, (row, _) in enumerate(rows)]
    release = [[number, *row[0], *row[1]] for number, (_, row) in reversed(list(enumerate(rows))) if row is not None]
    relations = create(engine, COLUMNS, source), create(engine, COLUMNS, release, "masked")
    return (*relations, source, release)


def column(rows: Sequence[Sequence[Any]], name: str) -> list[Any]:
    place = list(COLUMNS).index(name)
    values = [row[place] for row in rows]
    return [None if value is None else Fraction(value) for value in values] if name in NUMBERS else values


def paired(source: Sequence[Sequence[Any]], release: Sequence[Sequence[Any]], name: str) -> list[tuple[Any, Any]]:
    after = dict(zip((row[0] for row in release), column(release, name), strict=True))
    return [(value, after[row[0]]) for row, value in zip(source, column(source, name), strict=True) if row[0] in after]


def like(expected: float | None) -> Any:
    return expected if expected is None else pytest.approx(expected, rel=1e-9, abs=1e-9)


@settings(FEW, max_examples=many(4))
@given(rows=table(numbers))
def test_losses_are_those_of_their_definitions(engine: Engine, rows: list[tuple[Row, Row | None]]) -> None:
    relations, (source, release) = tables_of(engine, rows)[:2], tables_of(engine, rows)[2:]
    measured = measure_masking(compare(engine, *relations, by=["id"]))
    assert (measured.source_rows, measured.release_rows) == (len(source), len(release))
    assert measured.paired_rows == len(release)
    _check_numbers(measured, source, release)
    _check_categories(measured, source, release)
    assert from_json(Masking, to_json(measured)) == measured


def _check_numbers(measured: Masking, source: Sequence[Any], release: Sequence[Any]) -> None:
    assert measured.numbers is not None
    for one in measured.numbers.columns:
        before, after, pairs = column(source, one.name), column(release, one.name), paired(source, release, one.name)
        assert one.il2 == like(oracle.variation(oracle.mean(before), oracle.mean(after)))
        assert one.il3 == like(oracle.variation(oracle.covariance(before, before), oracle.covariance(after, after)))
        assert one.unknown == (before.count(None), after.count(None))
        if any(b is not None and a is not None for b, a in pairs):
            assert one.il1 == like(oracle.il1(pairs))
            assert one.il1s == like(oracle.il1s(pairs, before))
            assert one.sse == like(oracle.sse(pairs, before))
        else:
            assert (one.il1, one.il1s, one.sse) == (None, None, None)
    il4, il5 = [], []
    for place, left in enumerate(NUMBERS):
        for right in NUMBERS[place:]:
            (b, c), (d, e) = ((column(rows, left), column(rows, right)) for rows in (source, release))
            il4.append(oracle.variation(oracle.covariance(b, c), oracle.covariance(d, e)))
            il5 += [abs(oracle.correlation(b, c) - oracle.correlation(d, e))] if left != right else []
    assert measured.numbers.il4 == like(statistics.fmean(il4))
    rounded = 1e-6  # doubles of about 10**12 that differ by a few leave nine digits of a correlation
    assert measured.numbers.il5 == pytest.approx(statistics.fmean(il5), abs=rounded)
    parts = [getattr(measured.numbers, f"il{number}") for number in range(1, 6)]
    assert measured.numbers.il6 == (None if None in parts else like(20 * math.fsum(parts)))


def _check_categories(measured: Masking, source: Sequence[Any], release: Sequence[Any]) -> None:
    assert measured.categories is not None
    pairs = [paired(source, release, name) for name in CATEGORIES]
    distances = [statistics.fmean(b != a for b, a in column) for column in pairs]
    assert [one.distance for one in measured.categories.columns] == like(distances)
    assert measured.categories.distance == like(statistics.fmean(distances))
    assert [one.ebil for one in measured.categories.columns] == like([oracle.ebil(column) for column in pairs])
    columns = ([column(rows, name) for name in CATEGORIES] for rows in (source, release))
    total, cells = oracle.ctbil(*columns, 2)
    assert (measured.categories.ctbil, measured.categories.cells) == (total, cells)
    assert measured.categories.actbil == like(total / cells)


@settings(FEW, max_examples=many(4))
@given(rows=table(known_numbers))
def test_risks_are_those_of_their_definitions(engine: Engine, rows: list[tuple[Row, Row | None]]) -> None:
    *relations, source, release = tables_of(engine, rows)
    measured = measure_masking(compare(engine, *relations, by=["id"], columns=NUMBERS))
    risk = measured.risk
    assert risk is not None
    variances = [oracle.covariance(column(source, name), column(source, name)) for name in NUMBERS]
    names = [name for name, variance in zip(NUMBERS, variances, strict=True) if variance]
    if names:
        before, after = zip(*(zip(*paired(source, release, name), strict=True) for name in names), strict=True)
        pairs = list(zip(zip(*before, strict=True), zip(*after, strict=True), strict=True))
        points = list(zip(*(column(release, name) for name in names), strict=True))
        assert risk.linkage is not None
        shares = oracle.linkage(pairs, points, [variance for variance in variances if variance])
        assert (risk.linkage.nearest, risk.linkage.picked, risk.linkage.blind) == like(shares)
    else:
        assert risk.linkage is None
    _check_intervals(risk.intervals.rank, risk.intervals.deviation, source, release)
    il6 = None if measured.numbers is None else measured.numbers.il6
    assert (risk.score is None) == (risk.linkage is None or il6 is None)
    if risk.score is not None and risk.linkage is not None and il6 is not None:
        disclosed = (risk.intervals.rank + risk.intervals.deviation) / 2
        assert risk.score == like(il6 / 2 + 100 * risk.linkage.nearest / 4 + 100 * disclosed / 4)


@settings(FEW, max_examples=many(4))
@given(
    source=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=9),
    release=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=9),
)
def test_rows_are_linked_with_the_group_that_is_nearest(
    engine: Engine, source: list[tuple[int, int, int]], release: list[tuple[int, int, int]]
) -> None:
    columns = {"g": "BIGINT", "a": "BIGINT", "b": "BIGINT"}
    relations = both(engine, columns, source, release)
    named = {one.name: one for one in engine.columns(relations[0])}
    joined = [JoinedColumn(name, named[name], named[name]) for name in "ab"]
    measured = measure_masking(compare_grouped(engine, *relations, joined, (named["g"], named["g"]))).groups
    deviations = [statistics.stdev(row[place] for row in source) for place in (1, 2)]
    used = [(place, one) for place, one in zip((1, 2), deviations, strict=True) if one]
    looked_at = [row for row in source if any(row[0] == other[0] for other in release)]
    if not used or not looked_at:
        assert measured is None
        return

    def away(row: tuple[int, int, int], other: tuple[int, int, int]) -> float:
        return math.fsum(((row[place] - other[place]) / one) ** 2 for place, one in used)

    own = [[other for other in release if other[0] == row[0]] for row in looked_at]
    found = [
        min(away(row, other) for other in mine) <= min(away(row, other) for other in release) + 1e-9
        for row, mine in zip(looked_at, own, strict=True)
    ]
    assert measured is not None
    assert (measured.rows, measured.nearest) == (len(found), like(sum(found) / len(found)))
    assert measured.blind == like(sum(1 / len(mine) for mine in own) / len(own))


def _check_intervals(rank: float, deviation: float, source: Sequence[Any], release: Sequence[Any]) -> None:
    ranks, least, most = [], [], []
    for name in NUMBERS:
        pairs, shown = paired(source, release, name), column(release, name)
        spread = math.sqrt(oracle.covariance(shown, shown))
        ranks += [oracle.rank_interval(pairs, shown, percent) for percent in PERCENTS]
        least += [oracle.deviation_interval(pairs, spread * p / 100 * (1 - 1e-9)) for p in PERCENTS]
        most += [oracle.deviation_interval(pairs, spread * p / 100 * (1 + 1e-9)) for p in PERCENTS]
    assert rank == like(statistics.fmean(ranks))
    assert statistics.fmean(least) - 1e-9 <= deviation <= statistics.fmean(most) + 1e-9


# --- figures of the field


def census() -> tuple[list[str], list[list[float]]]:
    if not (CASC / "census.csv").is_file():
        pytest.skip("the census table of the CASC project is not there")
    with (CASC / "census.csv").open() as file:
        names, *rows = csv.reader(file)
    return names, [[float(value) for value in row] for row in rows]


def standardized(rows: Sequence[Sequence[float]]) -> list[list[float]]:
    columns = [(statistics.fmean(values), statistics.stdev(values), values) for values in zip(*rows, strict=True)]
    return [list(row) for row in zip(*([(v - m) / s for v in values] for m, s, values in columns), strict=True)]


def microaggregated(rows: Sequence[Sequence[float]], k: int) -> list[list[float]]:
    """The rows with the means of their clusters."""
    masked = [list(row) for row in rows]
    for cluster in oracle.mdav(standardized(rows), k):
        means = [statistics.fmean(values) for values in zip(*(rows[i] for i in cluster), strict=True)]
        for row in cluster:
            masked[row] = means
    return masked


def measure_numbers(engine: Engine, names: Sequence[str], rows: Any, masked: Any, **options: Any) -> Masking:
    columns = {"id": "BIGINT"} | dict.fromkeys(names, "FLOAT8")
    relations = (
        create(engine, columns, [(i, *row) for i, row in enumerate(table)], name)
        for table, name in ((rows, "people"), (masked, "masked"))
    )
    return measure_masking(compare(engine, *relations, by=["id"]), **options)


def test_the_published_loss_of_mdav_on_the_census(engine: Engine) -> None:
    names, rows = census()
    measured = measure_numbers(engine, names, rows, microaggregated(rows, 3))
    assert measured.numbers is not None
    assert round(measured.numbers.sse or 0, 3) == 5.692
    assert measured.numbers.il2 < 1e-9  # centres keep means


def test_clusters_of_three_in_two_columns_are_found_by_distance(engine: Engine) -> None:
    names, rows = census()
    two = [row[:2] for row in rows]
    measured = measure_numbers(engine, names[:2], two, microaggregated(two, 3), sample=2000)
    assert measured.risk is not None
    assert measured.risk.linkage is not None
    assert measured.risk.linkage.rows == 1080
    assert measured.risk.linkage.nearest > 0.8
    assert measured.risk.linkage.blind == pytest.approx(1 / 3)
    assert measured.risk.linkage.sentence.startswith("Most rows find")
    assert "safe" not in measured.risk.linkage.sentence


# --- what is refused, and what is defined


def both(engine: Engine, columns: dict[str, str], source: Sequence[Row], release: Sequence[Row]) -> Any:
    return create(engine, columns, source), create(engine, columns, release, "masked")


def test_numbers_that_can_not_be_compared_are_counted(engine: Engine) -> None:
    columns = {"id": "BIGINT", "a": "FLOAT8", "b": "FLOAT8"}
    source = [(1, math.nan, 1.0), (2, math.inf, 2.0), (3, 1.0, 1e200), (4, 1.0, None)]
    relations = both(engine, columns, source, [(1, -math.inf, 1.0)])
    with pytest.raises(PolicyError) as raised:
        measure_masking(compare(engine, *relations, by=["id"]))
    assert [problem.partition(", and")[0] for problem in raised.value.problems] == [
        "'a' of the source is NaN, infinite or beyond 1e150 in 2 rows",
        "'b' of the source is NaN, infinite or beyond 1e150 in 1 row",
    ]


def test_columns_of_one_value_divide_nothing_by_zero(engine: Engine) -> None:
    columns = {"id": "BIGINT", "same": "FLOAT8", "changed": "FLOAT8", "unknown": "FLOAT8", "masked": "FLOAT8"}
    source = [(i, 0.1, 0.1, None, i / 10) for i in range(9)]
    measured = measure_masking(
        compare(engine, *both(engine, columns, source, [(i, 0.1, i / 7, None, 0.5) for i in range(9)]), by=["id"])
    )
    assert measured.numbers is not None
    same, changed, unknown, masked = measured.numbers.columns
    assert (same.il1, same.il1s, same.il2, same.il3, same.sse) == (0, 0, 0, 0, 0)
    assert (changed.il1s, changed.il3, changed.sse) == (None, 1, None)
    assert (unknown.il1, unknown.il2, unknown.sse, unknown.unknown) == (None, 0, None, (9, 9))
    assert (masked.il3, masked.sse) == (1, pytest.approx(100 * 0.69 / 0.6))


def test_no_row_is_linked_that_lacks_a_number(engine: Engine) -> None:
    columns = {"id": "BIGINT", "a": "FLOAT8", "b": "FLOAT8"}
    rows = [(i, float(i) if i % 2 else None, None if i % 2 else float(i)) for i in range(8)]
    risk = measure_masking(compare(engine, *both(engine, columns, rows, rows), by=["id"])).risk
    assert risk is not None
    assert (risk.linkage, risk.score) == (None, None)
    assert (risk.intervals.rows, risk.intervals.rank, risk.intervals.deviation) == (4, 1, 1)


def test_one_row_is_a_table(engine: Engine) -> None:
    columns = {"id": "BIGINT", "a": "FLOAT8", "c": "VARCHAR(9)"}
    measured = measure_masking(compare(engine, *both(engine, columns, [(1, 2.0, "x")], [(1, 1.0, "y")]), by=["id"]))
    assert measured.numbers is not None
    assert (measured.numbers.il1, measured.numbers.il2, measured.numbers.il3) == (0.5, 0.5, 0)
    assert measured.categories is not None
    assert (measured.categories.distance, measured.categories.ctbil, measured.categories.ebil) == (1, 2, 0)


def test_numbers_that_became_labels_are_categories(engine: Engine) -> None:
    source = create(engine, {"id": "BIGINT", "age": "BIGINT"}, [(1, 30), (2, 31), (3, 40)])
    release = create(engine, {"id": "BIGINT", "age": "VARCHAR(9)"}, [(1, "30-31"), (2, "30-31"), (3, "40")], "masked")
    measured = measure_masking(compare(engine, source, release, by=["id"]))
    assert measured.numbers is None
    assert measured.risk is None
    assert measured.categories is not None
    assert measured.categories.columns[0].distance == pytest.approx(2 / 3)
    assert measured.categories.ebil == pytest.approx(2.0)  # one bit for each of the two rows


def test_ordinal_categories_have_distances(engine: Engine) -> None:
    columns = {"id": "BIGINT", "grade": "VARCHAR(9)"}
    grades, shown = ["A", "B", "C", None, None], ["A", "D", "B", "A", None]
    relations = both(engine, columns, list(enumerate(grades)), list(enumerate(shown)))
    order = {"grade": ["A", "B", "C", "D"]}
    measured = measure_masking(compare(engine, *relations, by=["id"], orders=order))
    assert measured.categories is not None
    assert measured.categories.distance == pytest.approx((0 + 2 / 4 + 1 / 4 + 1 + 0) / 5)
    with pytest.raises(PolicyError, match="lacks categories") as raised:
        measure_masking(compare(engine, *relations, by=["id"], orders={"grade": ["A", "B"]}))
    assert "'D'" not in str(raised.value)


@pytest.mark.parametrize(
    ("source", "release", "by", "message"),
    [
        ([], [(1, 1.0)], ["id"], "The source has no rows"),
        ([(1, 1.0)], [], [], "The release has no rows"),
        ([(1, 1.0), (1, 2.0)], [(1, 1.0)], ["id"], "2 rows of the source share it"),
        ([(1, 1.0)], [(2, 1.0)], ["id"], "nothing can be paired"),
        ([(None, 1.0)], [(None, 1.0)], ["id"], "nothing can be paired"),
        ([(1, 1.0)], [(1, 1.0)], ["ID2"], "did you mean 'id'"),
        ([(1, 1.0)], [(1, 1.0)], ["id", "a"], "no column in common"),
    ],
)
def test_tables_that_can_not_be_compared(
    engine: Engine, source: list[Row], release: list[Row], by: list[str], message: str
) -> None:
    relations = both(engine, {"id": "BIGINT", "a": "FLOAT8"}, source, release)
    with pytest.raises(PolicyError, match=message):
        measure_masking(compare(engine, *relations, by=by))


def test_keys_of_other_types_pair_nothing(engine: Engine) -> None:
    source = create(engine, {"id": "BIGINT", "a": "FLOAT8"}, [(1, 1.0)])
    release = create(engine, {"id": "VARCHAR(9)", "a": "FLOAT8"}, [("1", 1.0)], "masked")
    with pytest.raises(PolicyError, match="Give both the same type"):
        compare(engine, source, release, by=["id"])


def test_both_engines_give_the_same_figures(engines: tuple[Engine, Engine]) -> None:
    """Of a table with decimals, NULLs, and more rows than are linked."""
    columns = {"id": "BIGINT", "a": "FLOAT8", "b": "DECIMAL(9,3)", "c": "VARCHAR(9)"}
    rows = [(i, (i * 7919 % 1009) / 7, None if i % 11 == 0 else f"{i * 31 % 97}.125", f"c{i % 5}") for i in range(600)]
    masked = [(i, (rows[i - i % 4][1] or 0) + 0.1, rows[i - i % 3][2], f"c{i % 4}") for i in range(600) if i % 10]
    measured = [
        measure_masking(compare(engine, *both(engine, columns, rows, masked), by=["id"]), sample=50)
        for engine in engines
    ]
    assert measured[0] == measured[1]
    assert measured[0].risk is not None
    assert measured[0].risk.linkage is not None
    assert 0 < measured[0].risk.linkage.rows <= 50


def test_wide_tables_take_several_statements(engine: Engine) -> None:
    columns = {"id": "BIGINT"} | {f"n{i}": "FLOAT8" for i in range(40)} | {f"c{i}": "VARCHAR(9)" for i in range(16)}
    rows = [(i, *(float(i * j % 13) for j in range(40)), *(f"v{i * j % 3}" for j in range(16))) for i in range(20)]
    measured = measure_masking(compare(engine, *both(engine, columns, rows, rows), by=["id"]))
    assert measured.numbers is not None
    assert measured.categories is not None
    assert (measured.numbers.il6, measured.numbers.sse) == (0, 0)
    assert (measured.categories.tables, measured.categories.ctbil, measured.categories.ebil) == (136, 0, 0)
    many_tables = compare(engine, Relation("people"), Relation("masked"), columns=[f"c{i}" for i in range(16)])
    with pytest.raises(PolicyError, match="give a smaller --dimension"):
        measure_masking(many_tables, dimension=6)


def test_a_report_shows_the_loss_and_calls_nothing_safe(database: Database) -> None:
    rows = [(i, i * i % 37, "fm"[i % 2]) for i in range(40)]
    source = database.create({"id": "BIGINT", "age": "BIGINT", "sex": "VARCHAR(9)"}, rows)
    policy = database.policy(source, {"id": "identifier", "age": "quasi-identifier", "sex": "insensitive"})
    run = anonymize(policy).run
    masked = database.create(
        {"id": "BIGINT", "age": "FLOAT8", "sex": "VARCHAR(9)"}, [(i, rows[i - i % 2][1], "f") for i in range(40)]
    )
    with connect(database.url) as engine:
        relations = (engine.resolve(Relation(name)) for name in (source, masked))
        masking = measure_masking(compare(engine, *(one for one in relations if one), by=["id"]))
    with open_recorded(catalog_place(policy)) as catalog:
        recorded = collect(catalog, run)
    assert recorded.result is not None
    assert "What masking cost" not in render(recorded)
    result = dataclasses.replace(recorded.result, masking=masking)
    assert from_json(Masking, result.as_json()["masking"]) == masking
    page = render(dataclasses.replace(recorded, result=result))
    assert "What masking cost, and what it risks" in page
    for part in ("IL6", "SSE/SST", "EBIL", "Score", "by distance alone"):
        assert part in page
    assert not re.search(r"\b(safe|secure)\b", page.partition('id="masking"')[2].partition('id="utility"')[0])
