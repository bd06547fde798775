"""Refusals of searches that policy and distinct values foretell, so that a check has them before any row is coded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.errors import PolicyError
from sqlanon.hierarchies.limits import Limits, coded_value
from sqlanon.hierarchies.table import HierarchyTable
from sqlanon.models import models_of
from sqlanon.models.base import Groups, PrivacyModel
from sqlanon.models.table_model import class_models
from sqlanon.plan.subject import PlanSubject
from sqlanon.policy import Recodes, Role
from sqlanon.sql import Identifier, Relation, macro
from sqlanon.values.expressions import as_sensitive, comparable, double_of, text_of_sensitive

_ALL_BITS = 2**62 - 1


def search_problems(
    subject: PlanSubject,
    engine: Engine,
    source: Relation,
    limits: Mapping[str, Limits],
    hierarchies: Mapping[str, HierarchyTable],
) -> Iterator[str]:
    """Say what the search of a policy would refuse; makes temporary tables.

    limits: those of all columns that can be coded. hierarchies: of columns that have one, built of their values.
    """
    algorithm = subject.policy.algorithm
    quasi = [column for column, one in subject.attributes if one.role is Role.QUASI_IDENTIFIER]
    known = [column for column in quasi if column.name in limits]
    steps = {one.name: len(hierarchies[one.name].steps) for one in known if one.name in hierarchies}
    yield from algorithm.step_problems(steps)
    if (most := algorithm.limited_cuts) is not None:
        counts = [_count_cuts(engine, source, one, limits[one.name], (n, most)) for n, one in enumerate(known)]
        yield from algorithm.cut_problems({one.name: count for one, count in zip(known, counts, strict=True)})
    yield from _unattainable(subject, engine, source)


def _count_cuts(engine: Engine, source: Relation, column: Column, limits: Limits, wanted: tuple[int, int]) -> int:
    """Count the places where a column may be cut, by the statement that lists them for the search.

    wanted: the number that tells tables apart, and the most places.
    """
    place, most = wanted
    ranks, points = engine.temporary(f"value_ranks_{place}"), engine.temporary(f"cut_points_{place}")
    engine.run(
        "runs/create_ranks",
        ranks=ranks,
        source=source,
        column=Identifier(column.name),
        value=coded_value(engine.render, column, limits, Markup(Identifier("v"))),
        order=comparable(engine, macro("relations.column", Identifier("g"), Identifier("value")), column.kind),
    )
    axis = {"number": 0, "word": Identifier("p0"), "mask": _ALL_BITS, "shift": 0}
    engine.run("encoding/create_points", points=points, rows=ranks, axes=[axis], most=most)
    (count,) = engine.query_one("count_rows", table=points)
    return int(count)


def _unattainable(subject: PlanSubject, engine: Engine, source: Relation) -> Iterator[str]:
    """Say which models the whole table, taken as one class, violates: then every release would.

    Left out are models that count persons, a population or groups of a hierarchy, and searches that may leave rows out.
    """
    policy = subject.policy
    drops_rows = policy.algorithm.recodes is Recodes.LEVELS and policy.suppressible(subject.rows) > 0
    if drops_rows or subject.is_part or policy.person is not None or not subject.rows:
        return
    try:
        models = class_models(models_of(policy))
    except PolicyError:  # which the plan says
        return
    for place, model in enumerate(models):
        column = None if model.attribute is None else subject.column(model.attribute)
        if column is None or model.needs_hierarchy or model.needs_solver or model.population_table is not None:
            continue
        yield from _unmet(engine, source, column, model, (engine.temporary(f"domain_{place}"), subject.rows))


def _unmet(
    engine: Engine, source: Relation, column: Column, model: PrivacyModel, domain: tuple[Relation, int]
) -> Iterator[str]:
    """Hold a model against the values of its attribute in the whole table, which has so many rows."""
    table, rows = domain
    is_number = column.kind.is_numeric
    engine.run(
        "runs/create_domain",
        domain=table,
        source=source,
        sensitive=as_sensitive(engine, column, Markup(Identifier(column.name))),
        value=double_of(engine.render, Markup(Identifier("v")), column.kind) if is_number else None,
        text=text_of_sensitive(engine, column) if model.needs_texts else None,
    )
    groups = Groups(macro("relations.one_class", rows), macro("relations.values_of_one_class", table), table, rows)
    _class, measure, violates, *_ = engine.fetch_one(model.measure(engine.render, groups))
    if violates:
        yield model.unmet(float("nan") if measure is None else float(measure))
