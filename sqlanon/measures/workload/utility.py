"""Utility of a published release for those who predict a target from it, against its source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import ConflictError, PolicyError
from sqlanon.measures.workload import SAMPLE, Prediction
from sqlanon.measures.workload.measures import Measures, measure, measure_whole, one_class
from sqlanon.measures.workload.tree import TreeScores, require_trees
from sqlanon.measures.workload.views import table_view
from sqlanon.plan.checks import target_problem
from sqlanon.plan.connecting import open_release, open_source, release_columns
from sqlanon.plan.lookup import require_columns
from sqlanon.policy import Policy, Recodes, Role


@dataclass(frozen=True)
class Utility:
    """Utility of a release for predicting a target, between the best and the worst that is possible.

    rows: of the source; omitted: those that the release lacks.
    baseline: without any quasi-identifier; release: by its classes; original: by the source's quasi-identifiers as
        they were.
    """

    source: str
    release_name: str
    target: str
    rows: int
    omitted: int
    baseline: Measures
    release: Measures
    original: Measures
    tree: TreeScores | None = None

    def as_json(self) -> dict[str, Any]:
        """One object of plain values."""
        each = {"baseline": self.baseline, "release": self.release, "source": self.original}
        document: dict[str, Any] = {"source": self.source, "release": self.release_name, "target": self.target}
        document |= {"rows": self.rows, "omitted": self.omitted}
        for name in self.baseline.as_json():
            document[name] = {of: measures.as_json()[name] for of, measures in each.items()}
        return document if self.tree is None else {**document, "tree": self.tree.as_json()}


_UNMEASURED = {
    Recodes.COUNTS: "A release of differential privacy can't be measured against its source: the figures would tell of"
    " it without noise, and no budget would be charged.",
    Recodes.NOISE: "A release with noise is measured by `sqlanon loss`, and has no classes to predict by.",
    Recodes.ITEMS: "A release with hidden rules has no classes to predict by; its run counts what was lost.",
    Recodes.ROWS: "A release by algorithm: masking has every row as it is, and no classes to predict by.",
}


def release_utility(
    policy: Policy,
    target: str,
    *,
    tree: bool = False,
    predict: Prediction | None = None,
    sample: int = SAMPLE,
    options: EngineOptions | None = None,
) -> Utility:
    """Measure the policy's published release against its source, as both are now.

    target: a sensitive or insensitive attribute.
    tree: also train decision trees, on the whole table or a random sample of `sample` rows; needs scikit-learn.
    predict: whether the trees are to predict a `class` or a `number`; by default a number for decimals, floats, and
        integers of more than 20 values.

    Raises PolicyError (no such release, a target that can't be predicted), ConflictError (the source is no longer the
    one that was released), AccessError, EngineError.
    """
    if tree:
        require_trees()
    if (unmeasured := _UNMEASURED.get(policy.algorithm.recodes)) is not None:
        raise PolicyError(unmeasured)
    _check(policy, target)
    held = _count_release(policy, target, options)
    with open_source(policy, options, read_only=True) as (engine, source):
        names = [name for name, one in policy.attributes.items() if one.role is Role.QUASI_IDENTIFIER]
        require_columns(engine, source, [*names, target])
        (rows,) = engine.query_one("count_rows", table=source)
        if not rows or held > rows:
            raise ConflictError(
                "The release holds more rows than its source: the source changed after the run. "
                "Run the policy again (--replace)."
            )
        view = table_view(engine, source, names, target)
        whole = measure_whole(engine, view, rows, lacking=held < rows)
        original, baseline = measure(engine, view, whole), measure(engine, one_class(view), whole)
    with open_release(policy, options=options) as (engine, release):
        columns = release_columns(policy, {column.name for column in engine.columns(release)})
        shown = table_view(engine, release, columns, target)
        if shown.number is None and whole.power_sums is not None:
            raise _other_type(target)
        released = measure(engine, shown, whole)
    scores = None
    if tree:
        from sqlanon.measures.workload.comparison import compare_trees

        scores = compare_trees(policy, target, predict, sample, options)
    place = policy.source.table or policy.source.file or "", policy.release.table or policy.release.file or ""
    return Utility(*place, target, rows, rows - held, baseline, released, original, scores)


def _check(policy: Policy, target: str) -> None:
    roles = {name: attribute.role for name, attribute in policy.attributes.items()}
    problem = target_problem(target, roles, policy.source.table or policy.source.file or "")
    if problem is not None:
        raise PolicyError(f"The target '{target}': {problem}")


def _other_type(target: str) -> PolicyError:
    return PolicyError(
        f"The target '{target}' is a number, and text in the release: a CSV file keeps no types, and numbers of many"
        " digits are read as text. Release to Parquet or to a table."
    )


def _count_release(policy: Policy, target: str, options: EngineOptions | None) -> int:
    """The rows of the release, which must have the columns it is to have."""
    with open_release(policy, options=options) as (engine, release):
        columns = release_columns(policy, {column.name for column in engine.columns(release)})
        require_columns(engine, release, [*columns, target])
        (rows,) = engine.query_one("count_rows", table=release)
        return int(rows)
