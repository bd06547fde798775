"""The first release of `ranges: cuts`: every leaf of a tree shows its box, as rows do that the rules are applied to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.partition.axes import Axis
from sqlanon.partition.result import Partition
from sqlanon.release.recode import Recoding, cell_name, end_name
from sqlanon.rules.classes import create_all_box_labels, order_of
from sqlanon.rules.tables import MadeRules, RuleAttribute
from sqlanon.sql import Identifier, RedactedValue, Relation, expression
from sqlanon.work.workspace import Workspace


def show_boxes(
    engine: Engine, workspace: Workspace, recoding: Recoding, made: MadeRules, names: Relation
) -> tuple[Recoding, Partition]:
    """The recoding with the boxes of its leaves in place of the ranges of their values; a mean or midpoint stays.

    names: `(leaf, rule)`, the rule of every leaf.

    Returns the recoding, and the partition as shown: its leaves are as wide as the boxes, for measuring the loss.
    """
    box_labels = create_all_box_labels(
        engine, workspace, made.attributes, made.tables, made.tables.leaves, recoding.shown
    )
    regions = workspace.table("boxed_regions")
    values = [value for face in box_labels for value in face.values]
    ends = sum(len(shown.ends) for shown in recoding.shown)
    engine.run(
        "rules/show_boxes",
        regions=regions,
        observed=recoding.regions,
        names=names,
        leaves=made.tables.leaves,
        box_labels=[face.joined for face in box_labels],
        cells=[{"name": cell_name(n), "value": value} for n, value in enumerate(values)],
        ends=[end_name(n) for n in range(ends)],
        order=order_of(engine, box_labels),
    )
    engine.analyze(regions)
    wide = workspace.table("boxed_leaves")
    engine.run(
        "rules/widen_leaves",
        wide=wide,
        leaves=recoding.partition.leaves,
        names=names,
        rules=made.tables.leaves,
        segments=made.tables.segments,
        axes=[_widened(*pair) for pair in zip(recoding.partition.axes, made.attributes, strict=True)],
    )
    engine.analyze(wide)
    workspace.drop(*(face.table for face in box_labels))
    return replace(recoding, regions=regions, boxed=True), replace(recoding.partition, leaves=wide)


def _widened(axis: Axis, attribute: RuleAttribute) -> dict[str, Any]:
    """Return the values for a statement that widens the codes of an attribute to those of its box."""
    known: dict[str, Any] = {"number": attribute.number, "lo": axis.lo, "hi": axis.hi}
    names = {name: Identifier(f"{name}_{attribute.number}") for name in ("first", "next", "grp")}
    known |= names | {"nested": attribute.height is not None}
    if attribute.keeps_stand_in:  # what it shows depends on the values of the class
        return known | {"low": expression("o.{lo}", lo=axis.lo), "high": expression("o.{hi}", hi=axis.hi)}
    null_alone = expression("o.{hi} = 0", hi=axis.hi)
    if attribute.height is not None:
        low = expression(
            "CASE WHEN {g}.level = {height} THEN 0 ELSE o.{lo} END", height=attribute.height, g=names["grp"], lo=axis.lo
        )
        high = expression(
            "CASE WHEN {g}.level = {height} THEN o.{hi} ELSE {g}.upper - 1 END",
            height=attribute.height,
            g=names["grp"],
            hi=axis.hi,
        )
    else:
        low = expression("CASE WHEN o.{lo} = 0 THEN 0 ELSE greatest(1, {b}.code) END", lo=axis.lo, b=names["first"])
        most = RedactedValue(axis.field.coding.leaves)
        high = expression("coalesce({f}.code - 1, {most})", f=names["next"], most=most)
    if attribute.hides_nulls and attribute.has_null:  # a box that may hold NULL shows nothing else
        low = expression("CASE WHEN u.{lo} = 0 THEN 0 ELSE {low} END", lo=attribute.lo, low=low)
    low, high = (
        expression("CASE WHEN {null} THEN 0 ELSE {end} END", null=null_alone, end=Markup(end)) for end in (low, high)
    )
    return known | {"low": low, "high": high}
