"""Cost of a job inside PostgreSQL, as a ratio to CREATE TABLE AS of its rows and one GROUP BY of them.

The rows are written as they lie in the release, and as the rules' SELECT gives them. The rules are those of a tree, or
with --full-domain of the levels that are best for a table of the benchmark of that search.

python benchmarks/jobs.py --url postgresql://... --rows 1000000 --k 100
python benchmarks/jobs.py --url postgresql://... --full-domain census-5M
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import full_domain
from agrawal import QUASI_IDENTIFIERS, Wanted, create_statement
from mondrian import policy

from sqlanon.catalog import Catalog
from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.jobs.freezing import Freezing, freeze
from sqlanon.jobs.running import run_procedure
from sqlanon.policy.loading import build_policy
from sqlanon.sql import Statement
from tests.run_support import run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--k", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--suppress", action="store_true")
    parser.add_argument("--full-domain", choices=list(full_domain.SCENARIOS))
    arguments = parser.parse_args()
    with connect(arguments.url) as engine, Catalog.open(engine) as catalog:
        content = prepare(engine, arguments)
        outcome = run(build_policy(content), replace=True)
        print(f"run: {sum(outcome.seconds.parts.values()):.2f} s, {outcome.as_json()['release']['classes']:,} classes")
        wanted = Freezing("bench", "suppress", 0.5) if arguments.suppress else Freezing("bench")
        job = freeze(engine, catalog, catalog.run(outcome.run), wanted)
        jobs, writes, recodes, groups = [], [], [], []
        for _ in range(arguments.rounds):
            started = time.perf_counter()
            result = run_procedure(engine, catalog, job)
            jobs.append(time.perf_counter() - started)
            print("job: " + json.dumps(dict(result.seconds.parts)))
            writes.append(execute(engine, f"CREATE TABLE written AS SELECT * FROM {job.release}"))
            execute(engine, "DROP TABLE written")
            recodes.append(execute(engine, f"CREATE TABLE written AS {job.recoding}"))
            execute(engine, "DROP TABLE written")
            names = ", ".join(n for n, a in content["attributes"].items() if a["role"] == "quasi-identifier")
            grouped = f"SELECT count(*) FROM (SELECT {names}, count(*) FROM {job.release} GROUP BY {names}) AS g"
            groups.append(execute(engine, grouped))
    done, write, recode, group = (statistics.median(seconds) for seconds in (jobs, writes, recodes, groups))
    print(f"writing {write:.2f} s, recoding and writing {recode:.2f} s, one GROUP BY of the release {group:.2f} s")
    print(f"job {done:.2f} s: {done / (write + group):.2f} x writing and the GROUP BY")
    print(f"job {done:.2f} s: {done / (recode + group):.2f} x recoding and the GROUP BY")


def prepare(engine: Engine, arguments: argparse.Namespace) -> dict[str, Any]:
    """Make the table; the policy of the run whose rules are frozen."""
    if arguments.full_domain is None:
        execute(engine, "DROP TABLE IF EXISTS bench")
        execute(engine, create_statement(engine.name, "bench", Wanted(arguments.rows)))
        return policy(arguments.url, QUASI_IDENTIFIERS, arguments.k, False)
    source = full_domain.make(arguments.full_domain, Path(), arguments.url)
    content = full_domain.policy(full_domain.SCENARIOS[arguments.full_domain], source)
    content["attributes"][full_domain.SENSITIVE.name] = {"role": "sensitive"}
    return content | {"release": {"table": "bench_released"}, "catalog": {}}


def execute(engine: Engine, text: str) -> float:
    """Seconds of a statement."""
    started = time.perf_counter()
    engine.execute(Statement("benchmark", text))
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
