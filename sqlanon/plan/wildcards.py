"""Values that a release could not show beside wildcards and groups, and hierarchies that cells can climb."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.errors import PolicyError
from sqlanon.hierarchies.taxonomy import NULL, Line, label_problems, read_taxonomy
from sqlanon.plan.subject import PlanSubject
from sqlanon.policy import Hierarchy, Role
from sqlanon.policy.document import path_text
from sqlanon.sql import Expression, Identifier, Relation, Text, macro
from sqlanon.support.quantities import rows_hold
from sqlanon.values.expressions import text_of

WILDCARD = "*"


EMPTY = '""'  # an empty text under a mask


MOST_LEVELS = 62  # of all columns together: in a set of these each has a bit


@dataclass(frozen=True)
class _Misread:
    """A text that values of a column must not be, or hold anywhere; and why."""

    column: Column
    text: str
    why: str
    anywhere: bool = False

    def problem(self, count: int) -> str:
        held = f"{rows_hold(count)} {'a text with' if self.anywhere else 'the text'} `{self.text}`"
        return f"{path_text(('attributes', self.column.name))}: {held}, which {self.why}; replace it in the source."


def wildcard_problems(subject: PlanSubject, engine: Engine, source: Relation) -> Iterator[str]:
    """Say which quasi-identifiers hold a text that means another thing in the release; one scan where any may."""
    if not subject.policy.algorithm.has_wildcards:
        return
    misread = [
        one
        for column, attribute in subject.attributes
        if attribute.role is Role.QUASI_IDENTIFIER
        for one in _misread(column, subject.policy.algorithm.hierarchy_of(attribute))
    ]
    if not misread:
        return
    conditions = [
        macro(f"values.{'holds' if one.anywhere else 'is'}", _text(engine, one), Text(one.text)) for one in misread
    ]
    counts = engine.query_one("plan/count_wildcards", source=source, conditions=conditions)
    yield from (one.problem(int(count)) for one, count in zip(misread, counts, strict=True) if count)


def _text(engine: Engine, one: _Misread) -> Expression:
    value = Markup(Identifier(one.column.name))
    return engine.render.macro("collate", text_of(engine.render, value, one.column.kind, one.column.type))


def _misread(column: Column, hierarchy: Hierarchy | None) -> Iterator[_Misread]:
    """List the texts that readers of the release could not tell from what stands for other values."""
    if column.kind in (Kind.TEXT, Kind.ENUM):
        yield _Misread(column, WILDCARD, "readers could not tell from a suppressed cell")
    if hierarchy is None or hierarchy.kind == "suppress":
        return
    if column.kind in (Kind.TEXT, Kind.ENUM):
        yield _Misread(column, NULL, "readers could not tell from NULL")
    if hierarchy.mask is not None:
        yield _Misread(column, WILDCARD, "readers could not tell from a mask", anywhere=True)
        yield _Misread(column, EMPTY, "readers could not tell from an empty text that is masked")
    if hierarchy.unknown is not None:
        yield _Misread(column, hierarchy.unknown, "is the label of unknown values too")


def climb_problems(subject: PlanSubject) -> Iterator[str]:
    """Say which hierarchies cells can't climb one by one."""
    algorithm = subject.policy.algorithm
    if not algorithm.has_wildcards:
        return
    levels = 0
    for column, attribute in subject.attributes:
        hierarchy = algorithm.hierarchy_of(attribute)
        if attribute.role is not Role.QUASI_IDENTIFIER or hierarchy is None:
            continue
        place = path_text(("attributes", column.name))
        if hierarchy.intervals is not None and column.kind is not Kind.INTEGER:
            yield (
                f"{place}: {algorithm.name} takes intervals of whole numbers, and the column is {column.type}; write"
                " the hierarchy as a file (sqlanon hierarchy export) and give it as csv, or"
                f" {subject.recast}."
            )
        try:
            lines = _lines_of(column, hierarchy)
        except PolicyError as error:
            yield str(error)
            continue
        yield from (f"{place}: {problem}" for problem in label_problems(lines, hierarchy.unknown))
        levels += len(lines[0].labels) if lines else _height_of(hierarchy)
    if levels > MOST_LEVELS:
        yield (
            f"algorithm: the hierarchies have {levels} levels together, and {algorithm.name} takes {MOST_LEVELS} at"
            " most; leave levels or columns out."
        )


def _lines_of(column: Column, hierarchy: Hierarchy) -> list[Line]:
    """Read the lines of a taxonomy; other hierarchies have none."""
    if hierarchy.kind not in ("csv", "mapping"):
        return []
    return read_taxonomy(hierarchy, None, lambda what: PolicyError(f"Hierarchy of column '{column.name}': {what}"))


def _height_of(hierarchy: Hierarchy) -> int:
    return hierarchy.length or len(hierarchy.intervals or hierarchy.date or ()) + 1
