"""The target that splits are chosen by, as a number beside every row: a class, or whole units above the mean.

Sums of whole numbers below 2^53 are exact as doubles, whatever the order and the number of threads, and the same on
every engine. So the target of a regression is made of whole units, few enough for the sums over the whole table: an
integer or decimal is taken as it is, as long as its range has no more than 40 bits (and the rows times the range no
more than 52); beyond that, and for doubles, the unit is the power of two that divides the range into so many. For a
million rows that is a range in four billion parts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.domains import create_domain
from sqlanon.encoding.fields import Field
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.sql import Relation
from sqlanon.work.workspace import Workspace

EXACT_BITS = 52
MOST_BITS = 40


@dataclass(frozen=True)
class Target:
    """The target, coded.

    responses: `(s, y)`, of each code in its place in the word: the class from 0, or whole units above the mean.
    classes: how many classes there are; None of a numeric target.
    missing: whether some rows have no known number; they count as rows, but not for the error.
    bits: of the greatest y.
    """

    field: Field
    responses: Relation
    classes: int | None = None
    missing: bool = False
    bits: int = 0


def number_classes(engine: Engine, workspace: Workspace, coded: CodedTable, name: str) -> Target:
    """A categorical target: its values are classes, and NULL is one of them."""
    field, responses = coded.judged_field(name), workspace.table("responses")
    engine.run(
        "methods/partitioning/gain/scan/number_classes",
        responses=responses,
        rows=coded.rows,
        word=field.column,
        mask=field.mask,
    )
    (classes,) = engine.query_one("methods/partitioning/gain/decide/count_classes", responses=responses)
    return Target(field, responses, classes=int(classes))


def scale_numbers(engine: Engine, workspace: Workspace, coded: CodedTable, name: str) -> Target:
    """A numeric target; NULL, NaN, infinities and numbers beyond 1e150 are unknown, as to variance diversity."""
    field, responses = coded.judged_field(name), workspace.table("responses")
    domain = create_domain(engine, workspace, coded.rows, "target_domain", field).domain
    least, most, missing = engine.query_one("methods/partitioning/gain/decide/measure_responses", domain=domain)
    least, span = float(least or 0), float(most or 0) - float(least or 0)
    unit = unit_of(field.attribute.column, span, coded.source_rows)
    scaled = {"domain": domain, "least": least, "unit": unit}
    (center,) = engine.query_one("methods/partitioning/gain/decide/center_responses", **scaled)
    engine.run(
        "methods/partitioning/gain/decide/scale_responses", responses=responses, center=float(center or 0), **scaled
    )
    workspace.drop(domain)
    return Target(field, responses, missing=bool(missing), bits=math.ceil(math.log2(span * unit + 2)))


def unit_of(column: Column, span: float, rows: int) -> float:
    """Choose the number of units that the number one is divided into."""
    bits = min(MOST_BITS, EXACT_BITS - rows.bit_length())
    own = _own_unit(column)
    if own is not None and span * own < 2.0**bits:
        return own
    return 2.0 ** (bits - 1 - math.floor(math.log2(span))) if span else 1.0


def _own_unit(column: Column) -> float | None:
    """Count the units of a type's last digit that make one; None where the type has no last digit."""
    if column.kind is Kind.INTEGER:
        return 1.0
    return None if column.decimals is None else 10.0**column.decimals
