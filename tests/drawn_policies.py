"""Policies drawn at random for the patients of `benchmarks/frozen_releases.py`: searches, models, forms of values."""

from __future__ import annotations

import itertools
import random
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
from frozen_releases import DISEASES, LATTICES, LEVELED, PLAIN, QUASI, TREES, policy_of

COSTS = {"disease": list(DISEASES), "days": range(60)}
"""The sensitive columns whose values have costs, with all of their values."""
SHAPES: dict[str, dict[str, Any]] = {
    "levels": LEVELED | {"zipcode": QUASI | {"hierarchy": {"mask": "right", "length": 5}}},
    "regions": PLAIN | {"income": QUASI, "cost": QUASI},
    "intervals": {"age": QUASI, "income": QUASI, "cost": QUASI},
    "clusters": {"cost": QUASI, "days": QUASI},
    "cells": {"age": QUASI, "job": QUASI},
    "levels of cells": {"age": LEVELED["age"], "job": LEVELED["job"]},
}


def write_costs(directory: Path) -> None:
    """Write the files of costs that drawn policies name."""
    for column, values in COSTS.items():
        pairs = enumerate(itertools.combinations(values, 2))
        lines = (f"{one};{other};{1 + number % 7}\n" for number, (one, other) in pairs)
        (directory / f"{column}.csv").write_text("".join(lines))


def drawn_policy(seed: int, population: str, costs: Path) -> dict[str, Any]:
    """Draw a policy without its places; `population` is a table of the same columns, `costs` the files' directory."""
    draw = random.Random(seed)
    shape, algorithm = draw.choice(_algorithms(draw))
    quasi = dict(SHAPES[shape])
    for name in quasi.keys() & {"age", "income", "cost"}:
        if shape == "regions" and draw.random() < 0.5:
            quasi[name] = QUASI | draw.choice([{"show": "bounds"}, {"show": "mean"}, {"top": {"quantile": 0.9}}])
    models = [draw.choice(_models(draw, population, costs)) for _ in range(draw.choice([0, 1, 1, 2]))]
    more = draw.choice([{}, {"ranges": "cuts"}, {"digest": "run"}, {"remainder": "recode"}, {"subject": "none"}])
    more |= draw.choice([{}, {"suppression": 0.3}, {"suppression": 0.3, "suppressed": "star"}])
    case = policy_of(quasi, *models, algorithm=algorithm, **more)
    return case | ({"privacy": models} if models and draw.random() < 0.2 else {})


def _algorithms(draw: random.Random) -> list[tuple[str, dict[str, Any]]]:
    """Each search, with the shape of the columns that it takes; a tree for a target of each type."""
    target = draw.choice(["disease", "days", 'Ward "A"'])
    split = {"split": "regression" if target == "days" else "information-gain", "target": target}
    return [
        *(("regions", one | (split if "split" in one else {})) for one in TREES.values()),
        ("regions", {"name": "mondrian", "partitioning": "relaxed"}),
        *(("levels", one) for one in LATTICES.values()),
        *(("intervals", {"name": "ordered-sets", "search": one, "cuts": 3}) for one in ("greedy", "exact")),
        *(("clusters", {"name": "microaggregation", "method": one}) for one in ("mdav", "v-mdav", "k-member")),
        ("clusters", {"name": "r-gather"}),
        ("clusters", {"name": "condensation", "groups": "nearest"}),
        ("cells", {"name": "local-suppression", "subsets": {1: 2}}),
        ("levels of cells", {"name": "cell-generalization"}),
    ]


def _models(draw: random.Random, population: str, costs: Path) -> list[dict[str, Any]]:
    """Each model of classes and of whole releases; of a sensitive text or number where it takes both."""
    column = draw.choice(list(COSTS))
    sensitive: list[dict[str, Any]] = [
        {"model": "distinct-l-diversity", "l": 2},
        {"model": "entropy-l-diversity", "l": 1.5},
        {"model": "recursive-l-diversity", "c": 3, "l": 2},
        *({"model": "t-closeness", "distance": one, "t": 0.4} for one in ("equal", "kl")),
        {"model": "t-closeness", "distance": {"csv": str(costs / f"{column}.csv")}, "t": 0.4},
        {"model": "beta-likeness", "beta": 3},
        {"model": "delta-disclosure", "delta": 3},
        {"model": "alpha-k", "alpha": 0.8, "k": 4},
        {"model": "confidence-bound", "confidence": 0.9, "values": [next(iter(COSTS[column]))]},
    ]
    return [
        *(model | {"attribute": column} for model in sensitive),
        {"model": "t-closeness", "attribute": "days", "distance": "ordered", "t": 0.3},
        {"model": "t-closeness", "attribute": "disease", "distance": "hierarchical", "t": 0.4},
        {"model": "variance-diversity", "attribute": "days", "v": 10},
        {"model": "average-risk", "risk": 0.3},
        {"model": "population-uniqueness", "share": 0.1, "sample_of": 0.25},
        {"model": "k-map", "population": population, "k": 3},
        {"model": "delta-presence", "population": population, "maximum": 0.99},
    ]
