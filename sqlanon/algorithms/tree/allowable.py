"""Check candidates: every child that a split would make is checked by every privacy model before a row moves.

Sizes are judged first, for they are known from the cuts. What is left is judged on the AVS groups of the children
(LeFevre, DeWitt, TR 1590, section 2), where models look at more than sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from sqlanon.algorithms.tree.medians import Candidates
from sqlanon.algorithms.tree.task import Branch, Task
from sqlanon.algorithms.tree.thresholds import OpenThresholds, search_thresholds
from sqlanon.encoding.axes import NEVER, carried, masked_value
from sqlanon.encoding.distinct_tuples import WEIGHT, Persons
from sqlanon.encoding.domains import Sensitive
from sqlanon.models.base import Groups, PrivacyModel
from sqlanon.models.solver import settle, settle_groups
from sqlanon.sql import Expression, Identifier, Relation, Statement, macro

CLASS, VALUE = Identifier("class"), Identifier("s")


class ModelsOfChildren:
    """The exact definitions of the models: what the rows are is all that there is."""

    def sizes_in_place(self, task: Task) -> bool:
        """Tell whether sizes are all there is to check: they are checked in the statement that records splits."""
        return not task.models_of_content

    def size(self, branch: Branch, values: dict[str, Any], fewest: int) -> None:
        """Create the table of the candidate splits whose children are all large enough (see `sized_candidate_splits`).

        fewest: rows that each child must have by the models' definitions.
        """
        branch.decide("size_candidate_splits", fewest=fewest, **values)

    def measure(self, branch: Branch, model: PrivacyModel, groups: Groups) -> Statement:
        """A SELECT `(class, violates, …)` of all classes that the candidate splits would make."""
        return model.measure(branch.engine.render, groups)


EXACT = ModelsOfChildren()


def record_allowable(
    branch: Branch,
    rows: Relation | Expression,
    candidates: Candidates,
    splits: Relation,
    *,
    searched: bool = False,
    exact_ranges: bool = True,
    by: ModelsOfChildren = EXACT,
) -> list[Relation]:
    """Record the splits that stand, one a node, and the nodes to be tried again; returns the tables used on the way.

    searched: whether nodes may have to be searched at every threshold.
    exact_ranges: whether the candidates were chosen by exact ranges.
    by: how children are judged.
    """
    task, candidate_splits = branch.task, branch.table("candidate_splits")
    values: dict[str, Any] = {
        "candidate_splits": candidate_splits,
        "candidates": candidates.table,
        "cuts": candidates.cuts,
    }
    counts = {"histogram": candidates.histogram, "key_bits": candidates.key_bits, "nested": task.nested}
    fewest = max(model.least_rows for model in task.models)
    judged = task.several is not None or not by.sizes_in_place(task)
    if judged:
        by.size(branch, values | counts, fewest)
    violating_splits, used = (
        list_violating_splits(branch, rows, values, by)
        if task.several is None
        else list_splits_short_of_persons(branch, rows, values, task.several)
    )
    thresholds, sought = _search(branch, rows, candidates.table) if searched else (None, ())
    branch.decide(
        "record_splits",
        splits=splits,
        judged=judged,
        violating_splits=violating_splits,
        open_thresholds=thresholds.table if thresholds else None,
        exact_ranges=exact_ranges,
        never=NEVER,
        fewest=fewest,
        masks=task.masks,
        **values,
        **counts,
    )
    return [*([candidate_splits] if judged else ()), *used, *sought]


def _search(
    branch: Branch, rows: Relation | Expression, candidates: Relation
) -> tuple[OpenThresholds | None, tuple[Relation, ...]]:
    """The thresholds of nodes that are to be searched at every one in this round, and the tables used on the way."""
    searched = branch.table("searched")
    if branch.decide("list_searched", searched=searched, candidates=candidates) == 0:
        return None, (searched,)
    thresholds = search_thresholds(branch, rows, searched)
    return thresholds, (searched, *thresholds.tables)


def list_violating_splits(
    branch: Branch, rows: Relation | Expression, values: dict[str, Any], by: ModelsOfChildren = EXACT
) -> tuple[Relation | None, list[Relation]]:
    """The candidate splits that violate a model for what is in their children, and the tables used for it."""
    models = branch.task.models_of_content
    if not models:
        return None, []
    violating_splits, avs = branch.table("violating_splits"), _count_avs(branch, rows, values)
    bits = branch.task.bits
    children = {
        "avs_of_first": avs[0],
        "bits": bits,
        "child_mask": (1 << bits) - 1,
        **{name: values[name] for name in ("candidate_splits", "candidates")},
    }
    measures = _measure_children(branch, models, avs, by, children)
    branch.decide("list_violating_splits", violating_splits=violating_splits, measures=measures, **children)
    return violating_splits, [violating_splits, *avs]


def _count_avs(branch: Branch, rows: Relation | Expression, values: dict[str, Any]) -> list[Relation]:
    tables = [branch.table(f"avs{i}_") for i in range(len(branch.task.sensitive))]
    for table, sensitive in zip(tables, branch.task.sensitive, strict=True):
        branch.scan(
            "count_avs_groups",
            avs=table,
            word=sensitive.word,
            mask=sensitive.mask,
            bits=branch.task.bits,
            value=masked_value("candidates", branch.task.words),
            **_counted(branch.task, rows, sensitive),
            **values,
        )
    return tables


def _counted(task: Task, rows: Relation | Expression, sensitive: Sensitive) -> dict[str, Any]:
    """The rows that AVS groups are counted of, and what each stands for: rows, or persons with a sensitive value."""
    weight = sensitive.weight
    if weight is None:
        return {"rows": rows, "weight": task.weight("pieces"), "carried": task.carried_weight("tried")}
    return {
        "rows": macro("tree.counted", rows, weight),
        "weight": macro("tree.total", Identifier("pieces"), weight),
        "carried": carried("tried", [weight]),
    }


def _measure_children(
    branch: Branch,
    models: Sequence[PrivacyModel],
    avs: Sequence[Relation],
    by: ModelsOfChildren,
    children: dict[str, Any],
) -> list[Expression]:
    tables = {s.name: (table, s) for table, s in zip(avs, branch.task.sensitive, strict=True)}

    def list_open(model: PrivacyModel, worst: bool) -> list[tuple[Any, ...]]:
        groups = _groups(branch, *tables[str(model.attribute)])
        listed = model.list_open(branch.engine.render, groups, worst=worst)
        return branch.list("list_open", listed=listed, **children)

    return [by.measure(branch, m, _groups(branch, *tables[str(m.attribute)])) for m in settle(models, list_open)]


def _groups(branch: Branch, avs: Relation, sensitive: Sensitive) -> Groups:
    piece = Identifier("piece")
    merged = macro("tree.groups_of_classes", Identifier("cover"), avs, piece, piece)
    classes, domain = Markup(Identifier("classes")), Markup(sensitive.domain)
    if sensitive.total is not None:
        return Groups(macro("tree.sizes_of_groups", merged), merged, domain, sensitive.total, sensitive.height)
    return Groups(classes, merged, domain, branch.task.table_rows, sensitive.height)


def list_splits_short_of_persons(
    branch: Branch, rows: Relation | Expression, values: dict[str, Any], several: Persons
) -> tuple[Relation, list[Relation]]:
    """List the candidate splits of which some child violates a model by its persons, and the tables used for it.

    values: the tables of the candidates, their cuts and the candidate splits, whose children have tuples enough.
    """
    task = branch.task
    fewest = max(model.least_rows for model in task.models)
    named = {name: values[name] for name in ("candidates", "candidate_splits")}
    children = branch.table("children")
    counted: dict[str, Any] = {"rows": rows, "bits": task.bits, "value": masked_value("tried", task.words), **named}
    counted["person"] = several.code
    branch.scan(
        "count_persons", counted=children, weight=WEIGHT, sensitive=None, enough=fewest * several.most, **counted
    )
    groups = [branch.table(f"avs{place}_") for place in range(len(task.sensitive))]
    for table, one in zip(groups, task.sensitive, strict=True):
        value = macro("bits.masked", one.word, one.mask)
        branch.scan("count_persons", counted=table, weight=one.weight, sensitive=value, enough=None, **counted)
    short = branch.table("violating_splits")
    branch.decide(
        "list_splits_short_of_persons",
        violating_splits=short,
        children=children,
        fewest=fewest,
        bits=task.bits,
        measures=_measures(
            branch,
            dict(zip((one.name for one in task.sensitive), zip(groups, task.sensitive, strict=True), strict=True)),
        ),
    )
    return short, [short, children, *groups]


def _measures(branch: Branch, of: dict[str, tuple[Relation, Sensitive]]) -> list[Expression]:
    """Write what each model measures of the children, which it sees with everybody who has a value in its place."""

    def groups_of(model: PrivacyModel) -> Groups:
        groups, one = of[str(model.attribute)]
        assert one.total is not None
        sizes = macro("tree.sizes_of_groups", groups)
        return Groups(sizes, Markup(groups), Markup(one.domain), one.total, one.height)

    models = settle_groups(branch.engine, branch.task.models_of_content, groups_of)
    return [model.measure(branch.engine.render, groups_of(model)) for model in models]
