"""Labels of the boxes of rules in a release: cells that say all that a new row of the box may hold.

A release shows how far the rows of its classes reach; a new row of the same box may lie beyond. So rows that rules are
applied to show the box itself, from cut to cut, whatever is in it: a cell then depends on the rules and the row alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sqlanon.engines.base import Engine, Kind
from sqlanon.hierarchies import HierarchyTable
from sqlanon.policy import Show
from sqlanon.release.cells import RANGE_TYPES
from sqlanon.release.labels import EVERYTHING, NULL, OPEN, interval_label, quote_member, set_label
from sqlanon.release.recode import cell_name
from sqlanon.rules.routing import value_of
from sqlanon.rules.tables import RuleAttribute, RuleTables
from sqlanon.sql import Identifier, Relation, Text, expression
from sqlanon.values.text import text_of
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
    bounds = _group_bounds(dimension) if dimension is not None and attribute.show in (Show.BOUNDS, Show.RANGE) else []
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
        dimension=dimension.table if bounds and dimension is not None else None,
        levels=bounds,
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
    return value_of(engine.render, attribute, Markup("b.value")), value_of(engine.render, attribute, Markup("f.value"))


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
        last = expression("({value} - 1)", value=value_of(engine.render, attribute, high))
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


def _group_bounds(hierarchy: HierarchyTable) -> list[dict[str, Any]]:
    """The bounds of the groups of every level below the root; a value is both of its own."""
    value = Markup("min(value)")
    levels: list[dict[str, Any]] = [{"number": 0, "lower": value, "upper": value}]
    for level in range(1, hierarchy.height):
        ends = {side: expression("min({c})", c=Identifier(f"{side}{level}")) for side in ("lower", "upper")}
        levels.append({"number": level, **ends})
    return levels
