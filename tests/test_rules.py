"""Rules over the whole domain: they partition it, and recode their own source as released, and new rows alike."""

from __future__ import annotations

import contextlib
import datetime
import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from sqlanon.catalog import Catalog, RulesKind
from sqlanon.engines import connect
from sqlanon.errors import PolicyError, ProtectionError, VerificationError
from sqlanon.outcome import Outcome
from sqlanon.policy_reader import build_policy
from sqlanon.rules import applying
from sqlanon.rules.applying import Application, apply_rules
from sqlanon.rules.checking import require_partition
from sqlanon.rules.listing import Rule, _Temporary, list_rules
from sqlanon.rules.select import rules_select
from sqlanon.rules.store import StoredRules, read_rules
from sqlanon.rules.tables import NAMES, RuleTables
from sqlanon.sql import Relation
from tests.mondrian_oracle import FLAVOURS, Attribute, order_of, satisfies
from tests.run_support import OPTIONS, Database, Row, anonymize, duckdb_url, open_database

FEW = settings(
    max_examples=4,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def apply(
    database: Database, run: str, to: str, out: str, how: applying.OnViolation = "suppress", **more: Any
) -> Outcome:
    """Apply the rules of a run."""
    with connect(database.url) as engine, Catalog.open(engine) as catalog:
        found = catalog.run(run)
    wanted = Application(run, to, out, how, **more)
    return apply_rules(wanted, found, (database.url, "sqlanon"), options=OPTIONS)


@contextlib.contextmanager
def opened(database: Database, run: str) -> Iterator[tuple[Any, StoredRules]]:
    """An engine where the rules of a run are, and the rules."""
    with connect(database.url) as engine, Catalog.open(engine) as catalog:
        yield engine, read_rules(catalog, run)


def listed(database: Database, run: str) -> list[Rule]:
    with opened(database, run) as (engine, stored):
        return list_rules(engine, stored, 100_000, 0)


@pytest.fixture
def databases(tmp_path: Path, postgres_url: str) -> Iterator[tuple[Database, Database]]:
    with contextlib.ExitStack() as stack:
        urls = (duckdb_url(tmp_path / "test.duckdb"), postgres_url)
        yield tuple(stack.enter_context(open_database(url)) for url in urls)  # type: ignore[misc]


# --- random tables

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
    found = [_recoded(database, attributes, source, new, k) for database in databases]
    assert found[0] == found[1], "the engines differ"
    rules, released, again, recoded = found[0]
    note(f"{rules}")
    assert _classes(released) == _classes(again), "the source is divided otherwise than it was released"
    if recoded is not None:
        members = {row[-1]: row for row in new}
        for ids in _classes(recoded):
            assert satisfies([{"model": "k-anonymity", "k": k}], [members[n] for n in ids], new)


def _recoded(
    database: Database, attributes: Sequence[Attribute], source: list[Row], new: list[Row], k: int
) -> tuple[list[Rule], list[Row], list[Row], list[Row] | None]:
    columns = {**{f"q{i}": a.type for i, a in enumerate(attributes)}, "s": "VARCHAR(1)", "id": "INTEGER"}
    roles = {**{f"q{i}": a.policy for i, a in enumerate(attributes)}, "s": "sensitive", "id": "insensitive"}
    table, newer = database.create(columns, source), database.create(columns, new)
    policy = database.policy(table, roles, privacy=[{"model": "k-anonymity", "k": k}])
    run = anonymize(policy).run
    apply(database, run, table, f"{table}_again", "error")
    try:
        apply(database, run, newer, f"{newer}_r")
        recoded = database.sql(f"SELECT * FROM {newer}_r")
    except ProtectionError:
        recoded = None
    released, again = (database.sql(f"SELECT * FROM {t}") for t in (f"{table}_r", f"{table}_again"))
    return listed(database, run), released, again, recoded


def _classes(rows: Sequence[Row]) -> list[list[int]]:
    """The ids of the rows of each class."""
    classes: dict[Row, list[int]] = defaultdict(list)
    for row in rows:
        classes[row[:-2]].append(row[-1])
    return sorted(sorted(ids) for ids in classes.values())


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


def test_every_new_row_falls_under_one_rule_and_shows_it(database: Database) -> None:
    table, newer = database.create(_COLUMNS, _table(1, 120, 0)), database.create(_COLUMNS, _table(1, 200, 1))
    run = anonymize(database.policy(table, _ROLES, privacy=[{"model": "k-anonymity", "k": 4}])).run
    with opened(database, run) as (engine, stored):
        assert stored.tables is not None
        leaves = engine.query("rules/read_table", table=stored.tables.leaves)
        cuts = _cuts(engine.query("rules/read_segments", segments=stored.tables.segments))
        known = {value for _, _, _, value in engine.query("rules/read_table", table=stored.tables.domain)}
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
    for ids in _classes([(*row[:-1], 0, row[-1]) for row in database.sql(f"SELECT * FROM {newer}_r")]):
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

_CODED = {"c": "VARCHAR(3)", "z": "VARCHAR(3)", "s": "VARCHAR(1)"}
_CODED_ROLES = {
    "c": {"role": "quasi-identifier", "hierarchy": {"mapping": {"x": "1", "y": "1", "v": "2", "w": "2"}}},
    "z": {"role": "quasi-identifier", "hierarchy": {"mask": "right"}},
    "s": "sensitive",
}
_GENERALIZATIONS: dict[str, dict[str, Any]] = {
    "top-down": {"algorithm": {"name": "top-down"}},
    "optimal": {"algorithm": {"name": "optimal"}, "suppression": 0.1},
    "starred": {"algorithm": {"name": "incognito"}, "suppression": 0.1, "suppressed": "star"},
    "passes": {"algorithm": {"name": "optimal"}, "suppression": 0.4, "remainder": "recode"},
    "attributes": {"algorithm": {"name": "samarati", "recoding": "attribute-suppression"}, "suppression": 0.3},
}


def _coded(seed: int, rows: int, first: int) -> list[Row]:
    source = random.Random(seed)
    return [
        (
            source.choice(["x", "y", "v", None]),
            f"{source.randint(first, 99)}{source.randint(0, 1)}",
            source.choice("abc"),
        )
        for _ in range(rows)
    ]


@pytest.mark.parametrize("name", _GENERALIZATIONS)
def test_generalizations_are_rules_too(databases: tuple[Database, Database], name: str) -> None:
    found = []
    for database in databases:
        table, newer = (
            database.create(_CODED, _coded(3, 120, 60)),
            database.create(_CODED, [*_coded(4, 150, 20), ("w", "9", "a")]),
        )
        models = [{"model": "k-anonymity", "k": 4}, {"model": "t-closeness", "attribute": "s", "t": 0.5}]
        run = anonymize(database.policy(table, _CODED_ROLES, privacy=models, **_GENERALIZATIONS[name])).run
        outcome = apply(database, run, table, f"{table}_again")
        assert database.sql(f"SELECT * FROM {table}_again") == database.sql(f"SELECT * FROM {table}_r")
        assert outcome.verified
        assert apply(database, run, newer, f"{newer}_r").verified
        found.append(database.sql(f"SELECT * FROM {newer}_r"))
        with opened(database, run) as (_, stored):
            assert stored.record.kind is (RulesKind.CUTS if name == "top-down" else RulesKind.LEVELS)
    assert found[0] == found[1]


# --- what can't be applied, and what is left behind


def _simple(database: Database) -> tuple[str, str]:
    """A run, and its source."""
    table = database.create(_CODED, _coded(1, 60, 10))
    return anonymize(database.policy(table, _CODED_ROLES, privacy=[{"model": "k-anonymity", "k": 3}])).run, table


def test_a_violation_publishes_nothing(database: Database) -> None:
    run, table = _simple(database)
    few = database.create(_CODED, [("x", "100", "a"), ("y", "200", "b"), ("v", "990", "c")])
    before = database.sql(f"SELECT * FROM {table}_r")
    with pytest.raises(ProtectionError, match="--on-violation suppress"):
        apply(database, run, few, f"{table}_r", "error", replace=True)
    assert database.sql(f"SELECT * FROM {table}_r") == before
    assert database.leftovers() == []


def test_suppressed_rows_may_be_starred(database: Database) -> None:
    table = database.create(_CODED, _coded(1, 400, 10))
    policy = database.policy(table, _CODED_ROLES, privacy=[{"model": "k-anonymity", "k": 3}], suppressed="star")
    run = anonymize(policy).run
    newer = database.create(_CODED, _coded(2, 30, 10))
    outcome = apply(database, run, newer, f"{newer}_r")
    rows = database.sql(f"SELECT * FROM {newer}_r")
    assert len(rows) == 30
    assert 0 < outcome.suppressed == sum(row[:2] == ("*", "*") for row in rows) < 30


@pytest.mark.parametrize(
    ("columns", "rows", "problem"),
    [
        ({"c": "VARCHAR(3)", "s": "VARCHAR(1)"}, [("x", "a")] * 9, "attributes.z: .* no such column"),
        ({**_CODED, "more": "INTEGER"}, [("x", "100", "a", 1)] * 9, "without a role: 'more'"),
        ({**_CODED, "z": "INTEGER"}, [("x", 100, "a")] * 9, "Column 'z' holds values of kind integer"),
        (_CODED, [("new", "100", "a")] * 9, "'c'"),
    ],
    ids=["missing", "odd", "other type", "unknown to the hierarchy"],
)
def test_rows_that_do_not_fit(database: Database, columns: Mapping[str, str], rows: list[Row], problem: str) -> None:
    run, _ = _simple(database)
    newer = database.create(columns, rows)
    with pytest.raises(PolicyError, match=problem):
        apply(database, run, newer, f"{newer}_r")
    assert database.leftovers() == []


def test_values_longer_than_the_mask_are_refused(database: Database) -> None:
    table = database.create({**_CODED, "z": "TEXT"}, _coded(1, 60, 10))
    run = anonymize(database.policy(table, _CODED_ROLES, privacy=[{"model": "k-anonymity", "k": 3}])).run
    newer = database.create({**_CODED, "z": "TEXT"}, [("x", "10000", "a")] * 9)
    with pytest.raises(PolicyError, match="5 characters, and the mask's length is 3"):
        apply(database, run, newer, f"{newer}_r")


def test_a_run_that_fails_leaves_no_rules(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlanon.runner.check_release", lambda *_: 1 / 0)
    table = database.create(_CODED, _coded(1, 60, 10))
    with pytest.raises(ZeroDivisionError):
        anonymize(database.policy(table, _CODED_ROLES))
    assert not [
        name
        for (name,) in database.sql("SELECT table_name FROM information_schema.tables")
        if name.startswith("rules_")
    ]
    assert database.sql("SELECT * FROM sqlanon.work_tables") == []


def test_downgrading_the_catalog_drops_the_rules(database: Database) -> None:
    run, _ = _simple(database)
    with connect(database.url) as engine, Catalog.open(engine) as catalog:
        read_rules(catalog, run)
        catalog.downgrade("0001")
    names = [name for (name,) in database.sql("SELECT table_name FROM information_schema.tables")]
    assert not [name for name in names if name.startswith("rule")]
    with (
        connect(database.url) as engine,
        Catalog.open(engine) as catalog,
        pytest.raises(PolicyError, match="holds no rules of run"),
    ):
        read_rules(catalog, run)


def test_rules_take_as_many_statements_as_there_are_levels(database: Database) -> None:
    counts = []
    for rows in (100, 800):
        table = database.create(_NESTED, [(i * 7919 % 97, f"{100 + i * 31 % 899}", i) for i in range(rows)])
        run = anonymize(database.policy(table, _NESTED_ROLES, privacy=[{"model": "k-anonymity", "k": rows // 12}])).run
        steps = database.sql("SELECT name FROM sqlanon.steps WHERE run = ? AND name LIKE 'rules/%'", [run])
        (rounds,) = database.sql(
            "SELECT count(*) FROM sqlanon.steps WHERE run = ? AND name = 'partition/record_tree'", [run]
        )
        counts.append((len(steps), rounds[0]))
    per_level = [(statements - 20) / rounds for statements, rounds in counts]
    assert max(per_level) <= 12


# --- one SELECT


def test_the_select_recodes_like_apply(database: Database) -> None:
    columns = {
        "n": "INTEGER",
        "f": "DOUBLE PRECISION",
        "odd ' \"name": "VARCHAR(5)",
        "z": "VARCHAR(3)",
        "id": "INTEGER",
    }
    roles: dict[str, Any] = {
        "n": "quasi-identifier",
        "f": {"role": "quasi-identifier", "show": "bounds"},
        "odd ' \"name": "quasi-identifier",
        "z": {"role": "quasi-identifier", "hierarchy": {"mask": "right"}},
        "id": "insensitive",
    }
    words = ["it's", '"', "x{y}", None, ":a", "%s", "--"]
    rows = [(i * 37 % 50, (i * 13 % 7) / 4 or None, words[i % 6], f"{i * 29 % 90}", i) for i in range(90)]
    newer = [(i * 41 % 90 - 20, (i * 17 % 11) / 3 or None, words[i % 7], f"{i * 23 % 99}", i) for i in range(70)]
    table, other = database.create(columns, rows), database.create(columns, newer)
    run = anonymize(database.policy(table, roles, privacy=[{"model": "k-anonymity", "k": 1}])).run
    apply(database, run, other, f"{other}_r", "error")
    with connect(database.url) as engine, Catalog.open(engine) as catalog:
        text = rules_select(engine, read_rules(catalog, run), catalog.run(run), other)
    assert sorted(database.sql(text), key=repr) == sorted(database.sql(f"SELECT * FROM {other}_r"), key=repr)


@pytest.mark.parametrize("name", ["top-down", "starred"])
def test_the_select_of_levels_recodes_like_apply(database: Database, name: str) -> None:
    table, other = (
        database.create(_CODED, _coded(3, 120, 60)),
        database.create(_CODED, [*_coded(4, 90, 20), ("w", "9", "a")]),
    )
    policy = database.policy(table, _CODED_ROLES, privacy=[{"model": "k-anonymity", "k": 1}], **_GENERALIZATIONS[name])
    run = anonymize(policy).run
    apply(database, run, other, f"{other}_r", "error")
    with connect(database.url) as engine, Catalog.open(engine) as catalog:
        text = rules_select(engine, read_rules(catalog, run), catalog.run(run), other)
    assert sorted(database.sql(text), key=repr) == sorted(database.sql(f"SELECT * FROM {other}_r"), key=repr)


@pytest.mark.parametrize("algorithm", ["mondrian", "optimal", "top-down"])
def test_the_select_reckons_every_kind_of_hierarchy(database: Database, tmp_path: Path, algorithm: str) -> None:
    """Dates and intervals by expressions, a file's lines as VALUES; values that the source lacked, and odd ones."""
    (tmp_path / "towns.csv").write_text("".join(f't{i};"d\'{i % 4}";{"NS"[i % 4 > 1]};*\n' for i in range(12)))
    columns = {
        "d": "DATE",
        "w": "TIMESTAMP",
        "n": "INTEGER",
        "f": "DOUBLE PRECISION",
        "x": "DECIMAL(9, 2)",
        "t": "TEXT",
    }
    roles: dict[str, Any] = {
        "d": {"date": ["month", "quarter", "decade"]},
        "w": {"date": ["day", "week"]},
        "n": {"intervals": [5, 12, 60], "origin": 1},
        "f": {"intervals": [0.1, 0.25]},
        "x": {"intervals": [0.5, 5]},
        "t": {"csv": str(tmp_path / "towns.csv"), "unknown": "elsewhere"},
    }
    roles = {name: {"role": "quasi-identifier", "hierarchy": hierarchy} for name, hierarchy in roles.items()}
    table, newer = database.create(columns, _odd(60, 1)), database.create(columns, _odd(60, 7))
    kept = [*columns] if algorithm != "top-down" else ["n", "t"]
    k = [{"model": "k-anonymity", "k": 1 if algorithm != "top-down" else 4}]
    levels = {"d": 2, "w": 2, "n": 2, "f": 1, "x": 2, "t": 1} if algorithm == "optimal" else None
    policy = database.policy(
        table, {n: roles[n] if n in kept else "identifier" for n in columns}, privacy=k, algorithm={"name": algorithm}
    )
    run = anonymize(policy, levels=levels).run
    apply(database, run, newer, f"{newer}_r")
    with connect(database.url) as engine, Catalog.open(engine) as catalog:
        text = rules_select(engine, read_rules(catalog, run), catalog.run(run), newer)
    found, released = (sorted(database.sql(q), key=repr) for q in (text, f"SELECT * FROM {newer}_r"))
    if algorithm == "top-down":  # whose classes of new rows may be suppressed
        assert set(released) <= set(found)
    else:
        assert found == released
    assert len(found) == 60
    assert any(str(cell).startswith("[") for row in released for cell in row), "no interval is shown"


def _odd(number: int, step: int) -> list[Row]:
    """Rows with values at borders, beyond them, and NULL."""
    days = [
        datetime.date(1, 1, 1),
        datetime.date(1999, 12, 31),
        datetime.date(2000, 1, 1),
        datetime.date(2024, 2, 29),
        None,
    ]
    floats = [-0.1, 0.0, 0.1, 0.25, 0.3, -1e300, float("inf"), float("nan"), None]
    rows: list[Row] = []
    for i in range(0, number * step, step):
        moment = datetime.datetime(2024, 1, 1, 23, 59) + datetime.timedelta(days=i % 40)
        places = (
            days[i % 5],
            moment,
            None if i % 9 == 0 else i * 31 % 200 - 50,
            floats[i % 9],
            (i * 37 % 100 - 50) / 4,
        )
        rows.append((*places, f"t{i % 14}"))
    return rows


def test_rules_go_from_file_to_file(tmp_path: Path) -> None:
    source, newer, out = (tmp_path / name for name in ("old.csv", "new.csv", "released.csv"))
    for path, first in ((source, 0), (newer, 1000)):
        path.write_text("n,s\n" + "".join(f"{i * 7 % 50},{'ab'[i % 2]}\n" for i in range(first, first + 60)))
    policy = build_policy(
        {
            "source": {"file": str(source)},
            "release": {"file": str(tmp_path / "first.csv")},
            "attributes": {"n": {"role": "quasi-identifier"}, "s": {"role": "sensitive"}},
            "privacy": [{"model": "k-anonymity", "k": 3}],
        }
    )
    run = anonymize(policy).run
    url = f"duckdb:///{tmp_path / 'sqlanon.duckdb'}"
    with connect(url) as engine, Catalog.open(engine) as catalog:
        found = catalog.run(run)
    outcome = apply_rules(Application(run, str(newer), str(out), "suppress"), found, (url, "sqlanon"), options=OPTIONS)
    assert outcome.verified
    assert json.loads(json.dumps(outcome.as_json()))["algorithm"]["applied"] == run
    assert out.read_text().startswith("n,s\n")
