"""The result of a differentially private run. No field is a number of the data, but for what was drawn with noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from sqlanon.results.codec import optional
from sqlanon.results.measures import Check
from sqlanon.results.method_result import MethodResult
from sqlanon.results.run_result import CatalogPlace

NEIGHBOURS = "tables that differ by adding or removing one unit"


@dataclass(frozen=True)
class ChosenSplit:
    """A round of a search: the group of an attribute that was taken apart, and its parts."""

    attribute: str
    group: str
    parts: tuple[str, ...]


@dataclass(frozen=True)
class MechanismCharge:
    """A mechanism as it was charged: epsilon as an exact fraction, the sensitivity and the scale of its noise."""

    mechanism: str
    epsilon: str
    sensitivity: int
    scale: str


@dataclass(frozen=True)
class Guarantee:
    """The promise: epsilon as the policy says it and as an exact fraction, for a row or for a person.

    unit: `row`, or the column that tells persons apart; contribution: the most rows that count of one.
    library: the name and version of the library that drew the noise.
    """

    epsilon: float
    exact: str
    unit: str
    contribution: int
    neighbours: str
    mechanisms: tuple[MechanismCharge, ...]
    library: str


@dataclass(frozen=True)
class BudgetState:
    """The account after the run, in exact fractions.

    allowed: by the budget to all runs together. before: what earlier ones consumed. consumed: by this one.
    """

    ledger: str
    allowed: str
    before: str
    consumed: str
    left: str


@dataclass(frozen=True)
class CellsResult:
    """The release: its cells, all of the public domain, and the noise that a count does not exceed in 95 of 100 cases.

    shown_as: `counts` or `rows`. rows: that the table has, a function of what it shows.
    threshold: the least noisy count of a cell that is shown; None where all cells are. digest: of the table's rows.
    """

    table: str
    shown_as: str
    cells: int
    rows: int
    likely_noise: int
    threshold: int | None = optional()
    digest: str | None = optional()


@dataclass(frozen=True, kw_only=True)
class PrivateResult(MethodResult):
    """The result of a run that drew a release by mechanisms of differential privacy.

    labels: the groups that each attribute is shown by. choices: of the search, in their order. pairs: of columns, that
    were chosen to be counted together; None of an algorithm that chooses none.
    """

    shows: ClassVar[str] = "noisy counts"
    release_of: ClassVar[str] = "a release of differential privacy"
    no_rules: ClassVar[str] = (
        "it published noisy counts, and each release of a source is charged on its budget (sqlanon run)."
    )
    run: str
    engine: str
    source: str
    release: CellsResult
    algorithm: str
    guarantee: Guarantee
    labels: Mapping[str, tuple[str, ...]]
    choices: tuple[ChosenSplit, ...]
    pairs: tuple[tuple[str, ...], ...] | None = optional()
    checks: Mapping[str, Check]
    catalog: CatalogPlace
    budget: BudgetState | None = optional()
    published: bool
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
