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
from sqlanon.engines.base import Engine, Kind
from sqlanon.hierarchies import HierarchyTable
from sqlanon.policy import Show
from sqlanon.releases.rules.store_rules import MadeRules, RuleAttribute, RuleTables, StoredRules
from sqlanon.sql import Identifier, RedactedValue, Relation, Text, expression
from sqlanon.staging.cells import RANGE_TYPES, Shown
from sqlanon.staging.labels import EVERYTHING, NULL, OPEN, interval_label, quote_member, set_label
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
    values: tuple[Markup, ...]

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
        "rules/create_box_labels",
        box_labels=table,
        used=used,
        number=attribute.number,
        lo=attribute.lo,
        hi=attribute.hi,
        segments=rules.segments,
        domain=rules.domain,
        nested=attribute.height is not None,
        listed=attribute.listed,
        member=quote_member(engine.render, Markup("v.value")),
        always_quoted=quote_member(engine.render, Markup("v.value"), always=True),
        limit=attribute.set_limit,
        dimension=None if bounded is None else bounded.table,
        height=None if bounded is None else bounded.height,
        cells=[{"name": cell_name(n), "value": value} for n, value in zip(numbers, values, strict=True)],
    )
    engine.analyze(table)
    return BoxLabels(attribute, first, table, tuple(_read(attribute, n) for n in numbers))


def _read(attribute: RuleAttribute, number: int) -> Markup:
    """A cell as a row `u` shows it: everything, where the row's value is unknown to the rules."""
    alias, bit = Identifier(f"f_{attribute.number}"), 1 << attribute.number
    cell = expression("{alias}.{cell}", alias=alias, cell=cell_name(number))
    if attribute.keeps_stand_in:
        cell = expression("u.{column}", column=attribute.stand_in)
    if attribute.hides_rows:
        cell = expression("CASE WHEN (u.odd & {bit}) = 0 THEN {cell} END", bit=bit, cell=cell)
    if attribute.show is Show.BOUNDS and attribute.height is None:  # a CASE has no precision and scale on PostgreSQL
        return expression("CAST({cell} AS {type})", cell=cell, type=Markup(attribute.type))
    if attribute.hides_rows:
        return cell
    if attribute.show is not Show.LABEL or attribute.height is not None:
        return cell
    return expression(
        "CASE WHEN (u.odd & {bit}) <> 0 THEN {everything} ELSE {cell} END",
        bit=bit,
        everything=Text(EVERYTHING),
        cell=cell,
    )


def _cells(engine: Engine, attribute: RuleAttribute) -> tuple[Markup, ...]:
    """The cells of an interval `p`, from its first segment `b` and the one that follows it, `f`, or its group `g`."""
    if attribute.keeps_stand_in:
        return (Markup("CAST(NULL AS FLOAT8)"),)
    if attribute.show in (Show.BOUNDS, Show.RANGE):
        low, high = (_known(attribute, end) for end in _ends(engine, attribute))
        return (low, high) if attribute.show is Show.BOUNDS else (_range(attribute, low, high),)
    if attribute.height is not None:
        return (expression("CASE WHEN p.hi = 0 THEN {null} ELSE g.value END", null=Text(NULL)),)
    if attribute.listed:
        return (_set_label(attribute),)
    return (_interval_label(engine, attribute),)


def _ends(engine: Engine, attribute: RuleAttribute) -> tuple[Markup, Markup]:
    """The least value of an interval, and the one that it ends before."""
    if attribute.height is not None:
        return Markup("e.lower"), Markup("e.upper")
    return attribute.value_of(engine.render, Markup("b.value")), attribute.value_of(engine.render, Markup("f.value"))


def _range(attribute: RuleAttribute, low: Markup, high: Markup) -> Markup:
    ends = Markup("'[)'")
    if attribute.height is not None:
        ends = Markup("CASE WHEN g.level = 0 THEN '[]' ELSE '[)' END")
    if attribute.kind is Kind.FLOAT:
        low, high = (Markup("CAST({} AS NUMERIC)").format(side) for side in (low, high))
    if attribute.kind is Kind.INTEGER and attribute.height is not None:
        low, high = (Markup("CAST(ceil(CAST({} AS NUMERIC)) AS BIGINT)").format(side) for side in (low, high))
    return expression(
        "CASE WHEN p.hi > 0 AND NOT {hidden} THEN {type}({low}, {high}, {ends}) END",
        hidden=_hides(attribute),
        type=Markup(RANGE_TYPES[attribute.kind]),
        low=low,
        high=high,
        ends=ends,
    )


def _hides(attribute: RuleAttribute) -> Markup:
    """Test whether an interval shows nothing because it holds NULL."""
    if not attribute.hides_nulls:
        return Markup("FALSE")
    return _holds_null(attribute) if attribute.height is None else Markup("(p.lo = 0)")


def _known(attribute: RuleAttribute, end: Markup) -> Markup:
    """An end of an interval, if it is not hidden."""
    hidden = _hides(attribute)
    return end if hidden == "FALSE" else expression("CASE WHEN NOT {h} THEN {end} END", h=hidden, end=end)


def _holds_null(attribute: RuleAttribute) -> Markup:
    return Markup("(p.lo = 0)") if attribute.has_null else Markup("FALSE")


def _is_all(attribute: RuleAttribute) -> Markup:
    return expression("p.lo = 0 AND p.hi = {last}", last=attribute.segments - 1)


def _set_label(attribute: RuleAttribute) -> Markup:
    members = Markup("m.members")
    single = Markup("m.n = 1")
    return set_label(members, single, Markup("m.is_interval"), _holds_null(attribute), Markup("m.n IS NULL"))


def _interval_label(engine: Engine, attribute: RuleAttribute) -> Markup:
    """From cut to cut; `*` stands for no cut. Of whole numbers and dates the last value is known."""
    low, high = Markup("b.value"), Markup("f.value")
    single = Markup("FALSE")
    if attribute.kind in _STEPPED:
        last = expression("({value} - 1)", value=attribute.value_of(engine.render, high))
        high = text_of(engine.render, last, attribute.kind, attribute.type)
        single = expression("coalesce({low} = {high}, FALSE)", low=low, high=high)
    if attribute.kind.is_nominal or attribute.kind is Kind.ENUM:
        low, high = (quote_member(engine.render, end, always=True) for end in (low, high))
    low, high = (expression("coalesce({end}, {open})", end=end, open=OPEN) for end in (low, high))
    label = interval_label(low, high, single, _holds_null(attribute), Markup("p.hi = 0"))
    return expression(
        "CASE WHEN {all} THEN {everything} ELSE {label} END",
        all=_is_all(attribute),
        everything=Text(EVERYTHING),
        label=label,
    )


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
        first = sum(len(face.values) for face in box_labels)
        box_labels.append(create_box_labels(engine, workspace, attribute, rules, used, first, one.hierarchy))
    return box_labels


def order_of(engine: Engine, box_labels: Sequence[BoxLabels]) -> list[Markup]:
    """The keys that regions are numbered by: what they show."""
    keys = []
    for face in box_labels:
        for number in range(face.first, face.first + len(face.values)):
            key = expression("s.{cell}", cell=cell_name(number))
            keys.append(engine.render.macro("collate", key) if face.attribute.show is Show.LABEL else key)
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
    engine.run("rules/create_page", page=page, leaves=leaves, attributes=attributes, limit=limit, offset=offset)
    box_labels: list[BoxLabels] = []
    for attribute in attributes:
        first = sum(len(face.values) for face in box_labels)
        box_labels.append(create_box_labels(engine, names, attribute, stored.tables, page, first, None))
    rows = engine.query(
        "rules/list_cells",
        page=page,
        cells=[value for face in box_labels for value in face.values],
        box_labels=[face.joined for face in box_labels],
    )
    names.drop(page, *(face.table for face in box_labels))
    return [Rule(int(leaf), int(n), tuple(cells)) for leaf, n, *cells in rows]


def list_replaced(engine: Engine, stored: StoredRules) -> list[tuple[str, int, str]]:
    """The groups that cuts have replaced by their children: attribute, level, label."""
    assert stored.tables is not None
    names = [a.name for a in stored.attributes]
    found: Sequence[tuple[Any, ...]] = engine.query("rules/list_replaced", segments=stored.tables.segments)
    return [(names[int(number)], int(level), str(label)) for number, level, label in found]
