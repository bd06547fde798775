"""The result of a run that hid association rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from sqlanon.results.codec import optional
from sqlanon.results.measures import Check
from sqlanon.results.method_result import MethodResult
from sqlanon.results.run_result import CatalogPlace


@dataclass(frozen=True)
class HiddenRuleFigures:
    """A rule of the policy before and after: its support, and the number of those that have its left side.

    number: in the policy's list, from 1 on; its items are values, which results don't hold.
    was_mined: whether it could be mined before.
    """

    number: int
    least_support: int
    least_confidence: float
    support: int
    left_support: int
    released_support: int
    released_left_support: int
    was_mined: bool


@dataclass(frozen=True)
class OtherRules:
    """Rules that were not to be hidden, by the thresholds of the model, with an item that was taken out somewhere.

    All rules without one are the same in both tables.

    most: the items of the largest that were mined. mined: those of the source; missing: those of them that the release
    has not; ghosts: those that it has alone.
    """

    most: int
    mined: int
    missing: int
    ghosts: int


@dataclass(frozen=True, kw_only=True)
class HidingResult(MethodResult):
    """The result of a run that hid association rules.

    unit: `transactions` or `rows`. removed: the items that were taken out; changed: the units that lost one.
    rounds: of the search. others: None where no other rules were mined. row_hashes: the sum of the hashes of the
    released rows, by the engine at its version. released: the type of each released column, in their order.
    """

    shows: ClassVar[str] = "rows with hidden rules"
    release_of: ClassVar[str] = "a release with hidden rules"
    no_rules: ClassVar[str] = (
        "which items it took out follows from the rows that there were. To treat new "
        "rows, run the policy again (sqlanon run)."
    )
    run: str
    engine: str
    source: str
    rows: int
    release: str
    released_rows: int
    algorithm: str
    unit: str
    rules: tuple[HiddenRuleFigures, ...]
    removed: int
    changed: int
    rounds: int
    others: OtherRules | None = optional()
    digest: str | None = optional()
    row_hashes: str | None = optional()
    released: Mapping[str, str] | None = optional()
    checks: Mapping[str, Check]
    catalog: CatalogPlace
    published: bool
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
