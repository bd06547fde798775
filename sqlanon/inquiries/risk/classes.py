"""Class sizes of a table: of its rows, or of the persons whose rows they are; with weights, individual risks too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlanon.errors import PolicyError
from sqlanon.inquiries.risk.individual_risk import individual_risk, individual_values, require_weights
from sqlanon.inquiries.risk.source import RiskSource
from sqlanon.measures.metrics import ClassStatistics
from sqlanon.results.risk import IndividualRisk
from sqlanon.support.quantities import quantity


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
