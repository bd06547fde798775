"""Risk of a table whose population is a table too: classes are as large as the population makes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlanon.engines.columns import Column, Kind
from sqlanon.errors import PolicyError
from sqlanon.inquiries.risk.classes import require_subject
from sqlanon.inquiries.risk.individual_risk import at_risk
from sqlanon.inquiries.risk.source import RiskSource
from sqlanon.results.risk import Journalist
from sqlanon.sql import Identifier

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
