"""Refusals of a run that a check foretells by policy and distinct values: hierarchies, limits, searches."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.errors import AccessError, PolicyError
from sqlanon.hierarchies.ambiguity import require_one_meaning
from sqlanon.hierarchies.build import build_hierarchy
from sqlanon.hierarchies.limits import Limits, coded_value, limits_in
from sqlanon.hierarchies.scratch import create_values, list_missing
from sqlanon.hierarchies.table import HierarchyTable
from sqlanon.models import models_of
from sqlanon.models.base import Groups, PrivacyModel
from sqlanon.models.table_model import class_models
from sqlanon.plan.checks import coding_problems
from sqlanon.plan.plan import Plan, check
from sqlanon.plan.population_checks import population_problems
from sqlanon.plan.subject import PlanSubject
from sqlanon.plan.trust import hold_trusted
from sqlanon.policy import AttributeSection, Hierarchy, Policy, Recodes, Role
from sqlanon.sql import Expression, Identifier, Relation, macro
from sqlanon.values.expressions import as_sensitive, comparable, double_of, text_of_sensitive

MOST_LISTED = 20


_ALL_BITS = 2**62 - 1


"""The most values that a check lists of those that a hierarchy lacks."""


TellMissing = Callable[[str, Sequence[str]], None]


"""Takes a column and the first values that its hierarchy lacks; for the eyes of who may read the source."""


@dataclass
class ValueChecks:
    """Checks of a policy against the distinct values of its table's columns.

    tell_missing: gets the values that hierarchies lack; nobody else does, as errors name no value.
    warnings: the refusals that an option of `sqlanon run` avoids, once `problems` has run.
    """

    tell_missing: TellMissing | None = None
    warnings: list[str] = field(default_factory=list)

    def problems(self, subject: PlanSubject, engine: Engine, source: Relation) -> Iterator[str]:
        """Say which hierarchies do not fit their values, and which limits of levels no hierarchy has.

        Each hierarchy is built of the distinct values of its column, in a transaction that is undone.
        """
        try:
            with engine.undone():
                hold_trusted(subject.policy, engine, source)
                yield from self._column_problems(_without_wrong_population(subject), engine, source)
        except AccessError as error:
            self.warnings.append(f"No hierarchy was held against the values of its column: {error}")

    def _column_problems(self, subject: PlanSubject, engine: Engine, source: Relation) -> Iterator[str]:
        hierarchies: dict[str, HierarchyTable] = {}
        limits: dict[str, Limits] = {}
        for place, (column, attribute) in enumerate(_codable(subject)):
            spec = subject.policy.algorithm.hierarchy_of(attribute)
            try:
                limits[column.name] = limits_in(engine, source, column, attribute)
            except PolicyError as error:
                yield from error.problems
                continue
            if spec is None:
                continue
            values = engine.temporary(f"hierarchy_values_{place}")
            _create_values(subject, engine, source, (column, attribute, limits[column.name]), values)
            try:
                hierarchies[column.name] = _build(subject, engine, (column, attribute), spec, values)
            except PolicyError as error:
                yield from error.problems
                self._tell(engine, column, spec, values)
        yield from _member_problems(subject, engine, source, limits)
        yield from search_problems(subject, engine, source, limits, hierarchies)
        heights = {name: one.height for name, one in hierarchies.items()}
        yield from subject.policy.algorithm.height_problems(subject.policy, heights, self.warnings)

    def _tell(self, engine: Engine, column: Column, spec: Hierarchy, values: Relation) -> None:
        if self.tell_missing is None or spec.kind not in ("csv", "mapping"):
            return
        with contextlib.suppress(PolicyError):  # a file without lines to read lacks them all, as its problem says
            missing = list_missing(engine, spec, column, values, MOST_LISTED)
            if missing:
                self.tell_missing(column.name, missing)


def check_values(
    policy: Policy,
    engine: Engine,
    release_engine: Engine | None,
    replace: bool,
    tell_missing: TellMissing | None = None,
) -> Plan:
    """Resolve a policy as `plan.plan.resolve` does, and hold its hierarchies against the values of their columns."""
    checks = ValueChecks(tell_missing)
    plan = check(policy, engine, release_engine, replace=replace, further=checks.problems)
    return dataclasses.replace(plan, warnings=(*plan.warnings, *checks.warnings))


def _codable(subject: PlanSubject) -> Iterator[tuple[Column, AttributeSection]]:
    """List the columns of the release whose values can be coded, as far as their types and the policy tell."""
    for column, attribute in subject.attributes:
        if not attribute.is_omitted and not any(coding_problems(subject, column, attribute)):
            yield column, attribute


def _without_wrong_population(subject: PlanSubject) -> PlanSubject:
    """Leave out a population that can't be compared with the source, of which the plan says why."""
    policy = subject.policy
    wrong = policy.population is not None and any(population_problems(policy.population, subject))
    return dataclasses.replace(subject, population=None) if wrong else subject


def _create_values(
    subject: PlanSubject,
    engine: Engine,
    source: Relation,
    coded: tuple[Column, AttributeSection, Limits],
    values: Relation,
) -> None:
    """Write the distinct values that a run would code, those of a population that models look at among them."""
    column, attribute, limits = coded
    rows: Relation | Expression = source
    if _population(subject, attribute) is not None:
        rows = macro("relations.both", source, _population(subject, attribute), Identifier(column.name))
    create_values(engine, values, rows, column, limits)


def _build(
    subject: PlanSubject,
    engine: Engine,
    coded: tuple[Column, AttributeSection],
    spec: Hierarchy,
    values: Relation,
) -> HierarchyTable:
    column, attribute = coded
    built = build_hierarchy(engine, spec, column, values, values.sibling(f"{values.name}_built"))
    if _population(subject, attribute) is not None:
        require_one_meaning(engine, column.name, built)
    return built


def _member_problems(
    subject: PlanSubject, engine: Engine, source: Relation, limits: Mapping[str, Limits]
) -> Iterator[str]:
    """Say how many rows are of people whom the population that models look at lacks, by their values as coded."""
    quasi = [column for column, one in subject.attributes if one.role is Role.QUASI_IDENTIFIER]
    if subject.population is None or not quasi or any(column.name not in limits for column in quasi):
        return
    values = [coded_value(engine.render, one, limits[one.name], Markup(Identifier(one.name))) for one in quasi]
    tables = {"source": source, "population": subject.population.table}
    (absent,) = engine.query_one("runs/count_absent_members", values=values, **tables)
    if absent:
        yield (
            f"privacy: the population {subject.policy.population} has no row with {int(absent):,} of the combinations"
            " of quasi-identifiers in the source: all who could be in the release must be in it, with the same values."
        )


def _population(subject: PlanSubject, attribute: AttributeSection) -> Relation | None:
    is_quasi = attribute.role is Role.QUASI_IDENTIFIER
    return subject.population.table if is_quasi and subject.population is not None else None


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
