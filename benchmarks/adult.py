"""The Adult table as the lattice benchmarks use it, and problems over it that are searched but not released."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlanon.methods.generalization.explore.build_problem import build_problem
from sqlanon.methods.generalization.lattice.problem import Findings, Problem
from sqlanon.methods.generalization.lattice.search import SearchOptions, solve
from sqlanon.policy import Policy
from sqlanon.policy.loading import build_policy

DATA = Path(os.environ.get("SQLANON_TEST_DATA", Path(__file__).parents[2] / "shared" / "data")) / "adult"
PAPER_ORDER = (
    "age",
    "sex",
    "race",
    "marital-status",
    "education",
    "native-country",
    "workclass",
    "occupation",
    "salary-class",
)
"""The quasi-identifiers in the order in which SIGMOD 2005 (figure 9) adds them."""
WORKLOAD_ATTRIBUTES = {
    "age": "INT",
    "workclass": "VARCHAR",
    "education-num": "INT",
    "marital-status": "VARCHAR",
    "occupation": "VARCHAR",
    "relationship": "VARCHAR",
    "race": "VARCHAR",
    "sex": "VARCHAR",
    "hours-per-week": "INT",
    "native-country": "VARCHAR",
}
"""The quasi-identifiers of the workload figures with their types; the target is `salary-class`, two incomes."""
_ALL_14 = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship"),
    *("race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "salary-class"),
)


def create_workload_table(table: str) -> str:
    """DuckDB's statement for a table of these attributes and the target: the 30,162 rows without an unknown value.

    Left out: the weight of the sample, education (it is education-num in words), the capital gains and losses.
    """
    columns = {**WORKLOAD_ATTRIBUTES, "salary-class": "VARCHAR"}
    shown = ", ".join(f'CAST(trim("{name}") AS {kind}) AS "{name}"' for name, kind in columns.items())
    names = ", ".join(f"'{name}'" for name in _ALL_14)
    file = str(DATA / "adult14.csv").replace("'", "''")
    source = f"read_csv('{file}', header = false, skip = 1, all_varchar = true, names = [{names}])"
    known = " AND ".join(f"trim(\"{name}\") <> '?'" for name in _ALL_14)
    return f"CREATE OR REPLACE TABLE {table} AS SELECT {shown} FROM {source} WHERE {known}"


@dataclass(frozen=True)
class Timed:
    """Findings of a search, and their cost."""

    findings: Findings
    nodes: int
    checked: int
    statements: int
    seconds: float
    cpu_seconds: float


def policy(size: int, k: int, algorithm: dict[str, Any], suppression: float = 0.0) -> Policy:
    """A policy whose quasi-identifiers are the first `size` attributes of the paper."""
    quasi = {
        name: {"role": "quasi-identifier", "hierarchy": {"csv": str(DATA / f"adult_hierarchy_{name}.csv")}}
        for name in PAPER_ORDER[:size]
    }
    others = {name: {"role": "identifier"} for name in PAPER_ORDER[size:]}
    return build_policy(
        {
            "source": {"file": str(DATA / "adult.csv")},
            "release": {"file": "adult-release.parquet"},
            "attributes": {**quasi, **others},
            "privacy": [{"model": "k-anonymity", "k": k}],
            "algorithm": {"quality": "height", **algorithm},
            "suppression": suppression,
            "catalog": {"url": "duckdb:///:memory:"},
        }
    )


def timed(wanted: Policy, search: Callable[[Problem], Findings] | None = None) -> Timed:
    """Search, by the policy's algorithm or another function, and take the time of that alone."""
    with build_problem(wanted) as found:
        problem = found.problem
        statements = 0

        def count(*_: object) -> None:
            nonlocal statements
            statements += 1

        problem.sets.engine.listener = count
        wall, cpu = time.perf_counter(), _cpu()
        findings = search(problem) if search else solve(problem, wanted, SearchOptions())
        seconds, cpu_seconds = time.perf_counter() - wall, _cpu() - cpu
        return Timed(findings, problem.lattice.size, problem.sets.checked, statements, seconds, cpu_seconds)


def _cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
