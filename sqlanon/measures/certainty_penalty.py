"""The information loss of a partition: the normalized certainty penalty (Xu et al., KDD 2006) and its mean over the
table.

NCP of a region in one attribute: 0 where it shows one value, or a group of one leaf (Ghinita et al., VLDB 2007); for
numbers the width of the region over the width of the whole table's range; with a hierarchy the leaves under the
region's group over all leaves, in the data or not; otherwise the values from the region's first to its last, in the
order of codes, over all values. A region of numbers, or of groups, that also holds NULL counts 1, one of dates or times
if it then shows nothing but NULL, and so does a suppressed row, left out or not. GCP is the mean over all rows and
quasi-identifiers, from 0 to 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sqlanon.encoding.axes import Axis
from sqlanon.engines.base import Engine
from sqlanon.sql import Expression, Identifier, RedactedValue, macro
from sqlanon.staging.partition import Partition
from sqlanon.values.expressions import double_of

_LEAST_SHARE = 1e-300  # far below what a loss is rounded to
_SCALE = 2.0**30  # of an attribute's penalty, which is added up as a whole number


@dataclass(frozen=True)
class Loss:
    """The GCP of a partition, and the mean NCP of every quasi-identifier over all rows, to 9 digits after the point."""

    gcp: float
    of: Mapping[str, float]


def measure_loss(engine: Engine, partition: Partition) -> Loss:
    """The information loss of a partition; the same numbers on every engine."""
    measured = [axis for axis in partition.axes if not axis.field.attribute.is_given]
    if not measured:
        return Loss(0.0, {})
    axes = [_penalty(engine, partition, axis) for axis in measured]
    gcp, *each = engine.query_one(
        "measures/measure_loss", leaves=partition.leaves, axes=axes, omitted=partition.omitted, scale=_SCALE
    )
    names = [axis.field.attribute.name for axis in measured]
    return Loss(float(gcp or 0.0), {n: round(float(one or 0.0), 9) for n, one in zip(names, each, strict=True)})


def _penalty(engine: Engine, partition: Partition, axis: Axis) -> dict[str, Any]:
    """Return the values for the template of one attribute's penalty."""
    low, high = Identifier(f"low_{axis.number}"), Identifier(f"high_{axis.number}")
    known: dict[str, Any] = {"axis": axis, "low": low, "high": high, "groups": [], "measure": None, "hierarchy": None}
    known |= {"is_value": axis.is_value("leaves"), "is_all": axis.holds_all("leaves")}
    known |= {"dictionary": None, "null_counts": True}
    hierarchy = axis.field.coding.hierarchy
    if hierarchy is not None:
        groups = [{"level": level, "there": axis.is_at("leaves", level)} for level in range(1, hierarchy.height + 1)]
        codes = macro("measures.codes_of_leaves", axis, partition.leaves)
        covered = hierarchy.covered(engine.render, codes)
        return known | {"groups": groups, "hierarchy": covered, "leaves": hierarchy.domain}
    if not axis.field.attribute.column.kind.is_numeric:
        return known | {"measure": _share(axis), "null_counts": axis.field.attribute.hides_nulls}
    width = _width_by_value(engine, axis)
    if width is None:
        return known | {"measure": _share(axis)}
    kind = axis.field.attribute.column.kind
    upper, lower = (double_of(engine.render, macro("measures.value", end), kind) for end in (high, low))
    least = RedactedValue(width * _LEAST_SHARE)
    measure = macro("measures.share_of_values", upper, lower, RedactedValue(width), least)
    return known | {"measure": measure, "dictionary": axis.field.coding.dictionary}


def _share(axis: Axis) -> Expression:
    """Codes covered over all codes: of ranks, NULL's among them, or of numbers whose codes are what they are worth."""
    kind, leaves = axis.field.attribute.column.kind, axis.field.coding.leaves
    extra, total = (0, RedactedValue(max(1, leaves - 1))) if kind.is_numeric else (1, leaves + axis.has_null)
    return macro("measures.share_of_codes", axis, extra, total)


def _width_by_value(engine: Engine, axis: Axis) -> float | None:
    """The width of the whole range in values; None where there is no finite one, or codes are values anyway."""
    if axis.field.coding.dictionary is None:
        return None
    value = double_of(engine.render, Markup(Identifier("value")), axis.field.attribute.column.kind)
    low, high = engine.query_one("encoding/measure_range", dictionary=axis.field.coding.dictionary, value=value)
    if low is None or not math.isfinite(float(high) - float(low)) or high == low:
        return None
    return float(high) - float(low)
