"""Figure 28 of TR 1590: nodes that a first sample splits and all rows refuse, with hypothesis tests and without.

python benchmarks/pruned.py --into docs/evaluation --rows 100000

Splits are medians of one sample of n rows, as in the paper; all rows go through the tree, and what violates a model is
pruned. Tests have the level 0.05; the naive check takes the sample for the whole. The variance of salary is about 1.4e9
in the whole table, uniform or normal. Writes pruned.csv, and a PNG for each kind of requirement.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
from agrawal import Wanted, create_statement
from matplotlib import pyplot as plt
from sampling import SIZES, pruned_nodes

from sqlanon.engines import connect
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.sql import Statement

Model = dict[str, Any]
Row = tuple[str, str, int, int, int]  # panel, requirement, n, pruned under tests, and under the naive check
TITLES = {
    "k": "k-anonymity",
    "diversity": "(1, l)-diversity of zipcode, k = 10",
    "uniform": "variance of salary, uniform, k = 10",
    "normal": "variance of salary, normal, k = 10",
}


def requirements(panel: str) -> dict[str, list[Model]]:
    """List the models of each line of a panel, by the line's name."""
    if panel == "k":
        return {f"k = {k:,}": [_k(k)] for k in (10, 100, 1_000)}
    if panel == "diversity":
        diverse = {"model": "recursive-l-diversity", "attribute": "zipcode", "c": 1}
        return {f"l = {least}": [_k(10), {**diverse, "l": least}] for least in range(2, 9)}
    varied = {"model": "variance-diversity", "attribute": "salary"}
    return {f"v = {v:.1e}": [_k(10), {**varied, "v": v}] for v in (0.4e9, 0.8e9, 1.0e9, 1.2e9)}


def _k(k: int) -> Model:
    return {"model": "k-anonymity", "k": k}


def measure(panel: str, rows: int, sizes: tuple[int, ...]) -> Iterator[Row]:
    """The pruned nodes of a panel."""
    with tempfile.TemporaryDirectory() as directory:
        url = f"duckdb:///{Path(directory) / 'bench.duckdb'}"
        with connect(url, EngineOptions(), create=True) as engine:
            wanted = Wanted(rows, normal=panel == "normal")
            engine.execute(Statement("create", create_statement(engine.name, "bench", wanted)))
            for name, models in requirements(panel).items():
                for n, (tests, naive) in zip(sizes, pruned_nodes(engine, url, models, sizes), strict=True):
                    yield panel, name, n, tests, naive


def draw(panel: str, found: list[Row], into: Path) -> None:
    """Both checks beside each other, a line for each requirement."""
    drawn, both = plt.subplots(1, 2, figsize=(8, 3.8), sharey=True)
    for axes, title, place in zip(both, ("hypothesis tests", "naive check"), (3, 4), strict=True):
        for name in dict.fromkeys(row[1] for row in found):
            mine = [row for row in found if row[1] == name]
            axes.plot([row[2] for row in mine], [row[place] for row in mine], "o-", markersize=3, label=name)
        axes.set(xscale="log", xlabel="rows of the sample", title=title)
        axes.set_yscale("symlog", linthresh=1)
    both[0].set_ylabel("pruned nodes")
    both[0].legend(fontsize=7)
    drawn.suptitle(TITLES[panel])
    drawn.tight_layout()
    drawn.savefig(into / f"pruned-{panel}.png", dpi=90)
    plt.close(drawn)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=Path, default=Path("docs/evaluation"))
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--only", choices=list(TITLES), action="append", help="these panels alone")
    arguments = parser.parse_args()
    mpl.use("Agg")
    arguments.into.mkdir(parents=True, exist_ok=True)
    with (arguments.into / "pruned.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(("panel", "requirement", "n", "tests", "naive"))
        for panel in arguments.only or TITLES:
            found = list(measure(panel, arguments.rows, tuple(arguments.sizes)))
            table.writerows(found)
            file.flush()
            draw(panel, found, arguments.into)


if __name__ == "__main__":
    main()
