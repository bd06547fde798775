"""The class of each source row, by the labels that the classes of a published release show.

Classes are boxes in the space of codes, and a row is in the one that holds it. To look at few boxes for each tuple of
values, boxes and tuples are divided together: where a node has many boxes, it is cut in two at the place that leaves
fewest on the larger side (the search structure of Bentley, "Multidimensional binary search trees", CACM 1975).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlanon.encoding.coded_table import CodedTable
from sqlanon.engines.base import Engine
from sqlanon.report.audit.reach import Reaches, ShownField
from sqlanon.sql import Identifier, Relation
from sqlanon.work.workspace import Workspace

FEW = 16  # so many boxes of a node are looked at one by one
MOST_ROUNDS = 60  # of dividing; the numbers of nodes stay within 64 bits


@dataclass(frozen=True)
class Placed:
    """The tuples of the source with the class of each.

    undecided: the tuples that may as well be in another class.
    """

    table: Relation
    undecided: int


def place_rows(
    engine: Engine,
    workspace: Workspace,
    coded: CodedTable,
    shown: list[ShownField],
    classes: Relation,
    reaches: Reaches,
) -> Placed:
    """Find the class of every tuple of quasi-identifiers; one that no class holds has none."""
    axes = [_axis(one, reach) for one, reach in zip(shown, reaches.tables, strict=True)]
    boxes, tuples = workspace.table("boxes"), workspace.table("tuples")
    engine.run("audit/create_boxes", boxes=boxes, classes=classes, axes=axes)
    engine.run("audit/create_tuples", tuples=tuples, rows=coded.rows, axes=axes)
    boxes, tuples = _divide(engine, workspace, axes, boxes, tuples)
    placed = workspace.table("placed")
    engine.run("audit/place_tuples", placed=placed, tuples=tuples, boxes=boxes, axes=axes)
    engine.analyze(placed)
    workspace.drop(boxes, tuples)
    (undecided,) = engine.query_one("audit/count_undecided", placed=placed, vague=bool(reaches.vague))
    return Placed(placed, int(undecided))


def _divide(
    engine: Engine, workspace: Workspace, axes: list[dict[str, Any]], boxes: Relation, tuples: Relation
) -> tuple[Relation, Relation]:
    """Boxes and tuples in nodes of few boxes each, as far as cuts divide them."""
    for number in range(MOST_ROUNDS if axes else 0):
        engine.analyze(boxes, tuples)
        cuts = workspace.table("cuts")
        workspace.drop(cuts)
        engine.run("audit/choose_cuts", cuts=cuts, boxes=boxes, axes=axes, few=FEW)
        (cut_count,) = engine.query_one("count_rows", table=cuts)
        if not cut_count:
            break
        parts, divided = workspace.table("boxes", number), workspace.table("tuples", number)
        engine.run("audit/split_boxes", parts=parts, boxes=boxes, cuts=cuts, axes=axes)
        engine.run("audit/split_tuples", parts=divided, tuples=tuples, cuts=cuts, axes=axes)
        workspace.drop(boxes, tuples)
        boxes, tuples = parts, divided
    return boxes, tuples


def _axis(shown: ShownField, reach: Relation) -> dict[str, Any]:
    number = shown.number
    return {
        "reach": reach,
        "alias": Identifier(f"reach_{number}"),
        "key": shown.key,
        "lo": Identifier(f"lo_{number}"),
        "hi": Identifier(f"hi_{number}"),
        "x": shown.x,
        "code": shown.field.code(Identifier("r")),
        "ordered": shown.field.coding.hierarchy is None,
    }
