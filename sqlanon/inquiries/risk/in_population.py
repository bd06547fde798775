"""Risk of a table whose population is a table too, here or in another database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlanon.engines.columns import Column, Kind
from sqlanon.engines.dialects import Dialect
from sqlanon.errors import PolicyError
from sqlanon.inquiries.risk.class_sizes import at_risk, require_subject
from sqlanon.inquiries.risk.measured_table import RiskSource
from sqlanon.results.risk import Journalist
from sqlanon.sql import Identifier
from sqlanon.work.carried_classes import carry_classes

BY_TABLE = "population"


_EQUAL_ACROSS_TYPES = (Kind.INTEGER, Kind.TEXT)


def measure_in_population(source: RiskSource, population: RiskSource, thresholds: Sequence[float]) -> Journalist:
    """Measure the risk 1/F of each member, F being the size of its class in the population.

    A class that has more members here than there is as large as it is here: its population lacks members.

    Raises PolicyError where the subject is NULL in some row of the population, or a column is of another kind there.
    """
    require_comparable(source.quasi_identifiers, population)
    require_subject(population, f"the population {population.name}")
    sides = [_side(one) for one in (source, population)]
    with source.engine.grouping_by_hash():
        counted = source.engine.query("inquiries/risk/match_population", sides=sides)
    matched = [(int(members), int(size), int(classes)) for members, size, classes in counted]
    risks = [(members * classes, 1 / max(members, size)) for members, size, classes in matched if members]
    members = sum(count for count, _ in risks)
    above = [sum(count for count, risk in risks if risk > threshold) for threshold in thresholds]
    return Journalist(
        max((risk for _, risk in risks), default=0.0),
        sum(sorted(count * risk for count, risk in risks)) / max(1, members),
        at_risk(thresholds, above, members),
        BY_TABLE,
        population=sum(size * classes for _, size, classes in matched),
        uniques=sum(members * classes for members, size, classes in matched if members and max(members, size) == 1),
        lacking=sum(max(0, members - size) * classes for members, size, classes in matched),
    )


def _side(source: RiskSource) -> dict[str, Any]:
    counted = None if source.counted is None else Identifier(source.counted.name)
    return {"table": source.table, "keys": source.keys, "person": source.person, "counted": counted}


def require_comparable(columns: Sequence[Column], population: RiskSource) -> None:
    """Raise PolicyError where values of a column can't be matched with those of the population."""
    pairs = zip(columns, population.quasi_identifiers, strict=True)
    problems = [
        f"Column '{one.name}' is {one.type} here, and {other.type} in the population {population.name}: show it there"
        " by a view of the type here."
        for one, other in pairs
        if not are_comparable(one, other)
    ]
    if problems:
        raise PolicyError(problems)


def are_comparable(one: Column, other: Column) -> bool:
    """Tell whether equal values of both columns look the same to readers."""
    if one.kind is not other.kind:
        return False
    return one.kind in _EQUAL_ACROSS_TYPES or one.type == other.type


def require_carriers(*dialects: type[Dialect] | None) -> None:
    """Raise PolicyError, before anybody connects, where an engine gives no classes to another database."""
    for dialect in dialects:
        if dialect is not None:
            dialect.copies_rows.require("--population in another database: ")


def bring_population(population: RiskSource, source: RiskSource) -> RiskSource:
    """Count the classes of a population where it is, and bring them, as a temporary table, to that of the source.

    One row for each class leaves its database: the quasi-identifiers, and how many members the class has. Both sessions
    must be able to make temporary tables.

    Raises PolicyError where the subject is NULL in some row, or a column is of another kind there, or has no
    counterpart in the source's database.
    """
    there, engine, columns = population.engine, source.engine, population.quasi_identifiers
    _require_kinds(source.quasi_identifiers, population)
    require_subject(population, f"the population {population.table}")
    known, members = carry_classes(there, population.table, columns, engine, population.person)
    named = {column.name: column for column in engine.columns(known)}
    quasi = tuple(named[column.name] for column in columns)
    _require_types(source.quasi_identifiers, population, quasi)
    return RiskSource(engine, known, quasi, counted=named[members])


def _require_kinds(columns: Sequence[Column], population: RiskSource) -> None:
    """Refuse, before anything is counted, columns whose values can't be the same; labels of an enum come as texts."""
    pairs = zip(columns, population.quasi_identifiers, strict=True)
    problems = [
        f"Column '{one.name}' is {one.type} here, and {other.type} in the population {population.table} of another"
        " database: show both as one kind, such as text, by views."
        for one, other in pairs
        if one.kind is not (Kind.TEXT if other.kind is Kind.ENUM else other.kind)
    ]
    if problems:
        raise PolicyError(problems)


def _require_types(columns: Sequence[Column], population: RiskSource, brought: Sequence[Column]) -> None:
    """Refuse columns that came as another type than that here, by the name and type that the population gives them."""
    problems = [
        f"Column '{one.name}' is {one.type} here, and {other.type} in the population {population.table} of another"
        f" database, from where it comes as {came.type}: show both by views of a type that both databases have, with"
        " its digits if it is a decimal."
        for one, other, came in zip(columns, population.quasi_identifiers, brought, strict=True)
        if not are_comparable(one, came)
    ]
    if problems:
        raise PolicyError(problems)
