"""Labels of the boxes of rules in a release: cells that say all that a new row of the box may hold.

A release shows how far the rows of its classes reach; a new row of the same box may lie beyond. So rows that rules are
applied to show the box itself, from cut to cut, whatever is in it: a cell then depends on the rules and the row alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup

from sqlanon.encoding.axes import Axis
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Kind
from sqlanon.hierarchies import HierarchyTable
from sqlanon.policy import Show
from sqlanon.releases.rules.store_rules import MadeRules, RuleAttribute, RuleTables, StoredRules
from sqlanon.sql import Expression, Identifier, RedactedValue, Relation, macro
from sqlanon.staging.cells import Shown
from sqlanon.staging.labels import quote_member
from sqlanon.staging.partition import Partition
from sqlanon.staging.recode import Recoding, cell_name, end_name
from sqlanon.values.expressions import text_of
from sqlanon.work.workspace import Workspace

_STEPPED = (Kind.INTEGER, Kind.DATE)  # what has a greatest value below a cut


@dataclass(frozen=True)
class BoxLabels:
    """The cells of one attribute, from number `first` on: where its intervals' are, and how a row reads them."""

    attribute: RuleAttribute
    first: int
    table: Relation
    values: tuple[Expression, ...]

    @property
    def alias(self) -> Identifier:
        return Identifier(f"f_{self.attribute.number}")

    @property
    def joined(self) -> dict[str, Any]:
        """Return the values for a statement that joins rows `u`."""
        return {"table": self.table, "alias": self.alias, "lo": self.attribute.lo, "hi": self.attribute.hi}


def create_box_labels(
    engine: Engine,
    workspace: Workspace,
    attribute: RuleAttribute,
    rules: RuleTables,
    used: Relation,
    first: int,
    dimension: HierarchyTable | None,
) -> BoxLabels:
    """The cells of all intervals of an attribute that boxes in `used` have."""
    table = workspace.table("box_labels", attribute.number)
    values = _cells(engine, attribute)
    numbers = range(first, first + len(values))
    bounded = dimension if attribute.show in (Show.BOUNDS, Show.RANGE) else None
    engine.run(
        "releases/rules/create_box_labels",
        box_labels=table,
        used=used,
        number=attribute.number,
        lo=attribute.lo,
        hi=attribute.hi,
        segments=rules.segments,
        domain=rules.domain,
        nested=attribute.height is not None,
        listed=attribute.listed,
        limit=attribute.set_limit,
        dimension=None if bounded is None else bounded.table,
        height=None if bounded is None else bounded.height,
        cells=[{"name": cell_name(n), "value": value} for n, value in zip(numbers, values, strict=True)],
    )
    engine.analyze(table)
    return BoxLabels(attribute, first, table, tuple(_read(attribute, n) for n in numbers))


def _read(attribute: RuleAttribute, number: int) -> Expression:
    """A cell as a row `u` shows it: everything, where the row's value is unknown to the rules."""
    alias, bit = Identifier(f"f_{attribute.number}"), 1 << attribute.number
    return macro("boxes.shown", attribute, alias, cell_name(number), bit, attribute.sql_type)


def _cells(engine: Engine, attribute: RuleAttribute) -> tuple[Expression, ...]:
    """The cells of an interval `p`, from its first segment `b` and the one that follows it, `f`, or its group `g`."""
    if attribute.keeps_stand_in:
        return (macro("boxes.no_number"),)
    if attribute.show is Show.BOUNDS:
        sides = (False, True)
        return tuple(engine.render.macro("boxes.bound", attribute, side, attribute.sql_type) for side in sides)
    if attribute.show is Show.RANGE:
        range_type = Markup(engine.traits.range_types[attribute.kind])
        return (engine.render.macro("boxes.range", attribute, attribute.sql_type, range_type),)
    if attribute.height is not None:
        return (macro("boxes.group_label"),)
    if attribute.listed:
        return (macro("boxes.set_label", attribute),)
    return (_interval_label(engine, attribute),)


def _interval_label(engine: Engine, attribute: RuleAttribute) -> Expression:
    """From cut to cut; `*` stands for no cut. Of whole numbers and dates the last value is known."""
    low, high = macro("boxes.least"), macro("boxes.behind")
    has_last = attribute.kind in _STEPPED
    if has_last:
        last = engine.render.macro("boxes.last", attribute, attribute.sql_type)
        high = text_of(engine.render, last, attribute.kind, attribute.type)
    if attribute.kind.is_nominal or attribute.kind is Kind.ENUM:
        low, high = (quote_member(engine.render, end, always=True) for end in (low, high))
    return macro("boxes.interval_label", attribute, low, high, has_last)


def create_all_box_labels(
    engine: Engine,
    workspace: Workspace,
    attributes: Sequence[RuleAttribute],
    rules: RuleTables,
    used: Relation,
    shown: Sequence[Shown],
) -> list[BoxLabels]:
    """The cells of the boxes in `used`, attribute by attribute."""
    box_labels: list[BoxLabels] = []
    for attribute, one in zip(attributes, shown, strict=True):
        first = sum(len(one.values) for one in box_labels)
        box_labels.append(create_box_labels(engine, workspace, attribute, rules, used, first, one.hierarchy))
    return box_labels


def order_of(engine: Engine, box_labels: Sequence[BoxLabels]) -> list[Expression]:
    """The keys that regions are numbered by: what they show."""
    keys = []
    for one in box_labels:
        for number in range(one.first, one.first + len(one.values)):
            key = macro("boxes.in_order", cell_name(number))
            keys.append(engine.render.macro("collate", key) if one.attribute.show is Show.LABEL else key)
    return keys


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
    values = [value for one in box_labels for value in one.values]
    ends = sum(len(shown.ends) for shown in recoding.shown)
    engine.run(
        "releases/rules/show_boxes",
        regions=regions,
        observed=recoding.regions,
        names=names,
        leaves=made.tables.leaves,
        box_labels=[one.joined for one in box_labels],
        cells=[{"name": cell_name(n), "value": value} for n, value in enumerate(values)],
        ends=[end_name(n) for n in range(ends)],
        order=order_of(engine, box_labels),
    )
    engine.analyze(regions)
    wide = workspace.table("boxed_leaves")
    engine.run(
        "releases/rules/widen_leaves",
        wide=wide,
        leaves=recoding.partition.leaves,
        names=names,
        rules=made.tables.leaves,
        segments=made.tables.segments,
        axes=[_widened(*pair) for pair in zip(recoding.partition.axes, made.attributes, strict=True)],
    )
    engine.analyze(wide)
    workspace.drop(*(one.table for one in box_labels))
    return replace(recoding, regions=regions, boxed=True), replace(recoding.partition, leaves=wide)


def _widened(axis: Axis, attribute: RuleAttribute) -> dict[str, Any]:
    """Return the values for a statement that widens the codes of an attribute to those of its box.

    A mean or midpoint depends on the values of the class, and stays; a box that may hold NULL shows nothing else where
    NULL is hidden.
    """
    return {
        **{name: Identifier(f"{name}_{attribute.number}") for name in ("first", "next", "grp")},
        "number": attribute.number,
        "lo": axis.lo,
        "hi": axis.hi,
        "keeps_stand_in": attribute.keeps_stand_in,
        "hides_nulls": attribute.hides_nulls and attribute.has_null,
        "nested": attribute.height is not None,
        "height": attribute.height,
        "most": RedactedValue(axis.field.coding.leaves),
    }


@dataclass(frozen=True)
class Rule:
    """One rule: its number, the rows of the release under it, and the label of its box for each quasi-identifier."""

    leaf: int
    rows: int
    cells: tuple[str | None, ...]


class _Temporary(Workspace):
    """Names of temporary tables, which end with the session."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def table(self, meaning: str, number: int | None = None) -> Relation:
        return self._engine.temporary(f"sqlanon_{meaning}" + ("" if number is None else f"_{number}"))


def list_rules(engine: Engine, stored: StoredRules, limit: int, offset: int) -> list[Rule]:
    """A page of the rules of a tree, with the labels of their boxes; those without rows in the release are last."""
    attributes = tuple(replace(a, show=Show.LABEL) for a in stored.attributes)
    return _fetch(engine, stored, attributes, limit, offset)


def fetch_rules(engine: Engine, stored: StoredRules) -> list[Rule]:
    """All rules of a tree, with what rows show that fall under them."""
    return _fetch(engine, stored, stored.attributes, stored.record.leaves, 0)


def _fetch(
    engine: Engine, stored: StoredRules, attributes: Sequence[RuleAttribute], limit: int, offset: int
) -> list[Rule]:
    assert stored.tables is not None
    names = _Temporary(engine)
    page = names.table("page")
    leaves = stored.tables.leaves
    engine.run(
        "releases/rules/create_page", page=page, leaves=leaves, attributes=attributes, limit=limit, offset=offset
    )
    box_labels: list[BoxLabels] = []
    for attribute in attributes:
        first = sum(len(one.values) for one in box_labels)
        box_labels.append(create_box_labels(engine, names, attribute, stored.tables, page, first, None))
    rows = engine.query(
        "releases/rules/list_cells",
        page=page,
        cells=[value for one in box_labels for value in one.values],
        box_labels=[one.joined for one in box_labels],
    )
    names.drop(page, *(one.table for one in box_labels))
    return [Rule(int(leaf), int(n), tuple(cells)) for leaf, n, *cells in rows]


def list_replaced(engine: Engine, stored: StoredRules) -> list[tuple[str, int, str]]:
    """The groups that cuts have replaced by their children: attribute, level, label."""
    assert stored.tables is not None
    names = [a.name for a in stored.attributes]
    replaced: Sequence[tuple[Any, ...]] = engine.query("releases/rules/list_replaced", segments=stored.tables.segments)
    return [(names[int(number)], int(level), str(label)) for number, level, label in replaced]
