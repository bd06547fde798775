"""A population in another database, brought to that of the sample as classes with their numbers of members."""

from __future__ import annotations

from collections.abc import Sequence

from sqlanon.engines.columns import Column, Kind
from sqlanon.engines.dialects import Dialect
from sqlanon.errors import PolicyError
from sqlanon.inquiries.risk.classes import require_subject
from sqlanon.inquiries.risk.in_population import are_comparable
from sqlanon.inquiries.risk.source import RiskSource
from sqlanon.work.carried_classes import carry_classes


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
