"""Values that a release could not show beside wildcards and groups, as readers would take them for another thing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.hierarchies.taxonomy import NULL
from sqlanon.plan.subject import PlanSubject
from sqlanon.policy import Hierarchy, Role
from sqlanon.policy.document import path_text
from sqlanon.sql import Expression, Identifier, Relation, Text, macro
from sqlanon.support.quantities import rows_hold
from sqlanon.values.expressions import text_of

WILDCARD = "*"
EMPTY = '""'  # an empty text under a mask


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
