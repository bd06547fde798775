"""Random tables of odd values and odd names: the release on Spark is that of DuckDB."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.engines.test_conformance import COLUMNS as CONFORMING
from tests.engines.test_conformance import MODELS, ROLES, table_of
from tests.random_cases import seed
from tests.run_support import Database, open_database
from tests.spark_support import SparkTables, needs_spark

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from spark_releases import release_of

pytestmark = [needs_spark, pytest.mark.slow]
Draw = Callable[[random.Random], Any]


def one_of(*values: Any) -> Draw:
    return lambda rng: rng.choice(values)


DRAWN: dict[str, tuple[str, Draw]] = {
    "a": ("INTEGER", lambda rng: rng.choice([None, rng.randint(-20, 20)])),
    'o"d d.': ("DOUBLE PRECISION", one_of(None, 0.0, -0.0, 0.1 + 0.2, 1e-7, -1.5e300, float("nan"), float("inf"))),
    "back\\slash": ("VARCHAR", one_of(None, "", " ", "a'b", "a\\b", "🐘", "é", "A", "a", "00", "x" * 300)),
    "`tick`": ("DECIMAL(12,3)", one_of(None, "1.500", "-0.010", "123456789.001", "0")),
    "día": ("DATE", one_of(None, "1969-12-31", "2020-02-29", "0999-01-01", "2024-06-01")),
    "SELECT": ("TIMESTAMP", one_of(None, "2020-01-01 00:00:00", "2020-01-01 00:00:00.000001", "1969-07-20 20:17:40")),
    "zoned at": ("TIMESTAMPTZ", one_of(None, "2020-03-29 01:30:00+00:00", "2020-10-25 01:30:00.5+00:00")),
    "🐘": ("BOOLEAN", one_of(None, True, False)),
    "wide": ("BIGINT", one_of(None, 2**63 - 1, -(2**63), 0, 7)),
}


@pytest.fixture(scope="module")
def databases(
    tmp_path_factory: pytest.TempPathFactory, spark_tables: SparkTables
) -> Iterator[tuple[Database, SparkTables]]:
    with open_database(f"duckdb:///{tmp_path_factory.mktemp('rows')}/rows.duckdb") as duckdb:
        yield duckdb, spark_tables


def models_for(rng: random.Random, sensitive: str) -> list[dict[str, Any]]:
    """k-anonymity, and in most cases a model of the sensitive column that its rows may meet or not."""
    about = rng.choice(
        [
            None,
            {"model": "distinct-l-diversity", "l": 2},
            {"model": "beta-likeness", "beta": rng.choice([1.5, 3]), "form": rng.choice(["basic", "enhanced"])},
            {"model": "delta-disclosure", "delta": rng.choice([1.5, 3])},
            {"model": "alpha-k", "alpha": rng.choice([0.4, 0.7]), "k": 3},
            {"model": "confidence-bound", "confidence": rng.choice([0.4, 0.7])},
        ]
    )
    counted = {"model": "k-anonymity", "k": rng.choice([2, 5])}
    if about is None:
        return [counted]
    return [counted, {"attribute": sensitive, **about}]


@dataclass(frozen=True)
class RandomCase:
    """A random table and a policy for it."""

    table: str
    columns: Mapping[str, str]
    rows: Sequence[tuple[Any, ...]]
    case: Mapping[str, Any]


def random_case(seed: int) -> RandomCase:
    """Draw a table of six columns, and a policy with four of them as quasi-identifiers."""
    rng = random.Random(seed)
    names = rng.sample(list(DRAWN), 6)
    rows = [tuple(DRAWN[name][1](rng) for name in names) for _ in range(rng.choice([40, 90, 150]))]
    sensitive, kept = names[4:]
    case = {
        "attributes": {
            **{name: {"role": "quasi-identifier"} for name in names[:4]},
            sensitive: {"role": "sensitive"},
            kept: {"role": "insensitive"},
        },
        "privacy": models_for(rng, sensitive),
    }
    return RandomCase(f"random_{seed}", {name: DRAWN[name][0] for name in names}, rows, case)


@pytest.mark.parametrize("number", range(4))
def test_the_release_of_a_random_table_is_that_of_duckdb(databases: tuple[Database, SparkTables], number: int) -> None:
    drawn = random_case(seed() + number)
    for database in databases:
        database.create(drawn.columns, drawn.rows, drawn.table)
    one, other = (release_of(database, drawn.table, drawn.case) for database in databases)
    assert one == other


@pytest.mark.parametrize("models", [MODELS[:1], MODELS], ids=["k", "k, l and variance"])
def test_the_release_of_the_conformance_suite_is_that_of_duckdb(
    databases: tuple[Database, SparkTables], models: list[dict[str, Any]]
) -> None:
    name = f"conforming_{len(models)}"
    for database in databases:
        database.create(CONFORMING, table_of(300), name)
    roles = {name: role if isinstance(role, dict) else {"role": role} for name, role in ROLES.items()}
    case = {"attributes": roles, "privacy": models, "subject": "none"}
    one, other = (release_of(database, name, case) for database in databases)
    assert one == other
    assert len(one["rows"]) == 300
