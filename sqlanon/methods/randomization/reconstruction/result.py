"""Results of reconstruction: an original distribution, classifiers compared, and a noise filter's figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from sqlanon.results.codec import JsonObject, optional, to_json


@dataclass(frozen=True)
class ReconstructedShare:
    """The share of the rows whose original is a value, or a number in a bin, from `low` to below `high`.

    released: the share of the rows that were released as it.
    """

    share: float
    released: float
    value: str | None = optional()
    low: float | None = optional()
    high: float | None = optional()


@dataclass(frozen=True)
class ReconstructedGroup:
    """The distribution in the rows of a group: all that have one value of another column, or all rows (None).

    rounds, ended: of an estimate by rounds; `settled` as the shares no longer changed, `held-out` as further rounds
    would have followed the noise, `rounds` as there were too many. None of an inversion.
    """

    group: str | None
    rows: int
    shares: tuple[ReconstructedShare, ...]
    rounds: int | None = optional()
    ended: str | None = optional()


@dataclass(frozen=True)
class Reconstruction(JsonObject):
    """The original distribution of a column, estimated from the release and from what was added to it."""

    COLUMNS: ClassVar[tuple[str, ...]] = ("low", "high", "value", "share", "released_share")
    """Columns of the estimate as a table, but for that of the groups, which has the name of `by`."""

    release: str
    column: str
    change: str
    method: str
    by: str | None
    groups: tuple[ReconstructedGroup, ...]

    @property
    def is_numeric(self) -> bool:
        """Tell whether shares are of bins of numbers."""
        return any(share.value is None for group in self.groups for share in group.shares)

    @property
    def headings(self) -> list[str]:
        """The names of columns of the estimate as a table."""
        place = ["low", "high"] if self.is_numeric else ["value"]
        return [*([] if self.by is None else [self.by]), *place, "share", "released_share"]

    def rows(self) -> Iterator[tuple[str | float | None, ...]]:
        """Yield the rows of the estimate as a table."""
        is_numeric = self.is_numeric
        for group in self.groups:
            of_group = () if self.by is None else (group.group,)
            for share in group.shares:
                place = (share.low, share.high) if is_numeric else (share.value,)
                yield (*of_group, *place, share.share, share.released)


@dataclass(frozen=True)
class FilteredColumn:
    """The standard deviations of a column's noise and of its released numbers, and what filters take away of the noise.

    together: the part of the noise's variance that a filter of all columns takes away. alone: one of this column.
    """

    name: str
    noise: float
    released: float
    together: float
    alone: float


@dataclass(frozen=True)
class NoiseFilter:
    """Parts of the noise of a release that a filter by principal components takes away.

    components: that it keeps, of as many as there are columns.
    """

    release: str
    rows: int
    components: int
    columns: tuple[FilteredColumn, ...]

    def as_json(self) -> dict[str, Any]:
        """One object of plain values, as `--json` prints it."""
        plain: dict[str, Any] = to_json(self)
        return plain


@dataclass(frozen=True)
class Accuracy:
    """The shares of rows for testing whose class naive Bayes and a decision tree predict rightly; the tree's leaves."""

    naive_bayes: float
    tree: float
    leaves: int


@dataclass(frozen=True)
class Classification(JsonObject):
    """The accuracies of classifiers for a target, by the rows that they were trained on.

    features: the columns that it is predicted from; omitted: those that have too many texts.
    trained, tested: rows; tested_on: `source`, or `release`, whose rows have noise.
    baseline: the accuracy of the most frequent class alone. noise_free: None where the source can't be read, as
        `unread` says.
    """

    release: str
    target: str
    features: tuple[str, ...]
    omitted: tuple[str, ...]
    trained: int
    tested: int
    tested_on: str
    baseline: float
    noise_free: Accuracy | None
    as_is: Accuracy
    reconstructed: Accuracy
    unread: str | None = optional()
