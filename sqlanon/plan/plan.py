"""The plan: a policy resolved against the live table, with every problem found at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sqlanon.catalog.location import is_same_database
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.engines.dialects import find_dialect
from sqlanon.engines.files import whole_path
from sqlanon.engines.read_options import FileReading
from sqlanon.errors import AccessError, PolicyError, SqlanonError
from sqlanon.hierarchies.limits import NO_LIMITS, Limits, limits_of
from sqlanon.models import model_class
from sqlanon.plan.checks import problems, subject_problems, warnings
from sqlanon.plan.lookup import is_of_a_catalog, unknown_table
from sqlanon.plan.population import hold_population
from sqlanon.plan.pseudonyms import shown_column
from sqlanon.plan.released_texts import texts_of_release
from sqlanon.plan.subject import NO_REPETITION, PlanSubject, Repetition, inspect_table
from sqlanon.plan.trust import hold_trusted
from sqlanon.plan.wildcards import climb_problems, wildcard_problems
from sqlanon.policy import SET_LIMITS, AttributeSection, Hierarchy, Policy, Role, Show
from sqlanon.policy.document import path_text
from sqlanon.results.source_facts import Origin
from sqlanon.sql import Identifier, Relation, short_hash
from sqlanon.support.environment import Expanded, named
from sqlanon.work.publish import (
    carrying_problems,
    check_file,
    is_text_file,
    overwriting_problems,
    parquet_value_problems,
    release_problems,
    target_problems,
    type_problems,
)
from sqlanon.work.publish.companion import companion_problems
from sqlanon.work.session import carried_to, catalog_place, copying_problems


@dataclass(frozen=True)
class Attribute:
    """A column of the source that the release keeps or generalizes (those that are left out are not among them).

    An identifier that is shown as a pseudonym is one too, with the column of the release.

    limits: of a number that is top or bottom coded; those that are quantiles are not known before the source is coded.
    hides_nulls: whether classes that hold NULL show nothing but NULL.
    set_limit: the members that a set is shown by at most.
    distinct: the share of its values that differ, so far as was looked at; 0 if they were not.
    is_given: whether readers know it from elsewhere, so that it is neither generalized nor counted as lost.
    order: the texts of all its values, from the least to the greatest, if the policy gives them.
    """

    column: Column
    role: Role
    hierarchy: Hierarchy | None
    show: Show
    limits: Limits = NO_LIMITS
    hides_nulls: bool = False
    set_limit: int = SET_LIMITS["list"]
    distinct: float = 0.0
    order: tuple[str, ...] | None = None
    is_given: bool = False

    @property
    def name(self) -> str:
        return self.column.name


@dataclass(frozen=True)
class Plan:
    """Everything a run needs to know, checked.

    `attributes` keeps the order of the source's columns; the quasi-identifiers' order breaks ties.
    `source` and `release` are fully qualified as the engine knows them; a release that is a file has its path as name.
    `identifiers` and `omitted` are left out. `pseudonyms` are the attributes whose values have yet to be made, by
    `show`, of the source's identifiers of their names; `repetition` is of the source's identifiers. `person` is the
    identifier whose values are persons, where these are counted.
    `base_directory` is what relative file names of hierarchies are relative to.
    `reading` is how a source file was read; None for a table. `population` is the table that models look at, if any.
    """

    policy: Policy
    source: Relation
    release: Relation
    rows: int
    attributes: tuple[Attribute, ...]
    identifiers: tuple[str, ...]
    warnings: tuple[str, ...]
    pseudonyms: tuple[Attribute, ...] = ()
    repetition: Repetition = NO_REPETITION
    person: Attribute | None = None
    base_directory: Path = Path()
    reading: FileReading | None = None
    omitted: tuple[str, ...] = ()
    population: Relation | None = None

    @property
    def source_place(self) -> str:
        """The source's table as SQL writes it, or the whole path of its file."""
        file = self.policy.source.file
        return str(self.source) if file is None else whole_path(file)

    @property
    def source_name(self) -> str:
        """The same as it is recorded and shown: with references to the environment as they were written."""
        file = self.policy.source.file
        return named(file) if isinstance(file, Expanded) else self.source_place

    def as_json(self) -> dict[str, Any]:
        """One object of plain values, as `sqlanon check --json` prints it."""
        return {
            "source": {"table": self.source_name, "rows": self.rows},
            "release": {"table": self.release_name},
            "attributes": [
                {"name": a.name, "type": a.column.type, "role": a.role.value, "show": a.show.value}
                | ({"hierarchy": a.hierarchy.kind} if a.hierarchy is not None else {})
                for a in self.attributes
            ],
            "identifiers": list(self.identifiers),
            "omitted": list(self.omitted),
            "subject": {"declared": self.policy.subject, **self.repetition.as_json()},
            "models": [model.shown() for model in self.policy.privacy],
            "warnings": list(self.warnings),
            "problems": [],
            **({} if self.reading is None else {"reading": self.reading.as_json()}),
        }

    @property
    def release_name(self) -> str:
        """The release's table as SQL writes it, or the whole path of its file, as it is recorded and shown."""
        file = self.policy.release.file
        if file is None:
            return str(self.release)
        return named(file) if isinstance(file, Expanded) else os.path.abspath(file)

    @property
    def quasi_identifiers(self) -> tuple[Attribute, ...]:
        return tuple(a for a in self.attributes if a.role is Role.QUASI_IDENTIFIER)

    @property
    def kept(self) -> tuple[Attribute, ...]:
        """Sensitive and insensitive attributes, in the source's order."""
        return tuple(a for a in self.attributes if a.role is not Role.QUASI_IDENTIFIER)

    @property
    def read(self) -> tuple[Attribute, ...]:
        """The attributes whose values are the source's own."""
        return tuple(a for a in self.attributes if not a.show.is_mask)

    @property
    def hidden_person(self) -> Attribute | None:
        """The identifier whose values are persons, where the release shows nothing of it."""
        is_shown = self.person is None or any(one.name == self.person.name for one in self.attributes)
        return None if is_shown else self.person

    @property
    def coded(self) -> tuple[Attribute, ...]:
        """The attributes that searches and models look at: those of the release, and last a person that it hides."""
        return self.attributes if self.hidden_person is None else (*self.attributes, self.hidden_person)

    def attribute(self, name: str) -> Attribute:
        return next(a for a in self.attributes if a.name == name)


FurtherProblems = Callable[[PlanSubject, Engine, Relation], Iterable[str]]
"""Lists problems of a policy with the values of its source."""


def resolve(
    policy: Policy,
    engine: Engine,
    *,
    replace: bool = False,
    release_engine: Engine | None = None,
    pinned: Origin | None = None,
    is_part: bool = False,
    further: FurtherProblems | None = None,
) -> Plan:
    """Resolve a policy against the source's database, changing nothing; a source file is read into the session.

    `replace` allows an existing release. `release_engine` is connected to the release's database where that is
    another one; without it, a release in another database is not looked at here. `pinned` is what a source table has
    to be. `is_part`: others hold further rows of the same release, and models are not judged by the number of rows.
    `further` looks for problems that a run would find only later.

    Raises one PolicyError with every problem found, or AccessError if the source may not be read.
    """
    _refuse_mechanisms(policy)
    reading = _reading(policy, engine)
    source = find_source(policy, engine) if reading is None else reading.relation
    target = release_engine or (engine if policy.release.url in (None, policy.source.url) else None)
    shared = target is not None and is_same_database(engine, target)  # however their URLs are written
    release, refused = find_release(policy, source if shared else None, target, replace)
    if not shared and policy.algorithm.releases_clusters:
        refused = [*refused, PolicyError("release: r-gather writes its two tables in the database of a source table.")]
    if source is None:
        raise _together([f"source.table: {unknown_table(engine, policy.source.table or '')}"], refused)
    subject = _inspect(policy, engine, source, pinned, is_part=is_part)
    wrong = [*problems(subject), *subject_problems(subject), *_losses(subject, engine, source)]
    wrong += climb_problems(subject)
    wrong += wildcard_problems(subject, engine, source) if not wrong else []
    wrong = list(dict.fromkeys([*wrong, *(further(subject, engine, source) if further is not None else ())]))
    if wrong or refused:
        raise _together(wrong, refused)
    return _plan(subject, source, release, reading)


def check(
    policy: Policy,
    engine: Engine,
    release_engine: Engine | None,
    *,
    replace: bool,
    further: FurtherProblems | None = None,
) -> Plan:
    """Resolve a policy as `resolve` does, where an existing release is no problem.

    Unless it is to be replaced (`replace`), a warning says that it is there.
    """
    plan = resolve(policy, engine, replace=True, release_engine=release_engine, further=further)
    return plan if replace else with_word_of_release(plan, engine, release_engine)


def with_word_of_release(plan: Plan, engine: Engine, release_engine: Engine | None) -> Plan:
    """The plan, with a warning where the release exists, which a run replaces only if it is told to, or adds to."""
    if plan.policy.history.adds:
        return plan
    file = plan.policy.release.file
    if file is not None:
        exists = Path(file).exists()
    else:
        target = release_engine or (engine if plan.policy.release.url in (None, plan.policy.source.url) else None)
        exists = target is not None and target.resolve(plan.release) is not None
    word = f"{plan.release_name} exists: `sqlanon run` needs --replace to replace it."
    return replace(plan, warnings=(*plan.warnings, word)) if exists else plan


def resolve_source(policy: Policy, engine: Engine, *, publishing: bool = False) -> Plan:
    """Resolve it without a look at the release: it may exist, and its place need not.

    publishing: whether what comes of it publishes later; else nothing is refused for identifiers that repeat.
    """
    _refuse_mechanisms(policy)
    reading = _reading(policy, engine)
    source = find_source(policy, engine) if reading is None else reading.relation
    if source is None:
        raise PolicyError(f"source.table: {unknown_table(engine, policy.source.table or '')}")
    subject = _inspect(policy, engine, source)
    wrong = list(problems(subject))
    refused = list(subject_problems(subject))
    if wrong or (publishing and refused):
        raise PolicyError([*wrong, *refused])
    plan = _plan(subject, source, _named_release(policy), reading)
    return replace(plan, warnings=(*plan.warnings, *(f"A run would be refused: {problem}" for problem in refused)))


def _refuse_mechanisms(policy: Policy) -> None:
    """Refuse a policy whose guarantee forbids to look at the source."""
    for model in policy.privacy:
        if model.is_mechanism:
            model_class(model.model)


def _inspect(
    policy: Policy, engine: Engine, source: Relation, pinned: Origin | None = None, *, is_part: bool = False
) -> PlanSubject:
    """Look at the source, unless that would run code of others."""
    with engine.transaction():
        hold_trusted(policy, engine, source, pinned)
        hold_population(policy, engine)
        return inspect_table(policy, engine, source, is_part=is_part)


def _plan(subject: PlanSubject, source: Relation, release: Relation, reading: FileReading | None) -> Plan:
    policy, attributes = subject.policy, _attributes(subject)
    return Plan(
        policy=policy,
        source=source,
        release=release,
        rows=subject.rows,
        attributes=attributes,
        identifiers=tuple(c.name for c, a in subject.attributes if a.is_omitted and a.role is Role.IDENTIFIER),
        omitted=tuple(c.name for c, a in subject.attributes if a.role is Role.OMIT),
        warnings=tuple(warnings(subject)),
        pseudonyms=tuple(a for a in attributes if a.show.is_mask),
        repetition=subject.repetition,
        person=_person(subject),
        reading=reading,
        population=None if subject.population is None else subject.population.table,
    )


def _together(wrong: list[str], errors: Sequence[SqlanonError]) -> SqlanonError:
    """One error of all problems: an AccessError if privileges are all that is missing."""
    if not wrong and all(isinstance(error, AccessError) for error in errors):
        return AccessError("\n".join(str(error) for error in errors))
    return PolicyError([*wrong, *(str(error) for error in errors)])


def _attributes(subject: PlanSubject) -> tuple[Attribute, ...]:
    return tuple(
        _pseudonym(subject, column, attribute)
        if attribute.show.is_mask
        else Attribute(
            column,
            attribute.role,
            subject.policy.algorithm.hierarchy_of(attribute),
            subject.policy.algorithm.show_of(attribute, column.kind.is_numeric),
            limits=limits_of(attribute),
            hides_nulls=attribute.hides_nulls,
            set_limit=attribute.set_limit,
            order=attribute.order,
            distinct=subject.distinct.get(column.name, 0.0),
        )
        for column, attribute in subject.attributes
        if not attribute.is_omitted
    )


def _person(subject: PlanSubject) -> Attribute | None:
    """The identifier of the source whose values are persons."""
    column = None if subject.policy.person is None else subject.column(subject.policy.person)
    return None if column is None else Attribute(column, Role.INSENSITIVE, None, Show.LABEL)


def _pseudonym(subject: PlanSubject, column: Column, attribute: AttributeSection) -> Attribute:
    """The column that the release has in place of an identifier."""
    repeating = {one.column: one.values / max(1, one.rows) for one in subject.repetition.columns}
    shown = shown_column(subject.dialect, column, attribute)
    distinct = repeating.get(column.name, 1.0)
    return Attribute(shown, Role.INSENSITIVE, None, attribute.show, distinct=distinct)


def _reading(policy: Policy, engine: Engine) -> FileReading | None:
    """The source file, read into the session; None for a table."""
    file = policy.source.file
    if file is None:
        return None
    return engine.read_file(Relation(f"source_{short_hash(file)}"), file, policy.source.reading)


def find_source(policy: Policy, engine: Engine) -> Relation | None:
    """Find the table that is the source; None where there is none."""
    assert policy.source.table is not None
    return engine.resolve(Relation.parse(policy.source.table))


def find_release(
    policy: Policy, source: Relation | None, target: Engine | None, replace: bool
) -> tuple[Relation, Sequence[SqlanonError]]:
    """Find the release's name, and what forbids it; `source` is given if it is in the same database."""
    wanted = _named_release(policy)
    if policy.release.file is not None:
        return wanted, [PolicyError(f"release.file: {problem}") for problem in _file_problems(policy, target, replace)]
    if target is None:
        return wanted, []
    existing = target.resolve(wanted)
    if existing is not None and source is not None and target.reads(source, existing):
        return existing, [PolicyError("release.table: the release would overwrite its source; choose another name.")]
    release, problem = (existing, None) if existing else _qualified(wanted, target)
    if problem is not None:
        return release, [problem]
    if is_of_a_catalog(target, release) or _is_in_catalog_schema(policy, release):
        place = "is, or would be, among the tables of the catalog; choose another schema or name."
        return release, [PolicyError(f"release.table: {release} {place}")]
    errors = target_problems(target, release, replace, policy.release.layout == "star")
    if policy.algorithm.releases_clusters:
        errors += companion_problems(target, release, replace)
    return release, [type(error)(f"release.table: {error}") for error in errors]


def _losses(subject: PlanSubject, engine: Engine, source: Relation) -> list[str]:
    """The columns that would not arrive where the release is to be: in another database, or in a file."""
    columns, file = subject.released_as_they_are, subject.policy.release.file
    texts = texts_of_release(subject.policy, columns)
    typed = [column for column in columns if column.name not in texts]
    unfit = [] if file is None or is_text_file(file) else parquet_value_problems(engine, source, typed)
    elsewhere = carried_to(subject.policy, engine.traits)
    if elsewhere is not None:
        if lacking := copying_problems(engine.traits, elsewhere):
            return lacking
        ranges = [column for column, a in subject.attributes if a.show is Show.RANGE and elsewhere.has_ranges]
        stay = "show: range does not go to another database; use show: bounds."
        problems = [f"{path_text(('attributes', column.name))}: {stay}" for column in ranges]
        return [*problems, *carrying_problems(engine, source, columns, elsewhere, texts), *unfit]
    return [] if file is None else [f"release.file: {problem}" for problem in (*type_problems(file, typed), *unfit)]


def _is_in_catalog_schema(policy: Policy, release: Relation) -> bool:
    """Tell whether the release goes into the schema that the policy's catalog has, or will have."""
    url, schema, *_ = catalog_place(policy)
    dialect, named = find_dialect(url), release.schema or ""
    same = named == schema if dialect is None else dialect.fold(named) == dialect.fold(schema)
    return same and url == (policy.release.url or policy.source.url)


def _named_release(policy: Policy) -> Relation:
    """The release as the policy names it."""
    if policy.release.file is not None:
        return Relation(policy.release.file)
    assert policy.release.table is not None
    return Relation.parse(policy.release.table)


def _file_problems(policy: Policy, target: Engine | None, replace: bool) -> list[str]:
    file, source = policy.release.file, policy.source.file
    assert file is not None
    if overwriting := overwriting_problems(file, source):
        return overwriting
    return check_file(file, replace) if target is None else release_problems(target, file, replace)


def _qualified(relation: Relation, engine: Engine) -> tuple[Relation, PolicyError | None]:
    """A relation that does not exist yet, where a session would create it."""
    home, relation = engine.home(), engine.traits.stored(relation)
    qualified = Relation(relation.name, relation.schema or home.schema, relation.catalog or home.catalog)
    if qualified.schema is None:
        return qualified, PolicyError("release.table: no schema of the search path exists; write the schema too.")
    if home.catalog is None and qualified.catalog is not None:
        here = engine.query_one("engines/get_database")
        if (qualified.catalog,) != here:
            problem = f"release.table: the session is connected to {Identifier(here[0])}, not to this catalog."
            return qualified, PolicyError(problem)
        qualified = Relation(qualified.name, qualified.schema)
    return qualified, None
