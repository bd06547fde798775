"""Cost of comparing a masked table with its source, as a ratio to one GROUP BY over the columns of the source.

python benchmarks/loss.py --rows 1000000 --columns 8
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import Counter
from collections.abc import Callable

from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.measures.masking.all_measures import SAMPLE, measure_masking
from sqlanon.measures.masking.compared import compare
from sqlanon.sql import Relation, Statement


def create(engine: Engine, rows: int, columns: int, size: int) -> None:
    """A table of normal numbers, three categories, and its release: means of `size` neighbours in the first column."""
    drawn = (
        "sqrt(-2 * ln((hash(i * 7 + {j}) % 1000003 + 1) / 1000004.0)) * cos(hash(i * 11 + {j}) % 1000003 / 159155.0)"
    )
    parts = ", ".join(f"{drawn.format(j=j)} * 10 + 100 AS x{j}" for j in range(columns))
    means = ", ".join(f"avg(x{j}) OVER w AS x{j}" for j in range(columns))
    category = "'c' || (hash(i) % 9) AS a, 'd' || (hash(i + 1) % 30) AS b"
    for text in (
        f"CREATE TABLE people AS SELECT i AS id, {parts}, {category} FROM range({rows}) AS r(i)",
        "CREATE TABLE ordered AS SELECT *, row_number() OVER (ORDER BY x0, id) AS place FROM people",
        f"CREATE TABLE masked AS SELECT id, {means}, min(a) OVER w AS a, b FROM ordered"
        f" WINDOW w AS (PARTITION BY place // {size})",
    ):
        engine.execute(Statement("create", text))


def cpu_of(work: Callable[[], object]) -> float:
    """The processor's seconds."""
    began = time.process_time()
    work()
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=8)
    parser.add_argument("--size", type=int, default=5, help="rows of a cluster")
    parser.add_argument("--sample", type=int, default=SAMPLE, help="rows that are linked")
    parser.add_argument("--repeat", type=int, default=3)
    asked = parser.parse_args()
    names = ", ".join(f"x{j}" for j in range(asked.columns))
    grouped = Statement("group", f"SELECT count(*) FROM (SELECT {names}, a, b, count(*) FROM people GROUP BY ALL) AS g")
    with connect("duckdb:///:memory:", EngineOptions(threads=2)) as engine:
        create(engine, asked.rows, asked.columns, asked.size)
        source, release = (engine.resolve(Relation(name)) for name in ("people", "masked"))
        assert source is not None
        assert release is not None
        compared = compare(engine, source, release, by=["id"])
        seconds: Counter[str] = Counter()
        engine.listener = lambda statement, took, _: seconds.update({statement.name: took})  # type: ignore[dict-item]
        pairs = [
            (cpu_of(lambda: measure_masking(compared, sample=asked.sample)), cpu_of(lambda: engine.fetch(grouped)))
            for _ in range(asked.repeat)
        ]
    measured, counted = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(f"{asked.rows:,} x {asked.columns}: loss {measured:.2f} s, GROUP BY {counted:.2f} s of processor time")
    print(f"ratio {measured / counted:.1f}")
    for name, took in seconds.most_common():
        print(f"  {name}: {took / asked.repeat:.2f} s")


if __name__ == "__main__":
    main()
