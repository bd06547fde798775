"""Loss and risk of a release beside its source: numbers and categories compared, rows linked by their numbers."""

from __future__ import annotations

from dataclasses import dataclass

from sqlanon.results.codec import JsonObject, optional


@dataclass(frozen=True)
class NumberLoss:
    """Loss of one column of numbers.

    il1: the mean variation of its values, il1s in units of √2 standard deviations; None without paired rows, il1s also
        where the source's values are all equal and the release's are not.
    il2, il3: the variation of its mean and of its variance.
    sse: the squared error in percent of the sum of squares, as il1s.
    unknown: rows without a value, in source and release.
    """

    name: str
    il1: float | None
    il1s: float | None
    il2: float
    il3: float
    sse: float | None
    unknown: tuple[int, ...]


@dataclass(frozen=True)
class NumbersLoss:
    """Loss of all columns of numbers: means over the columns; il4 and il5 of covariances and correlations.

    il6: the mean of il1 to il5 in percent. sse: the mean of the columns' SSE/SST in percent. None: see `NumberLoss`.
    """

    il1: float | None
    il1s: float | None
    il2: float
    il3: float
    il4: float
    il5: float
    il6: float | None
    sse: float | None
    columns: tuple[NumberLoss, ...]


@dataclass(frozen=True)
class CategoryLoss:
    """Loss of one column of categories.

    distance: the mean distance of a value from the released one, from 0 to 1; ebil: the entropy-based loss, in bits
    over all paired rows. None without paired rows. values: the values of source and release together.
    """

    name: str
    distance: float | None
    ebil: float | None
    values: int


@dataclass(frozen=True)
class CategoriesLoss:
    """Loss of all columns of categories.

    distance: the mean over the columns; ebil: the sum. ctbil: how far all contingency tables of up to `dimension`
    columns are apart; actbil: the same for each of their cells.
    """

    distance: float | None
    ebil: float | None
    ctbil: int
    actbil: float
    dimension: int
    tables: int
    cells: int
    columns: tuple[CategoryLoss, ...]


@dataclass(frozen=True)
class Linkage:
    """Distance-based record linkage of sampled rows.

    rows: those looked at. nearest: the share to which no released numbers are nearer than their own; picked: the share
    that would be picked rightly, of the released rows that show these; blind: the mean of 1 / those rows, the chance
    where the group is known.
    """

    rows: int
    nearest: float
    picked: float
    blind: float

    @property
    def beginning(self) -> str:
        """The share of linked rows in words: the beginning of a sentence."""
        own = "it" if self.nearest >= 0.9 else "them"
        return f"{_finding(self.nearest)} the numbers released for {own} by distance alone"

    @property
    def sentence(self) -> str:
        """The figure in words."""
        return (
            f"{self.beginning} ({100 * self.nearest:.1f} % of {self.rows:,}): whoever knows a person's numbers learns"
            " which released rows may be that person's, typically"
            f" {1 / self.blind:,.0f}, and what these have in common. {100 * self.picked:.1f} % of the rows would be"
            " picked out rightly."
        )


@dataclass(frozen=True)
class GroupLinkage:
    """Distance-based linkage of sampled rows with groups of released rows, where a released row stands for no row.

    rows: those looked at. nearest: the share to which a released row of their own group is the nearest.
    blind: the mean of 1 / the rows of the own group.
    """

    rows: int
    nearest: float
    blind: float

    @property
    def sentence(self) -> str:
        """The figure in words."""
        return (
            f"{_finding(self.nearest)} a synthetic row of the own group by distance alone ({100 * self.nearest:.1f} %"
            f" of {self.rows:,}): whoever knows a person's numbers learns what the rows of that group, typically"
            f" {1 / self.blind:,.0f}, have in common."
        )


def _finding(nearest: float) -> str:
    """Say how many rows find something, of which this is the share."""
    if nearest >= 0.9:
        return "Nearly every row finds"
    return f"{'Most' if nearest >= 0.5 else 'Some' if nearest >= 0.1 else 'Few'} rows find"


@dataclass(frozen=True)
class Intervals:
    """Interval disclosure of sampled rows, from 0 to 1.

    rank, deviation: the mean share of the source's numbers that lie in an interval around the released ones, of 1 to
    10 % of the ranks, or of the standard deviation, to each side.
    """

    rows: int
    rank: float
    deviation: float


@dataclass(frozen=True)
class MaskingRisk:
    """Risk of masked numbers; score: ½ il6 + ¼ linkage + ¼ intervals, in percent, None where one is lacking."""

    linkage: Linkage | None
    intervals: Intervals
    score: float | None


@dataclass(frozen=True)
class Masking(JsonObject):
    """A release beside its source.

    source_rows, release_rows, paired_rows: paired is None where nothing says which rows belong together.
    only_in_source, only_in_release: columns that the other lacks.
    numbers, categories: None where both have no such column. risk: None without paired rows or numbers.
    groups: None where released rows stand for single rows.
    """

    source_rows: int
    release_rows: int
    paired_rows: int | None
    only_in_source: tuple[str, ...]
    only_in_release: tuple[str, ...]
    numbers: NumbersLoss | None = optional()
    categories: CategoriesLoss | None = optional()
    risk: MaskingRisk | None = optional()
    groups: GroupLinkage | None = optional()
