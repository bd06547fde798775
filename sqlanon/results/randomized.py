"""The result of a run that changed values at random."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlanon.results.codec import JsonObject, optional
from sqlanon.results.measures import Check
from sqlanon.results.run_result import CatalogPlace


@dataclass(frozen=True)
class HiddenInterval:
    """The width of the interval in which an original lies with a confidence, given what was released.

    share: of the range of the column's values.
    """

    confidence: float
    width: float
    share: float | None = optional()


@dataclass(frozen=True)
class ChangedColumn:
    """The change of a column: its method and the amounts that the table of changes tells, and what it hides.

    epsilon: the local differential privacy; None where there is none. intervals: of noise added to numbers.
    """

    name: str
    type: str
    method: str
    amounts: Mapping[str, float]
    epsilon: float | None = optional()
    intervals: tuple[HiddenInterval, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RandomizedResult(JsonObject):
    """The result of a run that changed values at random.

    release, changes: the tables of the rows, and of what was added to them. epsilon: of a row, over all columns.
    digest: of both tables; None where the policy does not ask for one of the run. row_hashes: the sum of the hashes of
    the released rows, by the engine at its version. released: the type of each released column, in their order.
    """

    run: str
    engine: str
    source: str
    rows: int
    release: str
    changes: str
    digest: str | None = optional()
    row_hashes: str | None = optional()
    released: Mapping[str, str] | None = optional()
    algorithm: str
    columns: tuple[ChangedColumn, ...]
    epsilon: float | None = optional()
    checks: Mapping[str, Check]
    catalog: CatalogPlace
    published: bool
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
