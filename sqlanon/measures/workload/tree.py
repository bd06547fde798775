"""A decision tree trained on a release against one trained on its source, by cross-validation (scikit-learn)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sqlanon.errors import SqlanonError
from sqlanon.measures.workload import Prediction
from sqlanon.measures.workload.geometry import Floats, Geometry, Integers

FOLDS = 5


@dataclass(frozen=True)
class TreeScores:
    """Scores of trees on rows that they were not trained on; `baseline` is without any quasi-identifier.

    For a class the scores are shares of rows predicted rightly; for a number root mean squared errors, in its unit.
    rows: how many were used; suppressed: how many of them are in no class of the release.
    """

    predicts: Prediction
    rows: int
    suppressed: int
    folds: int
    baseline: float
    release: float
    source: float

    @property
    def measure(self) -> str:
        """The measure of the scores."""
        return "accuracy" if self.predicts == "class" else "rmse"

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        scores = {"baseline": self.baseline, "release": self.release, "source": self.source}
        rest = {"rows": self.rows, "suppressed": self.suppressed, "folds": self.folds}
        return {"predicts": self.predicts, self.measure: scores, **rest}


def require_trees() -> None:
    """Raises SqlanonError if scikit-learn is not there."""
    try:
        import sklearn.tree  # noqa: F401
    except ImportError:
        raise SqlanonError("Decision trees need scikit-learn: pip install 'sqlanon[workload]'.") from None


def score_trees(geometry: Geometry, box: Integers, target: NDArray[Any], predicts: Prediction) -> TreeScores:
    """Cross-validate both trees on the same folds.

    geometry, box: the source's rows and the release's classes, and the class of each row (-1: suppressed).
    target: the rows' classes as whole numbers, or their numbers. The scores do not depend on the order of the rows.
    """
    order = np.lexsort((*geometry.points.T[::-1], target))
    points, box, target = geometry.points[order], box[order], target[order]
    exact, shown = np.hstack([points, points]), _shown(geometry, box)
    folds = _folds(target)
    held = {name: np.empty(len(target), dtype=target.dtype) for name in ("baseline", "release", "source")}
    for fold in range(FOLDS):
        test = folds == fold
        train = ~test
        usual = _usual(target[train], predicts)
        held["baseline"][test] = usual
        held["source"][test] = _predict(exact[train], target[train], exact[test], predicts, usual)
        train &= box >= 0
        held["release"][test] = _predict(shown[train], target[train], shown[test], predicts, usual)
    scores = {name: _score(values, target, predicts) for name, values in held.items()}
    return TreeScores(predicts, len(target), int((box < 0).sum()), FOLDS, **scores)


def _shown(geometry: Geometry, box: Integers) -> Floats:
    """Two features an attribute: the ends of the region that the row's class shows; of a suppressed row of all.

    To the source's tree a value is a region of its own, so that both choose from as many features.
    """
    low = np.vstack([geometry.low, np.full(len(geometry.beyond), -1.0)])
    high = np.vstack([geometry.high, geometry.beyond])
    return np.hstack([low[box], high[box]])


def _folds(target: NDArray[Any]) -> Integers:
    """A fold for each of the ordered rows: at random, but so that every fold has its share of each range of targets."""
    rng = np.random.default_rng(0)
    rounds = -(-len(target) // FOLDS)
    return np.concatenate([rng.permutation(FOLDS) for _ in range(rounds)])[: len(target)]


def _usual(target: NDArray[Any], predicts: Prediction) -> Any:
    """The most frequent class, the least of several; or the mean."""
    if predicts == "number":
        return target.mean()
    values, counts = np.unique(target, return_counts=True)
    return values[counts.argmax()]


def _predict(train: Floats, target: NDArray[Any], test: Floats, predicts: Prediction, usual: Any) -> Any:
    """Predict `test` by a tree; a leaf holds a thousandth of the training rows, at least 5."""
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    if not len(target):
        return usual
    leaf = max(5, len(target) // 1000)
    if predicts == "class":
        tree = DecisionTreeClassifier(criterion="entropy", min_samples_leaf=leaf, random_state=0)
    else:
        tree = DecisionTreeRegressor(min_samples_leaf=leaf, random_state=0)
    return tree.fit(train, target).predict(test)


def _score(predicted: NDArray[Any], target: NDArray[Any], predicts: Prediction) -> float:
    if predicts == "class":
        return int((predicted == target).sum()) / len(target)
    return float(np.sqrt(np.mean((predicted - target) ** 2)))
