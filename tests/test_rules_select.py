"""The recoding function as one SELECT: it recodes like `apply`."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

from sqlanon.catalog import Catalog
from sqlanon.engines import connect
from sqlanon.releases.rules.export_sql import rules_select
from sqlanon.releases.rules.store_rules import read_rules
from tests.rules_support import CODED, CODED_ROLES, GENERALIZATIONS, apply, coded
from tests.run_support import Database, Row, anonymize

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]


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


@pytest.mark.parametrize("name", ["tree", "nodes", "rules", "kids"])
def test_the_select_reads_a_table_that_is_called_like_a_part_of_a_tree(database: Database, name: str) -> None:
    table = database.create({"z": "VARCHAR(3)", "s": "VARCHAR(1)"}, [("99x", "a"), ("10y", "b")] * 4)
    database.sql(f"CREATE TABLE {name} AS SELECT * FROM {table}")
    roles: dict[str, Any] = {"z": {"role": "quasi-identifier", "hierarchy": {"mask": "right"}}, "s": "sensitive"}
    run = anonymize(database.policy(table, roles, privacy=[{"model": "k-anonymity", "k": 2}])).run
    with connect(database.url) as engine, Catalog.open(engine) as catalog:
        text = rules_select(engine, read_rules(catalog, run), catalog.run(run), name)
    released = f"SELECT * FROM {table}_r ORDER BY z, s"
    assert sorted(database.sql(text)) == database.sql(released)
    database.sql(f"DROP TABLE {name}")


@pytest.mark.parametrize("name", ["top-down", "starred"])
def test_the_select_of_levels_recodes_like_apply(database: Database, name: str) -> None:
    table, other = (
        database.create(CODED, coded(3, 120, 60)),
        database.create(CODED, [*coded(4, 90, 20), ("w", "9", "a")]),
    )
    policy = database.policy(table, CODED_ROLES, privacy=[{"model": "k-anonymity", "k": 1}], **GENERALIZATIONS[name])
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
    shown = {n: roles[n] if n in kept else "identifier" for n in columns}
    policy = database.policy(table, shown, privacy=k, algorithm={"name": algorithm}, subject="none")
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


def test_the_select_of_a_column_without_a_value(database: Database) -> None:
    columns = {"t": "VARCHAR(5)", "id": "INTEGER"}
    table = database.create(columns, [(None, i) for i in range(4)])
    run = anonymize(database.policy(table, {"t": "quasi-identifier", "id": "insensitive"})).run
    other = database.create(columns, [(None, 1), ("new", 2)])
    with connect(database.url) as engine, Catalog.open(engine) as catalog:
        text = rules_select(engine, read_rules(catalog, run), catalog.run(run), other)
    assert sorted(database.sql(text)) == [("*", 2), ("NULL", 1)]
