"""Class sizes of a table: of rows, or of persons; with weights, individual risks too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlanon.errors import PolicyError
from sqlanon.inquiries.risk.measured_table import RiskSource
from sqlanon.measures.metrics import ClassStatistics
from sqlanon.results.risk import HouseholdRisk, IndividualRisk, ShareAtRisk
from sqlanon.sql import Expression, Identifier, macro
from sqlanon.support.quantities import quantity

_DIGITS = 12  # significant: sums of doubles depend on their order


RISK = macro("risk.of_shared")  # of a member of a class


@dataclass(frozen=True)
class Members:
    """The classes of a table by the number of their members, the rows, and the persons where there is a subject.

    individual: where rows have weights.
    """

    statistics: ClassStatistics
    rows: int
    persons: int | None = None
    individual: IndividualRisk | None = None

    @property
    def several_classes(self) -> int:
        """The classes beyond the first of each person: 0 where all rows of each person are of one class."""
        return 0 if self.persons is None else self.statistics.rows - self.persons

    @property
    def is_unique(self) -> bool:
        """Tell whether no person has two rows."""
        return self.persons is not None and self.persons == self.rows


def count_members(source: RiskSource, thresholds: Sequence[float]) -> Members:
    """Count the classes of each size: one GROUP BY over the table; with a subject two, and one of its values.

    With weights the same statement measures individual risks, after another one has looked at the weights.

    Raises PolicyError where the subject is NULL in some row and nobody said whose that is, or a weight or household
    can't be used.
    """
    persons = require_subject(source)
    require_weights(source)
    values: dict[str, Any] = {"table": source.table, "keys": source.keys, "person": source.person}
    individual = None
    with source.engine.grouping_by_hash():
        if source.weights is None:
            counted = source.engine.query("inquiries/risk/count_classes", **values)
        else:
            more = individual_values(source.weight(), thresholds)
            counted = source.engine.query("inquiries/risk/measure_individual", **values, **more)
            individual = individual_risk(counted, thresholds, source.weights.name)
    sizes = tuple((int(size), int(classes)) for size, classes, *_ in counted)
    members = sum(size * classes for size, classes in sizes)
    statistics = ClassStatistics(members, 0, sizes)
    rows, different = (members, None) if persons is None else persons
    return Members(statistics, rows, different, individual)


def require_subject(source: RiskSource, what: str = "") -> tuple[int, int] | None:
    """Count the rows and the persons of a table with a subject; None without one.

    Raises PolicyError where the subject is NULL in some row; `what` names the table, where it is not the one at hand.
    """
    if source.subject is None:
        return None
    (rows,) = source.engine.query_one("count_rows", table=source.table)
    known, persons, _ = source.engine.query_one("plan/count_repeats", table=source.table, value=source.person)
    if known < rows and not source.nulls_each:
        of_what = what and f" of {what}"
        raise PolicyError(
            f"The subject '{source.subject.name}'{of_what} is NULL in {rows - known:,} of {quantity(rows, 'row')}, so"
            " nobody knows whose these are: leave them out of the source, or give each a person of its own there."
        )
    return int(rows), int(persons + rows - known)


def individual_values(weight: Expression | float, thresholds: Sequence[float]) -> dict[str, Any]:
    """The values that statements of individual risks interpolate."""
    return {"weight": weight, "risk": RISK, "thresholds": list(thresholds)}


def individual_risk(counted: Sequence[tuple[Any, ...]], thresholds: Sequence[float], weights: str) -> IndividualRisk:
    """Add up the risks of all classes, which the database has by the number of their members."""
    members = sum(int(size) * int(classes) for size, classes, *_ in counted)
    total = sum(int(size) * float(risk) for size, _, risk, *_ in counted)
    greatest = max((float(most) for _, _, _, most, *_ in counted), default=0.0)
    above = [sum(int(row[0]) * int(row[4 + place]) for row in counted) for place in range(len(thresholds))]
    return IndividualRisk(rounded(total), rounded(greatest), at_risk(thresholds, above, members), weights)


def measure_households(source: RiskSource, thresholds: Sequence[float], weight: Expression | float) -> HouseholdRisk:
    """Measure the risk 1 - (1 - r_1) (1 - r_2) … of each household, r being the risks of its members.

    Raises PolicyError where a row has no household.
    """
    assert source.household is not None
    columns = [(source.house, Identifier("household"))]
    if source.subject is not None:
        columns.append((source.person, Identifier("person_of_household")))
    households, members, total, greatest, *above = source.engine.query_one(
        "inquiries/risk/measure_households",
        table=source.table,
        keys=source.keys,
        person=source.person,
        columns=columns,
        **individual_values(weight, thresholds),
    )
    return HouseholdRisk(
        int(households),
        rounded(float(total)),
        rounded(float(greatest)),
        at_risk(thresholds, above, int(members)),
        source.household.name,
    )


def require_weights(source: RiskSource) -> None:
    """Raise PolicyError where a weight or a household can't be used, with how many rows."""
    if source.weights is None and source.household is None:
        return
    values = {"table": source.table, "weight": source.weight(), "household": source.house, "person": source.person}
    rows, unweighted, unhoused, uneven = map(int, source.engine.query_one("inquiries/risk/measure_weights", **values))
    problems = []
    if source.weights is not None and unweighted:
        problems.append(
            f"The weights '{source.weights.name}' are NULL, 0, negative or no numbers below 1e100 in {unweighted:,} of"
            f" {rows:,} rows: each row stands for at least some part of a member of the population."
        )
    if source.weights is not None and source.subject is not None and uneven:
        problems.append(f"The weights '{source.weights.name}' differ among the rows of {quantity(uneven, 'person')}.")
    if source.household is not None and unhoused:
        problems.append(f"The household '{source.household.name}' is NULL in {unhoused:,} of {rows:,} rows.")
    if problems:
        raise PolicyError(problems)


def at_risk(thresholds: Sequence[float], above: Sequence[int], members: int) -> tuple[ShareAtRisk, ...]:
    """The members above each threshold, with their share of all."""
    pairs = zip(thresholds, map(int, above), strict=True)
    return tuple(ShareAtRisk(threshold, count, count / max(1, members)) for threshold, count in pairs)


def rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
