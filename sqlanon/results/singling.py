"""Columns and rows that single out: subsets of columns, minimal sample uniques, columns that look like identifiers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


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
