"""An original distribution as it is reconstructed from a release with noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlanon.results.codec import optional, to_json


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
class Reconstruction:
    """The original distribution of a column, estimated from the release and from what was added to it."""

    release: str
    column: str
    change: str
    method: str
    by: str | None
    groups: tuple[ReconstructedGroup, ...]

    def as_json(self) -> dict[str, Any]:
        """One object of plain values, as `--json` prints it."""
        plain: dict[str, Any] = to_json(self)
        return plain
