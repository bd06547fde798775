"""The classes of recoded rows that violate a model, by the numbers of the classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.models import PrivacyModel
from sqlanon.sql import Expression, Identifier, Statement
from sqlanon.values.expressions import as_sensitive, double_of, text_of_sensitive
from sqlanon.verification.table_check import NO_NUMBER, CountedRows, named_groups


def failing_queries(
    engine: Engine,
    staging: tuple[Callable[[str | None], CountedRows], Identifier],
    columns: Sequence[Column],
    models: Sequence[PrivacyModel],
    rows: tuple[int, Expression],
) -> list[Statement]:
    """A query for each sensitive attribute; no model may need a hierarchy.

    staging: the rows by the sensitive attribute that is looked at, if one is, and their column with the number of the
    class; columns: of the release.
    rows: the most that there may be, and SQL for how many there are.
    """
    named = {column.name: column for column in columns}
    rows_of, class_column = staging
    return [
        _failing_by(engine, (rows_of(name), class_column), None if name is None else named[name], judged, rows)
        for name, judged in by_attribute(models).items()
    ]


def by_attribute(models: Sequence[PrivacyModel]) -> dict[str | None, list[PrivacyModel]]:
    """The models by the sensitive attribute that they look at."""
    grouped: dict[str | None, list[PrivacyModel]] = {}
    for model in models:
        grouped.setdefault(model.attribute, []).append(model)
    return grouped


def _failing_by(
    engine: Engine,
    staging: tuple[CountedRows, Identifier],
    column: Column | None,
    models: Sequence[PrivacyModel],
    rows: tuple[int, Expression],
) -> Statement:
    groups = named_groups(column is not None, rows[0], counted=rows[1])
    return engine.render(
        "jobs/list_failing",
        staging=staging[0].table,
        times=staging[0].times,
        class_column=staging[1],
        measures=[model.measure(engine.render, groups) for model in models],
        **sensitive_values(engine, column, models),
    )


def sensitive_values(engine: Engine, column: Column | None, models: Sequence[PrivacyModel]) -> dict[str, Any]:
    """Return the values that templates interpolate of a sensitive attribute that models look at, if there is one."""
    if column is None:
        return {"sensitive": None}
    numeric, texts = column.kind.is_numeric, any(model.needs_texts for model in models)
    return {
        "sensitive": as_sensitive(engine, column, Markup(Identifier(column.name))),
        "value": double_of(engine.render, Markup(Identifier("v")), column.kind) if numeric else NO_NUMBER,
        "text": text_of_sensitive(engine, column) if texts else None,
        "levels": [],
        "hierarchy": None,
        "whole": None,
    }
