"""Risk of a table: how surely its rows, or the persons they are about, can be picked by their quasi-identifiers.

What singles out are columns and rows: subsets of columns, minimal sample uniques, columns that look like identifiers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlanon.results.codec import JsonObject, optional
from sqlanon.results.measures import SingledOut, SizeBucket

VERSION = 1  # of the fields below


@dataclass(frozen=True)
class ShareAtRisk:
    """The members whose risk is more than a threshold, and their share of all."""

    threshold: float
    members: int
    share: float


@dataclass(frozen=True)
class Attack:
    """The chance of an attacker to pick a member rightly: the greatest, the mean over members, and who is at risk."""

    max: float
    mean: float
    at_risk: tuple[ShareAtRisk, ...]


@dataclass(frozen=True)
class Journalist(Attack):
    """The risk that somebody picks a member rightly who does not know who is in the table, but in its population.

    by: `population`, a table of it; or `fraction`, estimated from how much of it the table is a random sample of.
    Of a table of the population: population: its members. uniques: the members here that are alone there. lacking: the
        members here that it lacks: those by which a class is larger here.
    """

    by: str
    population: int | None = optional()
    uniques: int | None = optional()
    lacking: int | None = optional()


@dataclass(frozen=True)
class IndividualRisk:
    """The risk of each member, by the members of its class here and in the population.

    sum: the expected number of members who are picked rightly. max: the greatest risk. above: members at risk.
    weights: the column of sampling weights; None where all members stand for equally many.
    """

    sum: float
    max: float
    above: tuple[ShareAtRisk, ...]
    weights: str | None = optional()


@dataclass(frozen=True)
class HouseholdRisk:
    """The risk that at least one member of a household is picked, which exposes all of them.

    households: how many there are. sum, max, above: as of `IndividualRisk`, each member at the risk of its household.
    """

    households: int
    sum: float
    max: float
    above: tuple[ShareAtRisk, ...]
    column: str


@dataclass(frozen=True)
class UniquenessEstimate:
    """The members of the population that are alone in their class there, and their share of all.

    Both are None where the model could not be fitted to the sample; `problem` says why.
    """

    uniques: float | None
    share: float | None
    problem: str | None = optional()


@dataclass(frozen=True)
class PopulationUniqueness:
    """Uniqueness in the population of which the table is a random sample.

    fraction: of the population that the sample is. population: the members of it.
    zayatz, pitman, snb: the estimates of three models; dankar: the one to trust by the rule of Dankar et al. (2012);
    trusted: its name, or `sample` where nothing had to be estimated.
    """

    fraction: float
    population: int
    zayatz: UniquenessEstimate
    pitman: UniquenessEstimate
    snb: UniquenessEstimate
    dankar: UniquenessEstimate
    trusted: str


@dataclass(frozen=True)
class TableRisk(JsonObject):
    """Risk of one table. Its members are its rows; with a subject, the persons of each class.

    rows: of the table. persons: distinct values of the subject; None without one.
    members: the sum of all class sizes; more than `persons` where the rows of a person are of several classes.
    classes: equivalence classes; NULL is a value like others. sample_uniques: the classes of one member.
    sizes: the distribution of class sizes.
    singled_out: the persons that are alone with some of their classes; None without a subject.
    unit: what members are, `rows` or `persons`.
    prosecutor: of somebody who knows that a person is in the table. marketer: the expected share of the members that
        are picked rightly when each is matched.
    journalist, population_uniqueness, individual: where something is known of the population.
    household: where a column tells households apart.
    suda, subsets: minimal sample uniques, and subsets of the quasi-identifiers, where these were asked for.
    identifiers: the columns of the table that look like identifiers, by their names or their values.
    warnings: what a reader must know of the figures.
    """

    quasi_identifiers: tuple[str, ...]
    rows: int
    persons: int | None
    members: int
    classes: int
    sample_uniques: int
    sizes: tuple[SizeBucket, ...]
    prosecutor: Attack
    marketer: float
    unit: str
    subject: str | None = optional()
    singled_out: SingledOut | None = optional()
    journalist: Journalist | None = None
    population_uniqueness: PopulationUniqueness | None = None
    individual: IndividualRisk | None = None
    household: HouseholdRisk | None = optional()
    warnings: tuple[str, ...] = ()
    suda: SudaRisk | None = None
    subsets: tuple[SubsetRisk, ...] | None = None
    identifiers: tuple[IdentifierSign, ...] | None = None
    version: int = VERSION

    @property
    def member(self) -> str:
        """The noun for members."""
        return "row" if self.subject is None else "person"


@dataclass(frozen=True)
class PolicyRisk(JsonObject):
    """Risk of a policy's source, and of its release; `release` is None where none is published that has classes.

    note: the reason why there is no risk of a release.
    """

    source: TableRisk
    release: TableRisk | None
    note: str | None = optional()
    version: int = VERSION


@dataclass(frozen=True)
class KnownItems:
    """The persons whom any `known` of their items, or fewer, single out; all but `known` None where not counted.

    alone: the persons that nobody else shares some such set with; share: of all. least: the fewest persons who have all
    items of any such set. mean: over the persons, of the fewest who have the same set.
    """

    known: int
    alone: int | None = None
    share: float | None = None
    least: int | None = None
    mean: float | None = None


@dataclass(frozen=True)
class ItemRisk(JsonObject):
    """Risk of the persons of a table by the items of theirs that somebody knows.

    column: of the items. subject: the column that tells persons apart; None where each row is of one.
    persons: those with any item. items: the different ones. known: by the number of known items.
    """

    column: str
    subject: str | None
    persons: int
    items: int
    known: tuple[KnownItems, ...]
    version: int = VERSION


@dataclass(frozen=True)
class PolicyItemRisk(JsonObject):
    """Risk by known items of a policy's source and of its release; `release` is None where none can be measured.

    note: the reason why there is no risk of a release.
    """

    source: ItemRisk
    release: ItemRisk | None
    note: str | None = optional()
    version: int = VERSION


@dataclass(frozen=True)
class SubsetRisk:
    """Some columns taken together, NULL a value like others.

    distinction: distinct combinations of their values over rows. separation: the share of the pairs of rows that they
        tell apart (Motwani and Xu, "Efficient algorithms for masking and finding quasi-identifiers", 2007).
    """

    columns: tuple[str, ...]
    distinction: float
    separation: float


def most_distinct(subsets: Sequence[SubsetRisk], each: int) -> list[SubsetRisk]:
    """The first subsets of each size, small ones first; they come the most distinct first."""
    sizes = sorted({len(one.columns) for one in subsets})
    return [one for size in sizes for one in [one for one in subsets if len(one.columns) == size][:each]]


@dataclass(frozen=True)
class SudaRisk:
    """Minimal sample uniques, and the scores of rows that have some.

    most: the columns of the largest subsets. fraction: rows of the table over those of the population.
    minimal_uniques_by_size: how many there are, by how many columns single a row out.
    contribution_by_column: the share of all scores, in percent, that is of minimal uniques with this column; as each
        has several columns, the sum is more than 100.
    rows: those with a minimal unique. score_max: the greatest SUDA score.
    dis: the chance, for the file, that a unique match is right (Skinner and Elliot, 2002); dis_max, dis_mean: of the
        DIS-SUDA scores, the mean over all rows.
    """

    most: int
    fraction: float
    minimal_uniques_by_size: Mapping[int, int]
    contribution_by_column: Mapping[str, float]
    rows: int
    score_max: float
    dis: float
    dis_max: float
    dis_mean: float


@dataclass(frozen=True)
class Evidence:
    """The reason why a column looks like an identifier: its name, its type, the share of its values that match."""

    name: bool
    type: bool
    share: float | None


@dataclass(frozen=True)
class IdentifierSign:
    """A column that looks like an identifier of a kind."""

    column: str
    kind: str
    evidence: Evidence
