"""Rothko-S against Rothko-T in one run.

python benchmarks/sampling.py race --rows 1000000 --k 100 --sample 200000 --repeat 5
python benchmarks/sampling.py race --rows 10000000 --k 1000 --sample 200000 --repeat 5
python benchmarks/sampling.py race --rows 1000000 --k 100 --sample 50000 --url postgresql:///bench
python benchmarks/sampling.py alike --rows 100000 --k 100 --sample 25000 --sets 10

race: seconds and processor seconds of both searches as ratios to one plain GROUP BY of all quasi-identifiers; classes.
alike: how many classes Rothko-S makes in relation to Rothko-T, over data sets of their own (and samples of their own),
with medians and with targets, and what Rothko-T makes of each table when one row of a thousand is left out.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agrawal import QUASI_IDENTIFIERS, Wanted, create_statement
from mondrian import grouping
from splits import Clock
from splits import policy as target_policy

from sqlanon.algorithms.tree.partitioning import build_task
from sqlanon.algorithms.tree.task import Branch
from sqlanon.encoding.coded_table import encode
from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.methods.partitioning.policy import RothkoS
from sqlanon.methods.partitioning.sampling.hypothesis import Confidence
from sqlanon.methods.partitioning.sampling.rothko_s import Sampling
from sqlanon.models import from_spec
from sqlanon.plan.plan import resolve_source
from sqlanon.policy import Policy
from sqlanon.policy.loading import build_policy
from sqlanon.results.codec import to_json
from sqlanon.results.run_result import RunResult
from sqlanon.sql import Statement
from sqlanon.work.workspace import TemporaryWorkspace
from tests.run_support import run

SIZES = (100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000)


def policy(url: str, models: list[dict[str, Any]], algorithm: dict[str, Any]) -> Policy:
    """Nine quasi-identifiers, but for those that a model looks at."""
    judged = {model["attribute"] for model in models if "attribute" in model}
    attributes: dict[str, Any] = {name: {"role": "quasi-identifier"} for name in QUASI_IDENTIFIERS}
    attributes |= {name: {"role": "sensitive"} for name in judged}
    attributes |= {"cls": {"role": "insensitive"}, "person": {"role": "identifier"}}
    return build_policy(
        {
            "source": {"url": url, "table": "bench"},
            "release": {"table": "bench_released"},
            "attributes": attributes,
            "privacy": models,
            "algorithm": algorithm,
        }
    )


def make_table(url: str, rows: int, options: EngineOptions) -> None:
    with connect(url, options, create=True) as engine:
        engine.execute(Statement("drop", "DROP TABLE IF EXISTS bench"))
        engine.execute(Statement("create", create_statement(engine.name, "bench", Wanted(rows))))


def group_by(url: str, options: EngineOptions) -> tuple[float, float]:
    """Seconds and processor seconds of one plain GROUP BY over the quasi-identifiers, after one to warm up."""
    with connect(url, options) as engine:
        engine.fetch(grouping(QUASI_IDENTIFIERS))
        started, used = time.perf_counter(), time.process_time()
        engine.fetch(grouping(QUASI_IDENTIFIERS))
        return time.perf_counter() - started, time.process_time() - used


def race(arguments: argparse.Namespace, url: str, options: EngineOptions) -> None:
    """Run both algorithms in turn; print the medians."""
    models = [{"model": "k-anonymity", "k": arguments.k}]
    algorithms = {
        "rothko-s": {"name": "rothko-s", "sample": arguments.sample, "alpha": arguments.alpha, "seed": arguments.seed}
        | {"exact_below": arguments.exact_below},
        "rothko-t": {"name": "mondrian"},
    }
    found: dict[str, list[tuple[float, float, RunResult]]] = {name: [] for name in algorithms}
    grouped = []
    for _ in range(arguments.repeat):
        grouped.append(group_by(url, options))
        for name, algorithm in algorithms.items():
            clock = Clock()
            outcome = run(policy(url, models, algorithm), replace=True, options=options, observer=clock)
            found[name].append((outcome.seconds.parts["search"], clock.phases["search"], outcome))
    plain = [statistics.median(times) for times in zip(*grouped, strict=True)]
    print(f"GROUP BY {plain[0]:.2f} s, {plain[1]:.2f} s of processor time\n")
    print("| algorithm | search, s | x GROUP BY | processor, s | x GROUP BY | classes | rounds | found |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |")
    for name, runs in found.items():
        wall, used = (statistics.median(values[place] for values in runs) for place in range(2))
        result = runs[-1][2].as_json()
        told = {key: value for key, value in to_json(runs[-1][2].algorithm.facts).items() if key != "samplings"}
        print(
            f"| {name} | {wall:.2f} | {wall / plain[0]:.1f} | {used:.2f} | {used / max(plain[1], 1e-9):.1f} | "
            f"{result['release']['classes']:,} | {result['algorithm']['rounds']} | {told} |"
        )
    pairs = list(zip(*found.values(), strict=True))
    for title, place in (("seconds", 0), ("processor seconds", 1)):
        print(f"Rothko-T / Rothko-S, {title}: {statistics.median(t[place] / s[place] for s, t in pairs):.2f}")


SPLITS: dict[str, dict[str, Any]] = {
    "median": {"split": "median"},
    "information gain of c2": {"split": "information-gain", "target": "c2"},
    "regression of r7": {"split": "regression", "target": "r7"},
}


def alike(arguments: argparse.Namespace, url: str, options: EngineOptions) -> None:
    """Print, for each kind of split, the differences in per cent: mean, standard deviation, least and most."""
    samples = {"name": "rothko-s", "sample": arguments.sample, "alpha": arguments.alpha}
    samples |= {"exact_below": arguments.exact_below}
    print("| split | classes of Rothko-T | Rothko-S, % | deviation | from | to | Rothko-T without 0.1 % of rows, % |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, split in SPLITS.items():
        found = []
        for number in range(arguments.sets):
            _make_targets(url, options, arguments.rows, number, row_filter="")
            exact = _classes(url, options, arguments.k, {"name": "rothko-t", **split})
            seeded = {**samples, "seed": arguments.seed + number, **split}
            sampled = _classes(url, options, arguments.k, seeded)
            _make_targets(url, options, arguments.rows, number, row_filter=" WHERE i % 1000 <> 0")
            thinned = _classes(url, options, arguments.k, {"name": "rothko-t", **split})
            found.append((exact, 100 * (sampled / exact - 1), 100 * (thinned / exact - 1)))
        exact, off, thinned = (list(column) for column in zip(*found, strict=True))
        print(
            f"| {name} | {min(exact):,} to {max(exact):,} | {statistics.mean(off):+.2f} | {statistics.stdev(off):.2f} "
            f"| {min(off):+.2f} | {max(off):+.2f} | {min(thinned):+.2f} to {max(thinned):+.2f} |",
            flush=True,
        )


def _make_targets(url: str, options: EngineOptions, rows: int, seed: int, *, row_filter: str) -> None:
    with connect(url, options, create=True) as engine:
        engine.execute(Statement("drop", "DROP TABLE IF EXISTS bench"))
        wanted = Wanted(rows, targets=True, seed=seed)
        engine.execute(Statement("create", create_statement(engine.name, "bench", wanted) + row_filter))


def _classes(url: str, options: EngineOptions, k: int, algorithm: dict[str, Any]) -> int:
    spec = target_policy(url, "bench", algorithm.get("target", "c2"), k, {}) | {"algorithm": algorithm}
    return int(run(build_policy(spec), replace=True, options=options).as_json()["release"]["classes"])


def pruned_nodes(
    engine: Engine, url: str, models: list[dict[str, Any]], sizes: tuple[int, ...] = SIZES
) -> Iterator[list[int]]:
    """By sample size, the nodes that are pruned under the tests and under the naive check."""
    workspace = TemporaryWorkspace(engine)
    built = policy(url, models, {"name": "rothko-s", "seed": 7})
    plan = resolve_source(built, engine)
    with engine.transaction():
        coded = encode(engine, plan, workspace)
    branch = Branch(
        engine, workspace, build_task(engine, workspace, coded, [from_spec(spec) for spec in built.privacy])
    )
    for size in sizes:
        algorithm = RothkoS(name="rothko-s", sample=size, seed=7, exact_below=0)
        counts = []
        for confidence in (Confidence(0.05), Confidence(None)):
            sampling = Sampling(branch, algorithm, confidence, lambda _progress: None)
            sampling.run(coded.rows, episodes=1)
            counts.append(sampling.counters.pruned)
        yield counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["race", "alike"])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--k", type=int, default=100)
    parser.add_argument("--sample", type=int, default=50_000)
    parser.add_argument("--alpha", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--exact-below", type=int, default=RothkoS.model_fields["exact_below"].default)
    parser.add_argument("--sets", type=int, default=10, help="how many data sets")
    parser.add_argument("--url", help="a database to make the table in; a temporary DuckDB file by default")
    parser.add_argument("--memory-limit")
    parser.add_argument("--repeat", type=int, default=1, help="runs of each; medians are reported")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=os.environ.get("SQLANON_BENCHMARK_DIRECTORY")) as directory:
        url = arguments.url or f"duckdb:///{Path(directory) / 'bench.duckdb'}"
        options = EngineOptions(memory_limit=arguments.memory_limit)
        if arguments.what != "alike":
            make_table(url, arguments.rows, options)
        print(f"{platform.machine()}, {os.cpu_count()} cores, {arguments.rows:,} rows", end="")
        if arguments.what == "race":
            print(f", k={arguments.k}, n={arguments.sample:,}, alpha={arguments.alpha}")
            race(arguments, url, options)
        else:
            print(f", k={arguments.k}, n={arguments.sample:,}, {arguments.sets} data sets\n")
            alike(arguments, url, options)


if __name__ == "__main__":
    main()
