"""Coding of one attribute's values: as whole numbers from an origin, or by a dictionary."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sqlanon.encoding.fields import Coding
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Kind
from sqlanon.hierarchies import build_hierarchy
from sqlanon.hierarchies.limits import coded_value, open_groups
from sqlanon.plan.plan import Attribute, Plan
from sqlanon.policy import Role
from sqlanon.sql import Expression, Identifier, Relation, Renderer, macro
from sqlanon.values.expressions import comparable, is_single
from sqlanon.work.workspace import Workspace

NARROW = 2**31 - 2  # a range of whole numbers that needs no dictionary


UNCODED = 0.25  # from this share of distinct values on, those that are only kept are not coded


UNCODED_ROWS = 100_000  # of smaller tables a dictionary costs nothing


PLAIN = 2**126  # numbers up to this can be reckoned with in every engine's integers


FINEST = 1_000_000  # the smallest unit is a millionth


MOST_DIGITS = 6  # after the point: engines round a double differently to decimals of more


FIVES = range(6, 0, -1)  # as often 5 may divide the units that make one


LARGEST = 10**9  # beyond it a double may not tell the millionths apart


def code_attribute(
    engine: Engine, plan: Plan, workspace: Workspace, number: int, attribute: Attribute, span: Range | None
) -> Coding | None:
    """The coding that the release is made from: kept values are told apart byte for byte.

    None where values are kept that nobody looks at and that are nearly all different: a dictionary of them would cost
    more than all else that is done to them.

    number: tells the work tables of this coding from those of others.
    span: the range of an attribute that may need no dictionary.
    """
    if span is not None and (coding := _reckoned(attribute, span)) is not None:
        return coding
    keyed = attribute.role is not Role.QUASI_IDENTIFIER and _equals_differ(engine, plan, attribute)
    if not keyed and _stays_uncoded(plan, attribute):
        return None
    return _dictionary_coding(engine, plan, workspace, number, attribute, keyed)


def _stays_uncoded(plan: Plan, attribute: Attribute) -> bool:
    looked_at = attribute.role is not Role.INSENSITIVE or attribute.name in (plan.policy.target, plan.policy.person)
    return not looked_at and plan.rows >= UNCODED_ROWS and attribute.distinct >= UNCODED


def _equals_differ(engine: Engine, plan: Plan, attribute: Attribute) -> bool:
    """Tell whether equal values of the attribute look different; floats are searched, as few columns have such values.

    Without any, floats are coded by their value: their text is dear to write, to group by, and to join by.
    """
    if attribute.column.kind is not Kind.FLOAT or attribute.hierarchy is not None:
        return attribute.column.kind.equals_may_differ
    column = Identifier(attribute.name)
    (signed,) = engine.query_one("encoding/count_signed", source=plan.source, column=column)
    return bool(signed)


def _reckoned(attribute: Attribute, span: Range) -> Coding | None:
    """The coding by what values are worth; None if their range is too wide."""
    low, high = span.low, span.high
    if low is None or high is None:
        return Coding(attribute, bits=0, leaves=0, origin=0)
    if high - low > NARROW or low <= -PLAIN or high >= PLAIN:
        return None
    return Coding(attribute, (high - low + 1).bit_length(), high - low + 1, origin=low, scale=span.scale)


def code_by_value(engine: Engine, plan: Plan, workspace: Workspace, number: int, kept: Coding) -> Coding | None:
    """The coding that models judge a sensitive attribute by, where it is not the one that it is kept by."""
    attribute = kept.attribute
    if not kept.keyed or attribute.role is not Role.SENSITIVE or not attribute.column.compares:
        return None
    if attribute.hierarchy is None:
        (has_equal,) = engine.query_one("encoding/count_equal_values", dictionary=kept.dictionary)
        if not has_equal:
            return None
    return _dictionary_coding(engine, plan, workspace, number, attribute, keyed=False)


def _dictionary_coding(
    engine: Engine, plan: Plan, workspace: Workspace, number: int, attribute: Attribute, keyed: bool
) -> Coding:
    values, dictionary = workspace.table("values", number), workspace.table("dictionary", number)
    _create_values(engine, _values_of(plan, attribute), attribute, values, keyed)
    if attribute.hierarchy is not None and not keyed:
        tree = build_hierarchy(engine, attribute.hierarchy, attribute.column, values, dictionary, plan.base_directory)
        opened = open_groups(engine, attribute.hierarchy, attribute.column, attribute.limits, tree)
        coding = Coding(attribute, tree.shifts[-1], tree.leaves, dictionary=tree.stored, hierarchy=tree, opened=opened)
    else:
        order = _order(engine, attribute, keyed)
        leaves = engine.run("encoding/create_dictionary", dictionary=dictionary, values=values, order=order)
        if leaves < 0:
            (leaves,) = engine.query_one("count_rows", table=dictionary)
        coding = Coding(attribute, leaves.bit_length(), leaves, dictionary=dictionary, keyed=keyed)
    workspace.drop(values)
    return coding


def _values_of(plan: Plan, attribute: Attribute) -> Relation | Expression:
    """The rows whose values are coded: those of the population too, if models look at one, to be coded alike."""
    if plan.population is None or attribute.role is not Role.QUASI_IDENTIFIER:
        return plan.source
    return macro("relations.both", plan.source, plan.population, Identifier(attribute.name))


def _create_values(
    engine: Engine, source: Relation | Expression, attribute: Attribute, values: Relation, keyed: bool
) -> None:
    template = "encoding/create_values"
    if keyed:
        template = f"encoding/create_keyed_{'others' if attribute.column.kind is Kind.OTHER else 'numbers'}"
    written = key_of if keyed else plain_value
    value = written(engine, attribute, Markup(Identifier("v")))
    engine.run(template, values=values, source=source, column=Identifier(attribute.name), value=value)


def plain_value(engine: Engine, attribute: Attribute, value: Expression) -> Expression:
    """Write the value that equal values are coded by (see `coded_value`)."""
    return coded_value(engine.render, attribute.column, attribute.limits, value)


def key_of(engine: Engine, attribute: Attribute, value: Expression) -> Expression:
    """Write the key that tells kept values apart byte for byte, where the engine's own equality doesn't."""
    return engine.render.macro("exact_other" if attribute.column.kind is Kind.OTHER else "exact_number", value)


def _order(engine: Engine, attribute: Attribute, keyed: bool) -> Expression:
    value = Markup(Identifier("value"))
    if attribute.column.kind is Kind.TEXT:
        return engine.render.macro("collate", value)
    if attribute.column.kind is Kind.OTHER:
        return Markup(Identifier("key")) if keyed else comparable(engine, value, Kind.OTHER)
    return macro("codes.order", keyed)


@dataclass(frozen=True)
class Range:
    """The least and the greatest value of an attribute, in units of which `scale` make one; None of NULLs alone.

    scale: None of integers.
    """

    low: int | None
    high: int | None
    scale: int | None = None


def measure_fractions(engine: Engine, plan: Plan) -> dict[str, Range]:
    """The ranges of the quasi-identifiers that are coded by units, and the units, in one scan of the source."""
    attributes = [attribute for attribute in plan.quasi_identifiers if _may_be_whole(attribute)]
    if not attributes:
        return {}
    columns = [_column(engine.render, number, attribute) for number, attribute in enumerate(attributes)]
    values = {"source": plan.source, "columns": columns, "finest": FINEST, "largest": LARGEST, "fives": FIVES}
    figures = engine.query_one("encoding/measure_fractions", **values)
    each = [figures[start : start + 5] for start in range(0, len(figures), 5)]
    return {
        attribute.name: _in_units(int(low), int(high), _unit(int(bits), int(fives)))
        for attribute, (others, low, high, bits, fives) in zip(attributes, each, strict=True)
        if not others and low is not None
    }


def _column(render: Renderer, number: int, attribute: Attribute) -> dict[str, Any]:
    """Build the statement's values for one column: its values `t.…`, and the number of units that they are worth."""
    value, units = Identifier(f"value_{number}"), Identifier(f"units_{number}")
    return {
        "value": attribute.limits.coded(render, Markup(Identifier(attribute.name)), attribute.column),
        "value_name": value,
        "units": units,
        "type": Markup(attribute.column.type),
    }


def _unit(bits: int, fives: int) -> int:
    """The largest unit, in the smallest ones, from the bits of all values and how often 5 divides each of them."""
    return math.gcd(bits & -bits, FINEST) * 5**fives if bits else FINEST


def _in_units(low: int, high: int, unit: int) -> Range:
    return Range(low // unit, high // unit, FINEST // unit)


def _may_be_whole(attribute: Attribute) -> bool:
    column = attribute.column
    if attribute.hierarchy is not None:
        return False
    if column.kind is Kind.DECIMAL:
        return column.decimals is None or column.decimals <= MOST_DIGITS
    return column.kind is Kind.FLOAT and not is_single(column.type)
