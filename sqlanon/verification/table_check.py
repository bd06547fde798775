"""The statements that check one table by its equivalence classes, and what they measure."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.errors import PolicyError
from sqlanon.hierarchies.table import HierarchyTable
from sqlanon.measures.disclosure import measure_disclosure
from sqlanon.measures.metrics import ClassStatistics
from sqlanon.models.base import Groups, PrivacyModel
from sqlanon.models.solver import settle
from sqlanon.results.measures import Disclosure, ModelResult
from sqlanon.sql import Expression, Identifier, Relation, Statement, Text, macro
from sqlanon.values.expressions import as_sensitive, double_of, shown, text_of_sensitive
from sqlanon.verification.class_sets import JoinedRows
from sqlanon.verification.model_results import model_result
from sqlanon.verification.persons import CountedPersons, count_persons, holders_of, persons_in

NO_NUMBER = None  # for a sensitive value that is none


@dataclass(frozen=True)
class CountedRows:
    """A table in which a row may stand for several equal ones: `times` is its column that tells how many, if any."""

    table: Relation | Expression
    times: Identifier | None = None


def named_groups(sensitive: bool, rows: int, height: int = 0, counted: Expression | None = None) -> Groups:
    """The groups that the statements here name `classes` and, about sensitive values, `avs` and `domain`."""
    classes, avs, domain = (Markup(Identifier(name)) for name in ("classes", "avs", "domain"))
    return Groups(classes, avs if sensitive else None, domain if sensitive else None, rows, height, counted)


@dataclass(frozen=True)
class TableCheck:
    """The statements over one table.

    population: that of `verify_table`.
    whole: how many hold each sensitive value in the whole table `(v, n)`, where that is not the sum over classes.
    """

    engine: Engine
    table: Relation | Expression
    columns: dict[str, Column]
    quasi_identifiers: tuple[str, ...]
    suppressed_label: str | None
    exempt: bool = False
    times: Identifier | None = None
    whole: Expression | None = None
    population: Relation | None = None

    def count_persons(self, person: str, statistics: ClassStatistics) -> CountedPersons:
        """Count the persons of the table, whose classes have these sizes."""
        assert isinstance(self.table, Relation)
        quasi_identifiers = [self._known(name) for name in self.quasi_identifiers]
        alone = dict(statistics.sizes).get(1, 0)
        return count_persons(self.engine, self.table, self._known(person), quasi_identifiers, alone)

    def check_joined(self, person: str, model: PrivacyModel, result: ModelResult, classes: int) -> ModelResult:
        """Hold a model that judges classes of a person together to these, after their single classes.

        classes: those that are judged.
        """
        quasi_identifiers = [self._known(name) for name in self.quasi_identifiers]
        suppressed = self._suppressed() if self.exempt else False
        joined = JoinedRows(self.engine, self.table, self._known(person), quasi_identifiers, suppressed)
        return joined.check([model], result, classes)

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
        total = int(
            rows if self.whole is None else self.engine.query_one("verification/sum_values", values=self.whole)[0]
        )
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
            result = model_result(model, (judged, total), *by_part[place])
            results.append((result, stars is not None and stars[1] > 0))
        return statistics, results

    def statistics_of(self, rows: int, suppressed: int, sizes: tuple[tuple[int, int], ...]) -> ClassStatistics:
        """Make the statistics of the groups from their sizes, each with how often it occurs."""
        return ClassStatistics(rows, suppressed, sizes)

    def disclosures(
        self, sensitive: Sequence[str], models: Sequence[PrivacyModel], person: str | None = None
    ) -> Iterator[Disclosure]:
        """Measure the disclosure of each sensitive attribute by the classes, of rows or of persons."""
        quasi_identifiers = [self._known(name) for name in self.quasi_identifiers]
        protected = {model.attribute for model in models}
        for name in sensitive:
            assert isinstance(self.table, Relation)
            table: Relation | Expression = self.table
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

    def _holders(self, person: str, attribute: str) -> Expression:
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
        counted: Expression | None = None,
    ) -> Statement:
        """The statement of `run`; `rows` and `counted` are those of `Groups`."""
        groups = named_groups(attribute is not None, rows, hierarchy.height if hierarchy else 0, counted)
        if self._maps(attribute):
            groups = replace(groups, population=Markup(Identifier("population")))
        measures = [model.measure(self.engine.render, groups) for model in models]
        texts = any(model.needs_texts for model in models)
        values = self.values_of(attribute, hierarchy, texts)
        if any(model.covers_population for model in models):
            values |= self._with_population(values)
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
            listed = model.list_open(self.engine.render, groups, worst=worst)
            return self.engine.query(
                "verification/list_open", listed=listed, **self.values_of(attribute, hierarchy, True)
            )

        return settle(models, list_open, worst=True)

    def template_of(self, attribute: str | None) -> str:
        """Name the template of the statement."""
        if self._maps(attribute):
            return "verification/measure_mapped_classes"
        return "verification/measure_classes" if attribute is None else "verification/measure_avs"

    def _maps(self, attribute: str | None) -> bool:
        """Tell whether a statement holds classes against a population."""
        return attribute is None and self.population is not None

    def _with_population(self, values: dict[str, Any]) -> dict[str, Any]:
        """Change values of the statement, so that rows of the population that fit no class are classes of no rows."""
        times, keys = Identifier("times"), values["keys"]
        table = macro("verification.with_population", self.table, values["columns"], keys, times, self.population)
        return {"table": table, "columns": keys, "times": times}

    def values_of(self, attribute: str | None, hierarchy: HierarchyTable | None, texts: bool) -> dict[str, Any]:
        """Return the values that the template of the statement interpolates."""
        columns: list[Expression | int] = [part for parts in self._shown for part in parts] or [0]
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
    def _shown(self) -> list[tuple[Expression, ...]]:
        """The keys that tell the values of each quasi-identifier apart for readers."""
        known = [self._known(name) for name in self.quasi_identifiers]
        return [shown(self.engine, column, Markup(Identifier(column.name))) for column in known]

    def _known(self, name: str) -> Column:
        if name not in self.columns:
            raise PolicyError(f"The table {self.table} has no column '{name}'.")
        return self.columns[name]

    def _suppressed(self) -> Expression | bool:
        """Test whether a group `g` holds suppressed rows."""
        kinds = [self._known(name).kind for name in self.quasi_identifiers]
        if self.suppressed_label is None or Kind.TEXT not in kinds:
            return False
        firsts = itertools.accumulate((len(parts) for parts in self._shown), initial=0)
        places = [(place, kind is Kind.TEXT) for place, kind in zip(firsts, kinds, strict=False)]
        return macro("verification.is_suppressed", places, Text(self.suppressed_label))
