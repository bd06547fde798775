"""Partitions within groups: each group of rows is cut by itself, and no class holds rows of two groups.

The groups are a quasi-identifier whose codes are numbers of groups. Every group that satisfies the models is the root
of a tree of its own, and all trees grow at once, in the same statements as one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from markupsafe import Markup

from sqlanon.algorithms.tree.growth import Frontier, Growth, GrowthProgress
from sqlanon.algorithms.tree.partitioning import build_task, partition_by_task
from sqlanon.algorithms.tree.task import Task
from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.distinct_tuples import Tuples
from sqlanon.encoding.fields import Field
from sqlanon.engines.base import Engine
from sqlanon.models.base import Groups, PrivacyModel
from sqlanon.models.solver import settle_groups
from sqlanon.results.search_facts import TreeFacts
from sqlanon.sql import Expression, Relation, macro
from sqlanon.staging.partition import Partition
from sqlanon.work.workspace import Workspace


def partition_within(
    engine: Engine,
    workspace: Workspace,
    coded: CodedTable,
    tuples: Tuples,
    models: Sequence[PrivacyModel],
    names: tuple[str, str],
    report: Callable[[GrowthProgress], None],
) -> Partition:
    """Partition the rows of each group by cuts at medians; rows of groups that violate a model are left out.

    tuples: of persons, whom the models count. names: the quasi-identifier that numbers the groups, and the persons.
    Raises ProtectionError where no release can meet the models.
    """
    task = build_task(engine, workspace, coded, models, tuples)
    group, person = (coded.field(name) for name in names)
    failing = _list_failing(engine, workspace, coded, task, group, person)

    def begin(trunk: Growth, _: Callable[[GrowthProgress], None]) -> Frontier:
        return _roots(trunk, tuples.table, group, failing)

    partition = partition_by_task(engine, workspace, coded, tuples, task, begin, TreeFacts(), report)
    workspace.drop(failing)
    (kept,) = engine.query_one("algorithms/tree/decide/sum_leaves", leaves=partition.leaves)
    return replace(partition, suppressed=coded.source_rows - int(kept))


def _roots(trunk: Growth, table: Relation, group: Field, failing: Relation) -> Frontier:
    """The frontier before the first round: the rows of each group that does not fail are one node."""
    branch = trunk.branch
    splits, rows = branch.table("splits", 0), branch.table("rows", 0)
    bits = branch.task.bits
    values = {"group": _code(group), "failing": failing, "columns": branch.task.word_columns}
    branch.scan("place_in_groups", placed=rows, table=table, bits=bits, **values)
    branch.scan("seed_groups", splits=splits, rows=rows, bits=bits, weight=branch.task.weight("r"))
    (parents,) = branch.ask("count_parents", splits=splits)
    return Frontier(rows, splits, (table, rows, splits), parents=int(parents))


def _list_failing(
    engine: Engine,
    workspace: Workspace,
    coded: CodedTable,
    task: Task,
    group: Field,
    person: Field,
) -> Relation:
    """List the groups whose persons are too few for a model, or have values that are too much alike.

    Returns a work table `(class)` of their codes.
    """
    persons, failing = workspace.table("group_persons"), workspace.table("failing_groups")
    grouped: dict[str, Any] = {"rows": coded.rows, "group": _code(group), "person": _bits(person)}
    engine.run("algorithms/tree/scan/count_groups", counted=persons, value=None, **grouped)
    values = {one.name: workspace.table("group_values", place) for place, one in enumerate(task.sensitive)}
    for one in task.sensitive:
        of = macro("bits.masked", one.word, one.mask)
        engine.run("algorithms/tree/scan/count_groups", counted=values[one.name], value=of, **grouped)
    measures = _measures(engine, task, values)
    fewest = max(model.least_rows for model in task.models)
    engine.run(
        "algorithms/tree/decide/list_failing_groups", failing=failing, persons=persons, fewest=fewest, measures=measures
    )
    engine.analyze(failing)
    workspace.drop(persons, *values.values())
    return failing


def _measures(engine: Engine, task: Task, values: Mapping[str, Relation]) -> list[Expression]:
    """Write what each model measures of the groups, which it sees with everybody who has a value in their place."""
    named = {one.name: one for one in task.sensitive}

    def groups_of(model: PrivacyModel) -> Groups:
        counted, one = values[str(model.attribute)], named[str(model.attribute)]
        sizes = macro("tree.sizes_of_groups", counted)
        return Groups(sizes, Markup(counted), Markup(one.domain), one.total or task.table_rows, one.height)

    models = settle_groups(engine, task.models_of_content, groups_of)
    return [model.measure(engine.render, groups_of(model)) for model in models]


def _code(field: Field) -> Expression:
    return macro("bits.field", field.column, field.mask, field.shift)


def _bits(field: Field) -> Expression:
    return macro("bits.masked", field.column, field.mask)
