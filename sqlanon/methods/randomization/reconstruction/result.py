"""An original distribution as it is reconstructed from a release with noise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from sqlanon.results.codec import JsonObject, optional


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
