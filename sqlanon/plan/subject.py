"""Facts about a policy's live table, for the checks of the policy: its columns, and identifiers that repeat.

A column repeats if it holds two values or more, and one of them in more than one row. NULL is no value, and a column
of a single value, such as the number of a tenant, tells nobody from anybody else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.engines.dialects import Dialect, find_dialect
from sqlanon.engines.embedded import EMBEDDED
from sqlanon.engines.files import takes_types
from sqlanon.models import models_of
from sqlanon.plan.cluster_checks import Strata, Uncountable, measure_strata, measure_uncountable
from sqlanon.plan.column_names import names_a_person
from sqlanon.plan.measurements import Measured, countable, in_part, measure_source, portions
from sqlanon.plan.population import Population, find_population
from sqlanon.policy import AttributeSection, Policy, Role, Show
from sqlanon.results.source_facts import RepeatingColumn
from sqlanon.sql import Identifier, RedactedValue, Relation
from sqlanon.support.environment import named
from sqlanon.support.suggest import quoted
from sqlanon.values.expressions import comparable, double_of, text_of

SAMPLED_VALUES = 100_000  # about so many values of a column are looked at for being unique


UNIQUE = 0.99  # from this share of distinct values on, a column is said to be unique


DISTINCT_COLUMNS = 100  # counted by one statement: DuckDB plans 500 counts of distinct values in 12 s, 100 in 0.2 s


@dataclass(frozen=True)
class PlanSubject:
    """The policy, and the live table it is about.

    nulls: the number of NULLs of the columns where the policy refuses them.
    distinct: of the kept columns that were looked at, the share of their values that differ (of a part, by hash).
    repetition: the identifiers that repeat, declared ones and those that are named like the key of a person.
    uncountable: of quasi-identifiers whose rows are to be gathered in clusters, the values that are no finite numbers.
    strata: the values of the target that clusters may not mix.
    absent: of the models, by their place in the policy, the values that they name and no row has.
    is_part: whether others hold further rows of the same release, whose number is not known here.
    unlisted: of models that list the values of their attribute, how many of its values they lack.
    population: the population table that models look at, where it is there; lacks_people: whether it has no row.
    opposite: the quasi-identifiers to be shown as single numbers that hold both infinities, or go beyond all doubles.
    """

    policy: Policy
    dialect: type[Dialect]
    table: str
    columns: tuple[Column, ...]
    rows: int
    nulls: Mapping[str, int]
    distinct: Mapping[str, float]
    repetition: Repetition
    uncountable: Mapping[str, Uncountable]
    strata: Strata | None = None
    absent: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    is_part: bool = False
    unlisted: Mapping[int, int] = field(default_factory=dict)
    population: Population | None = None
    lacks_people: bool = False
    opposite: frozenset[str] = frozenset()

    @property
    def unique(self) -> frozenset[str]:
        """The columns whose values are all different (so far as was looked at)."""
        return frozenset(name for name, share in self.distinct.items() if share >= UNIQUE)

    @property
    def attributes(self) -> Iterator[tuple[Column, AttributeSection]]:
        """The columns that the policy gives a role, in the table's order."""
        for column in self.columns:
            if column.name in self.policy.attributes:
                yield column, self.policy.attributes[column.name]

    @property
    def released_by(self) -> tuple[type[Dialect], ...]:
        """The dialects of the databases that the release goes through, whose names and types it must have."""
        release, dialects = self.policy.release, [self.dialect]
        if release.url is not None and (other := find_dialect(release.url)) is not None:
            dialects.append(other)
        if release.file is not None:
            dialects.append(EMBEDDED)
        return tuple(dialects)

    @property
    def place_of_names(self) -> str:
        """The place where a column can get another name."""
        return "in a view" if self.policy.source.file is None else "in the file"

    @property
    def recast(self) -> str:
        """The way in which a column gets another type."""
        file = self.policy.source.file
        if file is None:
            return "cast the column in a view"
        named = ", or name its type (source.types)" if takes_types(file) else ""
        return f"write it into the file as numbers, texts, dates or times{named}"

    def recast_of(self, column: Column) -> str:
        """The way in which values get a column of another type: of nested types, a field of theirs; of arrays, rows."""
        if column.type.endswith("[]"):
            if self.policy.source.file is not None:
                return "write a row for each element into the file, with the column that tells whose it is"
            return f"use a view with a row for each element, such as unnest({Identifier(column.name)})"
        if not column.field:
            return self.recast
        if self.policy.source.file is not None:
            return f"write a field of it into the file as a column of its own, such as {column.field}"
        return f"use a view that has a field of it as a column of its own, such as {column.field}"

    @property
    def released_as_they_are(self) -> list[Column]:
        """The columns that the release has values of, in their own type."""
        return [
            column
            for column, attribute in self.attributes
            if attribute.role in (Role.SENSITIVE, Role.INSENSITIVE)
            or (attribute.role is Role.QUASI_IDENTIFIER and attribute.show is Show.BOUNDS)
        ]

    def column(self, name: str) -> Column | None:
        return next((column for column in self.columns if column.name == name), None)


def inspect_table(policy: Policy, engine: Engine, source: Relation, *, is_part: bool = False) -> PlanSubject:
    """Look at the table: a statement for every 500 columns, one for every 100 kept ones, one for each identifier."""
    columns = tuple(engine.columns(source))
    roles = {column.name: policy.attributes[column.name] for column in columns if column.name in policy.attributes}
    refusing = [name for name, attribute in roles.items() if attribute.nulls == "refuse"]
    kept_roles = (Role.SENSITIVE, Role.INSENSITIVE)
    kept = [column for column in columns if column.name in roles and roles[column.name].role in kept_roles]
    integers = [column.name for column in kept if column.kind is Kind.INTEGER]
    persons = [column.name for column in columns if column.name == policy.person]
    nullable = list(dict.fromkeys([*refusing, *persons, *integers]))
    measured = measure_source(engine, source, nullable, integers)
    population = find_population(policy, engine)
    return PlanSubject(
        policy=policy,
        dialect=engine.traits,
        table=_name(policy, source),
        columns=columns,
        rows=measured.rows,
        nulls={name: measured.nulls[name] for name in (*refusing, *persons)},
        distinct=_distinct(engine, source, measured, [c for c in kept if not _repeats(measured, c.name)]),
        repetition=replace(find_repeating(engine, source, identifying(policy, columns)), person=policy.person),
        uncountable=measure_uncountable(engine, source, policy, columns),
        strata=measure_strata(engine, source, policy, columns),
        absent=find_absent(engine, source, policy, columns),
        is_part=is_part,
        unlisted=count_unlisted(engine, source, policy, columns),
        population=population,
        opposite=find_opposite(engine, source, policy, columns),
        lacks_people=population is not None and engine.query_one("count_rows", table=population.table) == (0,),
    )


def find_opposite(engine: Engine, source: Relation, policy: Policy, columns: Sequence[Column]) -> frozenset[str]:
    """Find the columns with both infinities, between which is no number; a limit leaves one of them out."""
    looked_at = [
        column
        for column in columns
        if column.kind in (Kind.FLOAT, Kind.DECIMAL)
        and (attribute := policy.attributes.get(column.name)) is not None
        and attribute.role is Role.QUASI_IDENTIFIER
        and attribute.show in (Show.MEAN, Show.MIDPOINT)
        and attribute.bottom is None
        and attribute.top is None
    ]
    if not looked_at:
        return frozenset()
    numbers = [double_of(engine.render, Markup(Identifier(column.name)), column.kind) for column in looked_at]
    both = engine.query_one("plan/find_opposites", source=source, numbers=numbers)
    return frozenset(column.name for column, is_opposite in zip(looked_at, both, strict=True) if is_opposite)


def find_absent(
    engine: Engine, source: Relation, policy: Policy, columns: Sequence[Column]
) -> dict[int, tuple[str, ...]]:
    """Find the values that models name and no row has: one statement for each model that names some."""
    absent, listed = {}, {column.name: column for column in columns}
    models = models_of(policy)
    for place, model in enumerate(models):
        column = listed.get(model.attribute or "")
        if column is None or not model.named_values:
            continue
        value = text_of(engine.render, Markup(Identifier(column.name)), column.kind, column.type)
        texts = [RedactedValue(text) for text in model.named_values]
        present = {text for (text,) in engine.query("plan/find_named_values", source=source, text=value, texts=texts)}
        absent[place] = tuple(text for text in model.named_values if text not in present)
    return absent


def count_unlisted(engine: Engine, source: Relation, policy: Policy, columns: Sequence[Column]) -> dict[int, int]:
    """Count the values that models must know and don't: one statement for each model that lists values."""
    unlisted, listed = {}, {column.name: column for column in columns}
    for place, model in enumerate(models_of(policy)):
        column = listed.get(model.attribute or "")
        known = model.known_values() if column is not None else None
        if column is None or known is None:
            continue
        text = text_of(engine.render, Markup(Identifier(column.name)), column.kind, column.type)
        texts = [RedactedValue(value) for value in known]
        (values,) = engine.query_one("plan/count_unlisted_values", source=source, text=text, texts=texts)
        unlisted[place] = int(values)
    return unlisted


def _name(policy: Policy, source: Relation) -> str:
    """The source as people know it: a file as the policy names it."""
    file = policy.source.file
    return ".".join(source.parts[-2:]) if file is None else named(file)


def identifying(policy: Policy, columns: Sequence[Column]) -> list[Column]:
    """List the columns that are declared identifiers, or named like the key of a person and not omitted."""
    roles = {name: attribute.role for name, attribute in policy.attributes.items()}
    return [
        column
        for column in columns
        if roles.get(column.name) is Role.IDENTIFIER
        or (names_a_person(column.name) and roles.get(column.name) is not Role.OMIT)
    ]


def _repeats(measured: Measured, name: str) -> bool:
    """Tell whether the range of a column of whole numbers is too narrow for its values to be all different."""
    ends = measured.ranges.get(name)
    return ends is not None and ends[1] - ends[0] + 1 < UNIQUE * (measured.rows - measured.nulls[name])


def _distinct(engine: Engine, source: Relation, measured: Measured, columns: Sequence[Column]) -> dict[str, float]:
    """The share of each column's values (of a part of them, by hash) that differ; of a single value nothing is said."""
    modulus = max(1, measured.rows // SAMPLED_VALUES)
    values = [countable(column) for column in columns]
    parts = [{"value": value, "sampled": in_part(engine, [value], modulus)} for value in values]
    counts = [
        count
        for portion in portions(parts, DISTINCT_COLUMNS)
        for count in engine.query_one("plan/measure_attributes", source=source, columns=portion)
    ]
    pairs = zip(columns, counts[0::2], counts[1::2], strict=True)
    return {column.name: distinct / looked for column, looked, distinct in pairs if looked > 1}


@dataclass(frozen=True)
class Repetition:
    """The identifiers of a table that repeat, and the names of those that the session may not read.

    person: the one whose values are counted as persons, if any is; hidden: whether the release shows nothing of it.
    """

    columns: tuple[RepeatingColumn, ...] = ()
    unread: tuple[str, ...] = ()
    person: str | None = None
    hidden: bool = False

    @property
    def sentence(self) -> str | None:
        """The note beside every verdict; None where rows are counted and no identifier repeats."""
        if self.person is not None and self.hidden:
            return (
                f"Persons are not counted here, and neither are rows in their place: the release shows nothing of"
                f" '{self.person}', whose persons its run counted."
            )
        if self.person is not None:
            return f"Persons are counted, not rows: those that '{self.person}' tells apart."
        if self.columns:
            names = "; ".join(map(str, self.columns))
            return f"Rows are counted, not persons: {names}. A class of k rows may be of fewer persons than k."
        if self.unread:
            names = ", ".join(quoted(self.unread))
            return f"Rows are counted, not persons: {names} may not be read here, and so may repeat."
        return None

    @property
    def problem(self) -> str | None:
        """The reason why a policy that says nothing of its subject is refused; None where it is not."""
        reasons = [*map(str, self.columns), *([] if not self.unread else [_unread(self.unread)])]
        if not reasons:
            return None
        return (
            f"subject: {'; '.join(reasons)}. Where a person has several rows, a class of k rows may be of one person,"
            " and the models protect rows, not persons. To count persons, name the identifier that tells them apart as"
            " `subject`, at the top of the policy; or make a table with one row a person, and release that. To release"
            " rows nevertheless, write `subject: none`."
        )

    def as_json(self) -> dict[str, Any]:
        """Return the repetition for programs."""
        repeating = [vars(column) for column in self.columns]
        return {"repeating": repeating, "unread": list(self.unread), "note": self.sentence}


def _unread(names: Sequence[str]) -> str:
    have, they = ("has", "it repeats") if len(names) == 1 else ("have", "they repeat")
    return (
        f"{', '.join(quoted(names))} may not be read by this role and {have} no unique constraint, so that nobody knows"
        f" whether {they}"
    )


def find_repeating(engine: Engine, table: Relation, columns: Sequence[Column]) -> Repetition:
    """Find the columns that repeat: nothing is read of those that a constraint keeps unique, others are grouped once.

    One question a column, so that only the groups of one need be in memory.
    """
    if not columns:
        return Repetition()
    unique, unreadable = engine.unique_columns(table), engine.unreadable_columns(table)
    doubtful = [column for column in columns if column.name not in unique]
    counted = _count(engine, table, [column for column in doubtful if column.name not in unreadable])
    return Repetition(
        tuple(identifier for identifier in counted if identifier.values > 1 and identifier.most_rows > 1),
        tuple(column.name for column in doubtful if column.name in unreadable),
    )


def _count(engine: Engine, table: Relation, columns: Sequence[Column]) -> list[RepeatingColumn]:
    values = [comparable(engine, Markup(Identifier(column.name)), column.kind) for column in columns]
    counts = engine.query_each("plan/count_repeats", [{"table": table, "value": value} for value in values])
    return [RepeatingColumn(column.name, *map(int, row)) for column, (row,) in zip(columns, counts, strict=True)]


NO_REPETITION: Repetition = Repetition()
