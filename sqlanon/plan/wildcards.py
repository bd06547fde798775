"""Values that a release could not show beside wildcards."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Kind
from sqlanon.plan.subject import PlanSubject
from sqlanon.policy import Role
from sqlanon.policy.document import path_text
from sqlanon.sql import Identifier, Relation, Text, macro
from sqlanon.support.quantities import rows_hold

WILDCARD = "*"


def wildcard_problems(subject: PlanSubject, engine: Engine, source: Relation) -> Iterator[str]:
    """Say which quasi-identifiers hold the text that stands for any value in the release; one scan where any may."""
    if not subject.policy.algorithm.has_wildcards:
        return
    columns = [
        column
        for column, attribute in subject.attributes
        if attribute.role is Role.QUASI_IDENTIFIER and column.kind in (Kind.TEXT, Kind.ENUM)
    ]
    if not columns:
        return
    texts = [macro("values.text", Markup(Identifier(column.name))) for column in columns]
    counts = engine.query_one("plan/count_wildcards", source=source, texts=texts, wildcard=Text(WILDCARD))
    for column, count in zip(columns, counts, strict=True):
        if count:
            yield (
                f"{path_text(('attributes', column.name))}: {rows_hold(int(count))} the text `{WILDCARD}`, which"
                " readers could not tell from a suppressed cell; replace it in a view."
            )
