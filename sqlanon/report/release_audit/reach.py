"""From where to where the cells of a published release reach, in codes of the source's values.

The codes are those of a coding made anew. They say in which class a source row may be, and are trusted with no more:
whether the cells of that class are true of the row is checked by its raw values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.fields import Field
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.hierarchies import HierarchyTable
from sqlanon.policy import Policy, Recodes, Show
from sqlanon.sql import Identifier, RedactedValue, Relation, Text
from sqlanon.staging.labels import EVERYTHING, NULL
from sqlanon.values.expressions import text_of
from sqlanon.verification.release_checks import Claims, interval_grammar, set_grammar
from sqlanon.work.workspace import Workspace


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
    engine: Engine, workspace: Workspace, coded: CodedTable, shown: list[ShownField], classes: Relation, boxed: bool
) -> Reaches:
    """Read the cells of `classes`; `boxed` bounds are open where they are NULL."""
    tables, vague = [], []
    for one in shown:
        reach = workspace.table("reach", one.number)
        holds_unknown = one.show is Show.BOUNDS and one.column.name in coded.with_nulls
        if one.is_vague or holds_unknown:
            vague.append(one.column.name)
            engine.run("report/release_audit/reach_all", reach=reach, key=one.key, last=one.last, classes=classes)
        else:
            _create_reach(engine, workspace, coded, one, classes, reach, boxed)
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
    engine.run("report/release_audit/reach_spans", reach=reach, spans=spans, values=values, last=shown.last)
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


def count_misshapen(engine: Engine, policy: Policy, shown: list[ShownField], claims: Claims, boxed: bool) -> int:
    """The rows, over all quasi-identifiers with a hierarchy, whose label is none that the algorithm gives them.

    Trees show the lowest group that holds a class's values (unless they are `boxed`); full-domain generalization all
    values at one level; top-down specialization each value in one way, as ordered-set partitioning does without
    hierarchies.
    """
    labelled = [one for one in shown if one.show is Show.LABEL]
    if policy.algorithm.shows_cuts:
        return sum(_count_several(engine, one, claims) for one in labelled)
    return sum(
        _count(engine, policy, one, one.field.coding.hierarchy, claims, boxed)
        for one in labelled
        if one.field.coding.hierarchy is not None
    )


def shows_on_rows(policy: Policy) -> bool:
    """Tell whether a label of another kind is seen on single rows; else it takes all rows of its class."""
    return policy.algorithm.shows_cuts or policy.algorithm.recodes in (Recodes.CUTS, Recodes.LEVELS)


def _count(
    engine: Engine, policy: Policy, shown: ShownField, hierarchy: HierarchyTable, claims: Claims, boxed: bool
) -> int:
    if policy.algorithm.recodes is Recodes.CUTS:
        return _count_several(engine, shown, claims)
    (cell,) = shown.cells
    named = {"witness": claims.witness, "cell": cell, "x": shown.x, "suppressed_leaf": claims.starred}
    texts = {"everything": Text(EVERYTHING), "null": Text(NULL), "dictionary": hierarchy.table}
    if policy.algorithm.recodes is Recodes.LEVELS:
        if policy.remainder == "recode":
            return 0
        levels = range(hierarchy.height + 1)
        return int(min(engine.query_one("report/release_audit/count_off_level", **named, **texts, levels=levels)))
    if boxed:
        return 0
    return int(*engine.query_one("report/release_audit/count_wide_groups", **named, **texts, shifts=hierarchy.shifts))


def _count_several(engine: Engine, shown: ShownField, claims: Claims) -> int:
    """The rows with values that are shown in more than one way."""
    (cell,) = shown.cells
    named = {"witness": claims.witness, "cell": cell, "x": shown.x, "suppressed_leaf": claims.starred}
    return int(*engine.query_one("report/release_audit/count_several_labels", **named))
