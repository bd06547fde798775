"""Speed of applying stored rules to new rows, as a ratio to writing them; and the cost of many rules.

python benchmarks/apply.py --rows 1000000 --new 1000000 --k 100
python benchmarks/apply.py --rows 10000000 --new 10000000 --k 1000 --realistic
python benchmarks/apply.py --rows 20000000 --k 2 --memory-limit 8GB --no-apply
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from agrawal import QUASI_IDENTIFIERS, Wanted, create_statement
from mondrian import policy

from sqlanon.catalog import Catalog, Run
from sqlanon.engines import connect
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.policy.loading import build_policy
from sqlanon.results.run_result import RunResult
from sqlanon.runs.applying import apply_rules
from sqlanon.runs.stored import Application
from sqlanon.sql import Statement
from tests.run_support import run


def make(url: str, options: EngineOptions, rows: int, new: int, realistic: bool) -> None:
    """The tables `bench` and `newcomers`."""
    with connect(url, options, create=True) as engine:
        for seed, (table, count) in enumerate((("bench", rows), ("newcomers", new))):
            engine.execute(Statement("drop", f"DROP TABLE IF EXISTS {table}"))
            wanted = Wanted(count, realistic=realistic, seed=seed)
            engine.execute(Statement("create", create_statement(engine.name, table, wanted)))


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Wall-clock and processor seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def writing(url: str, options: EngineOptions) -> tuple[tuple[float, float], tuple[float, float]]:
    """Seconds of writing the result once more: as it lies, and sorted by all of its columns."""
    with connect(url, options) as engine:
        names = ", ".join(QUASI_IDENTIFIERS)
        plain = Statement("write", "CREATE TABLE written AS SELECT * FROM applied")
        ordered = Statement("write", f"CREATE TABLE written AS SELECT * FROM applied ORDER BY {names}")
        found = []
        for statement in (plain, ordered):
            found.append(timed(lambda statement=statement: engine.execute(statement)))  # type: ignore[misc]
            engine.execute(Statement("drop", "DROP TABLE written"))
        return found[0], found[1]


def steps(url: str, run_id: str, most: int = 12) -> None:
    """The statements that took longest."""
    with connect(url) as engine, Catalog.open(engine) as catalog:
        seconds: Counter[str] = Counter()
        for step in catalog.steps(run_id):
            seconds[f"{step.phase}: {step.name}"] += step.seconds
    for name, value in seconds.most_common(most):
        print(f"    {value:8.2f} s  {name}")


def recorded(url: str, run_id: str) -> Run:
    with connect(url) as engine, Catalog.open(engine) as catalog:
        return catalog.run(run_id)


def memory() -> str:
    return f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB peak"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--new", type=int, default=1_000_000)
    parser.add_argument("--k", type=int, default=100)
    parser.add_argument("--url", help="a database to make the tables in; a temporary DuckDB file by default")
    parser.add_argument("--realistic", action="store_true", help="text, double and NULLs among the attributes")
    parser.add_argument("--memory-limit")
    parser.add_argument("--no-apply", action="store_true", help="make the rules only")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=os.environ.get("SQLANON_BENCHMARK_DIRECTORY")) as directory:
        url = arguments.url or f"duckdb:///{Path(directory) / 'bench.duckdb'}"
        options = EngineOptions(memory_limit=arguments.memory_limit)
        make(url, options, arguments.rows, arguments.new, arguments.realistic)
        first = run(build_policy(policy(url, QUASI_IDENTIFIERS, arguments.k, False)), replace=True, options=options)
        report("run", first)
        steps(url, first.run)
        if arguments.no_apply:
            return
        application = Application(first.run, "newcomers", "applied", "suppress", True)
        found, outcomes = recorded(url, first.run), []
        wall, cpu = timed(lambda: outcomes.append(apply_rules(application, found, (url, "sqlanon"), options=options)))
        report("apply", outcomes[0])
        steps(url, outcomes[0].run)
        (plain, plain_cpu), (ordered, ordered_cpu) = writing(url, options)
        print(f"writing: {plain:.2f} s ({plain_cpu:.2f} s CPU), sorted {ordered:.2f} s ({ordered_cpu:.2f} s CPU)")
        print(f"apply: {wall:.2f} s, {wall / plain:.2f} and {wall / ordered:.2f} x writing")
        print(f"apply: {cpu:.2f} s CPU, {cpu / plain_cpu:.2f} and {cpu / ordered_cpu:.2f} x writing")


def report(what: str, outcome: RunResult) -> None:
    result = outcome.as_json()
    phases = ", ".join(f"{name} {value:.2f}" for name, value in result["seconds"].items())
    release = result["release"]
    print(f"{what}: {release['classes']:,} classes, {release['suppressed']:,} suppressed; {phases}; {memory()}")


if __name__ == "__main__":
    main()
