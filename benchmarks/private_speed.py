"""Differentially private draws beside one GROUP BY of the nine quasi-identifiers, on the generator of the evaluation.

python benchmarks/private_speed.py --rows 1000000 --repeat 3 [--url postgresql://…/scratch] [--adult adult14.csv]

`diffgen` takes ten groups apart; `threshold` counts more than 10^9 public cells, of which those above a threshold are
drawn; `marginals` counts 20 pairs of columns in one scan.
Seconds are of the draw: places, counts, noise. Staging, checks and the catalog are those of any release. With `--adult`
whole runs are measured, from the plan to the published table: ten groups of the 14 columns of Adult taken apart; with
`--whole` the same of the generator's table, in a file.
"""

from __future__ import annotations

import argparse
import itertools
import math
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agrawal import QUASI_IDENTIFIERS, Wanted, create_statement
from private_plans import PlainWorkspace, draw_release, plan_release
from private_utility import Adult

from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.mechanisms.mechanisms import secret_key
from sqlanon.methods.differential_privacy.drawing.counting import Places
from sqlanon.methods.differential_privacy.drawing.drawing import require_cells
from sqlanon.methods.differential_privacy.granting import grant_budget
from sqlanon.methods.differential_privacy.plan import PrivatePlan
from sqlanon.policy.differential_privacy import PrivacyBudget
from sqlanon.sql import Relation, Statement
from tests.private_support import run_private

STEPS = {
    "salary": (20_000, 150_001, 10_000),
    "commission": (0, 75_001, 5_000),
    "age": (20, 81, 1),
    "elevel": (0, 5, 1),
    "car": (1, 21, 1),
    "zipcode": (1, 10, 1),
    "hvalue": (50_000, 1_350_000, 50_000),
    "hyears": (1, 31, 1),
    "loan": (0, 500_000, 25_000),
}
GROUPED = Statement(
    "group", f"SELECT count(*) FROM (SELECT 1 FROM people GROUP BY {', '.join(QUASI_IDENTIFIERS)}) AS g"
)
PAIRS = list(itertools.islice(itertools.combinations(range(len(STEPS)), 2), 20))


def plan(engine: Engine, columns: tuple[str, ...], **algorithm: Any) -> PrivatePlan:
    """The plan of a release of some columns; the others are left out."""
    attributes: dict[str, Any] = {name: {"role": "identifier"} for name in (*QUASI_IDENTIFIERS, "person")}
    for name in columns:
        first, below, step = STEPS[name]
        attributes[name] = {"role": "quasi-identifier", "domain": {"from": first, "below": below, "step": step}}
    attributes["cls"] = {"role": "sensitive", "values": list(range(5))}
    found = plan_release(engine, "people", attributes, {"target": "cls", **algorithm})
    require_cells(found)
    return found


def drawer(engine: Engine, wanted: PrivatePlan) -> Callable[[], int]:
    workspace = PlainWorkspace(engine)

    return lambda: len(draw_release(engine, workspace, wanted).counts.counts)


def count_pairs(engine: Engine, wanted: PrivatePlan) -> int:
    workspace = PlainWorkspace(engine)
    counted = Places.of(engine, workspace, wanted, secret_key()).count_marginals(PAIRS)
    workspace.drop(workspace.table("places"))
    return sum(map(len, counted))


def run_adult(file: Path) -> float:
    """Run over Adult in a file of DuckDB, and return the seconds."""
    with tempfile.TemporaryDirectory() as directory:
        url = f"duckdb:///{directory}/adult.duckdb"
        adult = Adult(file)
        with connect(url, create=True) as engine:
            adult.create(engine, "people")
            engine.load(Relation("people"), adult.names, adult.rows)
        adult.create(adult.engine, "people")  # its columns alone, to plan by
        policy = adult.plan("people", name="diffgen", specializations=10).policy
        source = policy.source.model_copy(update={"url": url})
        policy = policy.model_copy(update={"source": source, "budget": PrivacyBudget(ledger="adult")})
        grant_budget(policy, 1, "a benchmark")
        return time_of(lambda: run_private(policy))


def run_whole(rows: int, repeat: int) -> None:
    """Run over the generator's table in a file of DuckDB, and print the seconds beside those of a GROUP BY."""
    with tempfile.TemporaryDirectory() as directory:
        url = f"duckdb:///{directory}/people.duckdb"
        with connect(url, create=True) as engine:
            engine.execute(Statement("create", create_statement(engine.name, "people", Wanted(rows))))
            policy = plan(engine, tuple(STEPS), name="diffgen", specializations=10).policy
            grouped = [time_of(lambda: engine.fetch(GROUPED)) for _ in range(repeat)]
        source = policy.source.model_copy(update={"url": url})
        policy = policy.model_copy(update={"source": source, "budget": PrivacyBudget(ledger="people")})
        grant_budget(policy, repeat, "a benchmark")
        runs = [time_of(lambda: run_private(policy, replace=True)) for _ in range(repeat)]
    whole, unit = statistics.median(runs), statistics.median(grouped)
    print(f"{rows:,} rows, whole runs: {whole:.2f} s = {whole / unit:.1f} x GROUP BY ({unit:.2f} s)")


def time_of(task: Callable[[], object]) -> float:
    started = time.perf_counter()
    task()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--url", default="duckdb:///:memory:")
    parser.add_argument("--adult", type=Path)
    parser.add_argument("--whole", action="store_true")
    given = parser.parse_args()
    if given.whole:
        run_whole(given.rows, given.repeat)
        return
    if given.adult is not None:
        seconds_of_adult = [run_adult(given.adult) for _ in range(given.repeat)]
        print(f"Adult, whole runs: {statistics.median(seconds_of_adult):.2f} s\n")
    engine = connect(given.url)
    engine.execute(Statement("create", create_statement(engine.name, "people", Wanted(given.rows))))
    wide = plan(engine, tuple(STEPS)[:7], name="contingency", threshold="auto")
    whole = plan(engine, tuple(STEPS), name="diffgen", specializations=10)
    tasks: dict[str, Callable[[], Any]] = {
        "GROUP BY": lambda: engine.fetch(GROUPED),
        "diffgen": drawer(engine, whole),
        "marginals": lambda: count_pairs(engine, whole),
        "threshold": drawer(engine, wide),
    }
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(given.repeat):
        for name, task in tasks.items():
            seconds[name].append(time_of(task))
    cells = math.prod((domain.size for domain in wide.domains.values()), start=wide.classes)
    print(f"{given.rows:,} rows; {cells:,} public cells above a threshold\n")
    print("| work | seconds | x GROUP BY |\n| --- | ---: | ---: |")
    for name, times in seconds.items():
        ratios = [one / other for one, other in zip(times, seconds["GROUP BY"], strict=True)]
        print(f"| {name} | {statistics.median(times):.1f} | {statistics.median(ratios):.1f} |")
    print(f"\nPeak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f} GB")


if __name__ == "__main__":
    main()
