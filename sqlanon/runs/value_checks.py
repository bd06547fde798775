"""Refusals of a run that a check foretells by the values of columns: of hierarchies, limits and searches."""

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
from sqlanon.hierarchies.missing import list_missing
from sqlanon.hierarchies.scratch import create_values
from sqlanon.hierarchies.table import HierarchyTable
from sqlanon.plan.checks import coding_problems
from sqlanon.plan.plan import Plan, check
from sqlanon.plan.population_checks import population_problems
from sqlanon.plan.subject import PlanSubject
from sqlanon.plan.trust import hold_trusted
from sqlanon.policy import AttributeSection, Hierarchy, Policy, Role
from sqlanon.runs.search_checks import search_problems
from sqlanon.sql import Expression, Identifier, Relation, macro

MOST_LISTED = 20
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
    """Resolve a policy as `plan.check` does, and hold its hierarchies against the values of their columns."""
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
