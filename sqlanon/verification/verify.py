"""The independent check of any table against privacy models.

Equivalence classes are the groups of equal values in the quasi-identifier columns of the table itself, the sensitive
values and their distribution are the table's own. Nothing of the search is used: no codes, no work tables, nothing is
written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.errors import PolicyError
from sqlanon.hierarchies.table import HierarchyTable
from sqlanon.measures.metrics import ClassStatistics
from sqlanon.models.base import PrivacyModel
from sqlanon.models.table_model import TableModel
from sqlanon.results.measures import ModelResult
from sqlanon.sql import Expression, Relation, Statement
from sqlanon.verification.class_sets import require_person
from sqlanon.verification.model_results import result_of_table
from sqlanon.verification.table_check import CountedRows, TableCheck
from sqlanon.verification.verdict import Verification


def verify_table(
    engine: Engine,
    table: Relation,
    quasi_identifiers: Sequence[str],
    models: Sequence[PrivacyModel],
    *,
    hierarchies: Mapping[str, HierarchyTable] | None = None,
    suppressed_label: str | None = None,
    exempt: bool = False,
    sensitive: Sequence[str] = (),
    person: str | None = None,
    population: Relation | None = None,
) -> Verification:
    """Check a table: one GROUP BY over it for each sensitive attribute, or a single one where no model has any.

    Models of whole tables are judged by the sizes of the classes that the same statement counts.

    NULLs are equal to each other; without quasi-identifiers the whole table is one class. With `suppressed_label`,
    rows whose text quasi-identifiers all hold it, and whose others are all NULL, are suppressed: a class like any
    other, for the reader sees it, which is told apart in the result; with `exempt` the models don't judge it.
    `hierarchies` gives the hierarchies of sensitive attributes. What classes tell of `sensitive` ones is measured
    too, by one more GROUP BY for each.

    person: the column whose values are persons, where classes are to be judged by these; NULL is another person each
    time. A sensitive value occurs as often as persons have it, and models that look at one see its occurrences as their
    rows; all others see persons.

    population: a table `(q0, q1, …, n)` of the rows of a population by the labels of the quasi-identifiers, for models
    that hold classes against it.

    Raises PolicyError for an unknown table or column, or a hierarchical distance without a hierarchy, and
    VerificationError where what a model measures and what it calls a violation contradict each other.
    """
    check = TableCheck(engine, *live_columns(engine, table), tuple(quasi_identifiers), suppressed_label, exempt)
    check = replace(check, population=population)
    if person is not None:
        return _verify_persons(check, person, models, hierarchies or {}, sensitive)
    return verify_groups(check, models, hierarchies or {}, sensitive)


def verify_groups(
    check: TableCheck,
    models: Sequence[PrivacyModel],
    hierarchies: Mapping[str, HierarchyTable],
    sensitive: Sequence[str],
) -> Verification:
    """Hold the models to the groups of rows that a check makes of its table; raises as `verify_table` does."""
    require_person(models)
    results: dict[int, tuple[ModelResult, bool]] = {}
    statistics: ClassStatistics | None = None
    judging_classes = [
        place
        for place, model in enumerate(models)
        if not isinstance(model, TableModel) and model.population_table is None
    ]
    mapped = [place for place, model in enumerate(models) if model.population_table is not None]
    if mapped:
        _, model_results = check.run(None, [models[place] for place in mapped], None)
        results.update(zip(mapped, model_results, strict=True))
    for attribute, places in _by_attribute([models[place] for place in judging_classes]).items():
        judged = [models[judging_classes[place]] for place in places]
        hierarchy = _hierarchy(attribute, judged, hierarchies)
        statistics, model_results = check.run(attribute, judged, hierarchy)
        results.update(zip((judging_classes[place] for place in places), model_results, strict=True))
    if statistics is None:
        statistics, _ = check.run(None, [], None)
    for place, model in enumerate(models):
        if isinstance(model, TableModel):
            results[place] = result_of_table(model, statistics, exempt=check.exempt), False
    listed = [results[place] for place in range(len(models))]
    violated_by_stars = tuple(result.model for result, violates in listed if violates)
    disclosures = tuple(check.disclosures(sensitive, models))
    return Verification(statistics, tuple(result for result, _ in listed), disclosures, violated_by_stars, check.exempt)


def _verify_persons(
    check: TableCheck,
    person: str,
    models: Sequence[PrivacyModel],
    hierarchies: Mapping[str, HierarchyTable],
    sensitive: Sequence[str],
) -> Verification:
    """Check a table whose classes are of persons: one GROUP BY of them, and one for each sensitive attribute."""
    attributes = dict.fromkeys([None, *(model.attribute for model in models)])
    results: dict[int, tuple[ModelResult, bool]] = {}
    statistics: ClassStatistics | None = None
    for attribute in attributes:
        places = [place for place, model in enumerate(models) if model.attribute == attribute]
        judged = [models[place] for place in places]
        counted, verdicts = check.of_persons(person, attribute).run(
            attribute, judged, _hierarchy(attribute, judged, hierarchies)
        )
        statistics = statistics or counted
        results.update(zip(places, verdicts, strict=True))
    assert statistics is not None
    classes = statistics.classes - int(check.exempt and statistics.suppressed > 0)
    for place, model in enumerate(models):
        if model.known_rows is not None:
            of_classes, violates = results[place]
            results[place] = check.check_joined(person, model, of_classes, classes), violates
    listed = [results[place] for place in range(len(models))]
    return Verification(
        statistics,
        tuple(result for result, _ in listed),
        tuple(check.disclosures(sensitive, models, person)),
        tuple(result.model for result, violates in listed if violates),
        check.exempt,
        persons=check.count_persons(person, statistics),
    )


def live_columns(engine: Engine, table: Relation) -> tuple[Relation, dict[str, Column]]:
    resolved = engine.resolve(table)
    if resolved is None:
        raise PolicyError(f"There is no table {table}.")
    return resolved, {column.name: column for column in engine.columns(resolved)}


def _by_attribute(models: Sequence[PrivacyModel]) -> dict[str | None, list[int]]:
    """The places of the models by sensitive attribute; those without one join the first attribute's statement."""
    attributes = [model.attribute for model in models if model.attribute is not None]
    first = attributes[0] if attributes else None
    places: dict[str | None, list[int]] = {}
    for place, model in enumerate(models):
        places.setdefault(model.attribute or first, []).append(place)
    return places


def _hierarchy(
    attribute: str | None, models: Sequence[PrivacyModel], hierarchies: Mapping[str, HierarchyTable]
) -> HierarchyTable | None:
    if not any(model.needs_hierarchy for model in models):
        return None
    if attribute is None or attribute not in hierarchies:
        raise PolicyError(f"t-closeness with distance: hierarchical needs a hierarchy of '{attribute}'.")
    return hierarchies[attribute]


@dataclass(frozen=True)
class VerifyingStatement:
    """A statement that verifies a table: what it says of `models` is in parts 1, 2, … of its result."""

    statement: Statement
    places: tuple[int, ...]  # of its models among all


def verifying_statements(
    engine: Engine,
    table: tuple[Callable[[str | None], CountedRows], Sequence[Column]],
    quasi_identifiers: Sequence[str],
    models: Sequence[PrivacyModel],
    rows: tuple[int, Expression],
) -> list[VerifyingStatement]:
    """The statements of `verify_table`, to be run when there is such a table; no model may need a hierarchy.

    table: the quasi-identifiers and a sensitive attribute of its rows, if a statement is about one; and its columns.
    rows: the most that it may have, and SQL for how many it has.
    """
    rows_of, listed = table
    columns = {column.name: column for column in listed}
    statements = []
    for attribute, places in _by_attribute(models).items():
        counted = rows_of(attribute)
        check = TableCheck(engine, counted.table, columns, tuple(quasi_identifiers), None, False, counted.times)
        statement = check.statement(attribute, [models[place] for place in places], None, *rows)
        statements.append(VerifyingStatement(statement, tuple(places)))
    return statements
