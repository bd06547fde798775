"""Splits at every threshold, for nodes where the medians of all attributes failed.

The AVS groups of a node's values (LeFevre, DeWitt, TR 1590, section 2), taken upwards and downwards as running sums,
tell of nearly every threshold whether a model allows both sides, at a cost that depends on the rows and attributes of
the nodes alone. What the running sums leave open is measured exactly, in batches of bounded size, the best first, until
every node has a threshold that stands, or none left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sqlanon.algorithms.tree.task import Branch, Task
from sqlanon.encoding.axes import masked_value
from sqlanon.encoding.domains import Sensitive
from sqlanon.models.base import Groups, PrivacyModel, Runs
from sqlanon.models.solver import settle_groups
from sqlanon.sql import Expression, Identifier, Relation, macro

BATCH_ROWS = 2_000_000  # that the children of one batch have together, at most
FIRST_EACH, MOST_EACH = 4, 1 << 30  # thresholds of a node in a batch; every batch may take twice as many


@dataclass(frozen=True)
class OpenThresholds:
    """The thresholds that are, or may be, allowable: `(split, candidate, node, threshold, below, above, largest, place,
    open)`; `below` and `above` are the rows of the children, `place` is the order of preference in the node.

    table: in it, only the first of a node that is surely allowable is kept, and the open ones before it.
    tables: all tables that were made on the way.
    """

    table: Relation
    tables: tuple[Relation, ...]


def searchable(task: Task) -> bool:
    """Tell whether thresholds other than the medians may be allowable where these are not.

    Not under k-anonymity alone: if any threshold leaves k rows on both sides, so does one of the median's two. Where
    persons may have several sensitive values, medians are all that is tried.
    """
    if task.counts_persons:
        return False  # running sums of persons with a value are not those of persons
    return bool(task.models_of_content) and any(axis.dimension is None for axis in task.axes)


def search_thresholds(
    branch: Branch, rows: Relation | Expression, candidates: Relation, ranked: Relation | None = None
) -> OpenThresholds:
    """The best allowable threshold of every candidate node that has one, of the candidates that are cut at values.

    ranked: the thresholds that come into question, by what they gain; otherwise all do, those of the widest attribute
        first, then the most even one.
    """
    return _ThresholdSearch(branch, candidates, ranked).search(rows)


class _ThresholdSearch:
    """The search of one round."""

    def __init__(self, branch: Branch, candidates: Relation, ranked: Relation | None) -> None:
        self.branch, self.task = branch, branch.task
        self.candidates, self.ranked = candidates, ranked
        self.models = branch.task.models_of_content
        self.fewest = max(model.least_rows for model in branch.task.models)
        self.runs = [branch.table(f"runs{i}_") for i in range(len(branch.task.sensitive))]
        self.groups = branch.table("value_groups")
        self.tables: list[Relation] = []

    def search(self, rows: Relation | Expression) -> OpenThresholds:
        for runs, sensitive in zip(self.runs, self.task.sensitive, strict=True):
            self._follow_values(rows, runs, sensitive)
        open_thresholds, remaining = self._table("open_thresholds"), self._table("remaining")
        self._create_open_thresholds(open_thresholds)
        each = FIRST_EACH
        while self.branch.ask("count_open", open_thresholds=open_thresholds)[0]:
            self._measure_batch(open_thresholds, remaining, each)
            open_thresholds, remaining = remaining, open_thresholds
            each = min(2 * each, MOST_EACH)
        self.branch.workspace.drop(*self.runs, self.groups)
        return OpenThresholds(open_thresholds, tuple(dict.fromkeys(self.tables)))

    def _table(self, meaning: str) -> Relation:
        table = self.branch.table(meaning)
        self.tables.append(table)
        return table

    def _renew(self, *tables: Relation) -> None:
        """Make room for tables that an earlier batch may have made."""
        if not self.branch.engine.traits.replaces_work_tables:
            self.branch.workspace.drop(*tables)

    def _follow_values(self, rows: Relation | Expression, runs: Relation, sensitive: Sensitive) -> None:
        self._renew(self.groups)
        self.branch.scan(
            "count_value_groups",
            groups=self.groups,
            rows=rows,
            candidates=self.candidates,
            word=sensitive.word,
            mask=sensitive.mask,
            value=masked_value("c", self.task.words),
            weight=self.task.weight("x"),
            carried=self.task.carried_weight("r"),
        )
        self.branch.decide("follow_values", runs=runs, groups=self.groups, fewest=self.fewest)
        self.branch.engine.analyze(runs)

    def _create_open_thresholds(self, open_thresholds: Relation) -> None:
        thresholds = self._table("thresholds")
        self._list_thresholds(thresholds)
        follows = [self._render_prefixes(model) for model in self.models]
        values = {"open_thresholds": open_thresholds, "thresholds": thresholds, "by_gain": self.ranked is not None}
        self.branch.decide("create_open_thresholds", follows=follows, **values)

    def _list_thresholds(self, thresholds: Relation) -> None:
        values = {"thresholds": thresholds, "candidates": self.candidates}
        if self.ranked is not None:
            self.branch.decide("list_ranked_thresholds", ranked=self.ranked, **values)
            return
        self.branch.decide("list_thresholds", runs=self.runs[0], fewest=self.fewest, **values)

    def _render_prefixes(self, model: PrivacyModel) -> Expression:
        runs, sensitive = self._of(model, self.runs)
        runs_of = Runs(Markup(runs), Markup(sensitive.domain), self.task.table_rows, sensitive.height)
        return model.measure_prefixes(self.branch.engine.render, runs_of)

    def _of(self, model: PrivacyModel, tables: Sequence[Relation]) -> tuple[Relation, Sensitive]:
        """The table, out of one for each sensitive attribute, that the model looks at."""
        pairs = zip(tables, self.task.sensitive, strict=True)
        return next((table, sensitive) for table, sensitive in pairs if sensitive.name == model.attribute)

    def _measure_batch(self, open_thresholds: Relation, remaining: Relation, each: int) -> None:
        """Measure the children of the best open thresholds, and list the thresholds that stay open."""
        batch, measured = self._table("batch"), self._table("measured")
        tables: dict[str, Any] = {"open_thresholds": open_thresholds, "batch": batch}
        self._renew(batch, measured, remaining)
        self.branch.decide("choose_thresholds", each=each, most_rows=BATCH_ROWS, **tables)
        measures = self._measure_children(batch)
        self.branch.decide("measure_thresholds", measures=measures, batch=batch, measured=measured)
        self.branch.decide(
            "discard_thresholds", remaining=remaining, refuted=self._refuted(), measured=measured, **tables
        )

    def _measure_children(self, batch: Relation) -> list[Expression]:
        avs = [self._table(f"sides{i}_") for i in range(len(self.runs))]
        self._renew(*avs)
        for table, runs in zip(avs, self.runs, strict=True):
            self.branch.decide("count_sides", avs=table, runs=runs, batch=batch)

        def groups_of(model: PrivacyModel) -> Groups:
            counted, sensitive = self._of(model, avs)
            sizes, domain = macro("tree.sizes_of_groups", counted), Markup(sensitive.domain)
            return Groups(sizes, Markup(counted), domain, self.task.table_rows, sensitive.height)

        models = settle_groups(self.branch.engine, self.models, groups_of)
        return [self._render_measure(model, *self._of(model, avs)) for model in models]

    def _render_measure(self, model: PrivacyModel, avs: Relation, sensitive: Sensitive) -> Expression:
        classes, counted, domain = map(Markup, (Identifier("classes"), avs, sensitive.domain))
        groups = Groups(classes, counted, domain, self.task.table_rows, sensitive.height)
        return model.measure(self.branch.engine.render, groups)

    def _refuted(self) -> list[dict[str, Any]]:
        """List the conditions under which a measured class refutes its neighbours, under the models that have one."""
        shown = [{"model": number, "condition": model.implies_violation()} for number, model in enumerate(self.models)]
        return [entry for entry in shown if entry["condition"] is not None]
