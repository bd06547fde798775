"""Hierarchies against plain definitions in Python, on both engines."""

from __future__ import annotations

import contextlib
import datetime
import math
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import sqlglot
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sqlanon.engines import connect
from sqlanon.engines.base import Column, Engine, Kind
from sqlanon.errors import EngineError, PolicyError
from sqlanon.hierarchies import HierarchyTable, build_hierarchy, export_csv, hierarchy_problems, show
from sqlanon.policy import Hierarchy
from sqlanon.sql import Identifier, Relation, Statement

DATA = Path(os.environ.get("SQLANON_TEST_DATA", Path(__file__).parents[1] / ".." / "shared" / "data"))
VALUES = Relation('the "values". {{ x }} %s')
TABLE = Relation("Größe :x")
SETTINGS = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def engines(postgres_server: Any) -> Iterator[tuple[Engine, Engine]]:
    """Both engines at once, to compare them."""
    postgres_server.run('CREATE DATABASE "hierarchies"')
    with (
        contextlib.closing(connect("duckdb:///:memory:")) as duckdb,
        contextlib.closing(connect(postgres_server.url("hierarchies"))) as postgres,
    ):
        yield duckdb, postgres


def sql(engine: Engine, text: str) -> None:
    engine.execute(Statement("test", text))


def drop(engine: Engine, *tables: Relation) -> None:
    for table in tables:
        sql(engine, f"DROP TABLE IF EXISTS {table}")


def build(
    engine: Engine, type_name: str, values: Sequence[Any], directory: Path | None = None, **spec: Any
) -> HierarchyTable:
    """The hierarchy of `values`, loaded into a column of an SQL type."""
    drop(engine, VALUES, TABLE)
    sql(engine, f"CREATE TABLE {VALUES} (value {type_name})")
    engine.load(VALUES, ["value"], [(value,) for value in values])
    (column,) = engine.columns(VALUES)
    named = Column('the "column"', column.type, column.kind)
    return build_hierarchy(engine, Hierarchy(**spec), named, VALUES, TABLE, directory)


def content(engine: Engine, hierarchy: HierarchyTable) -> list[dict[str, Any]]:
    """The dimension table in leaf order; dates as text (Python has no year 10000), the raw value left out."""
    names = ["leaf", "code", *(f"{kind}{level}" for kind in "gl" for level in levels(hierarchy, kind == "l"))]
    bounds = [f"{end}{level}" for end in ("lower", "upper") for level in levels(hierarchy)] if hierarchy.bounded else []
    dates = {column.name for column in engine.columns(hierarchy.table) if column.kind is Kind.DATE}
    columns = [f"CAST({name} AS VARCHAR) AS {name}" if name in dates else name for name in (*names, *bounds)]
    rows = engine.fetch(Statement("test", f"SELECT {', '.join(columns)} FROM {hierarchy.table} ORDER BY leaf"))
    return [dict(zip([*names, *bounds], row, strict=True)) for row in rows]


def levels(hierarchy: HierarchyTable, with_leaves: bool = False) -> range:
    return range(0 if with_leaves else 1, hierarchy.height + 1)


def check(hierarchy: HierarchyTable, rows: list[dict[str, Any]]) -> None:
    """What is true of every dimension table."""
    height, shifts = hierarchy.height, hierarchy.shifts
    assert [row["leaf"] for row in rows] == list(range(1, hierarchy.leaves + 1))
    assert all(one["code"] < other["code"] for one, other in pairwise(rows))
    assert (shifts[0], len(shifts)) == (0, height + 1)
    greatest = [0] * height
    for level in range(height):
        children = defaultdict(set)
        for row in rows:
            assert row[f"g{level + 1}"] == row["code"] >> shifts[level + 1]
            ordinal = (row["code"] >> shifts[level]) & ((1 << (shifts[level + 1] - shifts[level])) - 1)
            children[row[f"g{level + 1}"]].add(ordinal)
        first = 1 if level == height - 1 else 0
        for ordinals in children.values():
            assert ordinals == set(range(first, first + len(ordinals)))
            greatest[level] = max(greatest[level], *ordinals)
    widths = [digit.bit_length() for digit in greatest]
    assert [b - a for a, b in pairwise(shifts)] == [*widths[:-1], max(widths[-1], 1)]
    assert all(row[f"g{height}"] == 0 and row[f"l{height}"] == "*" for row in rows)
    for level in range(1, height + 1):
        groups = {(row[f"g{level}"], row[f"l{level}"]) for row in rows}
        assert len(groups) == len({label for _, label in groups}) == len({group for group, _ in groups})


def build_on_both(engines: tuple[Engine, Engine], *arguments: Any, **spec: Any) -> list[dict[str, Any]]:
    """The dimension table, the same on both engines."""
    built = [build(engine, *arguments, **spec) for engine in engines]
    contents = [content(engine, hierarchy) for engine, hierarchy in zip(engines, built, strict=True)]
    check(built[0], contents[0])
    assert contents[0] == contents[1]
    assert built[0] == built[1]
    return contents[0]


def labels(rows: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Each value's labels from level 1 up."""
    height = max(int(name[1:]) for name in rows[0] if name[0] == "l" and name[1:].isdigit()) if rows else 0
    return {row["l0"]: [row[f"l{level}"] for level in range(1, height + 1)] for row in rows}


# --- intervals


def snapped_grid(widths: Sequence[Fraction], low: int, high: int) -> list[list[Fraction]]:
    """Per level the boundaries around `low` to `high`: finer ones stay where the multiple of the width is new."""
    reach = 10 * widths[-1]
    boundary = math.floor((low - reach) / widths[0]) * widths[0]
    finest = []
    while boundary < high + reach:
        finest.append(boundary)
        boundary += widths[0]
    grid = [finest]
    for width in widths[1:]:
        grid.append([b for a, b in pairwise(grid[-1]) if a // width != b // width])
    return grid


def expected_bounds(value: Fraction, origin: Fraction, grid: list[list[Fraction]]) -> list[tuple[Fraction, Fraction]]:
    return [
        (
            origin + max(b for b in boundaries if b <= value - origin),
            origin + min(b for b in boundaries if b > value - origin),
        )
        for boundaries in grid
    ]


def digits(number: Fraction) -> str:
    text = format(Decimal(number.numerator) / Decimal(number.denominator), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


@SETTINGS
@given(
    type_name=st.sampled_from(["BIGINT", "DECIMAL(12, 2)", "DOUBLE PRECISION"]),
    cents=st.sets(st.integers(-5000, 5000), max_size=12),
    widths=st.sets(st.integers(1, 700), min_size=1, max_size=4),
    unit=st.sampled_from([1, Decimal("0.1"), Decimal("0.25")]),
    origin=st.sampled_from([0, 3, -7, 0.5]),
)
def test_intervals_nest_and_hold_their_values(
    engines: Any, type_name: str, cents: set[int], widths: set[int], unit: Decimal, origin: float
) -> None:
    exact = sorted(Fraction(str(unit)) * width for width in widths)
    spec = tuple(int(width) if width.denominator == 1 else float(width) for width in exact)
    values = sorted(cents) if type_name == "BIGINT" else [Decimal(cent) / 100 for cent in sorted(cents)]
    stored = [float(value) for value in values] if type_name.startswith("DOUBLE") else values
    rows = build_on_both(engines, type_name, stored, intervals=spec, origin=origin)
    grid = snapped_grid(exact, -5010, 5010)
    assert len(rows) == len(values)
    for row, value in zip(rows, values, strict=True):
        for level, bounds in enumerate(expected_bounds(Fraction(value), Fraction(str(origin)), grid), start=1):
            assert row[f"l{level}"] == f"[{digits(bounds[0])}-{digits(bounds[1])})"
            assert (Fraction(str(row[f"lower{level}"])), Fraction(str(row[f"upper{level}"]))) == bounds


def test_intervals_at_the_ends_of_bigint(engines: Any) -> None:
    rows = build_on_both(engines, "BIGINT", [-(2**63), -1, 0, 2**63 - 1], intervals=[7, 1000])
    assert labels(rows)[str(2**63 - 1)][0] == "[9223372036854775807-9223372036854775814)"
    assert labels(rows)["-1"][:2] == ["[-7-0)", "[-994-0)"]  # -1000 is no multiple of 7; the next boundary is


def test_intervals_of_floats_that_are_no_numbers(engines: Any) -> None:
    values = [math.nan, math.inf, -math.inf, 0.3, 1e300, -1e300, -0.05, 5e-324]
    rows = build_on_both(engines, "DOUBLE PRECISION", values, intervals=[0.1, 1])
    assert [row["l2"] for row in rows] == [
        "-Infinity",
        "(-Infinity--450359962737049.6]",
        "[-1-0)",
        "[0-1)",
        "[0-1)",
        "[450359962737049.6-Infinity)",
        "Infinity",
        "NaN",
    ]
    assert [row["l1"] for row in rows][2:5] == ["[-0.1-0)", "[0-0.1)", "[0.3-0.4)"]


def test_wide_decimals_and_wide_intervals(engines: Any) -> None:
    values = [Decimal("-99999999999999999999999999.99"), Decimal("0.01"), Decimal("99999999999999999999999999.99")]
    rows = build_on_both(engines, "DECIMAL(28, 2)", values, intervals=[0.5, 10**24])
    assert [row["l1"] for row in rows][2] == "[99999999999999999999999999.5-100000000000000000000000000)"
    assert [row["l2"] for row in rows][1] == "[0-1000000000000000000000000)"
    rows = build_on_both(engines, "DOUBLE PRECISION", [1e21, -1e21, 1.0], intervals=[10**20])
    assert [row["l1"] for row in rows][2] == "[1000000000000000000000-1100000000000000000000)"


@pytest.mark.parametrize(("widths", "origin"), [([1e-30], 0), ([10**37], 0), ([5], 10**37), (range(101, 112), 0)])
def test_intervals_that_cannot_be_counted_are_refused(widths: Sequence[float], origin: int) -> None:
    column = Column("income", "BIGINT", Kind.INTEGER)
    (problem,) = hierarchy_problems(Hierarchy(intervals=tuple(widths), origin=origin), column)
    assert "'income'" in problem


def test_decimals_of_postgres_that_are_no_numbers(engines: Any) -> None:
    _, postgres = engines
    values = [Decimal(text) for text in ("NaN", "Infinity", "-Infinity", "1e400", "1.5")]
    rows = content(postgres, build(postgres, "NUMERIC", values, intervals=[0.5]))
    above = f"[1{'0' * 36}-Infinity)"
    assert [row["l1"] for row in rows] == ["-Infinity", "[1.5-2)", above, "Infinity", "NaN"]


def test_integers_of_duckdb_beyond_64_bits(engines: Any) -> None:
    duckdb, _ = engines
    rows = content(duckdb, build(duckdb, "UHUGEINT", [2**128 - 1, 10**36, 5], intervals=[10]))
    assert [row["l1"] for row in rows] == ["[0-10)", f"[1{'0' * 36}-1{'0' * 34}10)", f"[1{'0' * 37}-Infinity)"]


def test_decimals_with_too_many_places_are_refused(engine: Engine) -> None:
    with pytest.raises(PolicyError, match=r"too few for .*38,\s*30.*; cast it in a view"):
        build(engine, "DECIMAL(38, 30)", [Decimal("1.5")], intervals=[5])


# --- masks


@SETTINGS
@given(
    side=st.sampled_from(["left", "right"]),
    values=st.sets(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6), max_size=12),
)
def test_masks_replace_characters_from_one_side(engines: Any, side: str, values: set[str]) -> None:
    rows = build_on_both(engines, "TEXT", sorted(values), mask=side)
    height = max([1, *map(len, values)])
    for value, masks in labels(rows).items():
        for level, mask in enumerate(masks[:-1], start=1):
            kept = height - level
            stars = "*" * level
            assert mask == (value[:kept] + stars if side == "right" else stars + value[-kept:])


def test_masks_of_numbers_and_uuids(engines: Any) -> None:
    rows = build_on_both(engines, "INTEGER", [12345, -7, 12399, 0], mask="right")
    assert labels(rows)["12345"] == ["1234*", "123**", "12***", "1****", "*"]
    rows = build_on_both(engines, "UUID", ["00000000-0000-0000-0000-00000000000a"], mask="left")
    assert len(labels(rows)["00000000-0000-0000-0000-00000000000a"]) == 36


def test_a_mask_of_a_very_long_value_is_refused(engine: Engine) -> None:
    with pytest.raises(PolicyError, match=r"1048576 characters.*at most 64.*csv, mapping or suppress"):
        build(engine, "TEXT", ["x" * 2**20, "y"], mask="right")


# --- dates


def expected_dates(day: datetime.date) -> dict[str, str]:
    week = day.isocalendar()
    return {
        "day": day.isoformat(),
        "week": f"{week.year:04}-W{week.week:02}",
        "month": f"{day.year:04}-{day.month:02}",
        "quarter": f"{day.year:04}-Q{(day.month + 2) // 3}",
        "year": f"{day.year:04}",
        "decade": f"{day.year // 10 * 10:04}s",
    }


@SETTINGS
@given(
    type_name=st.sampled_from(["DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE"]),
    values=st.sets(st.datetimes(datetime.datetime(1, 1, 3), datetime.datetime(9998, 12, 30)), max_size=8),
    spec=st.one_of(
        st.sets(st.sampled_from(["day", "month", "quarter", "year", "decade"]), min_size=1),
        st.just({"week"}),
        st.just({"day", "week"}),
    ),
)
def test_dates_fall_into_their_periods(
    engines: Any, type_name: str, values: set[datetime.datetime], spec: set[str]
) -> None:
    order = [level for level in ("day", "week", "month", "quarter", "year", "decade") if level in spec]
    moments: list[Any] = sorted({value.date() for value in values} if type_name == "DATE" else values)
    zone = datetime.timezone(datetime.timedelta(hours=5, minutes=30))
    stored = [moment.replace(tzinfo=zone) for moment in moments] if type_name.endswith("ZONE") else moments
    rows = build_on_both(engines, type_name, stored, date=tuple(order))
    for row, moment in zip(rows, stored, strict=True):
        utc = moment.astimezone(datetime.UTC) if type_name.endswith("ZONE") else moment
        day = utc if type_name == "DATE" else utc.date()
        for level, name in enumerate(order, start=1):
            assert row[f"l{level}"] == expected_dates(day)[name]
            assert row[f"lower{level}"] <= day.isoformat() < row[f"upper{level}"]
            if level > 1:
                assert row[f"lower{level}"] <= row[f"lower{level - 1}"]
                assert row[f"upper{level}"] >= row[f"upper{level - 1}"]


def test_dates_outside_four_digit_years(engines: Any) -> None:
    values = ["infinity", "-infinity", "0001-01-01", "0009-12-31", "9999-12-31", "10000-01-01"]
    rows = build_on_both(engines, "DATE", values, date=("month", "decade"))
    assert [row["l2"] for row in rows] == ["before 0001", "0000s", "0000s", "9990s", "after 9999", "after 9999"]
    assert [row["lower2"] for row in rows][1:3] == ["0001-01-01", "0001-01-01"]
    assert [row["upper2"] for row in rows][1:4] == ["0010-01-01", "0010-01-01", "10000-01-01"]


def test_timestamps_of_nanoseconds(engines: Any) -> None:
    duckdb, _ = engines
    values = [datetime.datetime(1969, 12, 31, 23, 59), datetime.datetime(2262, 4, 11)]
    rows = content(duckdb, build(duckdb, "TIMESTAMP_NS", values, date=("month",)))
    assert [row["l1"] for row in rows] == ["1969-12", "2262-04"]


def test_weeks_do_not_nest_in_months(engine: Engine) -> None:
    days = ["2020-01-31", "2020-02-01", "2020-03-10"]
    with pytest.raises(PolicyError, match=r"two months.*leave week or month out.*concerns 1 weeks"):
        build(engine, "DATE", days, date=("day", "week", "month"))
    with pytest.raises(PolicyError, match=r"two decades.*concerns 0 weeks"):
        build(engine, "DATE", days, date=("week", "decade"))
    assert left_behind(engine) == []


def test_kinds_that_do_not_fit_the_column_are_refused(engine: Engine) -> None:
    with pytest.raises(PolicyError, match="'the \"column\"': intervals need a numeric column"):
        build(engine, "TEXT", ["a"], intervals=[5])
    with pytest.raises(PolicyError, match="date needs a date or timestamp"):
        build(engine, "INTEGER", [1], date=("year",))


# --- taxonomies


def taxonomy(directory: Path, text: str, encoding: str = "utf-8") -> dict[str, Any]:
    (directory / "tree.csv").write_bytes(text.encode(encoding))
    return {"directory": directory, "csv": "tree.csv"}


def test_a_taxonomy_keeps_the_order_of_its_file(engines: Any, tmp_path: Path) -> None:
    text = 'z;Low;*\r\n"semi;colon";High;*\r\na;Low;*\r\n"q""uote\nline";High;*\r\nabsent;Other;*\r\n'
    rows = build_on_both(
        engines, "TEXT", ["a", "z", "semi;colon", 'q"uote\nline'], **taxonomy(tmp_path, text, "utf-8-sig")
    )
    assert [(row["l0"], row["l1"], row["code"]) for row in rows] == [
        ("z", "Low", 2),
        ("a", "Low", 3),
        ("semi;colon", "High", 4),
        ('q"uote\nline', "High", 5),
    ]


@pytest.mark.parametrize("separator", [";", "\t", ","])
def test_separators_are_found_and_a_root_is_added(engines: Any, tmp_path: Path, separator: str) -> None:
    text = f"1{separator}odd\n2{separator}even\n\n10{separator}even\n"
    rows = build_on_both(engines, "INTEGER", [10, 2, 1], **taxonomy(tmp_path, text))
    assert labels(rows) == {"1": ["odd", "*"], "2": ["even", "*"], "10": ["even", "*"]}


def test_a_last_level_with_one_group_is_the_root(engines: Any) -> None:
    rows = build_on_both(engines, "TEXT", ["a", "b"], mapping={"a": ("X", "all"), "b": ("Y", "all")})
    assert labels(rows) == {"a": ["X", "*"], "b": ["Y", "*"]}


def test_unknown_values_have_a_group_under_the_root(engines: Any) -> None:
    mapping = {"b": ("X", "P"), "a": ("Y", "P"), "c": ("Z", "Q")}
    rows = build_on_both(engines, "TEXT", ["a", "b", "c", "zz", ""], mapping=mapping, unknown="*")
    assert [(row["l0"], row["l1"], row["l2"], row["g2"]) for row in rows] == [
        ("b", "X", "P", 1),
        ("a", "Y", "P", 1),
        ("c", "Z", "Q", 2),
        ("", "*", "*", 3),
        ("zz", "*", "*", 3),
    ]


def test_values_that_a_taxonomy_lacks_are_counted_not_named(engine: Engine) -> None:
    with pytest.raises(PolicyError) as caught:
        build(engine, "TEXT", ["a", "secret", "hidden"], mapping={"a": ("X",), "b": ("Y",)})
    assert "lacks 2 of the distinct values" in str(caught.value)
    assert 'unknown: "*"' in str(caught.value)
    assert "secret" not in str(caught.value)
    assert left_behind(engine) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a;X;*\nb;Y\n", r"line 2 .*has 1 levels where those before have 2"),
        ('"a\nb";X;*\nb;Y\n', r"line 3 .*has 1 levels"),
        ("a;X;*\nb;Y;*\na;Y;*\n", r"line 3 .*another path"),
        ("a;X;*\nb;;*\n", r"line 2 .*empty label"),
        ("a;X\x00;*\n", r"line 1 .*NUL"),
        ("", r"is empty"),
        ("a;X;P;*\nb;X;Q;*\nc;Y;P;*\nd;Z;P;*\ne;Z;Q;*\n", r"do not nest.*2 of level 1 in level 2"),
    ],
)
def test_bad_files_are_refused_with_their_line(engine: Engine, tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        build(engine, "TEXT", ["a"], **taxonomy(tmp_path, text))


def test_files_that_cannot_be_read_are_refused(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"'missing\.csv' can't be read"):
        build(engine, "TEXT", ["a"], tmp_path, csv="missing.csv")
    with pytest.raises(PolicyError, match="not UTF-8"):
        build(engine, "TEXT", ["a"], **taxonomy(tmp_path, "é;X;*\n", "latin-1"))


def test_a_repeated_line_counts_once(engines: Any, tmp_path: Path) -> None:
    rows = build_on_both(engines, "TEXT", ["a", "b"], **taxonomy(tmp_path, "a;X;*\nb;Y;*\na;X;*\n"))
    assert len(rows) == 2


def test_a_value_of_a_megabyte(engines: Any, tmp_path: Path) -> None:
    long = "é" * 2**20
    rows = build_on_both(engines, "TEXT", [long, "b"], **taxonomy(tmp_path, f"{long};X;*\nb;Y;*\n"))
    assert labels(rows)[long] == ["X", "*"]


def test_a_taxonomy_of_an_enumeration(engines: Any) -> None:
    for engine in engines:
        sql(engine, "DROP TYPE IF EXISTS mood")
        sql(engine, "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')")
    rows = build_on_both(engines, "mood", ["ok", "happy", "sad"], suppress=True)
    assert list(labels(rows)) == ["sad", "ok", "happy"]
    rows = build_on_both(engines, "mood", ["ok", "happy", "sad"], mapping={"happy": "up", "sad": "down", "ok": "up"})
    assert list(labels(rows)) == ["happy", "ok", "sad"]
    for engine in engines:
        drop(engine, VALUES, TABLE)


# --- all kinds


def left_behind(engine: Engine) -> list[str]:
    """Tables other than the values."""
    return [relation.name for relation in engine.relations() if relation.name not in (VALUES.name, TABLE.name)]


CASES: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("TEXT", ["b", "a", ""], {"suppress": True}),
    ("BOOLEAN", [True, False], {"suppress": True}),
    ("INTEGER", [5, 17, -3], {"intervals": (5, 20)}),
    ("TEXT", ["ab", "abc", "b"], {"mask": "left"}),
    ("DATE", ["2020-02-29", "1969-12-31"], {"date": ("week",)}),
    ("TEXT", ["a", "b"], {"mapping": {"b": ("X",), "a": ("Y",)}}),
]


@pytest.mark.parametrize(("type_name", "values", "spec"), CASES)
def test_a_column_without_values(engines: Any, type_name: str, values: list[Any], spec: dict[str, Any]) -> None:
    del values
    assert build_on_both(engines, type_name, [], **spec) == []


@pytest.mark.parametrize(("type_name", "values", "spec"), CASES)
def test_no_work_table_stays(engine: Engine, type_name: str, values: list[Any], spec: dict[str, Any]) -> None:
    build(engine, type_name, values, **spec)
    assert left_behind(engine) == []


@SETTINGS
@given(
    values=st.sets(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=4), min_size=1, max_size=9),
    side=st.sampled_from(["left", "right"]),
)
def test_what_is_exported_is_imported_again(
    engines: Any, tmp_path_factory: pytest.TempPathFactory, values: set[str], side: str
) -> None:
    duckdb, _ = engines
    before = build(duckdb, "TEXT", sorted(values), mask=side)
    rows = content(duckdb, before)
    text = "".join(export_csv(duckdb, before))
    directory = tmp_path_factory.mktemp("export")
    after = build_on_both(engines, "TEXT", sorted(values), **taxonomy(directory, text))
    assert after == rows


@pytest.mark.parametrize(("type_name", "values", "spec"), CASES)
def test_every_kind_exports(
    engines: Any, tmp_path: Path, type_name: str, values: list[Any], spec: dict[str, Any]
) -> None:
    duckdb, _ = engines
    hierarchy = build(duckdb, type_name, values, **spec)
    rows = content(duckdb, hierarchy)
    text = "".join(export_csv(duckdb, hierarchy))
    again = build_on_both(engines, type_name, values, **taxonomy(tmp_path, text))
    assert again == [{name: row[name] for name in row if not name.startswith(("lower", "upper"))} for row in rows]


def test_a_summary_shows_groups_and_labels(engine: Engine) -> None:
    hierarchy = build(engine, "INTEGER", range(0, 40, 2), intervals=(5, 20))
    summary = show(engine, hierarchy, limit=3)
    assert (summary.height, summary.leaves, summary.bits) == (3, 20, hierarchy.shifts[-1])
    assert [(level.level, level.groups, level.labels) for level in summary.levels] == [
        (1, 8, ("[0-5)", "[5-10)", "[10-15)")),
        (2, 2, ("[0-20)", "[20-40)")),
        (3, 1, ("*",)),
    ]


def test_codes_that_would_be_too_long_are_refused(engine: Engine) -> None:
    # 64 levels, with two groups in one group at each
    values = ["0" * i + "1" * (64 - i) for i in range(65)]
    with pytest.raises(PolicyError, match=r"need \d\d bits, and 62 are there; use fewer levels"):
        build(engine, "TEXT", values, mask="right")


@pytest.mark.parametrize("spec", [{"intervals": (5, 20)}, {"mask": "right"}, {"suppress": True}])
def test_statements_do_not_depend_on_the_values(engine: Engine, spec: dict[str, Any]) -> None:
    counts = []
    for number in (3, 300):
        heard: list[str] = []
        engine.listener = lambda statement, *_, heard=heard: heard.append(statement.name)
        build(engine, "INTEGER", range(100, 100 + number), **spec)
        counts.append(sum(name.startswith("hierarchies/") for name in heard))
    assert counts[0] == counts[1] <= 12


@pytest.mark.parametrize(("type_name", "values", "spec"), CASES)
def test_every_statement_parses(engine: Engine, type_name: str, values: list[Any], spec: dict[str, Any]) -> None:
    heard: list[Statement] = []
    engine.listener = lambda statement, *_: heard.append(statement)
    show(engine, build(engine, type_name, values, **spec))
    for statement in heard:
        if statement.name.startswith("hierarchies/"):
            assert len(sqlglot.parse(statement.text, dialect=engine.dialect)) == 1
            assert len(statement.text.splitlines()) < 60


def test_a_table_that_exists_is_an_error_of_the_engine(engines: Any) -> None:
    _, postgres = engines
    build(postgres, "TEXT", ["a"], suppress=True)
    with pytest.raises(EngineError):
        build_hierarchy(postgres, Hierarchy(suppress=True), Column("c", "text", Kind.TEXT), VALUES, TABLE)
    assert left_behind(postgres) == []


# --- the Adult data


ADULT = DATA / "adult"


@pytest.mark.skipif(not ADULT.is_dir(), reason=f"no Adult data in {ADULT}: set SQLANON_TEST_DATA")
def test_adult_hierarchies(engines: Any) -> None:
    duckdb, _ = engines
    source = (ADULT / "adult.csv").read_text().splitlines()
    names = source[0].split(";")
    rows = [line.split(";") for line in source[1:]]
    for number, name in enumerate(names):
        file = f"adult_hierarchy_{name}.csv"
        values = {row[number] for row in rows}
        type_name = "INTEGER" if name == "age" else "TEXT"
        built = build_on_both(engines, type_name, sorted(values), directory=ADULT, csv=file)
        given_paths = dict(line.split(";", 1) for line in (ADULT / file).read_text().splitlines())
        assert {value: ";".join(path) for value, path in labels(built).items()} == {
            value: given_paths[value] for value in values
        }
        assert duckdb.columns(TABLE)[0].name == Identifier("value").name
