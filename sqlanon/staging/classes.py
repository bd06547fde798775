"""Classes that rows are assigned to, however that came about: their regions, and which of them violate a model."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from sqlanon.encoding.axes import measured_axes
from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.domains import Sensitive
from sqlanon.engines.base import Engine
from sqlanon.models.base import Groups, PrivacyModel
from sqlanon.models.solver import settle_groups
from sqlanon.sql import Expression, Relation, macro
from sqlanon.staging.partition import Partition
from sqlanon.work.workspace import Workspace


def partition_of(
    engine: Engine, workspace: Workspace, coded: CodedTable, assigned: Relation | Expression, rounds: int = 1
) -> Partition:
    """Measure the regions of classes that every coded row is assigned to.

    assigned: `(leaf, p0, p1, …)`, the words of every row with the number of its class; rows with the same words must be
        in one class, as verification tells rows by their words.
    """
    axes, leaves = measured_axes(engine, coded), workspace.table("leaves")
    engine.run("staging/measure_leaves", leaves=leaves, assigned=assigned, axes=axes)
    engine.analyze(leaves)
    return Partition(axes, leaves, assigned, rounds)


def count_violating(
    engine: Engine, models: Sequence[PrivacyModel], sensitive: Sequence[Sensitive], partition: Partition, rows: int
) -> int:
    """Count the classes of a partition that violate a model.

    sensitive: the sensitive attributes with their domains (see `domains.create_domains`).
    rows: of the whole table.
    """
    named = {one.name: one for one in sensitive}

    def groups_of(model: PrivacyModel) -> Groups:
        return _groups(partition, named.get(model.attribute or ""), rows)

    settled = settle_groups(engine, models, groups_of)
    measures = [model.measure(engine.render, groups_of(model)) for model in settled]
    (violating,) = engine.query_one("staging/count_violating", measures=measures)
    return int(violating)


def _groups(partition: Partition, sensitive: Sensitive | None, rows: int) -> Groups:
    classes = macro("relations.classes_of_leaves", partition.leaves)
    if sensitive is None:
        return Groups(classes=classes, avs=None, domain=None, rows=rows)
    avs = macro("relations.groups_of_rows", partition.assigned, sensitive.word, sensitive.mask)
    return Groups(classes, avs, Markup(sensitive.domain), rows, sensitive.height)
