"""The independent check of any table against privacy models.

Equivalence classes are the groups of equal values in the quasi-identifier columns of the table itself, the sensitive
values and their distribution are the table's own. Nothing of the search is used: no codes, no work tables, nothing is
written.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.errors import PolicyError, VerificationError
from sqlanon.hierarchies.table import HierarchyTable
from sqlanon.measures.disclosure import measure_disclosure
from sqlanon.measures.metrics import ClassStatistics
from sqlanon.models.base import Groups, PrivacyModel
from sqlanon.models.settling import settle
from sqlanon.models.table_model import TableModel
from sqlanon.results.measures import Disclosure, ModelResult
from sqlanon.sql import Identifier, Relation, Statement, Text, macro
from sqlanon.values.expressions import as_sensitive, double_of, shown, text_of_sensitive
from sqlanon.verification.persons import CountedPersons, count_persons, holders_of, persons_in

_DIGITS = 12
NO_NUMBER = None  # for a sensitive value that is none


@dataclass(frozen=True)
class SharedClasses:
    """A table whose classes have rows in tables of other owners too, and are judged with these.

    rows: of the table itself; omitted: the rows that all tables together leave out.
    """

    rows: int
    omitted: int


@dataclass(frozen=True)
class Verification:
    """The result of the check; a table without a class satisfies every model, and `note` says so.

    disclosure: of every sensitive attribute, protected by a model or not.
    violated_by_stars: the models that suppressed rows violate which the table shows, as the class that a reader sees.
    exempt: whether these rows are not judged.
    persons: the rows and persons of the table, where the members of its classes are persons; None where they are rows.
    shared: of the table, where `statistics` and `models` are of several owners' tables together.
    """

    statistics: ClassStatistics
    models: tuple[ModelResult, ...]
    disclosure: tuple[Disclosure, ...] = ()
    violated_by_stars: tuple[str, ...] = ()
    exempt: bool = False
    persons: CountedPersons | None = None
    shared: SharedClasses | None = None

    @property
    def satisfied(self) -> bool:
        """Tell whether every model is satisfied."""
        return all(result.satisfied for result in self.models)

    @property
    def note(self) -> str | None:
        """The note that a reader needs to read the result rightly."""
        if not self.statistics.rows:
            return "The table is empty: there is no equivalence class that could violate a model."
        if self.exempt and self.statistics.suppressed:
            of = f", which violate {', '.join(self.violated_by_stars)}" if self.violated_by_stars else ""
            return f"UNPROTECTED: {self._suppressed_members}, shown as one class{of}."
        return None

    @property
    def _suppressed_members(self) -> str:
        """The members of the class of suppressed rows, in words."""
        number = f"{self.statistics.suppressed:,}"
        return f"{number} suppressed rows" if self.persons is None else f"suppressed rows of {number} persons"

    @property
    def fails_by_stars_alone(self) -> bool:
        """Tell whether the suppressed rows are the only class that violates a model."""
        failed = [result for result in self.models if not result.satisfied]
        return bool(failed) and all(r.model in self.violated_by_stars and r.violations == 1 for r in failed)

    @property
    def stars_problem(self) -> str:
        """The message for suppressed rows that alone violate a model."""
        return (
            f"The {self._suppressed_members}, which `suppressed: star` shows as one class, violate"
            f" {', '.join(self.violated_by_stars)}; nothing was published. Leave them out with `suppressed: omit`,"
            " change what may be suppressed, or accept rows that"
            " no model protects with `suppressed: {star: unprotected}`."
        )


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
            results[place] = _result_of_table(model, statistics, exempt=check.exempt), False
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
    listed = [results[place] for place in range(len(models))]
    return Verification(
        statistics,
        tuple(result for result, _ in listed),
        tuple(check.disclosures(sensitive, models, person)),
        tuple(result.model for result, violates in listed if violates),
        check.exempt,
        persons=check.count_persons(person),
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


def named_groups(sensitive: bool, rows: int, height: int = 0, counted: Markup | None = None) -> Groups:
    """The groups that the statements here name `classes` and, about sensitive values, `avs` and `domain`."""
    classes, avs, domain = (Markup(Identifier(name)) for name in ("classes", "avs", "domain"))
    return Groups(classes, avs if sensitive else None, domain if sensitive else None, rows, height, counted)


@dataclass(frozen=True)
class VerifyingStatement:
    """A statement that verifies a table: what it says of `models` is in parts 1, 2, … of its result."""

    statement: Statement
    places: tuple[int, ...]  # of its models among all


@dataclass(frozen=True)
class CountedRows:
    """A table in which a row may stand for several equal ones: `times` is its column that tells how many, if any."""

    table: Relation | Markup
    times: Identifier | None = None


def verifying_statements(
    engine: Engine,
    table: tuple[Callable[[str | None], CountedRows], Sequence[Column]],
    quasi_identifiers: Sequence[str],
    models: Sequence[PrivacyModel],
    rows: tuple[int, Markup],
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


@dataclass(frozen=True)
class TableCheck:
    """The statements over one table.

    population: that of `verify_table`.
    whole: how many hold each sensitive value in the whole table `(v, n)`, where that is not the sum over classes.
    """

    engine: Engine
    table: Relation | Markup
    columns: dict[str, Column]
    quasi_identifiers: tuple[str, ...]
    suppressed_label: str | None
    exempt: bool = False
    times: Identifier | None = None
    whole: Markup | None = None
    population: Relation | None = None

    def count_persons(self, person: str) -> CountedPersons:
        """Count the persons of the table."""
        assert isinstance(self.table, Relation)
        quasi_identifiers = [self._known(name) for name in self.quasi_identifiers]
        return count_persons(self.engine, self.table, self._known(person), quasi_identifiers)

    def of_persons(self, person: str, attribute: str | None) -> TableCheck:
        """The same statements over the persons of the table, or over what it has of them in a sensitive attribute."""
        assert isinstance(self.table, Relation)
        quasi_identifiers = [self._known(name) for name in self.quasi_identifiers]
        sensitive = None if attribute is None else self._known(attribute)
        who = self._known(person)
        members = persons_in(self.engine, self.table, who, quasi_identifiers, sensitive)
        whole = None if sensitive is None else holders_of(self.engine, self.table, who, sensitive)
        return replace(self, table=members, whole=whole)

    def run(
        self, attribute: str | None, models: Sequence[PrivacyModel], hierarchy: HierarchyTable | None
    ) -> tuple[ClassStatistics, list[tuple[ModelResult, bool]]]:
        """One statement: the class sizes, each model's worst measure and violations, and whether stars violate it."""
        (rows,) = self.engine.query_one("count_rows", table=self.table)
        total = int(rows if self.whole is None else self.engine.query_one("verify/sum_values", values=self.whole)[0])
        with self.engine.grouping_by_hash():
            settled = self.settle(attribute, models, hierarchy, total)
            sizes_of_parts = self.engine.fetch(self.statement(attribute, settled, hierarchy, total))
        by_part = {part: rest for part, *rest in sizes_of_parts}
        sizes = tuple(sorted((int(size), int(tally)) for part, size, tally, *_ in sizes_of_parts if part == 0))
        suppressed = next(int(tally) for part, _, tally, *_ in sizes_of_parts if part == -1)
        statistics = self.statistics_of(int(rows), suppressed, sizes)
        judged = statistics.classes - int(self.exempt and suppressed > 0)
        results = []
        for place, model in enumerate(models, start=1):
            stars = by_part.get(-1 - place)
            result = _result(model, (judged, total), *by_part[place])
            results.append((result, stars is not None and stars[1] > 0))
        return statistics, results

    def statistics_of(self, rows: int, suppressed: int, sizes: tuple[tuple[int, int], ...]) -> ClassStatistics:
        """Make the statistics of the groups from their sizes, each with how often it occurs."""
        return ClassStatistics(rows, suppressed, sizes)

    def disclosures(
        self, sensitive: Sequence[str], models: Sequence[PrivacyModel], person: str | None = None
    ) -> Iterator[Disclosure]:
        """Measure the disclosure of each sensitive attribute by the classes, of rows or of persons."""
        assert isinstance(self.table, Relation)
        quasi_identifiers = [self._known(name) for name in self.quasi_identifiers]
        protected = {model.attribute for model in models}
        for name in sensitive:
            table: Relation | Markup = self.table
            holders = None
            if person is not None:
                table, holders = self.of_persons(person, name).table, self._holders(person, name)
            yield measure_disclosure(
                self.engine,
                table,
                quasi_identifiers,
                self._known(name),
                protected=name in protected,
                holders=holders,
            )

    def _holders(self, person: str, attribute: str) -> Markup:
        """Write a relation with a row for each person of a class who has a value of an attribute there."""
        valued = macro("verification.valued", self.table, Identifier(attribute))
        quasi_identifiers = [self._known(name) for name in self.quasi_identifiers]
        return persons_in(self.engine, valued, self._known(person), quasi_identifiers, None)

    def statement(
        self,
        attribute: str | None,
        models: Sequence[PrivacyModel],
        hierarchy: HierarchyTable | None,
        rows: int,
        counted: Markup | None = None,
    ) -> Statement:
        """The statement of `run`; `rows` and `counted` are those of `Groups`."""
        groups = named_groups(attribute is not None, rows, hierarchy.height if hierarchy else 0, counted)
        if self._maps(attribute):
            groups = replace(groups, population=Markup(Identifier("population")))
        measures = [Markup(model.measure(self.engine.render, groups)) for model in models]
        texts = any(model.needs_texts for model in models)
        values = self.values_of(attribute, hierarchy, texts)
        return self.engine.render(self.template_of(attribute), measures=measures, **values)

    def settle(
        self,
        attribute: str | None,
        models: Sequence[PrivacyModel],
        hierarchy: HierarchyTable | None,
        rows: int,
    ) -> tuple[PrivacyModel, ...]:
        """Return the models, whose measures decide every class of the table, and are exact where they are worst."""
        if any(model.needs_solver for model in models):
            self.engine.traits.settles_models.require("t-closeness: ")
        groups = named_groups(attribute is not None, rows, hierarchy.height if hierarchy else 0)

        def list_open(model: PrivacyModel, worst: bool) -> list[Any]:
            listed = Markup(model.list_open(self.engine.render, groups, worst=worst))
            return self.engine.query("verify/list_open", listed=listed, **self.values_of(attribute, hierarchy, True))

        return settle(models, list_open, worst=True)

    def template_of(self, attribute: str | None) -> str:
        """Name the template of the statement."""
        if self._maps(attribute):
            return "verify/measure_mapped_classes"
        return "verify/measure_classes" if attribute is None else "verify/measure_avs"

    def _maps(self, attribute: str | None) -> bool:
        """Tell whether a statement holds classes against a population."""
        return attribute is None and self.population is not None

    def values_of(self, attribute: str | None, hierarchy: HierarchyTable | None, texts: bool) -> dict[str, Any]:
        """Return the values that the template of the statement interpolates."""
        columns: list[Markup | int] = [part for parts in self._shown for part in parts] or [0]
        values: dict[str, Any] = {
            "table": self.table,
            "times": self.times,
            "weighs": False,
            "columns": columns,
            "suppressed": self._suppressed(),
            "has_stars": self.suppressed_label is not None,
            "exempt": self.exempt,
        }
        if self._maps(attribute):
            keys = [Identifier(f"q{place}") for place in range(len(columns))]
            return values | {"keyed": True, "keys": keys, "population": self.population}
        if attribute is None:
            return values | {"keyed": False}
        column = self._known(attribute)
        return values | {
            "keys": [Identifier(f"q{place}") for place in range(len(columns))],
            "sensitive": as_sensitive(self.engine, column, Markup(Identifier(attribute))),
            "value": double_of(self.engine.render, Markup(Identifier("v")), column.kind)
            if column.kind.is_numeric
            else NO_NUMBER,
            "text": text_of_sensitive(self.engine, column) if texts else None,
            "hierarchy": hierarchy.table if hierarchy else None,
            "leaf": as_sensitive(self.engine, column, Markup(Identifier("value"))),
            "levels": list(range(1, hierarchy.height + 1)) if hierarchy else [],
            "whole": self.whole,
        }

    @property
    def _shown(self) -> list[tuple[Markup, ...]]:
        """The keys that tell the values of each quasi-identifier apart for readers."""
        known = [self._known(name) for name in self.quasi_identifiers]
        return [shown(self.engine, column, Markup(Identifier(column.name))) for column in known]

    def _known(self, name: str) -> Column:
        if name not in self.columns:
            raise PolicyError(f"The table {self.table} has no column '{name}'.")
        return self.columns[name]

    def _suppressed(self) -> Markup | bool:
        """Test whether a group `g` holds suppressed rows."""
        kinds = [self._known(name).kind for name in self.quasi_identifiers]
        if self.suppressed_label is None or Kind.TEXT not in kinds:
            return False
        firsts = itertools.accumulate((len(parts) for parts in self._shown), initial=0)
        places = [(place, kind is Kind.TEXT) for place, kind in zip(firsts, kinds, strict=False)]
        return macro("verification.is_suppressed", places, Text(self.suppressed_label))


def _result(
    model: PrivacyModel,
    counted: tuple[int, int],
    measured: int,
    violations: int,
    least: float | None,
    greatest: float | None,
    violating_rows: int,
) -> ModelResult:
    """Read a model's part of the statement's row; VerificationError where the worst measure contradicts the counts.

    counted: the classes that are judged, and the rows of the table.

    The search judges by the same SELECT of a model: a mistake in it would go unnoticed here without another opinion.
    """
    classes, rows = counted
    worst = None if least is None or greatest is None else model.worst_of((least, greatest))
    holds = not classes if worst is None else model.is_met_by(worst, rows)
    if measured != classes or holds not in (None, not violations):
        raise _contradiction(model)
    return ModelResult(
        model.name,
        model.shown_parameters,
        satisfied=not violations,
        worst=_rounded(worst),
        violations=int(violations),
        violating_rows=int(violating_rows),
    )


def _result_of_table(model: TableModel, statistics: ClassStatistics, *, exempt: bool) -> ModelResult:
    """Judge a table as a whole by the sizes of its classes; if it violates the model, all its classes do together.

    exempt: whether suppressed rows that it shows are not judged.

    Raises PolicyError where rows have no classes, and VerificationError where the figure and its verdict contradict.
    """
    if statistics.fits:
        raise PolicyError(f"{model.name} judges classes together, and here each row has the rows that fit it.")
    sizes = dict(statistics.sizes)
    if exempt and statistics.suppressed:
        sizes[statistics.suppressed] -= 1
        sizes = {size: number for size, number in sizes.items() if number}
    classes, rows = sum(sizes.values()), sum(size * number for size, number in sizes.items())
    figure, satisfied = model.figure(sizes) if sizes else None, model.is_satisfied_by(sizes)
    holds = True if figure is None else model.is_met_by(figure, rows)
    if holds not in (None, satisfied):
        raise _contradiction(model)
    return ModelResult(
        model.name,
        model.shown_parameters,
        satisfied=satisfied,
        worst=_rounded(figure),
        violations=0 if satisfied else classes,
        violating_rows=0 if satisfied else rows,
    )


def _contradiction(model: PrivacyModel) -> VerificationError:
    return VerificationError(
        f"The check of {model.name} contradicts itself, so nothing is taken for verified. Please report this."
    )


def _rounded(worst: float | None) -> float | None:
    return float(f"{worst:.{_DIGITS}g}") if worst is not None and math.isfinite(worst) else None
