"""The result of a run that changed values at random."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from sqlanon.results.codec import optional
from sqlanon.results.measures import Check
from sqlanon.results.method_result import MethodResult
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
class ExpectedFit:
    """The rows that are expected to fit a number at least as well as the true one, and the sizes of its noise.

    rows: the least expectation of the rows that were looked at, of which there are `checked`. least, greatest: sizes.
    """

    rows: float
    checked: int
    least: float
    greatest: float

    @property
    def sentence(self) -> str:
        """The figures in words."""
        return (
            f"{math.floor(100 * self.rows) / 100:.2f} rows or more, with noise of the same size, are expected to fit"
            f" what is released at least as well as the true one ({self.checked:,} rows were looked at); sizes are"
            f" {self.least:.4g} to {self.greatest:.4g}."
        )


@dataclass(frozen=True)
class ChangedColumn:
    """The change of a column: its method and the amounts that the table of changes tells, and what it hides.

    epsilon: the local differential privacy; None where there is none. intervals: of noise added to numbers.
    expected: of numbers whose noise has sizes of their own.
    """

    name: str
    type: str
    method: str
    amounts: Mapping[str, float]
    epsilon: float | None = optional()
    intervals: tuple[HiddenInterval, ...] = ()
    expected: ExpectedFit | None = optional()


@dataclass(frozen=True, kw_only=True)
class RandomizedResult(MethodResult):
    """The result of a run that changed values at random.

    release, changes: the tables of the rows, and of what was added to them. epsilon: of a row, over all columns.
    digest: of both tables; None where the policy does not ask for one of the run. row_hashes: the sum of the hashes of
    the released rows, by the engine at its version. released: the type of each released column, in their order.
    """

    shows: ClassVar[str] = "rows with noise"
    release_of: ClassVar[str] = "a release with noise"
    no_rules: ClassVar[str] = "it changed values at random. To treat new rows, run the policy again (sqlanon run)."
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
