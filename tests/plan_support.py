"""A table of patients and a policy for it, and what planning says of them."""

from __future__ import annotations

from typing import Any

import pytest

from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError
from sqlanon.plan.plan import resolve
from sqlanon.policy import Policy
from sqlanon.policy.loading import build_policy
from sqlanon.sql import Statement

COLUMNS = {
    "ssn": ("VARCHAR(20)", "'s' || i"),
    "age": ("INTEGER", "20 + i % 50"),
    "zipcode": ("VARCHAR(5)", "CAST(53000 + i % 20 AS VARCHAR(5))"),
    "admitted": ("DATE", "DATE '1969-12-01' + i"),
    "income": ("NUMERIC(10, 2)", "1000 + 7 * (i % 30)"),
    "disease": ("VARCHAR(20)", "'d' || i % 5"),
    "note_id": ("BIGINT", "i"),
}
ATTRIBUTES: dict[str, Any] = {
    "ssn": {"role": "identifier"},
    "age": {"role": "quasi-identifier"},
    "zipcode": {"role": "quasi-identifier", "hierarchy": {"mask": "right"}},
    "admitted": {"role": "quasi-identifier", "hierarchy": {"date": ["month", "quarter", "year"]}},
    "income": {"role": "quasi-identifier", "hierarchy": {"intervals": [5000, 20000]}, "show": "bounds"},
    "disease": {"role": "sensitive"},
    "note_id": {"role": "insensitive"},
}
PRIVACY = [{"model": "k-anonymity", "k": 5}, {"model": "distinct-l-diversity", "attribute": "disease", "l": 2}]


def sql(engine: Engine, text: str) -> None:
    engine.execute(Statement("test", text))


def make_table(engine: Engine, rows: int = 100, name: str = "patients", columns: dict[str, Any] = COLUMNS) -> None:
    sql(engine, f"CREATE TABLE {name} ({', '.join(f'{c} {kind}' for c, (kind, _) in columns.items())})")
    values = ", ".join(value for _, value in columns.values())
    numbers = f"(SELECT CAST(g AS INTEGER) AS i FROM generate_series(1, {rows}) AS t(g)) AS s"
    sql(engine, f"INSERT INTO {name} SELECT {values} FROM {numbers}")


def policy_with(**changes: Any) -> Policy:
    """The policy of the tests; `attributes` are merged into its attributes, None taking one out."""
    attributes = {**ATTRIBUTES, **changes.pop("attributes", {})}
    data = {
        "source": {"url": "duckdb:///x.duckdb", "table": "patients"},
        "release": {"table": "patients_released"},
        "attributes": {name: value for name, value in attributes.items() if value is not None},
        "privacy": PRIVACY,
        **changes,
    }
    return build_policy(data)


def problems(engine: Engine, replace: bool = False, **changes: Any) -> list[str]:
    with pytest.raises(PolicyError) as raised:
        resolve(policy_with(**changes), engine, replace=replace)
    return list(raised.value.problems)


def one_problem(engine: Engine, **changes: Any) -> str:
    (problem,) = problems(engine, **changes)
    return problem


def warnings(engine: Engine, **changes: Any) -> str:
    return "\n".join(resolve(policy_with(**changes), engine).warnings)
