"""All risks of a table, from the histogram of its class sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlanon.measures.metrics import ClassStatistics
from sqlanon.measures.risk.classes import Members, count_members
from sqlanon.measures.risk.source import RiskSource
from sqlanon.results.risk import Attack, ShareAtRisk, TableRisk

THRESHOLDS = (0.05, 0.1, 0.2, 0.5)  # of risks, from which members are counted as at risk


def measure_risk(source: RiskSource, thresholds: Sequence[float] = THRESHOLDS) -> TableRisk:
    """Measure a table: one GROUP BY of its quasi-identifiers, whose classes are counted by their size.

    Raises PolicyError where the subject is NULL in some row.
    """
    members = count_members(source)
    statistics = members.statistics
    sizes = dict(statistics.sizes)
    return TableRisk(
        tuple(column.name for column in source.quasi_identifiers),
        members.rows,
        members.persons,
        statistics.rows,
        statistics.classes,
        sizes.get(1, 0),
        statistics.buckets(),
        _prosecutor(statistics, thresholds),
        statistics.marketer,
        None if source.subject is None else source.subject.name,
        tuple(_warnings(source, members)),
    )


def _prosecutor(statistics: ClassStatistics, thresholds: Sequence[float]) -> Attack:
    """The risk 1/size of each member of a class (El Emam, "Guide to the De-Identification of Personal Health
    Information", 2013, chapter 16)."""
    at_risk = count_at_risk(statistics, thresholds, lambda size: 1 / size)
    return Attack(statistics.prosecutor_max, statistics.prosecutor_mean, at_risk)


def count_at_risk(
    statistics: ClassStatistics, thresholds: Sequence[float], risk_of: Callable[[int], float]
) -> tuple[ShareAtRisk, ...]:
    """Count the members whose risk, by the size of their class, is more than each threshold."""
    risks = [(risk_of(size), size * classes) for size, classes in statistics.sizes]
    counts = [sum(members for risk, members in risks if risk > threshold) for threshold in thresholds]
    return tuple(
        ShareAtRisk(threshold, count, count / max(1, statistics.rows))
        for threshold, count in zip(thresholds, counts, strict=True)
    )


def _warnings(source: RiskSource, members: Members) -> list[str]:
    """Say of the subject what a reader must know."""
    if source.subject is None or not members.rows:
        return []
    name = source.subject.name
    if members.is_unique:
        return [f"The subject '{name}' is unique: every row is a person of its own, as without a subject."]
    if members.several_classes:
        return [
            f"Some of the {members.persons:,} persons have rows in several classes ({members.several_classes:,} classes"
            " beyond the first of each), and count in each: who knows several rows of a person can tell more than"
            " these figures say."
        ]
    return []
