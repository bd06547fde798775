"""Cost of verifying labels of hierarchies, as a ratio to one GROUP BY over the same columns.

python benchmarks/verify_labels.py --rows 1000000 --algorithm mondrian
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlanon.engines import connect
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.policy import Policy
from sqlanon.policy.loading import build_policy
from sqlanon.runs import sink, sources
from sqlanon.sql import Statement

TOWNS = [f"town {n}" for n in range(200)]
SOURCE = """
CREATE TABLE bench AS
SELECT
    i % 5 AS ward, CAST(1 + (i * 7919) % 99991 AS INTEGER) AS income,
    lpad(CAST((i * 104729) % {values} AS VARCHAR), 9, '0') AS zip, 'town ' || CAST((i * 31) % 200 AS VARCHAR) AS town
FROM range({rows}) AS r(i)
"""
GROUPED = "SELECT count(*) FROM (SELECT income, zip, town, count(*) FROM bench GROUP BY income, zip, town) AS g"


def policy_of(url: str, algorithm: str) -> Policy:
    """The policy: a mask, intervals and a mapping."""
    mapping = {town: [f"district {n // 20}", f"side {n // 100}", "*"] for n, town in enumerate(TOWNS)}
    attributes: dict[str, Any] = {
        "ward": {"role": "insensitive"},
        "income": {"role": "quasi-identifier", "hierarchy": {"intervals": [1000, 5000, 20000, 100000]}},
        "zip": {"role": "quasi-identifier", "hierarchy": {"mask": "right"}},
        "town": {"role": "quasi-identifier", "hierarchy": {"mapping": mapping}},
    }
    return build_policy(
        {
            "source": {"url": url, "table": "bench"},
            "release": {"table": "released"},
            "attributes": attributes,
            "privacy": [{"model": "k-anonymity", "k": 10}],
            "algorithm": {"name": algorithm},
        }
    )


def cpu_of(work: Callable[[], object]) -> float:
    """The processor's seconds."""
    began = time.process_time()
    work()
    return time.process_time() - began


def verifying(policy: Policy, options: EngineOptions) -> float:
    """The processor's seconds of a run's phase `verify`."""
    seconds: list[float] = []
    verify = sink._verify

    def timed(*arguments: Any) -> None:
        seconds.append(cpu_of(lambda: verify(*arguments)))

    sink._verify = timed
    try:
        sources.run(policy, replace=True, options=options)
    finally:
        sink._verify = verify
    return sum(seconds)


def grouping(url: str, options: EngineOptions) -> float:
    """The processor's seconds of the GROUP BY."""
    with connect(url, options) as engine:
        return cpu_of(lambda: engine.fetch(Statement("group", GROUPED)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--values", type=int, default=20_000, help="different texts of the mask")
    parser.add_argument("--algorithm", default="mondrian")
    parser.add_argument("--repeat", type=int, default=3)
    asked = parser.parse_args()
    options = EngineOptions(threads=2)
    with tempfile.TemporaryDirectory() as directory:
        url = f"duckdb:///{Path(directory) / 'bench.duckdb'}"
        with connect(url, options, create=True) as engine:
            engine.execute(Statement("create", SOURCE.format(rows=asked.rows, values=asked.values)))
        policy = policy_of(url, asked.algorithm)
        pairs = [(verifying(policy, options), grouping(url, options)) for _ in range(asked.repeat)]
    verified, grouped = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(
        f"{asked.rows:,} rows, {asked.algorithm}: verify {verified:.2f} s, GROUP BY {grouped:.2f} s of processor time"
    )
    print(f"ratio {verified / grouped:.1f}")


if __name__ == "__main__":
    main()
