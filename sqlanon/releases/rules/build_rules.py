"""From a partition tree to rules: boxes of segments over the whole domain, without gaps or overlaps.

The tree was written down while it grew, in codes of the source. A box is what the splits on the way from the root leave
of the domain (LeFevre, DeWitt, TR 1590, section 2.2: the recoding function). Those of all nodes are made by one
recursive statement, and nothing is counted in Python: the number of statements depends on the attributes alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from sqlanon.catalog import RulesKind, RulesRecord
from sqlanon.encoding.axes import Axis
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Kind
from sqlanon.errors import VerificationError
from sqlanon.policy import Show
from sqlanon.releases.rules.store_rules import LISTED, NAMES, MadeRules, RuleAttribute, RuleTables
from sqlanon.sql import Expression, Identifier, Relation
from sqlanon.staging.partition import Partition
from sqlanon.staging.recode import Recoding, cell_name
from sqlanon.values.expressions import text_form
from sqlanon.work.workspace import Workspace


def make_tree(engine: Engine, workspace: Workspace, recoding: Recoding, names: Relation | None = None) -> MadeRules:
    """Make the rules of a recoding whose search has grown a tree, in work tables, and check them.

    names: a table to create, `(leaf, rule)`: the rule of every leaf of the partition.

    Raises VerificationError where the boxes have gaps or overlaps.
    """
    axes, tree = recoding.partition.axes, recoding.partition.tree
    assert tree is not None
    segments, domain = workspace.table("rule_segments"), workspace.table("rule_domain")
    attributes = _create_segments(engine, axes, tree, segments, domain)
    boxes = _Boxes(engine, workspace, attributes, recoding, segments, names)
    boxes.make(tree)
    tables = RuleTables(boxes.nodes, boxes.leaves, segments, domain, boxes.depth)
    engine.analyze(*tables.all)
    require_partition(engine, workspace, attributes, tables)
    return MadeRules(RulesKind.TREE, attributes, tables)


def _create_segments(
    engine: Engine, axes: Sequence[Axis], tree: Relation | Expression, segments: Relation, domain: Relation
) -> tuple[RuleAttribute, ...]:
    engine.run("releases/rules/create_segments", segments=segments)
    engine.run("releases/rules/create_domain", domain=domain)
    for axis in axes:
        if axis.field.coding.hierarchy is None:
            engine.run("releases/rules/add_cuts", segments=segments, tree=tree, **_values(axis), **_unlisted(axis))
        else:
            _add_groups(engine, axis, tree, segments)
    engine.analyze(segments)
    counts = dict(engine.query("releases/rules/count_segments", segments=segments))
    attributes = tuple(_attribute(axis, int(counts[axis.number])) for axis in axes)
    for axis, attribute in zip(axes, attributes, strict=True):
        if attribute.listed:
            engine.run("releases/rules/add_domain", domain=domain, segments=segments, **_values(axis))
    return attributes


def _attribute(axis: Axis, segments: int) -> RuleAttribute:
    coding, column, show = axis.field.coding, axis.field.attribute.column, axis.field.attribute.show
    nominal = show is Show.LABEL and coding.hierarchy is None and (column.kind.is_nominal or column.kind is Kind.ENUM)
    bottom, top = axis.field.attribute.limits.texts
    return RuleAttribute(
        number=axis.number,
        name=column.name,
        type=column.type,
        kind=column.kind,
        show=show,
        segments=segments,
        has_null=axis.has_null,
        listed=nominal and coding.leaves <= LISTED,
        height=coding.hierarchy.height if coding.hierarchy else None,
        bottom=bottom,
        top=top,
        opened=coding.opened,
        hides_nulls=axis.field.attribute.hides_nulls,
        set_limit=axis.field.attribute.set_limit,
    )


def _values(axis: Axis) -> dict[str, Any]:
    """Return the values for a statement that spells an attribute's values."""
    column, dictionary = axis.field.attribute.column, axis.field.coding.dictionary
    return {"number": axis.number, "form": text_form(column.kind, column.type), "dictionary": dictionary}


def _unlisted(axis: Axis) -> dict[str, Any]:
    """Return the values for reckoning a value from its code where there is no dictionary."""
    coding = axis.field.coding
    return {"before": coding.before, "scale": coding.scale, "type": Markup(axis.field.attribute.column.type)}


def _add_groups(engine: Engine, axis: Axis, tree: Relation | Expression, segments: Relation) -> None:
    hierarchy = axis.field.coding.hierarchy
    assert hierarchy is not None
    widths: dict[int, dict[str, int]] = {}
    for level, shift in enumerate(hierarchy.shifts[:-1]):  # of levels with the same groups, the lowest names them
        widths.setdefault(shift, {"number": level, "shift": shift, "width": 1 << shift})
    engine.run(
        "releases/rules/add_groups",
        segments=segments,
        tree=tree,
        number=axis.number,
        dictionary=hierarchy.table,
        end=1 << hierarchy.shifts[-1],
        height=hierarchy.height,
        levels=list(widths.values()),
    )


class _Boxes:
    """The boxes of all nodes of a tree, and what is kept of them."""

    def __init__(
        self,
        engine: Engine,
        workspace: Workspace,
        attributes: Sequence[RuleAttribute],
        recoding: Recoding,
        segments: Relation,
        names: Relation | None,
    ) -> None:
        self.engine, self.workspace, self.attributes, self.segments = engine, workspace, attributes, segments
        self.names = names
        self.regions = recoding.regions
        self.has_empty_leaves = recoding.partition.has_empty_leaves
        self.nodes, self.leaves = workspace.table("rule_nodes"), workspace.table("rule_leaves")
        self.stand_ins = _stand_ins(recoding, attributes)
        self.depth = 0

    def make(self, tree: Relation | Expression) -> None:
        """Go down the tree, in one statement whatever its depth, and keep nodes and leaves."""
        mapped, boxes = self.workspace.table("rule_tree"), self.workspace.table("boxes")
        self.engine.run("releases/rules/create_nodes", nodes=self.nodes)
        self.engine.run("releases/rules/create_leaves", leaves=self.leaves, attributes=self.attributes)
        self.engine.run("releases/rules/map_tree", mapped=mapped, tree=tree, segments=self.segments)
        self.engine.analyze(mapped)
        self.engine.run("releases/rules/create_boxes", boxes=boxes, mapped=mapped, attributes=self.attributes)
        self.engine.analyze(boxes)
        self.workspace.drop(mapped)
        self.engine.run("releases/rules/add_nodes", nodes=self.nodes, boxes=boxes, attributes=self.attributes)
        values = {"leaves": self.leaves, "boxes": boxes, "regions": self.regions}
        self.engine.run("releases/rules/add_leaves", attributes=self.attributes, stand_ins=self.stand_ins, **values)
        if self.has_empty_leaves:
            self.engine.run(
                "releases/rules/add_empty_leaves", attributes=self.attributes, stand_ins=self.stand_ins, **values
            )
        if self.names is not None:
            self.engine.run("releases/rules/name_leaves", names=self.names, boxes=boxes, regions=self.regions)
            self.engine.analyze(self.names)
        if any(a.height is not None for a in self.attributes):
            self._close_gaps(boxes)
        (depth,) = self.engine.query_one("releases/rules/measure_depth", boxes=boxes)
        self.depth = int(depth)
        self.workspace.drop(boxes)

    def _close_gaps(self, boxes: Relation) -> None:
        gaps = self.workspace.table("gaps")
        self.engine.run("releases/rules/create_gaps", gaps=gaps, boxes=boxes, attributes=self.attributes)
        self.engine.run("releases/rules/add_gap_nodes", nodes=self.nodes, gaps=gaps)
        values = {"leaves": self.leaves, "gaps": gaps, "boxes": boxes, "attributes": self.attributes}
        self.engine.run("releases/rules/add_gap_leaves", stand_ins=self.stand_ins, **values)
        self.workspace.drop(gaps)


def _stand_ins(recoding: Recoding, attributes: Sequence[RuleAttribute]) -> list[Identifier]:
    """The cells of the release's regions that are means or midpoints."""
    places: dict[str, int] = {}
    for shown in recoding.shown:
        places[shown.name] = sum(len(s.cells) for s in recoding.shown[: len(places)])
    return [cell_name(places[a.name]) for a in attributes if a.keeps_stand_in]


def require_partition(
    engine: Engine, workspace: Workspace, attributes: Sequence[RuleAttribute], rules: RuleTables
) -> None:
    """Raise VerificationError unless the boxes partition the whole domain; two statements, however deep the tree.

    The boxes are worked out anew, from the root down. The root's box is the whole domain. Where children follow each
    other in one attribute from end to end of their parent's box, and have all else of it, they cover it once. So if
    that holds at every node, every point of the domain is in exactly one leaf; and the rules must be just the leaves.
    """
    followed = workspace.table("followed")
    values = {"followed": followed, "nodes": rules.nodes, "attributes": attributes}
    engine.run("releases/rules/follow_tree", **values)
    engine.analyze(followed)
    torn, strays, orphans = engine.query_one("releases/rules/count_torn", rules=rules.leaves, **values)
    workspace.drop(followed)
    if torn or strays or orphans:
        raise VerificationError(
            f"The rules do not cover the domain once: {torn} nodes are not the union of what is below them, "
            f"{strays} rules and {orphans} nodes belong to none."
        )


def attributes_of(partition: Partition) -> tuple[RuleAttribute, ...]:
    """The quasi-identifiers of rules that have no segments."""
    attributes = []
    for axis in partition.axes:
        attribute, hierarchy = axis.field.attribute, axis.field.coding.hierarchy
        bottom, top = attribute.limits.texts
        attributes.append(
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
    return tuple(attributes)


def levels_record(
    engine: Engine, attributes: Sequence[RuleAttribute], passes: Sequence[Mapping[str, int]]
) -> RulesRecord:
    """The rules of a full-domain generalization: the levels of its passes."""
    listed = [attribute.as_json() for attribute in attributes]
    content = {"dialect": engine.name, "attributes": listed, "passes": list(passes)}
    return RulesRecord(RulesKind.LEVELS, json.dumps(content), 0)


def make_cuts(engine: Engine, workspace: Workspace, partition: Partition) -> RuleTables:
    """The cuts of a partition, as the groups that have been replaced: `segments` of level and label."""
    tables = RuleTables.of([workspace.table(f"rule_{name}") for name in NAMES], depth=0)
    engine.run("releases/rules/create_segments", segments=tables.segments)
    engine.run("releases/rules/create_domain", domain=tables.domain)
    engine.run("releases/rules/create_nodes", nodes=tables.nodes)
    engine.run("releases/rules/create_leaves", leaves=tables.leaves, attributes=())
    for axis in partition.axes:
        hierarchy = axis.field.coding.hierarchy
        assert hierarchy is not None
        engine.run(
            "releases/rules/add_replaced",
            segments=tables.segments,
            leaves=partition.leaves,
            axis=axis,
            number=axis.number,
            dictionary=hierarchy.table,
            levels=list(range(1, hierarchy.height + 1)),
        )
    return tables
