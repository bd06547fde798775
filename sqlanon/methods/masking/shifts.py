"""Shifted dates: all of a person moved by one secret number of days, and what the intervals between them still tell.

The number follows from the HMAC of the person by the policy's key: from 1 to `days`, into the past or the future, each
as likely. Intervals between dates of a person stay exact; moments are moved by whole periods of 24 hours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup

from sqlanon.encoding.pseudonymized import padded
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.plan.plan import Plan
from sqlanon.plan.subject import PlanSubject
from sqlanon.policy import AttributeSection, Show
from sqlanon.policy.document import path_text
from sqlanon.policy.keys import read_key
from sqlanon.sql import Expression, Identifier, Relation, macro
from sqlanon.support.quantities import rows_hold
from sqlanon.values.expressions import text_of
from sqlanon.work.workspace import Workspace

ROWS = Identifier("source_rows")
"""The alias of rows whose dates are shifted."""
BAND = 30  # days, of the coarser intervals that are measured


@dataclass(frozen=True)
class DateShift:
    """A shifted column: its person, the most days, and the work table of the days of each person, `(value, days)`."""

    column: Column
    person: Column
    most: int
    table: Relation
    place: int

    @property
    def _alias(self) -> Identifier:
        return Identifier(f"shift_{self.place}")

    def joined(self, engine: Engine) -> dict[str, Any]:
        """Describe the join of rows with the days of their persons."""
        return {"table": self.table, "alias": self._alias, "text": person_text(engine, self.person)}

    def moved(self) -> Expression:
        """Write the shifted value of a row."""
        value = macro("relations.column", ROWS, Identifier(self.column.name))
        days = macro("relations.column", self._alias, Identifier("days"))
        return macro("masking.moved", value, days, self.column.kind is Kind.DATE, Markup(self.column.type))

    def counted(self, engine: Engine, *, is_moved: bool) -> Expression:
        """Write the value of a row as a count of days or microseconds; is_moved: after the shift that it will get."""
        value = macro("relations.column", ROWS, Identifier(self.column.name))
        is_date = self.column.kind is Kind.DATE
        count = engine.render.macro("exact_date" if is_date else "exact_timestamp", value)
        days = macro("relations.column", self._alias, Identifier("days")) if is_moved else None
        return macro("masking.counted", count, days, is_date, engine.render.macro("wide_integer"))

    def count_misplaced(self, engine: Engine) -> int:
        """Count the persons with no one number of days that the policy allows."""
        (misplaced,) = engine.query_one("methods/masking/count_misplaced", shifts=self.table, most=self.most)
        return int(misplaced)


def shifted_attributes(plan: Plan) -> list[tuple[Column, AttributeSection]]:
    """List the shifted columns, with what the policy says of them."""
    return [(one.column, plan.policy.attributes[one.name]) for one in plan.attributes if one.show is Show.SHIFTED]


def person_text(engine: Engine, person: Column) -> Expression:
    """Write the text of a row's person."""
    value = macro("relations.column", ROWS, Identifier(person.name))
    return text_of(engine.render, value, person.kind, person.type)


def create_shifts(engine: Engine, plan: Plan, workspace: Workspace) -> list[DateShift]:
    """Write the days of each person, for each shifted column; inside of the transaction that reads the source.

    Raises PolicyError where a key can't be read any more.
    """
    columns = {column.name: column for column in engine.columns(plan.source)}
    shifts = []
    for place, (column, asked) in enumerate(shifted_attributes(plan)):
        assert asked.person is not None
        assert asked.days is not None
        assert asked.key is not None
        person, table = columns[asked.person], workspace.table("shifts", place)
        keys = engine.temporary(workspace.table("keys").name)
        engine.run("encoding/create_keys", keys=keys)
        engine.load(keys, ["inner_pad", "outer_pad"], [padded(read_key(asked.key))])
        engine.run(
            "methods/masking/create_shifts",
            shifts=table,
            source=plan.source,
            keys=keys,
            person=person_text(engine, person),
            most=asked.days,
        )
        workspace.drop(keys)
        engine.analyze(table)
        shifts.append(DateShift(column, person, asked.days, table, place))
    return shifts


def shifted(engine: Engine, plan: Plan, workspace: Workspace, shifts: list[DateShift]) -> Plan:
    """Plan for a copy of the source that has shifted dates; rows of no person have NULL in their place."""
    if not shifts:
        return plan
    copy, moved = workspace.table("shifted"), {one.column.name: one.moved() for one in shifts}
    columns = [
        {
            "name": Identifier(one.name),
            "value": moved.get(one.name, macro("relations.column", ROWS, Identifier(one.name))),
        }
        for one in plan.coded
    ]
    joins = [one.joined(engine) for one in shifts]
    engine.run("methods/masking/shift_rows", copy=copy, source=plan.source, columns=columns, shifts=joins)
    engine.analyze(copy)
    return replace(plan, source=copy)


def shift_problems(subject: PlanSubject, engine: Engine, source: Relation) -> Iterator[str]:
    """List the columns that can't be shifted: no dates, or dates that a shift would move out of the calendar."""
    for column, asked in subject.attributes:
        if asked.show is not Show.SHIFTED:
            continue
        place, person = path_text(("attributes", column.name)), subject.column(asked.person or "")
        if person is not None and person.kind is Kind.OTHER:
            yield f"{place}: persons of type {person.type} have no text that is the same everywhere; {subject.recast}."
        if not column.kind.has_day:
            yield f"{place}: show: shifted is for dates and moments, and the column is {column.type}."
            continue
        (beyond,) = engine.query_one(
            "methods/masking/count_unshiftable",
            source=source,
            value=macro("relations.column", ROWS, Identifier(column.name)),
            days=asked.days,
        )
        if beyond:
            yield (
                f"{place}: {rows_hold(int(beyond))} a date that is infinite, or nearer than {asked.days:,} days to the"
                " ends of the years 1 to 9999, where a shift would lead out of the calendar; leave them out in a view,"
                " or choose fewer days."
            )


def with_shift_warnings(plan: Plan, engine: Engine) -> Plan:
    """The plan, with warnings of what shifted dates tell: measured in a scan for each person column."""
    columns = {column.name: column for column in engine.columns(plan.source)}
    persons: dict[str, list[Column]] = {}
    for column, asked in shifted_attributes(plan):
        persons.setdefault(asked.person or "", []).append(column)
    warnings = [text for name, dates in persons.items() for text in _warnings(plan, engine, columns[name], dates)]
    return replace(plan, warnings=(*plan.warnings, *warnings))


def _warnings(plan: Plan, engine: Engine, person: Column, dates: Iterable[Column]) -> Iterator[str]:
    places = ", ".join(path_text(("attributes", column.name)) for column in dates)
    asked: Mapping[str, AttributeSection] = plan.policy.attributes
    most = max(asked[column.name].days or 0 for column in dates)
    persons, by_days, by_bands = map(
        int,
        engine.query_one(
            "methods/masking/measure_sequences",
            source=plan.source,
            person=person_text(engine, person),
            dates=[macro("relations.column", ROWS, Identifier(column.name)) for column in dates],
            band=BAND,
        ),
    )
    yield (
        f"{places}: dates of a person are moved by one secret number of days, up to {most:,}; intervals between them"
        f" stay exact. Of {persons:,} persons with dates, {_share(by_days, persons)} are alone with their intervals in"
        f" days, and {_share(by_bands, persons)} in bands of {BAND} days: whoever knows the intervals of one of these"
        " finds the person, and whoever knows one true date of a person then knows all."
    )
    if most < 183:
        yield f"{places}: a shift of at most {most:,} days keeps about the season and the year of a date."


def _share(part: int, whole: int) -> str:
    return f"{part:,} ({part / whole:.1%})" if whole else "none"
