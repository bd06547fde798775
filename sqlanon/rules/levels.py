"""Rules that generalize whole columns: levels of hierarchies, and cuts through them.

Full-domain generalization shows all values of a column at one level; what its first pass left over may be shown at
levels of further passes. A cut (top-down specialization) replaces some groups by their children: a value is shown at
the topmost group that is not replaced, which says what becomes of values that the source did not hold.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from sqlanon.catalog import RulesKind, RulesRecord
from sqlanon.encoding.coded_table import CodedTable
from sqlanon.engines.base import Engine
from sqlanon.partition.axes import Axis, carried
from sqlanon.partition.result import Partition
from sqlanon.rules.tables import NAMES, RuleAttribute, RuleTables
from sqlanon.sql import Relation
from sqlanon.work.workspace import Workspace


def attributes_of(partition: Partition) -> tuple[RuleAttribute, ...]:
    """The quasi-identifiers of rules that have no segments."""
    found = []
    for axis in partition.axes:
        attribute, hierarchy = axis.field.attribute, axis.field.coding.hierarchy
        bottom, top = attribute.limits.texts
        found.append(
            RuleAttribute(
                number=axis.number,
                name=attribute.name,
                type=attribute.column.type,
                kind=attribute.column.kind,
                show=attribute.show,
                segments=0,
                has_null=axis.has_null,
                listed=False,
                height=hierarchy.height if hierarchy else None,
                bottom=bottom,
                top=top,
                opened=axis.field.coding.opened,
                hides_nulls=attribute.hides_nulls,
            )
        )
    return tuple(found)


def levels_record(
    engine: Engine, attributes: Sequence[RuleAttribute], passes: Sequence[Mapping[str, int]]
) -> RulesRecord:
    """The rules of a full-domain generalization: the levels of its passes."""
    listed = [attribute.as_json() for attribute in attributes]
    content = {"dialect": engine.dialect, "attributes": listed, "passes": list(passes)}
    return RulesRecord(RulesKind.LEVELS, json.dumps(content), 0)


def make_cuts(engine: Engine, workspace: Workspace, partition: Partition) -> RuleTables:
    """The cuts of a partition, as the groups that have been replaced: `segments` of level and label."""
    tables = RuleTables.of([workspace.table(f"rule_{name}") for name in NAMES], depth=0)
    engine.run("rules/create_segments", segments=tables.segments)
    engine.run("rules/create_domain", domain=tables.domain)
    engine.run("rules/create_nodes", nodes=tables.nodes)
    engine.run("rules/create_leaves", leaves=tables.leaves, attributes=())
    for axis in partition.axes:
        hierarchy = axis.field.coding.hierarchy
        assert hierarchy is not None
        engine.run(
            "rules/add_replaced",
            segments=tables.segments,
            leaves=partition.leaves,
            axis=axis,
            number=axis.number,
            dictionary=hierarchy.table,
            levels=list(range(1, hierarchy.height + 1)),
        )
    return tables


def apply_cuts(engine: Engine, workspace: Workspace, coded: CodedTable, rules: RuleTables) -> Partition:
    """The classes of coded rows under the cuts, none of them suppressed."""
    axes = tuple(Axis(n, field, leveled=True) for n, field in enumerate(coded.quasi_identifiers))
    tables = [_create_levels(engine, workspace, axis, rules.segments) for axis in axes]
    engine.analyze(*tables)
    leaves, routed = workspace.table("leaves"), workspace.table("routed")
    heights = [axis.field.coding.hierarchy.height for axis in axes if axis.field.coding.hierarchy]
    values = {"rows": coded.rows, "axes": axes, "tables": tables, "leaves": leaves}
    engine.run("rules/create_cut_classes", heights=heights, **values)
    engine.analyze(leaves)
    engine.run("rules/assign_cut_rows", routed=routed, carried=carried("r", coded.word_columns), **values)
    engine.analyze(routed)
    workspace.drop(*tables)
    return Partition(axes, leaves, routed, 0)


def _create_levels(engine: Engine, workspace: Workspace, axis: Axis, segments: Relation) -> Relation:
    hierarchy, table = axis.field.coding.hierarchy, workspace.table("code_levels", axis.number)
    assert hierarchy is not None
    engine.run(
        "rules/create_code_levels",
        levels=table,
        dictionary=hierarchy.table,
        segments=segments,
        number=axis.number,
        height=hierarchy.height,
        numbers=[{"number": level, "shift": shift} for level, shift in enumerate(hierarchy.shifts)],
    )
    return table
