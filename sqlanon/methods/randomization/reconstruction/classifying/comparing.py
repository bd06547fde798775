"""Classifiers from reconstructed distributions beside those of rows without noise, and of rows with noise as they are.

A fifth of the rows, drawn by a hash, tests all of them: of the source where it can be read, otherwise of the release.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlanon.engines.base import Engine
from sqlanon.methods.randomization.reconstruction.classifying.by_class import quotas_of
from sqlanon.methods.randomization.reconstruction.classifying.features import Feature, PredictedColumn, categories
from sqlanon.methods.randomization.reconstruction.classifying.growing import Trees, count_right_of, leaves_of, prune
from sqlanon.methods.randomization.reconstruction.result import Accuracy
from sqlanon.sql import Relation
from sqlanon.work.workspace import TemporaryWorkspace, Workspace

_PARTS = 5  # one of so many is for testing


_NOISE_FREE, _AS_IS, _RECONSTRUCTED = range(3)


_UNIT = 2.0**20  # of a logarithm, so that sums are exact


_PRIOR = -1  # the feature of the probabilities of classes


@dataclass(frozen=True)
class ClassifierComparison:
    """The accuracies of the classifiers; the rows that they were trained and tested on."""

    trained: int
    tested: int
    baseline: float
    noise_free: Accuracy | None
    as_is: Accuracy
    reconstructed: Accuracy


def compare(
    engine: Engine, release: Relation, source: Relation | None, features: Sequence[Feature], target: PredictedColumn
) -> ClassifierComparison:
    """Train and test all classifiers, in temporary tables. source: None where it can't be read."""
    work = _Rows(engine, features, target)
    released = work.read(release, "released")
    originals = None if source is None else work.read(source, "originals")
    training = work.place(released, originals)
    roots = (_AS_IS, _RECONSTRUCTED) if source is None else (_NOISE_FREE, _AS_IS, _RECONSTRUCTED)
    trees = Trees(engine, work.workspace, features, roots)
    copied = work.workspace.table("grown")
    engine.run("methods/randomization/classification/copy_rows", copied=copied, training=training)
    trees.grow(copied)
    by_bayes = count_right(engine, work.workspace, training, features, trees)
    accuracies: dict[int, Accuracy] = {}
    for root, node in trees.roots.items():
        baseline = node.tested.get(node.label, 0)
        prune(node, len(target.values), features)
        tested = sum(node.tested.values())
        by_tree, all_tested = count_right_of(node), max(1, tested)
        accuracies[root] = Accuracy(by_bayes.get(root, 0) / all_tested, by_tree / all_tested, len(leaves_of(node)))
    as_is = trees.roots[_AS_IS]
    return ClassifierComparison(
        sum(as_is.rows.values()),
        tested,
        baseline / max(1, tested),
        accuracies.get(_NOISE_FREE),
        accuracies[_AS_IS],
        accuracies[_RECONSTRUCTED],
    )


class _Rows:
    """Rows as codes, at the roots of the trees."""

    def __init__(self, engine: Engine, features: Sequence[Feature], target: PredictedColumn) -> None:
        self.engine = engine
        self.workspace = TemporaryWorkspace(engine)
        self.features = features
        self.target = target
        self._listed = [one.listed(engine) for one in features]
        self._categories = self.workspace.table("categories")
        engine.run("methods/randomization/classification/create_categories", categories=self._categories)
        engine.load(self._categories, ["feature", "text", "code"], list(categories(features, target)))

    def read(self, relation: Relation, meaning: str) -> Relation:
        """Write the rows of a table as codes, and draw those for testing."""
        rows = self.workspace.table(meaning)
        self.engine.run(
            "methods/randomization/classification/create_rows",
            rows=rows,
            relation=relation,
            categories=self._categories,
            features=self._listed,
            target=self.target.text(self.engine),
            unknown_target=len(self.target.values) - 1,
            parts=_PARTS,
        )
        return rows

    def place(self, released: Relation, originals: Relation | None) -> Relation:
        """Put rows at the roots: for training each root's own, for testing the same ones at all of them."""
        training, quotas = self.workspace.table("training"), self.workspace.table("quotas")
        self.engine.run(
            "methods/randomization/classification/create_training", training=training, features=self._listed
        )
        if originals is not None:
            self._insert(training, originals, _NOISE_FREE, is_test=False)
            self._insert(training, originals, _NOISE_FREE, is_test=True)
        for root in (_AS_IS, _RECONSTRUCTED):
            self._insert(training, released if originals is None else originals, root, is_test=True)
        self._insert(training, released, _AS_IS, is_test=False)
        self.engine.run("methods/randomization/classification/create_quotas", quotas=quotas)
        rows = [row for one in self.features if one.change for row in quotas_of(self.engine, released, one)]
        self.engine.load(quotas, ["feature", "s", "shown", "code", "above", "upto"], rows)
        self.engine.analyze(quotas)
        self.engine.run(
            "methods/randomization/classification/insert_assigned",
            training=training,
            rows=released,
            quotas=quotas,
            features=self._listed,
            node=_RECONSTRUCTED,
        )
        self.engine.analyze(training)
        return training

    def _insert(self, training: Relation, rows: Relation, node: int, *, is_test: bool) -> None:
        self.engine.run(
            "methods/randomization/classification/insert_rows",
            training=training,
            rows=rows,
            node=node,
            is_test=is_test,
            features=self._listed,
        )


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
