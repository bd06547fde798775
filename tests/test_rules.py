"""Rules over the whole domain: they partition it, and recode their own source as released, and new rows alike."""

from __future__ import annotations

import datetime
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from sqlanon.catalog import RulesKind
from sqlanon.engines import connect
from sqlanon.errors import VerificationError
from sqlanon.releases.rules.box_labels import _Temporary
from sqlanon.releases.rules.build_rules import require_partition
from sqlanon.releases.rules.store_rules import NAMES, RuleTables, StoredRules
from sqlanon.sql import Relation
from tests.methods.partitioning.mondrian_oracle import FLAVOURS, Attribute, order_of, satisfies
from tests.random_cases import many
from tests.rules_support import CODED, CODED_ROLES, GENERALIZATIONS, apply, classes, coded, listed, opened, recoded
from tests.run_support import Database, Row, anonymize

pytestmark = pytest.mark.slow

FEW = settings(
    max_examples=many(2),
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


# --- random tables

_OTHERS = {"s": "VARCHAR(1)", "id": "INTEGER"}
_MORE: dict[str, tuple[Any, ...]] = {
    "INTEGER": (-1000, 4, 5, 20, 10**6),
    "BIGINT": (5, -(2**62)),
    "VARCHAR(9)": ("", "C", "zz", "ab", "*"),
}


@st.composite
def cases(draw: st.DrawFn) -> tuple[tuple[Attribute, ...], list[Row], list[Row], int]:
    """Attributes, source rows `(q0, …, s, id)`, new rows, and k."""
    flavours = draw(st.lists(st.sampled_from(FLAVOURS), min_size=1, max_size=3))

    def rows(least: int, pools: Sequence[Sequence[Any]]) -> list[Row]:
        cells = st.tuples(*(st.sampled_from(pool) for pool in pools), st.sampled_from("xyz"))
        return [(*row, place) for place, row in enumerate(draw(st.lists(cells, min_size=least, max_size=30)))]

    seen = [draw(st.lists(st.sampled_from(a.pool), min_size=1, max_size=9)) for a in flavours]
    wider = [(*a.pool, *(_MORE.get(a.type, ()) if a.hierarchy is None else ())) for a in flavours]
    source = rows(2, seen)
    return tuple(flavours), source, rows(3, wider), draw(st.integers(1, min(3, len(source))))


@FEW
@given(case=cases())
def test_rules_recode_any_rows_alike_on_both_engines(
    databases: tuple[Database, Database], case: tuple[tuple[Attribute, ...], list[Row], list[Row], int]
) -> None:
    attributes, source, new, k = case
    privacy = [{"model": "k-anonymity", "k": k}]
    found = [recoded(d, attributes, source, new, _OTHERS, privacy=privacy) for d in databases]
    assert found[0] == found[1], "the engines differ"
    note(f"{found[0].rules}")
    width = len(found[0].released[0]) - len(_OTHERS)
    released, again, newer = (classes(rows or [], width) for rows in found[0][1:])
    assert released == again, "the source is divided otherwise than it was released"
    members = {row[-1]: row for row in new}
    for ids in newer:
        assert satisfies(privacy, [members[n] for n in ids], new)


# --- one rule for every row

_COLUMNS = {"n": "INTEGER", "t": "VARCHAR(9)", "d": "DATE", "id": "INTEGER"}
_ROLES = {"n": "quasi-identifier", "t": "quasi-identifier", "d": "quasi-identifier", "id": "insensitive"}
_DAY = datetime.date(2024, 1, 1)


def _row(draw: Callable[[int], int], place: int, wide: int) -> Row:
    """A row; `wide` ones have values that others don't."""
    number = draw(20 + 10 * wide) - 5 * wide
    word = None if draw(9) == 0 else "abcdefg"[draw(5)] * (1 + draw(1 + wide))
    return (number, word, _DAY + datetime.timedelta(days=draw(40 + 40 * wide) - 20 * wide), place)


def _table(seed: int, rows: int, wide: int) -> list[Row]:
    source = random.Random(seed)
    return [_row(lambda below: source.randrange(max(1, below)), place, wide) for place in range(rows)]


@pytest.mark.either_engine
def test_every_new_row_falls_under_one_rule_and_shows_it(database: Database) -> None:
    table, newer = database.create(_COLUMNS, _table(1, 120, 0)), database.create(_COLUMNS, _table(1, 200, 1))
    run = anonymize(database.policy(table, _ROLES, privacy=[{"model": "k-anonymity", "k": 4}])).run
    with opened(database, run) as (engine, stored):
        assert stored.tables is not None
        leaves = engine.query("releases/rules/read_table", table=stored.tables.leaves)
        cuts = _cuts(engine.query("releases/rules/read_segments", segments=stored.tables.segments))
        known = {value for _, _, _, value in engine.query("releases/rules/read_table", table=stored.tables.domain)}
    rule: dict[int, tuple[Any, ...]] = {}
    for row in database.sql(f"SELECT * FROM {newer}"):
        point = [
            sum(order_of(cut) <= order_of(v) for cut in cuts[i]) + 1 if v is not None else 0
            for i, v in enumerate(row[:3])
        ]
        inside = [
            leaf
            for leaf, _, *box in leaves
            if all(lo <= p <= hi for p, lo, hi in zip(point, box[::2], box[1::2], strict=True))
        ]
        assert len(inside) == 1, "a gap or an overlap"
        rule[row[-1]] = (inside[0], row[1] is not None and row[1] not in known)
    apply(database, run, newer, f"{newer}_r")
    for ids in classes(database.sql(f"SELECT * FROM {newer}_r"), 3):
        assert len({rule[n] for n in ids}) == 1, "rows of several rules look alike"
        assert sum(rule[n] == rule[ids[0]] for n in rule) == len(ids), "rows of a rule look different"


def _cuts(segments: Sequence[Row]) -> dict[int, list[Any]]:
    """The cuts of each attribute, as values."""
    read: tuple[Callable[[str], Any], ...] = (int, str, datetime.date.fromisoformat)
    found: dict[int, list[Any]] = defaultdict(list)
    for attribute, _, _, _, value in segments:
        if value is not None:
            found[attribute].append(read[attribute](value))
    return found


# --- the check of gaps and overlaps

_NESTED = {"n": "INTEGER", "z": "VARCHAR(3)", "id": "INTEGER"}
_NESTED_ROLES = {
    "n": "quasi-identifier",
    "z": {"role": "quasi-identifier", "hierarchy": {"mask": "right"}},
    "id": "insensitive",
}
_LAST = "leaf = (SELECT max(leaf) FROM leaves)"
_EMPTY = "leaf = (SELECT min(leaf) FROM leaves)"
_CORRUPTIONS = {
    "a bound moved down": f"UPDATE leaves SET hi_0 = hi_0 - 1 WHERE {_LAST}",
    "a bound moved up": "UPDATE leaves SET hi_0 = hi_0 + 1 WHERE leaf = (SELECT min(leaf) FROM leaves WHERE lo_0 > 0)",
    "a bound of a group moved": f"UPDATE leaves SET lo_1 = lo_1 + 1 WHERE {_EMPTY}",
    "an empty rule lost": f"DELETE FROM leaves WHERE {_EMPTY}",
    "a rule lost": f"DELETE FROM leaves WHERE {_LAST}",
    "a rule twice": f"INSERT INTO leaves SELECT * FROM leaves WHERE {_LAST}",
    "a rule beside the tree": f"INSERT INTO leaves SELECT 9999999, n, lo_0, hi_0, lo_1, hi_1 FROM leaves WHERE {_LAST}",
    "a node lost": "DELETE FROM nodes WHERE node = (SELECT max(node) FROM nodes WHERE depth = 1)",
    "a node elsewhere": "UPDATE nodes SET parent = 999999999 WHERE node = (SELECT max(node) FROM nodes)",
    "an unknown bound": f"UPDATE leaves SET lo_0 = NULL WHERE {_LAST}",
}


@pytest.mark.either_engine
def test_the_check_finds_gaps_and_overlaps(database: Database) -> None:
    rows = [(i % 17, str(10 + i % 37) + str(i % 3), i) for i in range(150)]
    k = [{"model": "k-anonymity", "k": 5}]
    run = anonymize(database.policy(database.create(_NESTED, rows), _NESTED_ROLES, privacy=k)).run
    with opened(database, run) as (_, stored):
        assert stored.tables is not None
    assert any(rule.leaf < 0 for rule in listed(database, run))
    _copy(database, stored.tables)
    _check(database, stored)
    for what, corruption in _CORRUPTIONS.items():
        database.sql(corruption)
        print(what)
        with pytest.raises(VerificationError, match="do not cover the domain once"):
            _check(database, stored)
        _copy(database, stored.tables)


def _copy(database: Database, tables: RuleTables) -> None:
    for table, name in zip(tables.all, NAMES, strict=True):
        database.sql(f"DROP TABLE IF EXISTS {name}")
        database.sql(f"CREATE TABLE {name} AS SELECT * FROM {table}")


def _check(database: Database, stored: StoredRules) -> None:
    assert stored.tables is not None
    copies = RuleTables.of([Relation(name) for name in NAMES], stored.tables.depth)
    with connect(database.url) as engine:
        require_partition(engine, _Temporary(engine), stored.attributes, copies)


# --- levels and cuts


@pytest.mark.parametrize("name", GENERALIZATIONS)
def test_generalizations_are_rules_too(databases: tuple[Database, Database], name: str) -> None:
    found = []
    for database in databases:
        table, newer = (
            database.create(CODED, coded(3, 120, 60)),
            database.create(CODED, [*coded(4, 150, 20), ("w", "9", "a")]),
        )
        models = [{"model": "k-anonymity", "k": 4}, {"model": "t-closeness", "attribute": "s", "t": 0.5}]
        run = anonymize(database.policy(table, CODED_ROLES, privacy=models, **GENERALIZATIONS[name])).run
        outcome = apply(database, run, table, f"{table}_again")
        assert database.sql(f"SELECT * FROM {table}_again") == database.sql(f"SELECT * FROM {table}_r")
        assert outcome.verified
        assert apply(database, run, newer, f"{newer}_r").verified
        found.append(database.sql(f"SELECT * FROM {newer}_r"))
        with opened(database, run) as (_, stored):
            assert stored.record.kind is (RulesKind.CUTS if name == "top-down" else RulesKind.LEVELS)
    assert found[0] == found[1]


@pytest.mark.either_engine
def test_rules_take_as_many_statements_as_there_are_levels(database: Database) -> None:
    counts = []
    for rows in (100, 800):
        table = database.create(_NESTED, [(i * 7919 % 97, f"{100 + i * 31 % 899}", i) for i in range(rows)])
        run = anonymize(database.policy(table, _NESTED_ROLES, privacy=[{"model": "k-anonymity", "k": rows // 12}])).run
        steps = database.sql("SELECT name FROM sqlanon.steps WHERE run = ? AND name LIKE 'releases/rules/%'", [run])
        (rounds,) = database.sql(
            "SELECT count(*) FROM sqlanon.steps WHERE run = ? AND name = 'algorithms/tree/decide/remember_splits'",
            [run],
        )
        counts.append((len(steps), rounds[0]))
    per_level = [(statements - 20) / rounds for statements, rounds in counts]
    assert max(per_level) <= 12


@pytest.mark.parametrize(
    ("kind", "values"), [("INTEGER", [1, 2, 3, 4]), ("DATE", ["2026-01-01", "2026-03-01"]), ("VARCHAR(3)", ["a", "b"])]
)
def test_rows_may_have_no_value_at_all_where_rules_divide(database: Database, kind: str, values: list[Any]) -> None:
    """Codes of a column of NULL alone take no bits; its rows go where the rules send NULL."""
    columns = {"x": kind, "y": "INTEGER", "s": "VARCHAR(1)"}
    rows = [(value, n, "a") for value in [*values, None] for n in range(6)]
    table = database.create(columns, rows)
    roles = {"x": "quasi-identifier", "y": "quasi-identifier", "s": "sensitive"}
    policy = database.policy(table, roles, privacy=[{"model": "k-anonymity", "k": 3}])
    run = anonymize(policy).run
    of_null: list[set[Row]] = []
    for others in ([], values):
        newer = database.create(columns, [(value, n, "a") for value in [*others, None] for n in range(6)])
        apply(database, run, newer, f"{newer}_r", "suppress")
        shown = {row[:2] for row in database.sql(f"SELECT * FROM {newer}_r")}
        of_null.append({row for row in shown if row[0] is None or "NULL" in row[0]})
    assert of_null[0] == of_null[1] != set()
