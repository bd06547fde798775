"""The class of each source row, by the labels that the classes of a published release show.

Classes are boxes in the space of codes, and a row is in the one that holds it. To look at few boxes for each tuple of
values, boxes are divided: where a node has many boxes, it is cut in two at the place that leaves fewest on the larger
side (the search structure of Bentley, "Multidimensional binary search trees", CACM 1975). Tuples then go down to their
nodes in one statement.

The cells of classes are read as codes of a coding made anew. They say in which class a source row may be, and are
trusted with no more: whether the cells of that class are true of the row is checked by its raw values.

The division takes many rounds of small statements, so that it is carried out in the session that holds the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.fields import Field
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.policy import Show
from sqlanon.sql import Expression, Identifier, RedactedValue, Relation, Text, macro
from sqlanon.staging.labels import EVERYTHING, NULL
from sqlanon.values.expressions import text_of
from sqlanon.verification.release_checks import interval_grammar, set_grammar
from sqlanon.work.workspace import TemporaryWorkspace, Workspace, carry_out_keeping

FEW = 16  # so many boxes of a node are looked at one by one
MOST_ROUNDS = 60  # of dividing; the numbers of nodes stay within 64 bits


@dataclass(frozen=True)
class ShownField:
    """A quasi-identifier of the source, and the columns of the release that stand for it.

    number: its place among the quasi-identifiers. released: the columns; cells: their names in work tables.
    """

    number: int
    field: Field
    released: tuple[Column, ...]
    cells: tuple[Identifier, ...]

    @property
    def column(self) -> Column:
        return self.field.attribute.column

    @property
    def show(self) -> Show:
        return self.field.attribute.show

    @property
    def key(self) -> Identifier:
        """Column for the number of its cells among all of the release."""
        return Identifier(f"k{self.number}")

    @property
    def x(self) -> Identifier:
        """Column for the code of a value."""
        return Identifier(f"x{self.number}")

    @property
    def last(self) -> RedactedValue:
        """A code above that of every value."""
        return RedactedValue(1 << self.field.coding.bits)

    @property
    def is_vague(self) -> bool:
        """Tell whether the cells do not say which values they stand for."""
        hierarchy = self.field.coding.hierarchy
        return self.show in (Show.MEAN, Show.MIDPOINT, Show.RANGE) or (
            self.show is Show.BOUNDS and hierarchy is not None
        )

    def reads_oddly(self, engine: Engine) -> bool:
        """Tell whether a label of its hierarchy may as well stand for NULL, or for everything."""
        hierarchy = self.field.coding.hierarchy
        if hierarchy is None or self.show is not Show.LABEL:
            return False
        named = {"everything": Text(EVERYTHING), "null": Text(NULL), "levels": range(hierarchy.height)}
        (count,) = engine.query_one("report/release_audit/count_odd_labels", dictionary=hierarchy.table, **named)
        return bool(count)


@dataclass(frozen=True)
class Reaches:
    """The reach of the cells of each quasi-identifier, a table `(k, lo, hi)` each; a label may have several rows.

    vague: the names of those whose cells do not say it.
    """

    tables: tuple[Relation, ...]
    vague: tuple[str, ...]


def create_reaches(
    engine: Engine,
    workspace: Workspace,
    coded: CodedTable,
    shown: list[ShownField],
    classes: Relation,
    boxed: bool,
    *,
    each: bool = False,
) -> Reaches:
    """Read the cells of `classes`; `boxed` bounds are open where they are NULL.

    each: whether a cell reaches to no value but its own: members of a set, and NULL beside values, reach apart.
    """
    tables, vague = [], []
    for one in shown:
        reach = workspace.table("reach", one.number)
        holds_unknown = one.show is Show.BOUNDS and one.column.name in coded.with_nulls
        if one.is_vague or holds_unknown:
            vague.append(one.column.name)
            engine.run("report/release_audit/reach_all", reach=reach, key=one.key, last=one.last, classes=classes)
        else:
            _create_reach(engine, workspace, coded, one, classes, reach, boxed, each)
            vague += [one.column.name] if one.reads_oddly(engine) else []
        engine.analyze(reach)
        tables.append(reach)
    return Reaches(tuple(tables), tuple(vague))


def _create_reach(
    engine: Engine,
    workspace: Workspace,
    coded: CodedTable,
    shown: ShownField,
    classes: Relation,
    reach: Relation,
    boxed: bool,
    each: bool,
) -> None:
    hierarchy = shown.field.coding.hierarchy
    if hierarchy is not None:
        engine.run(
            "report/release_audit/reach_groups",
            dictionary=hierarchy.table,
            shifts=hierarchy.shifts,
            reach=reach,
            classes=classes,
            **_named(shown),
        )
        return
    values = _values(engine, workspace, coded, shown)
    if shown.show is Show.LABEL and (shown.column.kind.is_nominal or shown.column.kind is Kind.ENUM):
        text = text_of(engine.render, Markup(Identifier("value")), shown.column.kind, shown.column.type)
        grammar = set_grammar(shown.column)
        engine.run(
            "report/release_audit/reach_members",
            text=engine.render.macro("collate", text),
            values=values,
            interval=grammar["interval"],
            span=grammar["span"],
            member=grammar["member"],
            reach=reach,
            classes=classes,
            each=each,
            **_named(shown),
        )
        return
    spans = workspace.table("spans", shown.number)
    if shown.show is Show.BOUNDS:
        low, high = shown.cells
        engine.run(
            "report/release_audit/read_bounds",
            spans=spans,
            classes=classes,
            key=shown.key,
            low=low,
            high=high,
            boxed=boxed,
        )
    else:
        grammar = interval_grammar(shown.column)
        engine.run(
            "report/release_audit/read_intervals", spans=spans, classes=classes, **grammar, **_named(shown, last=False)
        )
    engine.run("report/release_audit/reach_spans", reach=reach, spans=spans, values=values, last=shown.last, each=each)
    workspace.drop(spans)


def _named(shown: ShownField, *, last: bool = True) -> dict[str, Any]:
    (cell,) = shown.cells
    named = {"key": shown.key, "cell": cell, "everything": Text(EVERYTHING), "null": Text(NULL)}
    return named | ({"last": shown.last} if last else {})


def _values(engine: Engine, workspace: Workspace, coded: CodedTable, shown: ShownField) -> Relation:
    """The table of the attribute's values and their codes."""
    coding = shown.field.coding
    if coding.dictionary is not None:
        return coding.dictionary
    values = workspace.table("values", shown.number)
    code = shown.field.code(Identifier("r"))
    value = coding.value_of(Markup(Identifier("code")))
    engine.run("report/release_audit/list_values", values=values, rows=coded.rows, code=code, value=value)
    return values


def open_ends(engine: Engine, classes: Relation, shown: ShownField) -> bool:
    """Tell whether a label of numbers, dates, times or texts has an open end, as those of stored rules have."""
    attribute = shown.field.attribute
    if shown.show is not Show.LABEL or attribute.hierarchy is not None or attribute.limits:
        return False
    (cell,) = shown.cells
    pattern = Text(r"^[\[{](NULL, )?[*]-|-[*][\]}]$")
    (count,) = engine.query_one("report/release_audit/count_open_ends", classes=classes, cell=cell, pattern=pattern)
    return bool(count)


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
    placing: type[Placing] | None = None,
) -> Placed:
    """Find the class of every tuple of quasi-identifiers; one that no class holds has none.

    placing: another way of placing tuples among boxes.
    """
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
        (placing or Placing)(axes, words, boxes, tuples, bool(reaches.vague), workspace.prefix, number)
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
        return carry_out_keeping(workspace, lambda: self.place(engine, workspace))

    def place(self, engine: Engine, workspace: Workspace) -> tuple[Relation, int]:
        """Give each tuple its class; returns what the call does."""
        boxes, cuts = self.divide(engine, workspace)
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

    def divide(self, engine: Engine, workspace: Workspace) -> tuple[Relation, list[Relation]]:
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
