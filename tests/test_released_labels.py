"""Labels of a staged release, read back: those that cover the raw values, and those that don't."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from markupsafe import Markup

from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Kind
from sqlanon.policy import Hierarchy, Show
from sqlanon.sql import Relation, Statement, macro
from sqlanon.staging import labels
from sqlanon.values.expressions import text_of
from sqlanon.verification.policy_labels import Ladder, load_lines
from sqlanon.verification.release_checks import (
    Claims,
    ReleasedRegion,
    region_violations,
    regions_contain,
)
from tests.random_cases import many
from tests.test_verify import create

FEW = settings(max_examples=many(8), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


TYPES = {
    Kind.INTEGER: "BIGINT",
    Kind.DECIMAL: "NUMERIC(12,2)",
    Kind.FLOAT: "FLOAT8",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
    Kind.TIMESTAMPTZ: "TIMESTAMP WITH TIME ZONE",
    Kind.TIME: "TIME",
    Kind.TEXT: "TEXT",
    Kind.BOOLEAN: "BOOLEAN",
}


Case = tuple[Kind, Any, str | None]


def with_leaves(engine: Engine, columns: dict[str, str], rows: Sequence[tuple[Any, ...]]) -> Relation:
    """A witness of these rows, in which those of the same cell, the last column, are of one class."""
    leaves = {cell: number for number, cell in enumerate({row[-1] for row in rows})}
    return create(engine, columns | {"leaf": "BIGINT"}, [(*row, leaves[row[-1]]) for row in rows], "witness")


def uncovered(engine: Engine, *cases: Case) -> list[int]:
    """The violations of each case, as the attributes of a witness of one row."""
    columns = {f"r{i}": TYPES[kind] for i, (kind, _, _) in enumerate(cases)} | {
        f"c{i}": "TEXT" for i in range(len(cases))
    }
    row = [raw for _, raw, _ in cases] + [cell for _, _, cell in cases]
    witness = with_leaves(engine, columns, [row])
    raws = engine.columns(witness)[: len(cases)]
    regions = [ReleasedRegion(raw, raw.name, (f"c{i}",)) for i, raw in enumerate(raws)]
    return list(region_violations(engine, Claims(witness, witness), regions))


COVERED = [
    (Kind.INTEGER, 25, "[25-34]"),
    (Kind.INTEGER, 34, "{NULL, 25-34}"),
    (Kind.INTEGER, None, "{NULL, 25-34}"),
    (Kind.INTEGER, None, "{NULL, 25}"),
    (Kind.INTEGER, None, "NULL"),
    (Kind.INTEGER, None, "*"),
    (Kind.INTEGER, -3, "[-5--1]"),
    (Kind.INTEGER, -5, "-5"),
    (Kind.INTEGER, 2**63 - 1, f"[{-(2**63)}-{2**63 - 1}]"),
    (Kind.FLOAT, 1.0, "[-1e-07-2.5e+20]"),
    (Kind.FLOAT, math.inf, "[-Infinity-Infinity]"),
    (Kind.FLOAT, math.nan, "[1.5-NaN]"),
    (Kind.DECIMAL, "12.30", "[-4.00-12.30]"),
    (Kind.DATE, dt.date(1969, 7, 20), "[1969-07-20-1970-01-01]"),
    (Kind.DATE, dt.date(1969, 7, 20), "1969-07-20"),
    (Kind.TIMESTAMP, dt.datetime(2024, 1, 1, 12), "[2024-01-01 12:00:00-2024-01-01 12:00:00.5]"),
    (Kind.TIMESTAMPTZ, dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC), "[2024-01-01 12:00:00+00-2024-01-01 12:30:00+00]"),
    (Kind.TIME, dt.time(8, 30), "[08:00:00-09:00:00.25]"),
    (Kind.TIME, dt.time(8, 30), "{NULL, 08:00:00-09:00:00.25}"),
    (Kind.TIME, None, "{NULL, 08:00:00-09:00:00}"),
    (Kind.BOOLEAN, True, "{false, true}"),
    (Kind.BOOLEAN, None, "{NULL, false}"),
    (Kind.TEXT, "Clerk", "Clerk"),
    (Kind.TEXT, "a-b", "a-b"),
    (Kind.TEXT, "Clerk", "{Clerk, Sales}"),
    (Kind.TEXT, "a, b", '{"a, b", c}'),
    (Kind.TEXT, "a, b", '"a, b"'),
    (Kind.TEXT, 'say "x"', '{"say ""x""", y}'),
    (Kind.TEXT, "NULL", '{"NULL", a}'),
    (Kind.TEXT, "", '{NULL, "", a}'),
    (Kind.TEXT, None, '{NULL, "", a}'),
    (Kind.TEXT, "Bob", '["Aaron"-"Zoe"]'),
    (Kind.TEXT, "", '[""-"Zoe"]'),
    (Kind.TEXT, None, '{NULL, "Aaron"-"Zoe"}'),
    (Kind.TEXT, 'a"-"b', '["a""-""a"-"b"]'),
    (Kind.TEXT, "two\nlines ✂", "{two\nlines ✂, x}"),
    (Kind.TEXT, "*", '"*"'),
    (Kind.TEXT, "anything", "*"),
]


NOT_COVERED = [
    (Kind.INTEGER, 24, "[25-34]"),
    (Kind.TEXT, "a", "{a}"),
    (Kind.INTEGER, 35, "{NULL, 25-34}"),
    (Kind.INTEGER, None, "[25-34]"),
    (Kind.INTEGER, 25, "NULL"),
    (Kind.INTEGER, 25, "25-34"),
    (Kind.INTEGER, 25, "[25]"),
    (Kind.INTEGER, 25, "[25-34"),
    (Kind.INTEGER, None, "{NULL, x}"),
    (Kind.INTEGER, 25, None),
    (Kind.INTEGER, -6, "[-5--1]"),
    (Kind.FLOAT, math.nan, "[1-Infinity]"),
    (Kind.DATE, dt.date(1969, 7, 19), "[1969-07-20-1970-01-01]"),
    (Kind.TIMESTAMPTZ, dt.datetime(2024, 1, 1, 13, tzinfo=dt.UTC), "[2024-01-01 12:00:00+00-2024-01-01 12:30:00+00]"),
    (Kind.TIME, dt.time(8, 30), "08:00:00+01"),
    (Kind.BOOLEAN, True, "{NULL, false}"),
    (Kind.TEXT, "Clerk", "clerk"),
    (Kind.TEXT, None, "{Clerk, Sales}"),
    (Kind.TEXT, "x", '{"p, x, q", r}'),
    (Kind.TEXT, "NULL", "{NULL, a}"),
    (Kind.TEXT, None, '{"NULL", a}'),
    (Kind.TEXT, "a", "{a,b}"),
    (Kind.TEXT, "a", "{a, }"),
    (Kind.TEXT, "a", " a"),
    (Kind.TEXT, "Bob", '["Carl"-"Zoe"]'),
    (Kind.TEXT, "b", '["B"-"Z"]'),
    (Kind.TEXT, None, '["Aaron"-"Zoe"]'),
    (Kind.TEXT, "Bob", "[Aaron-Zoe]"),
]


def test_the_parser(engine: Engine) -> None:
    for expected, cases in ((0, COVERED), (1, NOT_COVERED)):
        found = zip(cases, uncovered(engine, *cases), strict=True)
        assert [case for case, violations in found if violations != expected] == []


texts = st.text(st.sampled_from('ab ,{}[]"*-\nNUL\u00e9'), max_size=6) | st.sampled_from(["NULL", "*"])


@FEW
@given(texts_in=st.lists(texts, max_size=5), other=texts, has_null=st.booleans())
@example(texts_in=["a"], other="a, a", has_null=True)
def test_sets_are_read_as_they_are_written(engine: Engine, texts_in: list[str], other: str, has_null: bool) -> None:
    members = set(texts_in)
    create(engine, {"v": "TEXT"}, [(member,) for member in members], "members")
    v, nulls = Markup("v"), Markup("TRUE" if has_null else "FALSE")
    written = engine.traits.renderer().written
    member, bytewise = map(written, (labels.quote_member(engine.render, v), engine.render.macro("collate", v)))
    ends_of = (Markup(f"{end}({bytewise})") for end in ("min", "max"))
    low, high = (written(labels.quote_member(engine.render, end, True)) for end in ends_of)
    single, none = Markup("m.n = 1"), Markup("m.n = 0")
    set_label = macro("labels.set", Markup("m.listed"), single, Markup("FALSE"), nulls, none)
    interval_label = macro("labels.set", Markup("m.span"), Markup("FALSE"), Markup("TRUE"), nulls, none)
    listed = f"string_agg({member}, ', ' ORDER BY {bytewise})"
    query = f"SELECT {listed} AS listed, count(*) AS n, {low} || '-' || {high} AS span FROM members"
    cells = engine.fetch(
        Statement("test", f"SELECT {written(set_label)}, {written(interval_label)} FROM ({query}) AS m")
    )[0]
    ends = sorted(members, key=str.encode)
    inside = bool(ends) and ends[0].encode() <= other.encode() <= ends[-1].encode()
    for cell, covers_other in zip(cells, (other in members, inside), strict=True):
        cases = [(Kind.TEXT, text, cell) for text in (*ends, None, other)]
        expected = [0] * len(ends) + [int(not has_null and bool(ends)), int(not covers_other)]
        assert uncovered(engine, *cases) == expected, cases


numbers = st.lists(st.one_of(st.floats(-1e300, 1e300), st.sampled_from([0.1, 1e-7, 1e22, math.inf])), max_size=4)


@pytest.mark.either_engine
@FEW
@given(held=numbers, has_null=st.booleans())
def test_intervals_are_read_as_they_are_written(engine: Engine, held: list[float], has_null: bool) -> None:
    create(engine, {"v": "FLOAT8"}, [(number,) for number in held], "numbers")
    written = engine.traits.renderer().written
    ends = [written(text_of(engine.render, Markup(f"{end}(v)"), Kind.FLOAT)) for end in ("min", "max")]
    nulls = Markup("TRUE" if has_null else "FALSE")
    low, high = Markup("m.low"), Markup("m.high")
    label = macro("labels.interval", low, high, Markup("m.low = m.high"), nulls, Markup("m.low IS NULL"))
    query = f"SELECT {written(label)} FROM (SELECT {ends[0]} AS low, {ends[1]} AS high FROM numbers) AS m"
    ((cell,),) = engine.fetch(Statement("test", query))
    cases = [(Kind.FLOAT, number, cell) for number in (*held, math.nan, None)]
    assert uncovered(engine, *cases) == [0] * len(held) + [1, int(not has_null and bool(held))], cases


def test_a_cell_that_misses_some_of_its_rows_counts_these(engine: Engine) -> None:
    rows = [(24, "[25-34]"), (25, "[25-34]"), (34, "[25-34]"), (35, "[25-34]"), (None, "[25-34]"), (None, "[25-34]")]
    rows += [(30, "{NULL, 25-34}"), (None, "{NULL, 25-34}"), (1, None), (None, None), (7, "*"), (None, "*"), (8, "8")]
    rows += [(1, "[1-2]"), (3, "[1-2]"), (4, "[4-5]"), (None, "[4-5]"), (6, "[7-8]"), (8, "[7-8]")]
    witness = with_leaves(engine, {"r0": "INTEGER", "c0": "TEXT"}, rows)
    assert (
        regions_contain(engine, Claims(witness, witness), [ReleasedRegion(engine.columns(witness)[0], "r0", ("c0",))])
        == 9
    )


def test_days_before_the_common_era(engine: Engine) -> None:
    for kind, time in ((Kind.DATE, ""), (Kind.TIMESTAMP, " 12:00:00"), (Kind.TIMESTAMPTZ, " 12:00:00+00")):
        witness = with_leaves(engine, {"r0": TYPES[kind], "c0": "TEXT"}, [])
        day = engine.traits.renderer().written(engine.render.macro("read_day", Markup("v.day")))
        days = f"(VALUES ('0044-03-15{time} BC'), ('0045-03-15{time} BC')) AS v(day)"
        engine.execute(
            Statement("test", f"INSERT INTO {witness} SELECT CAST({day} AS {TYPES[kind]}), NULL, 1 FROM {days}")
        )
        text = engine.traits.renderer().written(text_of(engine.render, Markup("r0"), kind))
        region = ReleasedRegion(engine.columns(witness)[0], "r0", ("c0",))
        older, newer = f"0045-03-15{time} BC", f"0044-03-15{time} BC"
        for cell, violations in (
            (text, 0),
            (f"'[{older}-{newer}]'", 0),
            (f"'[{newer}-{older}]'", 2),
            (f"'{newer}'", 1),
        ):
            engine.execute(Statement("test", f"UPDATE {witness} SET c0 = {cell}"))
            assert regions_contain(engine, Claims(witness, witness), [region]) == violations, cell


def test_hierarchies_and_bounds(engine: Engine) -> None:
    disease_groups = Hierarchy(mapping={"flu": "influenza", "Flu": "influenza", "cold": "other"})
    rows = [
        ("flu", "influenza", 5, 1, 9), ("Flu", "Flu", 5, 5, 5), ("cold", "*", None, 1, 9), (None, "NULL", *[None] * 3),
        ("cold", "influenza", 10, 1, 9), (None, "influenza", 0, None, 9), ("pox", "other", 5, 5, None),
        (None, "*", 5, 1, 9),
    ]  # fmt: skip
    columns = {"r0": "VARCHAR(9)", "c0": "TEXT", "r1": "BIGINT", "c1_min": "BIGINT", "c1_max": "BIGINT"}
    witness = create(engine, columns, rows, "witness")
    disease, _, wage, *_ = engine.columns(witness)
    ladder = load_lines(engine, Ladder(disease_groups), disease, None, Relation("lines"))
    regions = [
        ReleasedRegion(disease, "r0", ("c0",), hierarchy=ladder),
        ReleasedRegion(wage, "r1", ("c1_min", "c1_max"), Show.BOUNDS),
    ]
    assert region_violations(engine, Claims(witness, witness), regions) == (3, 3)
    assert regions_contain(engine, Claims(witness, witness), regions) == 6


def test_bounds_of_groups_exclude_the_upper_one(engine: Engine) -> None:
    rows = [(1, 1, 5), (5, 5, 5), (9, 5, None), (9, None, None), (None, 1, 5), (5, 1, 5), (0, 1, None), (5, None, 5)]
    witness = create(engine, {"r": "BIGINT", "low": "BIGINT", "high": "BIGINT"}, rows, "witness")
    column = engine.columns(witness)[0]
    grouped = ReleasedRegion(column, "r", ("low", "high"), Show.BOUNDS, Ladder(Hierarchy(intervals=(4,), origin=1)))
    assert region_violations(engine, Claims(witness, witness), [grouped]) == (3,)
    assert region_violations(
        engine, Claims(witness, witness), [ReleasedRegion(column, "r", ("low", "high"), Show.BOUNDS)]
    ) == (4,)


def test_ranges(postgres_url: str) -> None:
    with connect(postgres_url) as engine:
        columns = {"r0": "INTEGER", "c0": "INT8RANGE"}
        witness = create(engine, columns, [], "witness")
        values = "(1, '[1,5]'), (6, '[1,5]'), (NULL, '[1,5]'), (3, NULL)"
        engine.execute(Statement("test", f"INSERT INTO {witness} VALUES {values}"))
        assert region_violations(
            engine, Claims(witness, witness), [ReleasedRegion(engine.columns(witness)[0], "r0", ("c0",), Show.RANGE)]
        ) == (2,)


def test_enumerations(engine: Engine) -> None:
    """An interval of an enumeration follows the type's order, not the alphabet."""
    engine.execute(Statement("test", "CREATE TYPE size AS ENUM ('small', 'large', 'huge')"))
    rows = [
        ("large", '["small"-"huge"]'),
        ("small", '["large"-"huge"]'),
        ("huge", "{large, huge}"),
        (None, "{NULL, huge}"),
    ]
    engine.execute(Statement("test", "CREATE TABLE witness (r0 size, c0 TEXT)"))
    for raw, cell in rows:
        literal = "NULL" if raw is None else f"'{raw}'"
        engine.execute(Statement("test", f"INSERT INTO witness VALUES ({literal}, '{cell}')"))
    found = engine.resolve(Relation("witness"))
    assert found is not None
    assert region_violations(
        engine, Claims(found, found), [ReleasedRegion(engine.columns(found)[0], "r0", ("c0",))]
    ) == (1,)
