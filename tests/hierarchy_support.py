"""Hierarchies built on both engines, and what must be true of every one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.hierarchies import HierarchyTable, build_hierarchy
from sqlanon.hierarchies.inline import has_keys, join_labels
from sqlanon.policy import Hierarchy
from sqlanon.sql import Identifier, Relation, Statement
from sqlanon.verification.policy_labels import Labelled, Ladder, count_untrue_labels, load_lines
from tests.random_cases import many

VALUES = Relation('the "values". {{ x }} %s')
TABLE = Relation("Größe :x")
SETTINGS = settings(max_examples=many(7), deadline=None, suppress_health_check=list(HealthCheck))


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
    dates = {column.name for column in engine.columns(hierarchy.stored) if column.kind is Kind.DATE}
    columns = [f"CAST({name} AS VARCHAR) AS {name}" if name in dates else name for name in (*names, *bounds)]
    table = engine.traits.renderer().written(hierarchy.table)
    rows = engine.fetch(Statement("test", f"SELECT {', '.join(columns)} FROM {table} AS h ORDER BY leaf"))
    return [dict(zip([*names, *bounds], row, strict=True)) for row in rows]


def levels(hierarchy: HierarchyTable, with_leaves: bool = False) -> range:
    return range(0 if with_leaves else 1, hierarchy.height + 1)


def check(hierarchy: HierarchyTable, rows: list[dict[str, Any]]) -> None:
    """Check the properties that every dimension table has."""
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
    for engine, hierarchy in zip(engines, built, strict=True):
        assert_verified_without_the_table(engine, hierarchy, *arguments[2:], **spec)
    return contents[0]


def assert_verified_without_the_table(
    engine: Engine, hierarchy: HierarchyTable, directory: Path | None = None, **spec: Any
) -> None:
    """Verification takes each value's labels for true, at their own level alone, and no label of another value."""
    witness, lines = Relation("witness of labels"), Relation("lines of labels")
    (column,) = (one for one in engine.columns(hierarchy.stored) if one.name == "value")
    policy = Hierarchy(**spec)
    if policy.mask is not None and policy.length is None:
        policy = policy.model_copy(update={"length": hierarchy.height})
    ladder = load_lines(engine, Ladder(policy), column, directory, lines)
    every = levels(hierarchy, with_leaves=True)
    labelled = Labelled(witness, Column("r0", column.type, column.kind), "r0", "c0", may_be_starred=False)

    def untrue(shown: range, of: str, by: Ladder = ladder) -> tuple[int, int]:
        """The rows that verification refuses, of values with labels of these levels; those that it has to refuse."""
        own = ", ".join(f"t.l{level}" for level in every if by.shows(level))
        table = engine.traits.renderer().written(hierarchy.table)
        other = f"JOIN {table} AS u ON u.leaf = t.leaf % {hierarchy.leaves} + 1"
        texts = " UNION ALL ".join(
            f"SELECT t.value AS r0, {of}.l{level} AS c0, {of}.l{level} NOT IN ({own}) AS wrong"
            f" FROM {table} AS t {other}"
            for level in shown
        )
        drop(engine, witness)
        sql(engine, f"CREATE TABLE {witness} AS {texts}")
        ((wrong,),) = engine.fetch(Statement("test", f"SELECT count(*) FROM {witness} WHERE wrong"))
        return count_untrue_labels(engine, labelled, by), int(wrong)

    assert untrue(every, "t") == (0, 0)
    found, wrong = untrue(every, "u")
    assert found == wrong
    middle = hierarchy.height // 2
    found, wrong = untrue(every, "t", replace(ladder, levels=frozenset({middle})))
    assert found == wrong
    drop(engine, witness, lines)


def assert_labels_without_the_table(engine: Engine, spec: Hierarchy) -> None:
    """Of the values that were built last: labels by expressions are the table's, and keys, if any, tell them apart."""
    (column,) = engine.columns(VALUES)
    key = "h.k{}" if has_keys(spec, column) else "h.l{}"
    value, alias = Markup("x.value"), Identifier("h")
    joined = engine.traits.renderer().written(join_labels(engine.render, spec, column, value, value, alias, keyed=True))
    for level in range(1, len(spec.intervals or spec.date or ()) + 1):
        names = f"t.l{level}, h.l{level}, CAST({key.format(level)} AS VARCHAR)"
        select = f"SELECT {names} FROM {VALUES} AS x {joined} JOIN {TABLE} AS t ON t.value = x.value"
        rows = engine.fetch(Statement("test", select))
        assert all(label == reckoned for label, reckoned, _ in rows)
        assert len({label for label, _, _ in rows}) == len({key for *_, key in rows}) == len({*rows})
        assert all(key is not None for *_, key in rows)


def labels(rows: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Each value's labels from level 1 up."""
    height = max(int(name[1:]) for name in rows[0] if name[0] == "l" and name[1:].isdigit()) if rows else 0
    return {row["l0"]: [row[f"l{level}"] for level in range(1, height + 1)] for row in rows}


def taxonomy(directory: Path, text: str, encoding: str = "utf-8") -> dict[str, Any]:
    (directory / "tree.csv").write_bytes(text.encode(encoding))
    return {"directory": directory, "csv": "tree.csv"}


def left_behind(engine: Engine) -> list[str]:
    """Tables other than the values, and than what a session of PostgreSQL keeps from the server's log."""
    known = (VALUES.name, TABLE.name, "sqlanon_private")
    return [relation.name for relation in engine.relations() if relation.name not in known]
