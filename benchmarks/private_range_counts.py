"""Errors of random range counts on Adult that are answered from differentially private releases.

python benchmarks/private_range_counts.py ../shared/data/adult/adult14.csv --draws 5

A count is of the rows whose one, two or three random columns are in a random range (numbers) or a random half
(categories) of the declared values. Its error is by how many rows the answer of the release is off; the mean over all
counts and draws is shown. Five columns are few enough to count all of their combinations (`contingency`). The list of
`marginals` is a star: each column with the target. `columns` is `marginals` of single columns, `nothing` a release
without rows.
"""

from __future__ import annotations

import argparse
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from private_utility import TARGET, Adult, Numbers

from sqlanon.methods.differential_privacy.drawing.marginals import sizes_of
from sqlanon.methods.differential_privacy.plan import PrivatePlan
from sqlanon.methods.differential_privacy.public_domain import NumberDomain

STEPS: dict[str, tuple[int, int, int]] = {
    "age": (15, 95, 5),
    "fnlwgt": (0, 500_000, 50_000),
    "education-num": (1, 17, 1),
    "capital-gain": (0, 20_000, 1_000),
    "capital-loss": (0, 3_000, 250),
    "hours-per-week": (0, 100, 5),
}
FEW = ("age", "education-num", "relationship", "sex")


@dataclass(frozen=True)
class Count:
    """The conditions of a count: by the number of a column, which of its places are taken."""

    conditions: dict[int, Numbers]

    @classmethod
    def draw(cls, plan: PrivatePlan, columns: int, numbers: np.random.Generator) -> Count:
        sizes, domains = sizes_of(plan), [*plan.domains.values()]
        conditions = {}
        for column in numbers.choice(len(sizes), columns, replace=False).tolist():
            places = np.arange(sizes[column])
            if column < len(domains) and isinstance(domains[column], NumberDomain):
                low, high = sorted(numbers.integers(0, sizes[column], 2).tolist())
                conditions[column] = (places >= low) & (places <= high)
            else:
                conditions[column] = numbers.permutation(places) < max(1, sizes[column] // 2)
        return cls(conditions)

    def of(self, rows: Numbers, times: Numbers) -> float:
        """Count rows of places, each so many times."""
        taken = np.ones(len(times), dtype=bool)
        for column, places in self.conditions.items():
            taken &= places[rows[:, column]]
        return float(times[taken].sum())


def errors(adult: Adult, plan: PrivatePlan | None, exact: Numbers, counts: list[list[Count]]) -> list[float]:
    """Draw a release, and return the mean errors of counts of one, two and three columns; without a plan of nothing."""
    rows, times = exact[:0], np.zeros(0)
    if plan is not None:
        drawn = adult.draw(plan).counts.counts
        rows = np.stack(np.unravel_index([cell for cell, _ in drawn], sizes_of(plan)), axis=1)
        times = np.array([n for _, n in drawn])
    every = np.ones(len(exact))
    return [
        statistics.mean(abs(count.of(rows, times) - count.of(exact, every)) for count in of_columns)
        for of_columns in counts
    ]


def algorithms(plan: PrivatePlan, *, all_cells: bool) -> dict[str, dict[str, Any] | None]:
    """The algorithms that are compared, with their parameters."""
    star = [[name, TARGET] for name in plan.domains]
    return {
        "nothing": None,
        **({"contingency": {"name": "contingency"}} if all_cells else {}),
        "columns": {"name": "marginals", "marginals": [[name] for name in plan.shown]},
        "marginals": {"name": "marginals", "marginals": star},
        "mst": {"name": "mst"},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--counts", type=int, default=200)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.1, 0.25, 0.5, 1])
    given = parser.parse_args()
    adult = Adult(given.file)
    table = adult.divide(0).table
    print("| columns | algorithm | epsilon | one column | two | three |")
    print("| ---: | --- | ---: | ---: | ---: | ---: |")
    for columns in (FEW, ()):
        common: dict[str, Any] = {"domains": STEPS, "columns": columns}
        plan = adult.plan(table, **common, name="mst")
        exact, numbers = adult.places(plan), np.random.default_rng(1)
        counts = [[Count.draw(plan, some, numbers) for _ in range(given.counts)] for some in (1, 2, 3)]
        for name, options in algorithms(plan, all_cells=bool(columns)).items():
            for epsilon in given.epsilon if options else [None]:
                wanted = None if options is None else adult.plan(table, epsilon, **common, **options)
                measured = [errors(adult, wanted, exact, counts) for _ in range(given.draws if options else 1)]
                shown = " | ".join(f"{statistics.mean(one):,.0f}" for one in zip(*measured, strict=True))
                print(f"| {len(plan.shown)} | {name} | {epsilon or '':} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
