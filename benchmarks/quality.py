"""Figures 22 to 27 of TR 1590: how well classes tell of a target, by the size of the samples that they were grown on.

python benchmarks/quality.py --into docs/evaluation --sets 10

For each target a PNG and, for all, quality.csv: means over data sets. Rothko-S with samples of n rows is shown as its
samples leave it, and after the leaves have been finished on all rows; the dotted line is Rothko-T. A result of samples
alone is potentially non-minimal, and drawn hollow, if a class of more rows than a sample, and twice k, is left in one
of the data sets: no split of its sample was sure to be allowable. What is finished on all rows is always minimal.
"""

from __future__ import annotations

import argparse
import csv
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from adult import WORKLOAD_ATTRIBUTES, create_workload_table
from agrawal import Wanted, create_statement
from matplotlib import pyplot as plt
from searches import Searches
from splits import policy as generated_policy

from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.sql import Statement

KS = (10, 100, 1_000)
SIZES = (250, 1_000, 2_500, 10_000, 25_000)
INFORMATION, REGRESSION = "information-gain", "regression"
FIGURES: dict[str, tuple[str, str]] = {
    "c2": (INFORMATION, "conditional entropy, bits"),
    "c7": (INFORMATION, "conditional entropy, bits"),
    "r7": (REGRESSION, "RMSE"),
    "r10": (REGRESSION, "RMSE"),
    "adult-salary-class": (INFORMATION, "conditional entropy, bits"),
    "adult-hours-per-week": (REGRESSION, "RMSE"),
}
"""By the name of a figure: how splits are chosen, and how the result is measured."""


@dataclass(frozen=True)
class Point:
    """The means over all data sets; `n` is None of Rothko-T."""

    figure: str
    k: int
    n: int | None
    alone: float | None
    finished: float
    classes: float
    open_sets: int
    sets: int


def measure(figure: str, sets: int, rows: int, ks: tuple[int, ...], sizes: tuple[int, ...]) -> list[Point]:
    """All points of a figure."""
    found: dict[tuple[int, int | None], list[Any]] = {}
    for number in range(1 if figure.startswith("adult") else sets):
        with connect("duckdb:///:memory:", EngineOptions(), create=True) as engine:
            searches = _searches(engine, figure, rows, number)
            for k in ks:
                found.setdefault((k, None), []).append(searches.exact(k))
                for n in sizes:
                    for seed in range(sets) if figure.startswith("adult") else [number]:
                        found.setdefault((k, n), []).append(searches.sampled(k, n, seed))
    return [_point(figure, k, n, values) for (k, n), values in found.items()]


def _searches(engine: Engine, figure: str, rows: int, number: int) -> Searches:
    split = {"split": FIGURES[figure][0], "target": figure.removeprefix("adult-")}
    if figure.startswith("adult"):
        engine.execute(Statement("create", create_workload_table("bench")))
        quasi = {name: {"role": "quasi-identifier"} for name in WORKLOAD_ATTRIBUTES if name != split["target"]}
        others = {} if split["target"] == "salary-class" else {"salary-class": {"role": "identifier"}}
        spec = generated_policy("duckdb:///:memory:", "bench", "c2", 2, {})
        spec |= {"attributes": {**quasi, **others, split["target"]: {"role": "insensitive"}}}
        return Searches(engine, spec, split)
    wanted = Wanted(rows, targets=True, seed=number)
    engine.execute(Statement("create", create_statement("duckdb", "bench", wanted)))
    return Searches(engine, generated_policy("duckdb:///:memory:", "bench", split["target"], 2, {}), split)


def _point(figure: str, k: int, n: int | None, values: list[Any]) -> Point:
    finished = values if n is None else [value.finished for value in values]
    quality = statistics.mean(one.quality for one in finished)
    classes = statistics.mean(one.classes for one in finished)
    alone = None if n is None else statistics.mean(value.alone.quality for value in values)
    open_sets = 0 if n is None else sum(value.alone.open for value in values)
    return Point(figure, k, n, alone, quality, classes, open_sets, len(values))


def draw(figure: str, points: list[Point], into: Path) -> None:
    """Draw one figure: a colour for each k."""
    drawn, axes = plt.subplots(figsize=(6.4, 4.2))
    for number, k in enumerate(sorted({point.k for point in points})):
        mine = sorted((p for p in points if p.k == k and p.n is not None), key=lambda p: p.n or 0)
        sizes, colour = [p.n for p in mine], f"C{number}"
        axes.plot(sizes, [p.alone for p in mine], "--", color=colour, label=f"k = {k:,}, samples alone")
        for p in mine:
            axes.plot(p.n, p.alone, "o", color=colour, markerfacecolor="white" if p.open_sets else colour)
        axes.plot(sizes, [p.finished for p in mine], "-", color=colour, label=f"k = {k:,}, finished")
        exact = [p.finished for p in points if p.k == k and p.n is None]
        axes.axhline(exact[0], color=colour, linestyle=":", linewidth=1)
    axes.set(xscale="log", xlabel="rows of a sample", ylabel=FIGURES[figure][1], title=figure)
    axes.legend(fontsize=7)
    drawn.tight_layout()
    drawn.savefig(into / f"quality-{figure}.png", dpi=90)
    plt.close(drawn)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=Path, default=Path("docs/evaluation"))
    parser.add_argument("--sets", type=int, default=10, help="how many data sets; of Adult, how many seeds")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--ks", type=int, nargs="+", default=KS)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--only", choices=list(FIGURES), action="append", help="these figures alone")
    arguments = parser.parse_args()
    mpl.use("Agg")
    arguments.into.mkdir(parents=True, exist_ok=True)
    names = list(Point.__dataclass_fields__)
    with (arguments.into / "quality.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(names)
        for figure in arguments.only or FIGURES:
            points = measure(figure, arguments.sets, arguments.rows, tuple(arguments.ks), tuple(arguments.sizes))
            table.writerows([getattr(point, name) for name in names] for point in points)
            file.flush()
            draw(figure, points, arguments.into)


if __name__ == "__main__":
    main()
