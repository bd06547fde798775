"""Problems of a policy with a given table, and warnings about it. No database is asked here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

from sqlanon.engines.columns import Column, Kind
from sqlanon.engines.star import CLASS_NUMBER
from sqlanon.hierarchies import hierarchy_problems
from sqlanon.hierarchies.limits import limit_problem, limits_of
from sqlanon.models import largest_k, models_of
from sqlanon.plan.cluster_checks import cluster_problems, cluster_warnings
from sqlanon.plan.history import history_problems
from sqlanon.plan.persons import joined_rows_problems, person_notes, person_problems, person_warnings
from sqlanon.plan.population_checks import covering_problems, population_problems
from sqlanon.plan.pseudonyms import key_problems, pseudonym_problems, pseudonym_warnings
from sqlanon.plan.released_texts import as_text_problems
from sqlanon.plan.subject import PlanSubject
from sqlanon.policy import (
    AttributeSection,
    Hierarchy,
    Policy,
    Role,
    Show,
)
from sqlanon.policy.algorithms import own_algorithms
from sqlanon.policy.document import path_text
from sqlanon.support.environment import Expanded
from sqlanon.support.quantities import rows_hold
from sqlanon.support.suggest import did_you_mean, quoted

ONE_PROTECTS_NOBODY = "k-anonymity with k = 1 protects nobody's identity."

MAX_QUASI_IDENTIFIERS = 62  # each has a bit of a BIGINT
_DATES = tuple(kind for kind in Kind if kind.has_day)
_TIMES = (*_DATES, Kind.TIME)
_TEXTS = ("text", "character varying", "character", "name", "VARCHAR")  # OTHER only for their collation
_NUMBERS = (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT)
_SHOWN: Mapping[Show, tuple[tuple[Kind, ...], str]] = {
    Show.BOUNDS: ((*_NUMBERS, *_TIMES), "numbers, dates or times"),
    Show.RANGE: ((*_NUMBERS, *_DATES), "numbers or dates"),
    Show.MEAN: (_NUMBERS, "numbers"),
    Show.MIDPOINT: (_NUMBERS, "numbers"),
}


def problems(subject: PlanSubject) -> Iterator[str]:
    """Everything that keeps the policy from being carried out on the table."""
    yield from _column_problems(subject)
    yield from _row_problems(subject)
    for column, attribute in subject.attributes:
        place = _place(column.name)
        yield from coding_problems(subject, column, attribute)
        known = subject.dialect.tells_other_types_apart
        if attribute.role in (Role.SENSITIVE, Role.INSENSITIVE) and not column.has_exact_text and not known:
            yield f"{place}: {known.lacking}"
        yield from _show_problems(place, column, attribute, subject)
        if column.name in subject.opposite:
            yield (
                f"{place}: it holds Infinity and -Infinity, between which there is no number for show:"
                f" {attribute.show.value}; use show: bounds, give bottom or top, or leave these rows out"
                f" {subject.place_of_names}."
            )
        if attribute.sets != "list" and (attribute.hierarchy is not None or not column.kind.is_nominal):
            yield f"{place}: sets is for texts without a hierarchy, and this column shows no sets; leave it out."
    yield from as_text_problems(subject)
    yield from pseudonym_problems(subject)
    yield from person_problems(subject)
    yield from _algorithm_problems(subject)
    yield from cluster_problems(
        subject.policy, list(subject.attributes), subject.rows, subject.uncountable, subject.strata
    )
    yield from _model_problems(subject)
    yield from _name_problems(subject)


def coding_problems(subject: PlanSubject, column: Column, attribute: AttributeSection) -> Iterator[str]:
    """Say why the values of a column can't be coded, as far as its type and the policy tell."""
    place = _place(column.name)
    if attribute.role is Role.QUASI_IDENTIFIER and column.kind is Kind.OTHER:
        collated, remedy = "", subject.recast_of(column)
        if column.type.partition("(")[0] in _TEXTS:
            collated, remedy = " with this collation", 'give it COLLATE "C" in a view'
        yield f"{place}: values of type {column.type}{collated} cannot be generalized; {remedy}."
    if attribute.hierarchy is not None:
        yield from _hierarchy_problems(place, column, attribute.hierarchy)
    yield from _limit_problems(place, column, attribute)


def subject_problems(subject: PlanSubject) -> Iterator[str]:
    """List the reasons why a release can't be published: its rows are no persons, or a key of pseudonyms is missing."""
    problem = subject.repetition.problem
    if problem is not None and subject.policy.subject is None and subject.policy.algorithm.recodes.makes_classes:
        yield problem
    yield from key_problems(subject.policy)
    yield from history_problems(subject)


def _place(column: str) -> str:
    return path_text(("attributes", column))


def _column_problems(subject: PlanSubject) -> Iterator[str]:
    names = [column.name for column in subject.columns]
    for name in subject.policy.attributes:
        if name not in names:
            yield f"{_place(name)}: {subject.table} has no such column; {did_you_mean(name, names)}"
    missing = [name for name in names if name not in subject.policy.attributes]
    if missing:
        yield (
            f"{subject.table} has {'a column' if len(missing) == 1 else 'columns'} without a role: "
            f"{', '.join(quoted(missing))}. Every column needs one; `sqlanon init` writes a policy with all of them, "
            "and `sqlanon apply --policy` leaves out what has come since a release, if a policy gives it role omit."
        )
    quasi = sum(attribute.role is Role.QUASI_IDENTIFIER for attribute in subject.policy.attributes.values())
    algorithm = subject.policy.algorithm
    if not quasi and algorithm.recodes.makes_classes and not algorithm.is_within:
        yield "No attribute has role quasi-identifier: there is nothing to generalize."
    if quasi > MAX_QUASI_IDENTIFIERS:
        yield f"There are {quasi} quasi-identifiers, and at most {MAX_QUASI_IDENTIFIERS} can be searched."


def _row_problems(subject: PlanSubject) -> Iterator[str]:
    if subject.rows == 0:
        if subject.policy.algorithm.recodes.makes_classes:
            yield f"{subject.table} holds no rows."
        return
    for name, nulls in subject.nulls.items():
        if nulls and subject.policy.attributes[name].nulls == "refuse":
            yield f"{_place(name)}: {rows_hold(nulls)} NULL, which the policy refuses."


def _hierarchy_problems(place: str, column: Column, hierarchy: Hierarchy) -> Iterator[str]:
    yield from hierarchy_problems(hierarchy, column)
    if isinstance(hierarchy.csv, Expanded) and hierarchy.csv.missing:
        yield f"{place}: the environment variable '{hierarchy.csv.missing[0]}' is not set."
    elif hierarchy.csv is not None and not Path(hierarchy.csv).expanduser().is_file():
        yield f"{place}: there is no file {hierarchy.csv} to read the hierarchy from."


def _show_problems(place: str, column: Column, attribute: AttributeSection, subject: PlanSubject) -> Iterator[str]:
    show = attribute.show
    if show is Show.LABEL or show is Show.SHIFTED or show.is_centre or show.is_mask:
        return
    kinds, needed = _SHOWN[show]
    if column.kind not in kinds:
        yield (
            f"{place}: show: {show.value} needs {needed}, and the column is {column.type}; {subject.recast}, or leave"
            " show out."
        )
    if show is Show.RANGE and (lacking := [d.has_ranges.lacking for d in subject.released_by if not d.has_ranges]):
        yield f"{place}: show: {lacking[0]}"
    kind = attribute.hierarchy.kind if attribute.hierarchy is not None else "none"
    if show is not Show.MEAN and kind not in ("none", "intervals", "date"):
        yield f"{place}: show: {show.value} does not go with a {kind} hierarchy: its groups have labels but no bounds."


def _limit_problems(place: str, column: Column, attribute: AttributeSection) -> Iterator[str]:
    limits, given = limits_of(attribute), [key for key in ("bottom", "top") if getattr(attribute, key) is not None]
    if not given:
        return
    if not column.kind.is_numeric:
        yield f"{place}: {given[0]} is a limit of numbers, and the column is {column.type}."
        return
    for key, number in (("bottom", limits.bottom), ("top", limits.top)):
        problem = limit_problem(number, column) if number is not None else None
        if problem is not None:
            yield f"{place}: {key}: {problem}"
    hierarchy = attribute.hierarchy
    if hierarchy is not None and hierarchy.intervals is None:
        remedy = "group the numbers beyond it in the hierarchy"
        yield f"{place}: {given[0]} does not go with a {hierarchy.kind} hierarchy; {remedy}."
    elif hierarchy is not None and attribute.show is Show.RANGE:
        yield f"{place}: {given[0]} of a column with a hierarchy does not go with show: range; use show: bounds."


def _algorithm_problems(subject: PlanSubject) -> Iterator[str]:
    algorithm = subject.policy.algorithm
    yield from _target_problems(subject)
    quasi = [(c.name, a) for c, a in subject.attributes if a.role is Role.QUASI_IDENTIFIER]
    for name, attribute in quasi:
        yield from (f"{_place(name)}: {problem}" for problem in algorithm.quasi_problems(attribute))
        if algorithm.needs_hierarchies and attribute.hierarchy is None:
            yield (
                f"{_place(name)}: {algorithm.name} generalizes by hierarchies, and it has none; give it one "
                "(mask, intervals, date, csv, mapping), or hierarchy: suppress to show its values or `*`."
            )
    if algorithm.suppresses and subject.policy.stars and not any(a.show is Show.LABEL for _, a in quasi):
        yield "suppressed: star needs a quasi-identifier with show: label, which can show `*`; or use omit."
    yield from algorithm.problems([name for name, _ in quasi])
    if algorithm.shows_cuts and subject.policy.ranges == "observed" and "ranges" in subject.policy.model_fields_set:
        yield f"ranges: {algorithm.name} shows ranges from cut to cut, the same for all rows; leave `ranges` out."
    if algorithm.regions_overlap:
        yield from (f"algorithm.partitioning: relaxed {problem}" for problem in _relaxed_problems(subject))


def _relaxed_problems(subject: PlanSubject) -> Iterator[str]:
    """Say what regions that overlap don't go with."""
    if subject.policy.ranges == "cuts":
        yield "divides rows that no cut tells apart; use ranges: observed, or strict."
    if subject.policy.person is not None:
        yield "divides rows, and the policy counts persons; write subject: none, or use strict."
    if not subject.dialect.relaxes_partitions:
        yield subject.dialect.relaxes_partitions.lacking


def _target_problems(subject: PlanSubject) -> Iterator[str]:
    algorithm, target = subject.policy.algorithm, subject.policy.target
    if target is None:
        return
    roles = {column.name: attribute.role for column, attribute in subject.attributes}
    problem = target_problem(target, roles, subject.table)
    column = subject.column(target)
    if problem is None and column is not None:
        problem = _kind_problem(algorithm.predicts, column)
    if problem is not None:
        yield f"algorithm.target: {problem}"


def target_problem(target: str, roles: Mapping[str, Role], table: str) -> str | None:
    """Say why a column can't be what readers of the release are to predict; None if it can."""
    kept = [name for name, role in roles.items() if role in (Role.SENSITIVE, Role.INSENSITIVE)]
    if target not in roles:
        return f"{table} has no such column; {did_you_mean(target, kept)}"
    if target not in kept:
        return f"it must be sensitive or insensitive, not {roles[target].value}."
    return None


def _kind_problem(predicts: str | None, column: Column) -> str | None:
    """Classes are counted, numbers are averaged."""
    about = f"'{column.name}' is {column.type}"
    if predicts == "classes" and column.kind in (Kind.DECIMAL, Kind.FLOAT):
        return f"split: information-gain needs classes, and {about}; use split: regression."
    if predicts == "numbers" and not column.kind.is_numeric:
        return f"split: regression needs numbers, and {about}; use split: information-gain."
    return None


def _model_problems(subject: PlanSubject) -> Iterator[str]:
    for position, model in enumerate(models_of(subject.policy)):
        place = f"privacy[{position}] ({model.name})"
        column = None if model.attribute is None else subject.column(model.attribute)
        if model.attribute is not None and column is None:
            continue
        attribute = None if column is None else subject.policy.attributes[column.name]
        for problem in model.problems(column, attribute, None if subject.is_part else subject.rows):
            yield f"{place}: {problem}"
        if model.scope == "table":
            yield from (f"{place}: {problem}" for problem in whole_table_problems(subject.policy))
        if model.needs_solver and not subject.dialect.settles_models:
            yield f"{place}: {subject.dialect.settles_models.lacking}"
        if unlisted := subject.unlisted.get(position):
            yield f"{place}: {model.lacking_values(unlisted)}"
        if model.population_table is not None:
            wrong = population_problems(model.population_table, subject)
            yield from (f"{place}: {problem}" for problem in wrong)
        yield from (f"{place}: {problem}" for problem in covering_problems(model, subject.policy))
        yield from (f"{place}: {problem}" for problem in joined_rows_problems(model, subject.policy))
        for text in subject.absent.get(position, ()):
            yield f"{place}: no row of {model.attribute} has the value '{text}'; correct it, or leave it out."
        if subject.policy.algorithm.has_wildcards and not model.closed_under_union:
            name = subject.policy.algorithm.name
            yield (
                f"{place}: with {name} more rows fit a row where others show `*`, by which this model may come to be"
                " violated; use k-anonymity and distinct-l-diversity, or another algorithm."
            )
        if subject.policy.algorithm.samples and not model.testable:
            name = subject.policy.algorithm.name
            yield f"{place}: {name} judges classes by samples, and the model has no test on samples; use rothko-t."


def whole_table_problems(policy: Policy) -> Iterator[str]:
    """Say why a model that judges a release as a whole can't be asked of a policy."""
    if not policy.algorithm.judges_tables:
        name, able = policy.algorithm.name, [n for n, one in own_algorithms().items() if one.judges_tables]
        yield (
            f"it judges a release as a whole, and {name} decides class by class; choose {', '.join(able[:-1])} or"
            f" {able[-1]}."
        )
    if policy.remainder == "recode":
        yield "it judges a release as a whole, and remainder: recode makes classes pass by pass; leave remainder out."
    if policy.judges_stars:
        yield (
            "it judges a release as a whole, and suppressed: star shows suppressed rows as one more class; write"
            " suppressed: omit."
        )


def released_names(name: str, attribute: AttributeSection) -> list[str]:
    """The names in the release of the column `name` of the source."""
    if attribute.is_omitted:
        return []
    if attribute.show is Show.BOUNDS:
        return [f"{name}_min", f"{name}_max"]
    return [name]


def _name_problems(subject: PlanSubject) -> Iterator[str]:
    taken: dict[str, str] = {}
    for column, attribute in subject.attributes:
        for name in released_names(column.name, attribute):
            key = name.lower() if any(d.folds_case for d in subject.released_by) else name
            if key in taken:
                yield f"{_place(column.name)}: {_collision(name, taken[key], subject.place_of_names)}"
            taken.setdefault(key, name)
            if subject.policy.release.layout == "star" and key == CLASS_NUMBER:
                place = subject.place_of_names
                yield f"{_place(column.name)}: layout: star has a column '{name}' of its own; rename it {place}."
            longest = subject.dialect.longest_name
            if longest is not None and len(name.encode()) > longest:
                yield f"{_place(column.name)}: '{name}' in the release is longer than {longest} bytes."


def _collision(name: str, other: str, where: str) -> str:
    if name == other:
        return f"the release would have two columns '{name}'; use another show or rename {where}."
    return f"'{name}' and '{other}' differ only in case, which DuckDB takes for the same name; rename one {where}."


def warnings(subject: PlanSubject) -> Iterator[str]:
    """List the parts of a policy that can be carried out, but may not be meant."""
    yield from _protection_warnings(subject)
    asked = subject.policy.suppression or subject.policy.stars or subject.policy.remainder == "recode"
    if asked and not subject.policy.algorithm.suppresses:
        name = subject.policy.algorithm.name
        yield f"suppression: {name} puts every row into a class and leaves none out, so nothing will be suppressed."
    for position, model in enumerate(models_of(subject.policy)):
        yield from (f"privacy[{position}] ({model.name}): {warning}" for warning in model.warnings())
    yield from cluster_warnings(subject.policy, list(subject.attributes), subject.uncountable)
    yield from person_warnings(subject)
    yield from person_notes(subject.policy)
    yield from pseudonym_warnings(subject.policy, [one.column for one in subject.repetition.columns])
    for column, attribute in subject.attributes:
        place = _place(column.name)
        if column.name in subject.unique and attribute.role in (Role.SENSITIVE, Role.INSENSITIVE):
            yield (
                f"{place}: (nearly) every row has another value, so it may identify rows, "
                f"but its role is {attribute.role.value}; should it be identifier, or omit?"
            )
        if attribute.hierarchy is not None:
            yield from _hierarchy_warnings(place, attribute.hierarchy)


def _protection_warnings(subject: PlanSubject) -> Iterator[str]:
    if not subject.policy.algorithm.recodes.makes_classes:
        yield from _exposure_warnings(subject)
        return
    models = models_of(subject.policy)
    if all(model.promised_rows is None for model in models):
        yield "No k-anonymity is asked for: a class may be as small as the other models let it."
    elif largest_k(models) == 1:
        yield ONE_PROTECTS_NOBODY
    protected = {model.attribute for model in models}
    diverse = {model.attribute for model in models if model.counts_null_by_policy}
    hierarchical = {model.attribute for model in models if model.needs_hierarchy}
    for column, attribute in subject.attributes:
        if attribute.role is Role.SENSITIVE and column.name not in protected:
            yield f"{_place(column.name)}: it is sensitive, but no model protects it from being inferred."
        elif attribute.role is Role.SENSITIVE and attribute.hierarchy and column.name not in hierarchical:
            yield f"{_place(column.name)}: only hierarchical t-closeness, which is not asked for, uses its hierarchy."
        if column.name in diverse and attribute.nulls == "value":
            yield f"{_place(column.name)}: NULL counts as a value for l-diversity; with nulls: nothing it adds none."


def _exposure_warnings(subject: PlanSubject) -> Iterator[str]:
    """Say that nothing but masks protects the rows, and name the sensitive columns."""
    yield (
        "No model protects the rows: whoever knows kept values of a person may find the row. Kept columns must say"
        " nothing of persons that others know."
    )
    for column, attribute in subject.attributes:
        if attribute.role is Role.SENSITIVE:
            yield f"{_place(column.name)}: it is sensitive, and released as it is."


def _hierarchy_warnings(place: str, hierarchy: Hierarchy) -> Iterator[str]:
    for low, high in pairwise(hierarchy.intervals or ()):
        if Fraction(str(high)) % Fraction(str(low)):
            yield f"{place}: intervals of {high} do not consist of intervals of {low}; their bounds are moved to fit."
