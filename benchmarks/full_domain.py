"""Speed of the optimal full-domain search, on synthetic tables that are made in the database.

python benchmarks/full_domain.py                     all scenarios of DuckDB, each in a process of its own
python benchmarks/full_domain.py --only orders       4.59M rows, 8 quasi-identifiers, 9,600 generalizations
python benchmarks/full_domain.py --only orders --url postgresql:///bench
python benchmarks/full_domain.py --only orders-x10 --memory-limit 1GB

`orders` has cardinalities 31953, 320, 2, 1509, 346, 1, 1412, 2, skewed and correlated; `census` those of a census
extract of nine attributes (12,960 generalizations); `wide` is a small table of twelve attributes (531,441). All are
read from Parquet, or from a table with --url.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlanon.engines import connect
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.methods.generalization.explore.build_problem import build_problem
from sqlanon.methods.generalization.lattice.search import SearchOptions, solve
from sqlanon.policy.loading import build_policy
from sqlanon.sql import Statement

_PRIME = 2**31 - 1


@dataclass(frozen=True)
class Column:
    """A column: its SQL over the row number `i` and draws `u0, u1, …` in [0, 1), and its hierarchy."""

    name: str
    value: str
    hierarchy: Any


@dataclass(frozen=True)
class Scenario:
    """A table and what is asked of it."""

    columns: tuple[Column, ...]
    rows: int
    k: int
    suppression: float
    privacy: tuple[dict[str, Any], ...] = ()
    file: str = ""
    options: dict[str, Any] = field(default_factory=dict)


def _skewed(draw: int, size: int, power: float) -> str:
    """A value below `size`, small ones more often; the first rows hold every value once."""
    drawn = f"power(greatest(u{draw}, 0.000001), {power})"  # PostgreSQL refuses what is next to 0
    return f"CASE WHEN i <= {size} THEN i - 1 ELSE CAST(floor({size} * {drawn}) AS BIGINT) END"


ORDERS = (
    Column("zip", f"lpad(CAST(3 * ({_skewed(0, 31953, 2.5)}) AS VARCHAR), 5, '0')", {"mask": "right"}),
    Column("day", f"DATE '2001-01-01' + CAST({_skewed(1, 320, 1.5)} AS INTEGER)", {"date": ["month", "year"]}),
    Column("gender", "CASE WHEN u2 < 0.7 THEN 'F' ELSE 'M' END", "suppress"),
    Column("style", _skewed(3, 1509, 3), "suppress"),
    Column(
        "price",
        "CASE WHEN i <= 346 THEN i - 1 ELSE (7 * CAST(floor(1509 * power(u3, 3)) AS BIGINT)"
        " + CAST(floor(40 * power(u4, 3)) AS BIGINT)) % 346 END",
        {"intervals": [10, 50, 150]},
    ),
    Column("quantity", "1", "suppress"),
    Column("cost", _skewed(5, 1412, 4), {"intervals": [20, 100, 500]}),
    Column("shipment", "CASE WHEN u6 < 0.9 THEN 'ground' ELSE 'air' END", "suppress"),
)
CENSUS = (
    Column("sex", "CASE WHEN u0 < 0.67 THEN 1 ELSE 0 END", "suppress"),
    Column("age", f"17 + {_skewed(1, 73, 2.2)}", {"intervals": [5, 10, 20]}),
    Column("race", _skewed(2, 5, 12), "suppress"),
    Column("marital", "CAST(floor(7 * power(0.7 * (1 - u1) + 0.3 * u3, 4)) AS INTEGER)", {"intervals": [3]}),
    Column("education", "CAST(floor(16 * power(0.8 * u7 + 0.2 * u4, 2)) AS INTEGER)", {"intervals": [2, 8]}),
    Column("country", _skewed(5, 41, 40), {"intervals": [10]}),
    Column("workclass", "CAST(floor(8 * power(0.4 * u7 + 0.6 * u6, 6)) AS INTEGER)", {"intervals": [3]}),
    Column("occupation", _skewed(7, 14, 1.2), {"intervals": [5]}),
    Column("salary", "CASE WHEN u1 * u4 < 0.3 THEN 0 ELSE 1 END", "suppress"),
)
WIDE = tuple(  # 12 attributes of 20 values, in groups of 5
    Column(
        f"c{n}",
        f"CAST(floor(20 * power(0.7 * u{n % 8} + 0.3 * u{(n + 3) % 8}, {2 + n % 5})) AS INTEGER)",
        {"intervals": [5]},
    )
    for n in range(12)
)
SENSITIVE = Column("illness", "CAST(floor(10 * power((u7 + u3) / 2, 1.5)) AS INTEGER)", None)
RECURSIVE = {"model": "recursive-l-diversity", "attribute": "illness", "c": 3, "l": 3}
CLOSE = {"model": "t-closeness", "attribute": "illness", "t": 0.2}

SCENARIOS = {
    "census-0": Scenario(CENSUS, 30_162, 5, 0.0, file="census"),
    "census-5": Scenario(CENSUS, 30_162, 5, 0.05, file="census"),
    "wide-0": Scenario(WIDE, 2_000, 5, 0.0, file="wide"),
    "wide-5": Scenario(WIDE, 2_000, 5, 0.05, file="wide"),
    "census-5M": Scenario(CENSUS, 5_000_000, 5, 0.05),
    "orders": Scenario(ORDERS, 4_590_000, 10, 0.01),
    "orders-recursive": Scenario(ORDERS, 4_590_000, 10, 0.01, (RECURSIVE,), "orders"),
    "orders-close": Scenario(ORDERS, 4_590_000, 10, 0.01, (CLOSE,), "orders"),
    "orders-x10": Scenario(ORDERS, 45_900_000, 10, 0.01),
}
DEFAULT = tuple(name for name in SCENARIOS if name != "orders-x10")


def select_statement(scenario: Scenario) -> str:
    """The rows of a scenario, by integer arithmetic that engines agree on."""
    draws = []
    for number in range(8):
        first = f"((i + {number * 7_919}) * {1_664_525 + 2 * number} + {number * 97_531}) % {_PRIME}"
        draws.append(
            f"CAST((({first}) * ({first}) + i * {48_271 + number}) % {_PRIME} AS FLOAT8) / {_PRIME} AS u{number}"
        )
    columns = ", ".join(f"{column.value} AS {column.name}" for column in (*scenario.columns, SENSITIVE))
    numbers = f"generate_series(CAST(1 AS BIGINT), {scenario.rows}) AS g(i)"
    return f"SELECT {columns} FROM (SELECT i, {', '.join(draws)} FROM {numbers}) AS d"


def make(name: str, directory: Path, url: str | None) -> dict[str, Any]:
    """Make a scenario's table unless it is there; the source of its policy."""
    scenario = SCENARIOS[name]
    table = f"{scenario.file or name}".replace("-", "_")
    if url is None:
        path = directory / f"{table}.parquet"
        if not path.exists():
            with connect("duckdb:///:memory:") as engine:
                engine.execute(Statement("make", f"COPY ({select_statement(scenario)}) TO '{path}'"))
        return {"file": str(path)}
    with connect(url) as engine:
        if table not in {relation.name for relation in engine.relations()}:
            engine.execute(Statement("make", f"CREATE TABLE {table} AS {select_statement(scenario)}"))
    return {"url": url, "table": table}


def policy(scenario: Scenario, source: dict[str, Any]) -> dict[str, Any]:
    """The policy of a scenario; its release is never made."""
    attributes: dict[str, Any] = {
        column.name: {"role": "quasi-identifier", "hierarchy": column.hierarchy} for column in scenario.columns
    }
    attributes[SENSITIVE.name] = {"role": "sensitive" if scenario.privacy else "identifier"}
    release = {"file": "none.parquet"} if "file" in source else {"table": "none"}
    return {
        "source": source,
        "release": release,
        "catalog": {} if "url" in source else {"url": "duckdb:///:memory:"},
        "attributes": attributes,
        "privacy": [{"model": "k-anonymity", "k": scenario.k}, *scenario.privacy],
        "algorithm": {"name": "optimal"},
        "suppression": scenario.suppression,
    }


def measure(name: str, source: dict[str, Any], memory_limit: str | None) -> dict[str, Any]:
    """Load, code and search; seconds of each, the statements, and the peak memory of this process."""
    built = build_policy(policy(SCENARIOS[name], source))
    clock, cpu = time.perf_counter(), time.process_time()
    with build_problem(built, EngineOptions(memory_limit=memory_limit)) as found:
        problem = found.problem
        coded = time.perf_counter()
        statements: list[str] = []
        problem.sets.engine.listener = lambda statement, _seconds, _rows: statements.append(statement.name)
        findings = solve(problem, built, SearchOptions())
        done = time.perf_counter()
        return {
            "scenario": name,
            "nodes": problem.lattice.size,
            "checked": problem.sets.checked,
            "statements": len(statements),
            "load": coded - clock,
            "search": done - coded,
            "total": done - clock,
            "cpu": time.process_time() - cpu,
            "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
            "levels": findings.chosen,
            "score": findings.score,
            "proven": findings.proven,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=list(SCENARIOS))
    parser.add_argument("--url", help="a database to make the tables in; Parquet files by default")
    parser.add_argument("--memory-limit")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.only, json.loads(arguments.measure), arguments.memory_limit)))
        return
    print(f"{platform.machine()}, {os.cpu_count()} cores; seconds, GB")
    print("scenario           nodes checked  stmts   load  search  total    cpu    GB  levels, score")
    chosen_directory = os.environ.get("SQLANON_BENCHMARK_DIRECTORY")
    with tempfile.TemporaryDirectory() as made:
        for name in (arguments.only,) if arguments.only else DEFAULT:
            source = make(name, Path(chosen_directory or made), arguments.url)
            command = [sys.executable, __file__, "--only", name, "--measure", json.dumps(source)]
            command += ["--memory-limit", arguments.memory_limit] if arguments.memory_limit else []
            found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            print(
                "{scenario:<17}{nodes:>7}{checked:>8}{statements:>7}{load:>7.2f}{search:>8.2f}{total:>7.2f}{cpu:>7.2f}"
                "{memory:>6.2f}  {levels} {score:.6f}{mark}".format(
                    **found, mark="" if found["proven"] else " not proven"
                )
            )


if __name__ == "__main__":
    main()
