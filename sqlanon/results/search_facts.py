"""Facts of the recoding that a run came to, by the kind of algorithm that found it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from sqlanon.results.codec import from_json, inline, optional
from sqlanon.support.quantities import quantity


@dataclass(frozen=True)
class Facts:
    """The facts of a search about itself; `kind` stands for the class in the catalog."""

    kind: ClassVar[str]
    judged: ClassVar[str | None] = None
    """The classes that the models judge, where a reader of the release does not see them; None where they are seen."""

    shows: ClassVar[str | None] = None
    """The form of released values, where they are no labels: `centres` of clusters, or `synthetic` ones."""

    @property
    def loss_of_variance(self) -> float | None:
        """The share of the variance that centres lose, from 0 to 1; None where a release shows no centres."""
        return None


@dataclass(frozen=True)
class TreeFacts(Facts):
    """A tree grown on all rows.

    split: how parts are cut; groups: what is counted to choose a cut. None of both: at medians.
    target, bins, least_gain: the attribute whose values cuts are to tell apart, the cuts that are tried, and the least
        that one must gain; None where cuts are at medians.
    partitioning, divided: `relaxed`, and the leaves that it divided; None where the partitioning is strict.
    """

    kind = "tree"

    split: str | None = optional()
    groups: tuple[str, ...] | None = optional()
    target: str | None = optional()
    bins: int | str | None = optional()
    least_gain: float | None = optional()
    partitioning: str | None = optional()
    divided: int | None = optional()


@dataclass(frozen=True)
class SampledTreeFacts(TreeFacts):
    """A tree grown on samples first.

    samplings: episodes; sampled: their rows; nodes: of the tree that came of them, of which `pruned` were taken back.
    scans: of the whole table, that the episodes cost.
    """

    kind = "sampled-tree"

    samplings: int = 0
    sampled: int = 0
    nodes: int = 0
    pruned: int = 0
    scans: float = 0.0


@dataclass(frozen=True)
class Pass:
    """The rows that one of several generalizations recodes, and the level of each attribute in it."""

    levels: Mapping[str, int]
    rows: int


@dataclass(frozen=True)
class LatticeFacts(Facts):
    """The generalization that was chosen.

    score: its loss by `quality`; proven: whether none that may be chosen has a lower one; bound: what none is below.
    nodes: generalizations that there are; checked: those that were counted.
    passes: generalizations of the rows that remain, where these are recoded anew.
    """

    kind = "lattice"

    levels: Mapping[str, int]
    quality: str
    score: float
    proven: bool
    bound: float | None
    nodes: int
    checked: int
    passes: tuple[Pass, ...] | None = optional()


@dataclass(frozen=True)
class TopDownFacts(Facts):
    """Groups that were replaced by their parts (`specializations`), of those that were tried (`checked`)."""

    kind = "top-down"

    quality: str
    specializations: int
    checked: int


@dataclass(frozen=True)
class IntervalFacts(Facts):
    """Intervals of single columns: how many of each (`intervals`), the same for all rows.

    quality: as the policy says. places: where columns could be cut. tried: the cuts of a greedy search that were tried,
        or the sets of cuts that an exact one measured. proven: whether no set of cuts at these places costs less.
    """

    kind = "ordered-sets"

    quality: str
    intervals: Mapping[str, int]
    places: int
    tried: int
    proven: bool


@dataclass(frozen=True)
class FrequentItemsets:
    """Sets of one or two items that persons enough have, of those that most have.

    sets: how many there were before. surviving: those without an item that is left out; exact: those shown as they are.
    support_error: the mean, over those that survive, of the difference between the support that a reader guesses and
        the true one, over the true one; None where none survives.
    """

    sets: int
    surviving: int
    exact: int
    support_error: float | None = optional()

    @property
    def sentence(self) -> str:
        """The sets in words."""
        error = "" if self.support_error is None else f"; their supports are {self.support_error:.1%} off, on average"
        return (
            f"Of {quantity(self.sets, 'frequent set')} of one or two items {self.surviving:,} survive, {self.exact:,}"
            f" as they are{error}."
        )


@dataclass(frozen=True)
class ItemsetFacts(Facts):
    """Items of persons, and the groups that are shown in their place.

    items: those of the source. groups: those that the release shows, of which `shown_items` are items themselves.
    suppressed_items: those that are left out. merged_rows: rows of persons who show the same group already.
    penalty: the normalized certainty penalty of the items of all persons, each once, from 0 to 1.
    frequent: sets of the items that most persons have.
    """

    kind = "itemsets"

    items: int
    groups: int
    shown_items: int
    suppressed_items: int
    merged_rows: int
    penalty: float
    frequent: FrequentItemsets

    @property
    def sentence(self) -> str:
        """The items and their groups in words."""
        without = f", {quantity(self.suppressed_items, 'item')} left out" if self.suppressed_items else ""
        return (
            f"{quantity(self.items, 'item')} shown as {quantity(self.groups, 'group')}, of which {self.shown_items:,}"
            f" are items themselves{without}; {quantity(self.merged_rows, 'row')} merged with another of the same"
            f" person; NCP {self.penalty:.4f}. {self.frequent.sentence}"
        )


@dataclass(frozen=True)
class ClusterFacts(Facts):
    """Clusters of similar rows.

    method, standardized: as the policy says. blocks: parts of the table in which clusters were sought.
    clusters: how many there are, of `smallest` to `largest` rows.
    variance_loss: the sum of squared distances of rows from the centres of their clusters, as a share of that from the
        centre of the table, in percent (100 SSE / SST); 0 where all rows are equal.
    keep: `variance` where numbers are rescaled so that columns keep theirs.
    """

    kind = "clusters"
    shows = "centres"

    method: str
    standardized: bool
    blocks: int
    clusters: int
    smallest: int
    largest: int
    variance_loss: float
    keep: str | None = optional()

    @property
    def loss_of_variance(self) -> float:
        return self.variance_loss / 100


@dataclass(frozen=True)
class GatheredFacts(Facts):
    """Clusters around centres.

    gathered: how many there are, of `smallest` to `largest` rows.
    greatest_radius: of all clusters; its unit is the standard deviation of each number if `standardized`.
    factor: how many times the least possible it is, at most; 1 where all rows of clusters are alike.
    """

    kind = "gathered"
    shows = "centres"

    gathered: int
    smallest: int
    largest: int
    standardized: bool
    greatest_radius: float
    factor: float

    @property
    def sentence(self) -> str:
        """The clusters and the greatest radius in words."""
        unit = " standard deviations" if self.standardized else ""
        return (
            f"{self.gathered:,} clusters of {self.smallest:,} to {self.largest:,} rows; the greatest radius is"
            f" {self.greatest_radius:.4g}{unit}, at most {self.factor:.3g} times the least possible."
        )


@dataclass(frozen=True)
class CondensedFacts(Facts):
    """Groups of similar rows, replaced by synthetic ones.

    scale: as the policy says. groups: how many there are, of `smallest` to `largest` rows.
    widened: how often a number that all rows of a group had was given a variance.
    """

    kind = "condensed"
    judged = "groups of source rows"
    shows = "synthetic"

    scale: float
    groups: int
    smallest: int
    largest: int
    widened: int


@dataclass(frozen=True)
class CellFacts(Facts):
    """Cells that are shown as `*`, or as a group of their hierarchy.

    starred: how many show `*`, of each quasi-identifier. starred_rows: the rows with at least one cell of both kinds.
    subsets: numbers of columns, each with the rows that fit every row in any combination of so many; None for none.
    grouped: how many show a group, of each quasi-identifier; None where no group could be shown.
    """

    kind = "cells"

    starred: Mapping[str, int]
    starred_rows: int
    subsets: Mapping[str, int] | None = optional()
    grouped: Mapping[str, int] | None = optional()

    @property
    def cells(self) -> int:
        """Count the cells that are shown as `*`."""
        return sum(self.starred.values())

    @property
    def sentence(self) -> str:
        """The cells in words."""
        rows = quantity(self.starred_rows, "row")
        if self.grouped is None:
            of = _listed(self.starred)
            return f"{quantity(self.cells, 'cell')} of {rows} {'is' if self.cells == 1 else 'are'} shown as *" + (
                f": {of}." if of else "."
            )
        counted = [("*", self.starred), ("groups of their values", self.grouped)]
        kinds = [f"{quantity(sum(cells.values()), 'cell')} as {kind}" for kind, cells in counted]
        of = "; ".join(f"{kind}: {_listed(cells)}" for kind, cells in counted if any(cells.values()))
        return f"Of {rows}, {' and '.join(kinds)}" + (f" ({of})." if of else ".")


def _listed(cells: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in cells.items() if count)


@dataclass(frozen=True)
class AppliedFacts(Facts):
    """Rules of another run, applied.

    applied: that run. job, version: the job that it was a run of; procedure: that of the database which carried it out.
    on_violation: what was to become of classes that violate a model and of rows that no rule knows; None where it was
        not recorded, and then `budget` was not either.
    budget: the largest share of rows that could be suppressed; None for any, and with error.
    suppressed_classes: the classes that were; None where they were not counted.
    coarsened: whether the release is by coarser rules than those of that run, which are this run's own.
    """

    kind = "applied"

    applied: str
    job: str | None = optional()
    version: int | None = optional()
    on_violation: str | None = None
    budget: float | None = None
    procedure: str | None = optional()
    suppressed_classes: int | None = optional()
    coarsened: bool | None = optional()


@dataclass(frozen=True)
class BucketFacts(Facts):
    """Buckets of persons with the same set of sensitive values, cut into classes that have each value once.

    buckets: how many there are. counterfeits: rows of nobody. newcomers: persons left out who were in no release;
    lacking: those left out because nobody has the other values of their set any more; changed: because their value is
    none of their set; unknown: because nobody knows their set.
    """

    kind = "buckets"

    buckets: int
    counterfeits: int
    newcomers: int
    lacking: int
    changed: int
    unknown: int


@dataclass(frozen=True)
class OtherFacts(Facts):
    """Facts of an algorithm that this version does not know, as they were recorded."""

    kind = "other"

    values: Mapping[str, Any] = inline()


KINDS: dict[str, type[Facts]] = {
    one.kind: one
    for one in (
        TreeFacts,
        SampledTreeFacts,
        LatticeFacts,
        TopDownFacts,
        IntervalFacts,
        ItemsetFacts,
        ClusterFacts,
        GatheredFacts,
        CondensedFacts,
        CellFacts,
        BucketFacts,
        AppliedFacts,
    )
}


def facts_of(kind: str, data: Mapping[str, Any]) -> Facts:
    """Make facts of a kind from plain data."""
    return from_json(KINDS[kind], data, "algorithm") if kind in KINDS else OtherFacts(dict(data))


def kind_of(data: Mapping[str, Any]) -> str:
    """Tell the kind of facts without a tag by the keys that only they have."""
    marks = {
        "applied": "applied",
        "samplings": "sampled-tree",
        "levels": "lattice",
        "specializations": "top-down",
        "intervals": "ordered-sets",
        "shown_items": "itemsets",
        "clusters": "clusters",
        "gathered": "gathered",
        "starred_rows": "cells",
        "counterfeits": "buckets",
    }
    return next((kind for key, kind in marks.items() if key in data), TreeFacts.kind)


@dataclass(frozen=True)
class AlgorithmResult:
    """The algorithm, its rounds, the statements of its search, and the facts of what it came to."""

    name: str
    rounds: int
    statements: int
    facts: Facts = inline()

    @property
    def levels(self) -> Mapping[str, int]:
        """The level of each attribute; empty where these were not chosen."""
        return self.facts.levels if isinstance(self.facts, LatticeFacts) else {}

    @property
    def applied(self) -> AppliedFacts | None:
        """The facts of an application of rules; None of a search."""
        return self.facts if isinstance(self.facts, AppliedFacts) else None
