"""Naive Bayes of codes: probabilities of each feature by class, smoothed by one row a code, as whole logarithms."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

from sqlanon.engines.base import Engine
from sqlanon.methods.randomization.reconstruction.classifying.features import Feature
from sqlanon.methods.randomization.reconstruction.classifying.growing import Trees
from sqlanon.sql import Relation
from sqlanon.work.workspace import Workspace

_UNIT = 2.0**20  # of a logarithm, so that sums are exact
_PRIOR = -1  # the feature of the probabilities of classes


def count_right(
    engine: Engine, workspace: Workspace, training: Relation, features: Sequence[Feature], trees: Trees
) -> dict[int, int]:
    """Count, by root, the rows for testing whose class is predicted rightly from those for training.

    training: the rows at the roots.
    """
    listed, counts, scores = (
        [one.listed(engine) for one in features],
        workspace.table("codes"),
        workspace.table("scores"),
    )
    engine.run("methods/randomization/classification/count_codes", counts=counts, training=training, features=listed)
    counted: dict[tuple[int, int, int], dict[int, int]] = defaultdict(dict)
    for node, feature, code, class_, n in engine.query(
        "methods/randomization/classification/list_codes", counts=counts
    ):
        counted[int(node), int(feature), int(class_)][int(code)] = int(n)
    engine.run("methods/randomization/classification/create_scores", scores=scores)
    rows = [row for root, node in trees.roots.items() for row in _scores(root, node.rows, features, counted)]
    engine.load(scores, ["node", "feature", "code", "s", "score"], rows)
    right = engine.query(
        "methods/randomization/classification/count_right", training=training, scores=scores, features=listed
    )
    workspace.drop(counts, scores)
    return {int(node): int(n) for node, n in right}


def _scores(
    root: int,
    classes: dict[int, int],
    features: Sequence[Feature],
    counted: dict[tuple[int, int, int], dict[int, int]],
) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield the scores of a root: of its classes, and of every code of each feature in a class."""
    for class_, rows in classes.items():
        yield root, _PRIOR, 0, class_, round(math.log2(rows) * _UNIT)
        for one in features:
            codes = counted[root, one.number, class_]
            for code in range(one.last + 1):
                share = (codes.get(code, 0) + 1) / (rows + one.last + 1)
                yield root, one.number, code, class_, round(math.log2(share) * _UNIT)
