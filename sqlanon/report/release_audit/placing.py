"""The class of each source row, by the labels that the classes of a published release show.

Classes are boxes in the space of codes, and a row is in the one that holds it. To look at few boxes for each tuple of
values, boxes are divided: where a node has many boxes, it is cut in two at the place that leaves fewest on the larger
side (the search structure of Bentley, "Multidimensional binary search trees", CACM 1975). Tuples then go down to their
nodes in one statement.

The division takes many rounds of small statements, so that it is carried out in the session that holds the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlanon.encoding.coded_table import CodedTable
from sqlanon.engines.base import Engine
from sqlanon.report.release_audit.reach import Reaches, ShownField
from sqlanon.sql import Expression, Identifier, Relation, macro
from sqlanon.work.workspace import TemporaryWorkspace, Workspace, carry_out_keeping

FEW = 16  # so many boxes of a node are looked at one by one
MOST_ROUNDS = 60  # of dividing; the numbers of nodes stay within 64 bits


@dataclass(frozen=True)
class Placed:
    """The tuples of the source with the class of each.

    tuples: a relation, of one table or several. undecided: the tuples that may as well be in another class.
    """

    tuples: Relation | Expression
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
    axes = tuple(_axis(one, reach) for one, reach in zip(shown, reaches.tables, strict=True))
    boxes, tuples = workspace.table("boxes"), workspace.table("tuples")
    tasks = engine.tasks_for(coded.source_rows)
    engine.run("report/release_audit/create_boxes", boxes=boxes, classes=classes, axes=axes)
    words = coded.word_columns
    codes = [axis["code"] for axis in axes]
    engine.run(
        "report/release_audit/create_tuples", tuples=tuples, rows=coded.rows, codes=codes, words=words, tasks=tasks
    )
    works = [
        Placing(axes, words, boxes, tuples, bool(reaches.vague), workspace.prefix, number)
        for number in range(max(tasks, 1))
    ]
    if tasks:
        parts = engine.carry_out_in_parts([boxes], tuples, works)
    else:
        parts = [engine.carry_out_with_rows([boxes], [tuples], works[0])]
    workspace.drop(boxes, tuples)
    placed = [table for table, _ in parts]
    return Placed(placed[0] if not tasks else macro("tree.of_all", placed), sum(undecided for _, undecided in parts))


@dataclass(frozen=True)
class Placing:
    """The division of boxes and the way of tuples to them, in any session that holds both under the same names.

    words: the columns of tuples. vague: whether cells do not say which values they stand for.
    prefix: of the work tables. number: of this part of the tuples; all parts have the same boxes.
    """

    axes: tuple[dict[str, Any], ...]
    words: tuple[Identifier, ...]
    boxes: Relation
    tuples: Relation
    vague: bool
    prefix: str
    number: int

    def __call__(self, engine: Engine) -> tuple[Relation, int]:
        """Return the table of tuples with their classes, and the number of those that are undecided."""
        workspace = TemporaryWorkspace(engine, self.prefix)
        return carry_out_keeping(workspace, lambda: self._place(engine, workspace))

    def _place(self, engine: Engine, workspace: Workspace) -> tuple[Relation, int]:
        boxes, cuts = self._divide(engine, workspace)
        marked, placed = workspace.table("contested", self.number), workspace.table("placed", self.number)
        engine.run("report/release_audit/mark_contested", marked=marked, boxes=boxes, axes=self.axes)
        engine.analyze(marked, self.tuples)
        (contested,) = engine.query_one("report/release_audit/count_contested", boxes=marked)
        engine.run(
            "report/release_audit/place_tuples",
            placed=placed,
            tuples=self.tuples,
            boxes=marked,
            cuts=cuts,
            axes=self.axes,
            words=self.words,
            contested=contested,
        )
        engine.analyze(placed)
        (undecided,) = engine.query_one("report/release_audit/count_undecided", placed=placed, vague=self.vague)
        return placed, int(undecided)

    def _divide(self, engine: Engine, workspace: Workspace) -> tuple[Relation, list[Relation]]:
        """Boxes in nodes of few boxes each, as far as cuts divide them, and a table of cuts for each round."""
        axes, boxes = self.axes, self.boxes
        rounds: list[Relation] = []
        for number in range(MOST_ROUNDS if axes else 0):
            engine.analyze(boxes)
            cuts = workspace.table("cuts", number)
            engine.run("report/release_audit/choose_cuts", cuts=cuts, boxes=boxes, axes=axes, few=FEW)
            (cut_count,) = engine.query_one("count_rows", table=cuts)
            if not cut_count:
                break
            engine.analyze(cuts)
            rounds.append(cuts)
            parts = workspace.table("boxes", number)
            engine.run("report/release_audit/split_boxes", parts=parts, boxes=boxes, cuts=cuts, axes=axes)
            if number:
                workspace.drop(boxes)
            boxes = parts
        return boxes, rounds


def _axis(shown: ShownField, reach: Relation) -> dict[str, Any]:
    number = shown.number
    return {
        "reach": reach,
        "alias": Identifier(f"reach_{number}"),
        "key": shown.key,
        "lo": Identifier(f"lo_{number}"),
        "hi": Identifier(f"hi_{number}"),
        "code": shown.field.code(Identifier("tuples")),
        "ordered": shown.field.coding.hierarchy is None,
    }
