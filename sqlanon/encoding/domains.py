"""The sensitive attributes that the models look at: their place in the coded rows, and their domains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.distinct_tuples import Tuples
from sqlanon.encoding.fields import Field
from sqlanon.engines.base import Engine
from sqlanon.errors import ProtectionError
from sqlanon.models.base import Groups, PrivacyModel
from sqlanon.models.table_model import class_models, table_models
from sqlanon.sql import Expression, Identifier, Relation, macro
from sqlanon.values.expressions import text_of
from sqlanon.work.workspace import Workspace


@dataclass(frozen=True)
class Sensitive:
    """A sensitive attribute's place in the coded row, and its domain (see `models.base.Groups`).

    weight: the column for the persons who have its value; None where rows are counted.
    total: how many the domain counts, where these are persons, as one may have several values.
    """

    name: str
    word: Identifier
    mask: int
    domain: Relation
    height: int
    texts: bool = False
    weight: Identifier | None = None
    total: int | None = None


def create_domains(
    engine: Engine,
    workspace: Workspace,
    coded: CodedTable,
    models: Sequence[PrivacyModel],
    rows: Relation | Expression | None = None,
) -> tuple[Sensitive, ...]:
    """The domain of every sensitive attribute that a model looks at, counted over the table or some rows of it."""
    counted = coded.rows if rows is None else rows
    fields = judged_fields(coded, models)
    named = {model.attribute for model in models if model.needs_texts}
    return tuple(
        create_domain(engine, workspace, counted, f"domain_{n}", field, texts=field.attribute.name in named)
        for n, field in enumerate(fields)
    )


def create_domains_of_persons(
    engine: Engine, workspace: Workspace, coded: CodedTable, models: Sequence[PrivacyModel], tuples: Tuples
) -> tuple[Sensitive, ...]:
    """The same, counted in persons: a value occurs as often as persons have it."""
    each = []
    named = {model.attribute for model in models if model.needs_texts}
    for place, one in enumerate(judged_fields(coded, models)):
        weight, texts = tuples.weights[one.attribute.name], one.attribute.name in named
        rows = macro("tree.counted", tuples.table, weight)
        if tuples.several is not None:
            person = tuples.several.code
            rows = macro("tree.persons_with_values", tuples.table, person, one.column, one.mask, weight)
        domain = create_domain(engine, workspace, rows, f"domain_{place}", one, texts=texts, weight=weight)
        (total,) = engine.query_one("encoding/sum_domain", domain=domain.domain)
        each.append(replace(domain, weight=weight, total=int(total)))
    return tuple(each)


def judged_fields(coded: CodedTable, models: Sequence[PrivacyModel]) -> list[Field]:
    """The fields of the sensitive attributes that a model looks at."""
    names = dict.fromkeys(model.attribute for model in models if model.attribute is not None)
    return [coded.judged_field(name) for name in names]


def create_domain(
    engine: Engine,
    workspace: Workspace,
    rows: Relation | Expression,
    name: str,
    field: Field,
    *,
    texts: bool = False,
    weight: Identifier | None = None,
) -> Sensitive:
    """The values of one field, counted over some rows, in a work table of this name; with their `texts` if asked.

    weight: the column that tells how many a row stands for, if it is not one.
    """
    domain = workspace.table(name)
    hierarchy, column = field.coding.hierarchy, field.attribute.column
    code = macro("codes.of_group", field.shift)
    value = (
        macro("codes.in_dictionary", Identifier("value")) if field.coding.is_looked_up else field.coding.value_of(code)
    )
    engine.run(
        "encoding/create_domain",
        domain=domain,
        rows=rows,
        word=field.column,
        mask=field.mask,
        shift=field.shift,
        weight=weight,
        dictionary=field.coding.dictionary,
        kind=field.attribute.column.kind,
        before=field.coding.before,
        text=text_of(engine.render, value, column.kind, column.type) if texts else None,
        is_nested=hierarchy is not None,
        groups=[
            {"name": Identifier(f"g{level}"), "shift": field.shift + shift}
            for level, shift in enumerate(hierarchy.shifts if hierarchy else ())
            if level > 0
        ],
    )
    height = hierarchy.height if hierarchy else 0
    return Sensitive(field.attribute.name, field.column, field.mask, domain, height, texts)


def require_attainable(
    engine: Engine, rows: int, models: Sequence[PrivacyModel], sensitive: Sequence[Sensitive]
) -> None:
    """Raise ProtectionError when the whole table as one class violates a model: then every release would."""
    domains = {s.name: s for s in sensitive}
    judged = [model for model in class_models(models) if model.population_table is None]  # whose rows none are known of
    failures = [message for model in judged if (message := _failure(engine, rows, model, domains))]
    whole = {rows: 1}
    failures += [m.unmet(m.figure(whole)) for m in table_models(models) if not m.is_satisfied_by(whole)]
    if failures:
        raise ProtectionError("\n".join(failures))


def _failure(engine: Engine, rows: int, model: PrivacyModel, domains: dict[str, Sensitive]) -> str | None:
    domain = domains[model.attribute] if model.attribute is not None else None
    counted = rows if domain is None or domain.total is None else domain.total
    groups = Groups(
        classes=macro("relations.one_class", counted),
        avs=None if domain is None else macro("relations.values_of_one_class", domain.domain),
        domain=None if domain is None else domain.domain,
        rows=counted,
        height=domain.height if domain else 0,
    )
    _class, measure, violates, *_ = engine.fetch_one(model.measure(engine.render, groups))
    return model.unmet(_plain(measure)) if violates else None


def _plain(measure: Any) -> float:
    return float("nan") if measure is None else float(measure)
