"""Warnings of a plan, on both engines: columns that tell every row apart, and weak protection."""

from __future__ import annotations

from typing import Any

import pytest

from sqlanon.engines.base import Engine
from sqlanon.plan.plan import resolve
from sqlanon.policy.loading import build_policy
from tests.plan_support import PRIVACY, make_table, sql, warnings

pytestmark = pytest.mark.either_engine


def test_unique_columns_are_pointed_out(engine: Engine) -> None:
    make_table(engine)
    found = warnings(engine)
    assert "attributes.note_id: (nearly) every row has another value" in found
    assert "disease: (nearly)" not in found


def test_unique_columns_are_found_in_large_tables_by_a_part_of_their_values(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sqlanon.plan.subject.SAMPLED_VALUES", 50)
    make_table(engine, 1000)
    found = warnings(engine, attributes={"income": {"role": "insensitive"}})
    assert "attributes.note_id: (nearly) every row" in found
    assert "income: (nearly)" not in found


def test_whole_numbers_that_repeat_are_told_by_their_range(engine: Engine) -> None:
    sql(engine, "CREATE TABLE patients (age INTEGER, visits INTEGER, room SMALLINT, note_id INTEGER)")
    rooms = "CASE WHEN g % 10 = 0 THEN NULL ELSE g % 85 END"  # 85 of 90 rooms at most
    sql(engine, f"INSERT INTO patients SELECT g % 5, g % 9, {rooms}, g FROM generate_series(1, 100) AS t(g)")
    roles = {name: {"role": "insensitive"} for name in ("visits", "room")}
    policy: dict[str, Any] = {"source": {"url": "duckdb:///x.duckdb", "table": "patients"}, "release": {"table": "r"}}
    policy["privacy"] = PRIVACY[:1]
    policy["attributes"] = {"age": {"role": "quasi-identifier"}, "note_id": {"role": "identifier"}, **roles}
    scans: list[str] = []
    engine.listener = lambda statement, _seconds, _rows: scans.append(statement.name)
    assert resolve(build_policy(policy), engine).warnings == ()
    assert "plan/measure_attributes" not in scans
    policy["attributes"] |= {"note_id": {"role": "insensitive"}}
    (warning,) = resolve(build_policy(policy), engine).warnings
    engine.listener = None
    assert "attributes.note_id: (nearly) every row" in warning
    assert scans.count("plan/measure_attributes") == 1


@pytest.mark.parametrize("kind", ["SMALLINT", "TEXT"])
def test_a_thousand_kept_columns_are_looked_at(engine: Engine, kind: str) -> None:
    """More than one statement of PostgreSQL tells of."""
    names = [f"k{number}" for number in range(1000)]
    sql(engine, f"CREATE TABLE patients (age INTEGER, {', '.join(f'{name} {kind}' for name in names)})")
    kept_values = f"CAST(1 AS {kind}), " * 999 + f"CAST(g AS {kind})"
    sql(engine, f"INSERT INTO patients SELECT g % 5, {kept_values} FROM generate_series(1, 100) AS t(g)")
    kept = {name: {"role": "insensitive"} for name in names}
    policy = {"source": {"url": "duckdb:///x.duckdb", "table": "patients"}, "release": {"table": "r"}}
    roles = {"age": {"role": "quasi-identifier", "nulls": "refuse"}, **kept}
    plan = resolve(build_policy({**policy, "privacy": PRIVACY[:1], "attributes": roles}), engine)
    assert plan.rows == 100
    assert [warning.split(":")[0] for warning in plan.warnings] == ["attributes.k999"]


def test_weak_protection_is_pointed_out(engine: Engine) -> None:
    make_table(engine)
    assert "k = 1 protects nobody" in warnings(engine, privacy=[{"model": "k-anonymity", "k": 1}])
    assert "disease: it is sensitive, but no model" in warnings(engine, privacy=PRIVACY[:1])
    assert "No k-anonymity is asked for" in warnings(engine, privacy=PRIVACY[1:])
    disease = {"role": "sensitive", "hierarchy": {"mask": "right"}}
    assert "hierarchical t-closeness" in warnings(engine, attributes={"disease": disease})
    assert "disease" not in warnings(engine)
