"""The quality models in plain Python, row by row: the scores of a generalization of a case (see docs/quality.md)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from tests.oracle.lattice import Case, Node, Row

Weights = Sequence[float]


def height(_case: Case, node: Node, weights: Weights) -> float:
    return sum(weight * level for weight, level in zip(weights, node, strict=True))


def precision(case: Case, node: Node, weights: Weights) -> float:
    out = len(case.suppressed_rows(node))
    kept = len(case.rows) - out
    parts = [(kept * level / h.height + out) / len(case.rows) for level, h in zip(node, case.hierarchies, strict=True)]
    return sum(w * part for w, part in zip(weights, parts, strict=True)) / sum(weights)


def discernibility(case: Case, node: Node, _weights: Weights) -> float:
    out = case.suppressed_rows(node)
    return sum(len(rows) ** 2 for rows in _kept(case, node).values()) + len(case.rows) * len(out)


def aecs(case: Case, node: Node, _weights: Weights) -> float:
    return len(case.rows) / (len(_kept(case, node)) + bool(case.suppressed_rows(node)))


def entropy(case: Case, node: Node, weights: Weights) -> float:
    out = case.suppressed_rows(node)
    kept = [row for rows in _kept(case, node).values() for row in rows]
    total = []
    for i, (hierarchy, level, weight) in enumerate(zip(case.hierarchies, node, weights, strict=True)):
        values = Counter(row[i] for row in kept)
        groups = Counter(hierarchy.label(row[i], level) for row in kept)
        total += [-weight * math.log2(values[row[i]] / groups[hierarchy.label(row[i], level)]) for row in kept]
        starred = Counter(row[i] for row in out)
        total += [-weight * math.log2(starred[row[i]] / len(out)) for row in out]
    return math.fsum(total)


def arx_entropy(case: Case, node: Node, weights: Weights) -> float:
    """Values and groups are counted over the whole table; suppressed rows are counted once more, by their groups."""
    out, total = case.suppressed_rows(node), []
    for i, (hierarchy, level, weight) in enumerate(zip(case.hierarchies, node, weights, strict=True)):
        shown = [hierarchy.label(row[i], level) for row in case.rows]
        values, groups = Counter(row[i] for row in case.rows), Counter(shown)
        pairs = zip(case.rows, shown, strict=True)
        total += [-weight * math.log2(values[row[i]] / groups[group]) for row, group in pairs]
        gone = Counter(hierarchy.label(row[i], level) for row in out)
        total += [-weight * n * math.log2(n / len(out)) for n in gone.values()]
    return math.fsum(total)


def divergence(case: Case, node: Node, _weights: Weights) -> float:
    rows = case.rows
    originals = Counter(row[:-1] for row in rows)
    leaves = [_leaves(case, i) for i in range(len(case.hierarchies))]
    out, total = case.suppressed_rows(node), []
    for members in _kept(case, node).values():
        for row in members:
            covered = (
                h.share(h.label(row[i], node[i]), node[i], leaves[i]) * leaves[i]
                for i, h in enumerate(case.hierarchies)
            )
            total.append(math.log(originals[row[:-1]] / (len(members) / math.prod(covered))))
    total += [math.log(originals[row[:-1]] / (len(out) / math.prod(leaves))) for row in out]
    return math.fsum(total) / len(rows)


SCORES: Mapping[str, Callable[[Case, Node, Weights], float]] = {
    "height": height,
    "precision": precision,
    "discernibility": discernibility,
    "aecs": aecs,
    "entropy": entropy,
    "entropy-arx": arx_entropy,
    "kl-divergence": divergence,
}


def _leaves(case: Case, place: int) -> int:
    """The leaves of a hierarchy, NULL one of them if it occurs."""
    return len(case.hierarchies[place].paths) + any(row[place] is None for row in case.rows)


def _kept(case: Case, node: Node) -> dict[Row, list[Row]]:
    """The classes that are not suppressed."""
    out = Counter(case.suppressed_rows(node))
    return {key: rows for key, rows in case.classes(node).items() if not out[rows[0]]}
