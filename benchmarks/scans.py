"""Section 4 of TR 1590: how often rows are read, as the paper predicts it and as the statements of a search read them.

python benchmarks/scans.py --into docs/evaluation --rows 200000

A table that holds rows counts, each time that a statement names it, with its share of the source's rows: those that are
still active. The paper reads the active rows of a level of Rothko-T twice, to count the groups and to send the rows on,
and writes them once; an episode of Rothko-S reads the rows twice, to draw and to repartition. Writes scans.csv.
"""

from __future__ import annotations

import argparse
import csv
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agrawal import Wanted, create_statement
from splits import policy as generated_policy

from sqlanon.encoding.coded_table import encode
from sqlanon.engines import connect
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.methods.partitioning import mondrian
from sqlanon.methods.partitioning.policy import RothkoS
from sqlanon.methods.partitioning.sampling import rothko_s
from sqlanon.models.k_anonymity import KAnonymity
from sqlanon.plan.plan import resolve_source
from sqlanon.policy.loading import build_policy
from sqlanon.sql import Statement
from sqlanon.work.workspace import TemporaryWorkspace

SEARCHES: dict[str, dict[str, Any]] = {
    "rothko-t, median": {"name": "rothko-t"},
    "rothko-t, information-gain of c2": {"name": "rothko-t", "split": "information-gain", "target": "c2"},
    "rothko-t, regression of r7": {"name": "rothko-t", "split": "regression", "target": "r7"},
    "rothko-s, median": {"name": "rothko-s", "exact_below": 0},
}
ROWS = re.compile(r'"w_\w+?_(?:coded|rows_\d+|gained_\d+|keyed|parked)"')
WRITES = re.compile(r"^(?:CREATE OR REPLACE TEMP TABLE|INSERT INTO) (?:\"\w+\"\.)*(\"\w+\")")
Row = tuple[str, int, float, float, float, float]  # search, level, active, predicted, issued, written


@dataclass
class Ledger:
    """Listens to the levels of Rothko-T; shares are of the source's rows.

    sizes: how many rows each table holds.
    """

    rows: int
    sizes: Counter[str] = field(default_factory=Counter)
    levels: list[list[float]] = field(default_factory=lambda: [[1.0, 0.0, 0.0]])

    def __call__(self, statement: Statement, _seconds: float, written: int) -> None:
        begun = WRITES.match(statement.text)
        body = statement.text[begun.end() :] if begun else statement.text
        read = sum(self.sizes[table] for table in ROWS.findall(body))
        self.levels[-1][1] += read / self.rows
        if begun and ROWS.fullmatch(begun[1]):
            kept = self.sizes[begun[1]] if statement.text.startswith("INSERT") else 0
            self.sizes[begun[1]] = kept + max(written, 0)
            self.levels[-1][2] += max(written, 0) / self.rows
        if statement.name == "algorithms/tree/scan/split_rows":
            self.levels.append([written / self.rows, 0.0, 0.0])


def measure(name: str, rows: int, k: int, sample: int) -> list[Row]:
    """The levels of a search by Rothko-T, or the episodes of one by Rothko-S together."""
    algorithm = SEARCHES[name]
    with connect("duckdb:///:memory:", EngineOptions(), create=True) as engine:
        engine.execute(Statement("create", create_statement("duckdb", "bench", Wanted(rows, targets=True))))
        spec = generated_policy("duckdb:///:memory:", "bench", algorithm.get("target", "c2"), k, {})
        sized = {"sample": sample} if algorithm["name"] == "rothko-s" else {}
        built = build_policy({**spec, "algorithm": {**algorithm, **sized}})
        workspace = TemporaryWorkspace(engine)
        plan = resolve_source(built, engine)
        with engine.transaction():
            coded = encode(engine, plan, workspace)
        ledger = Ledger(rows)
        ledger.sizes[ROWS.search(str(coded.rows))[0]] = rows  # type: ignore[index]
        engine.listener = ledger
        search: Any = rothko_s.search if isinstance(built.algorithm, RothkoS) else mondrian.search
        found = search(engine, workspace, coded, None, [KAnonymity(k)], built.algorithm, lambda _progress: None).facts
    if isinstance(built.algorithm, RothkoS):
        return [(name, found.samplings, 1.0, 2.0 * found.samplings, found.scans, 0.0)]
    return [(name, level, active, 2 * active, *both) for level, (active, *both) in enumerate(ledger.levels)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=Path, default=Path("docs/evaluation"))
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--k", type=int, default=100)
    parser.add_argument("--sample", type=int, default=20_000)
    arguments = parser.parse_args()
    arguments.into.mkdir(parents=True, exist_ok=True)
    with (arguments.into / "scans.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(("search", "level", "active", "predicted", "issued", "written"))
        for name in SEARCHES:
            found = measure(name, arguments.rows, arguments.k, arguments.sample)
            table.writerows([*row[:2], *(round(value, 3) for value in row[2:])] for row in found)
            total = [sum(row[place] for row in found) for place in (3, 4, 5)]
            print(f"| {name} | {len(found)} | " + " | ".join(f"{value:.1f}" for value in total) + " |", flush=True)


if __name__ == "__main__":
    main()
