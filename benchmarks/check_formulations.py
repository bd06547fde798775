"""Cost of a check of one generalization, by the form of its keys: masked path codes, the wide set, the star join.

python benchmarks/check_formulations.py [--nodes 200] [--times 5]

All over the same frequency set of Adult's nine attributes, and the same random generalizations: `masks` groups by the
masked words of the key; `wide` by a small-integer column an attribute and level, made beforehand; `star join` by the
group columns of the dimension tables, joined for every check (SIGMOD 2005, section 3). Each one a statement of its own,
and `batch` many of the first kind in one. Medians of process CPU milliseconds a check.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable, Iterable

from adult import policy

from sqlanon.encoding.frequency.lattice import Node
from sqlanon.methods.generalization.explore.build_problem import build_problem
from sqlanon.methods.generalization.lattice.frequency.batches import RollUp, count_each
from sqlanon.methods.generalization.lattice.problem import Problem
from sqlanon.sql import Statement

K = 5


def wide_set(problem: Problem) -> None:
    """One small-integer column an attribute and level below `*`, and the dimension tables of these integers."""
    sets, engine = problem.sets, problem.sets.engine
    columns = []
    for d in sets.keys.dimensions:
        for level in range(d.height):
            node = tuple(level if other is d else other.height for other in sets.keys.dimensions)
            key = engine.traits.renderer().written(engine.render.macro("record", sets.keys.of_node(node)))
            columns.append(f"CAST(dense_rank() OVER (ORDER BY {key}) AS SMALLINT) AS a{d.number}_{level}")
    made = f"CREATE OR REPLACE TEMP TABLE wide AS SELECT n, {', '.join(columns)} FROM {sets.base.table}"
    engine.execute(Statement("benchmark", made))
    leaves = ", ".join(f"a{d.number}_0 AS v{d.number}" for d in sets.keys.dimensions)
    engine.execute(Statement("benchmark", f"CREATE OR REPLACE TEMP TABLE facts AS SELECT n, {leaves} FROM wide"))
    for d in sets.keys.dimensions:
        levels = ", ".join(f"a{d.number}_{level} AS g{level}" for level in range(d.height))
        made = f"CREATE OR REPLACE TEMP TABLE dim{d.number} AS SELECT DISTINCT {levels} FROM wide"
        engine.execute(Statement("benchmark", made))


def star_join(node: Node, heights: Node) -> str:
    kept = [(i, level) for i, (level, height) in enumerate(zip(node, heights, strict=True)) if level < height]
    joins = " ".join(f"JOIN dim{i} ON dim{i}.g0 = f.v{i}" for i, _ in kept)
    return count("facts AS f " + joins, [f"dim{i}.g{level}" for i, level in kept])


def wide(node: Node, heights: Node) -> str:
    kept = [f"a{i}_{level}" for i, (level, top) in enumerate(zip(node, heights, strict=True)) if level < top]
    return count("wide", kept)


def count(source: str, keys: Iterable[str]) -> str:
    """The rows in classes of fewer than K rows."""
    group = f"GROUP BY {', '.join(keys)}" if keys else ""
    return f"SELECT coalesce(sum(c.n), 0) FROM (SELECT sum(n) AS n FROM {source} {group} HAVING sum(n) < {K}) AS c"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--times", type=int, default=5)
    arguments = parser.parse_args()
    with build_problem(policy(9, K, {"name": "bottom-up"})) as found:
        problem = found.problem
        sets, heights = problem.sets, problem.lattice.heights
        nodes = random.Random(1).sample(list(problem.lattice.nodes), arguments.nodes)
        wide_set(problem)

        def fetch(text: str) -> int:
            return int(sets.engine.fetch_one(Statement("benchmark", text))[0])

        ways: dict[str, Callable[[], list[int]]] = {
            "masks": lambda: [sets.check(node).suppressed for node in nodes],
            "wide": lambda: [fetch(wide(node, heights)) for node in nodes],
            "star join": lambda: [fetch(star_join(node, heights)) for node in nodes],
            "batch": lambda: [c.verdict.suppressed for c in count_each(sets, [RollUp(n, sets.base) for n in nodes])],
        }
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        answers = {}
        for _ in range(arguments.times):
            for name, way in ways.items():
                started = time.process_time()
                answers[name] = way()
                seconds[name].append(time.process_time() - started)
        assert len(set(map(tuple, answers.values()))) == 1
        print(f"{sets.base.tuples:,} tuples of {sets.task.rows:,} rows, {len(nodes)} generalizations")
        for name, taken in seconds.items():
            print(f"{name:>10}: {statistics.median(taken) / len(nodes) * 1000:.3f} ms a check")


if __name__ == "__main__":
    main()
