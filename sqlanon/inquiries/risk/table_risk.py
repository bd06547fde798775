"""All risks of a table, from the histogram of its class sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlanon.errors import PolicyError
from sqlanon.inquiries.risk.class_sizes import Members, count_members, measure_households, rounded
from sqlanon.inquiries.risk.in_population import measure_in_population
from sqlanon.inquiries.risk.measured_table import RiskSource
from sqlanon.measures.metrics import ClassStatistics
from sqlanon.measures.population import journalist_risk
from sqlanon.models.uniqueness.estimating import estimate_uniqueness
from sqlanon.results.measures import SingledOut
from sqlanon.results.risk import Attack, HouseholdRisk, IndividualRisk, Journalist, ShareAtRisk, TableRisk
from sqlanon.support.quantities import quantity
from sqlanon.verification.persons import count_persons

THRESHOLDS = (0.05, 0.1, 0.2, 0.5)  # of risks, from which members are counted as at risk


@dataclass(frozen=True)
class RiskOptions:
    """Questions to a table, beside its classes.

    thresholds: of risks, for the members at risk.
    sample_of: the fraction of a population that the table is a random sample of.
    """

    thresholds: tuple[float, ...] = THRESHOLDS
    sample_of: float | None = None

    def __post_init__(self) -> None:
        if not all(0 < threshold <= 1 for threshold in self.thresholds):
            raise PolicyError("A threshold of risk is above 0 and at most 1, such as 0.2.")
        if self.sample_of is not None and not 0 < self.sample_of <= 1:
            raise PolicyError("A sampling fraction is above 0 and at most 1, such as 0.02 for every fiftieth row.")


DEFAULT = RiskOptions()


def measure_risk(source: RiskSource, options: RiskOptions = DEFAULT, population: RiskSource | None = None) -> TableRisk:
    """Measure a table: one GROUP BY of its quasi-identifiers, whose classes are counted by their size.

    population: the table of all who could be in this one, with the same quasi-identifiers.

    Raises PolicyError where the subject is NULL in some row, a weight or household can't be used, or values can't be
    matched with the population's.
    """
    if population is not None and options.sample_of is not None:
        raise PolicyError("--population says who is in the population, and --sample-of how many are: give one.")
    if source.weights is not None and options.sample_of is not None:
        raise PolicyError("--weights say for how many each row stands, and --sample-of the same of all: give one.")
    members = count_members(source, options.thresholds)
    statistics, fraction = members.statistics, options.sample_of
    journalist = None if fraction is None else _journalist(statistics, fraction, options.thresholds)
    individual = members.individual if journalist is None else _individual(statistics, journalist)
    if population is not None:
        journalist = measure_in_population(source, population, options.thresholds)
    return TableRisk(
        quasi_identifiers=tuple(column.name for column in source.quasi_identifiers),
        rows=members.rows,
        persons=members.persons,
        members=statistics.rows,
        classes=statistics.classes,
        sample_uniques=dict(statistics.sizes).get(1, 0),
        sizes=statistics.buckets(),
        prosecutor=_prosecutor(statistics, options.thresholds),
        marketer=statistics.marketer,
        unit="rows" if source.subject is None else "persons",
        subject=None if source.subject is None else source.subject.name,
        singled_out=_singled_out(source, members),
        journalist=journalist,
        population_uniqueness=None if fraction is None else estimate_uniqueness(statistics.sizes, fraction),
        individual=individual,
        household=None if source.household is None else _household(source, options),
        warnings=(*_warnings(source, members), *_population_warnings(source, journalist)),
    )


def _singled_out(source: RiskSource, members: Members) -> SingledOut | None:
    """Count the persons that are alone with some of their classes; None without a subject."""
    if source.subject is None or members.persons is None:
        return None
    alone = dict(members.statistics.sizes).get(1, 0)
    if not members.several_classes:
        return SingledOut(members.persons, alone, alone, alone, alone)
    return count_persons(source.engine, source.table, source.subject, source.quasi_identifiers, alone).singled


def _prosecutor(statistics: ClassStatistics, thresholds: Sequence[float]) -> Attack:
    """The risk 1/size of each member of a class (El Emam, "Guide to the De-Identification of Personal Health
    Information", 2013, chapter 16)."""
    at_risk = count_at_risk(statistics, thresholds, lambda size: 1 / size)
    return Attack(statistics.prosecutor_max, statistics.prosecutor_mean, at_risk)


def _journalist(statistics: ClassStatistics, fraction: float, thresholds: Sequence[float]) -> Journalist:
    """The mean of 1/size over the sizes that a class may have in the population, see `journalist_risk`."""
    risks = {size: journalist_risk(size, fraction) for size, _ in statistics.sizes}
    total = sum(size * classes * risks[size] for size, classes in statistics.sizes)
    at_risk = count_at_risk(statistics, thresholds, risks.__getitem__)
    return Journalist(max(risks.values(), default=0.0), total / max(1, statistics.rows), at_risk, "fraction")


def _individual(statistics: ClassStatistics, journalist: Journalist) -> IndividualRisk:
    """The same risks where all members stand for equally many."""
    return IndividualRisk(rounded(journalist.mean * statistics.rows), journalist.max, journalist.at_risk)


def _household(source: RiskSource, options: RiskOptions) -> HouseholdRisk:
    weight = source.weight(1 / (options.sample_of or 1.0))
    return measure_households(source, options.thresholds, weight)


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


def _population_warnings(source: RiskSource, journalist: Journalist | None) -> list[str]:
    """Say of the population what a reader must know."""
    if journalist is None or not journalist.lacking:
        return []
    lacking = quantity(journalist.lacking, "row" if source.subject is None else "person")
    return [
        f"The population lacks {lacking} of the table: where it does, a class is counted as large as it is here. Either"
        " it is not the population of this table, or values differ there."
    ]
