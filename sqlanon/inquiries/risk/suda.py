"""SUDA: rows that are special because few columns single them out (minimal sample uniques), and scores of them.

A minimal sample unique is a row with a subset of columns by which it is alone, while it is not by any smaller subset
within (Elliot, Manning, Mayes, Gurd and Bane, "SUDA: a program for detecting special uniques", 2005; Manning, Haglin
and Keane, "A recursive search algorithm for statistical disclosure assessment", Data Mining and Knowledge Discovery 16,
2008). Subsets are looked at level by level of their size, all by one GROUP BY each: rows that a smaller subset within
singles out are passed over, which changes no other row's count, as nobody equals them.

Of ATT columns and subsets of up to M, a minimal unique of size k counts (ATT - k) (ATT - k - 1) … (ATT - M + 1), and
the SUDA score of a row is their sum. The DIS-SUDA score distributes the file's DIS score among rows (Elliot and
Manning, "Using DIS to modify the classification of special uniques", 2003), as sdcMicro's `suda2` computes it:
1 / (1 + odds / (score^Q S)), where odds is P (1 - f) / f of P rows that are one of two, f is the sampling fraction,
Q is 1 + (8 - ATT) / 20, and S the sum of score^-Q over rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass

from sqlanon.encoding.fields import Field
from sqlanon.engines.base import Engine
from sqlanon.inquiries.risk.coded_columns import CodedColumns
from sqlanon.results.risk import SudaRisk
from sqlanon.sql import Expression, Identifier, Relation, macro
from sqlanon.work.workspace import Workspace

FRACTION = 0.01  # of a population that a table samples, as sdcMicro takes it where nobody says
BATCH = 16  # subsets that one statement looks at


@dataclass(frozen=True)
class _Batch:
    """Some subsets of one size, and the column and the work table of the rows that they single out, a bit for each."""

    subsets: tuple[tuple[Field, ...], ...]
    name: Identifier
    uniques: Relation

    @property
    def size(self) -> int:
        """The number of columns of each subset."""
        return len(self.subsets[0])

    def mask_within(self, subset: frozenset[Field]) -> int:
        """The bits of the subsets within another one."""
        return sum(1 << bit for bit, one in enumerate(self.subsets) if subset.issuperset(one))


@dataclass(frozen=True)
class SudaScores:
    """The scores of the rows that have one: work table `(number, suda)`, and the DIS-SUDA score of a row `s` of it."""

    table: Relation
    dis: Expression


def measure_suda(
    engine: Engine, workspace: Workspace, coded: CodedColumns, most: int, fraction: float = FRACTION
) -> tuple[SudaRisk, SudaScores]:
    """Find the minimal sample uniques of up to `most` columns, and score their rows.

    fraction: rows of the table over those of the population that it samples, above 0 and at most 1.

    The scores are in a temporary table, by the numbers of the coded rows; rows without one have 0.
    """
    columns = len(coded.fields)
    most = min(most, columns)
    weights = {size: float(math.prod(columns - i for i in range(size, most))) for size in range(1, most + 1)}
    search = _Search(engine, workspace, coded)
    counts: dict[tuple[Field, ...], int] = {}
    with engine.grouping_by_hash():
        for size in weights:
            counts |= search.find(size)
    scores, figures = _scored(engine, coded, search.score(weights), fraction)
    by_size = {size: sum(n for subset, n in counts.items() if len(subset) == size) for size in weights}
    return SudaRisk(most, fraction, by_size, _contributions(coded, weights, counts), *figures), scores


class _Search:
    """The rows with what is known of them, level by level."""

    def __init__(self, engine: Engine, workspace: Workspace, coded: CodedColumns) -> None:
        self._engine = engine
        self._workspace = workspace
        self._coded = coded
        self._rows = coded.tuples
        self._known: list[_Batch] = []
        self._latest: list[_Batch] = []

    def find(self, size: int) -> dict[tuple[Field, ...], int]:
        """Find the minimal uniques of this size; returns how many each subset has."""
        if self._latest:
            self._mark()
        subsets = list(itertools.combinations(self._coded.fields, size))
        batches = [tuple(subsets[start : start + BATCH]) for start in range(0, len(subsets), BATCH)]
        self._latest = [self._find_some(batch, len(self._known) + number) for number, batch in enumerate(batches)]
        return {subset: n for batch in self._latest for subset, n in self._count(batch)}

    def _find_some(self, subsets: tuple[tuple[Field, ...], ...], number: int) -> _Batch:
        batch = _Batch(subsets, Identifier(f"f{number}"), self._workspace.table("uniques", number))
        self._engine.run(
            "inquiries/risk/find_uniques",
            uniques=batch.uniques,
            rows=self._rows,
            subsets=[
                {"bit": 1 << bit, "keys": self._coded.keys(subset, "r"), "within": self._within(subset)}
                for bit, subset in enumerate(subsets)
            ],
        )
        self._engine.analyze(batch.uniques)
        return batch

    def _within(self, subset: tuple[Field, ...]) -> list[Expression]:
        """The bits that say whether a smaller subset within singles a row out."""
        masks = {batch.name: batch.mask_within(frozenset(subset)) for batch in self._known}
        return [macro("risk.known_bits", name, mask) for name, mask in masks.items() if mask]

    def _count(self, batch: _Batch) -> list[tuple[tuple[Field, ...], int]]:
        bits = [1 << bit for bit in range(len(batch.subsets))]
        counts = self._engine.query_one("inquiries/risk/count_uniques", uniques=batch.uniques, bits=bits)
        return list(zip(batch.subsets, map(int, counts), strict=True))

    def _mark(self) -> None:
        """Write the uniques of the latest level beside the rows."""
        marked = self._workspace.table("marked", self._latest[0].size)
        carried = [Identifier("number"), *self._coded.word_columns, Identifier("w")]
        self._engine.run(
            "inquiries/risk/mark_rows",
            marked=marked,
            rows=self._rows,
            carried=[*carried, *(batch.name for batch in self._known)],
            batches=self._latest,
        )
        self._engine.analyze(marked)
        self._workspace.drop(*(batch.uniques for batch in self._latest))
        if self._rows != self._coded.tuples:
            self._workspace.drop(self._rows)
        self._rows = marked
        self._known += self._latest

    def score(self, weights: Mapping[int, float]) -> Relation:
        """Sum what each row's minimal uniques count, by their size; drops the other tables."""
        scores = self._workspace.table("suda")
        self._engine.run(
            "inquiries/risk/score_rows",
            scores=scores,
            rows=self._rows,
            known=[{"value": macro("risk.known_column", one.name), "score": weights[one.size]} for one in self._known],
            latest=[
                {
                    "name": one.name,
                    "uniques": one.uniques,
                    "value": macro("risk.latest_bits", one.name),
                    "score": weights[one.size],
                }
                for one in self._latest
            ],
        )
        self._workspace.drop(*(batch.uniques for batch in self._latest))
        if self._rows != self._coded.tuples:
            self._workspace.drop(self._rows)
        return scores


def _scored(
    engine: Engine, coded: CodedColumns, scores: Relation, fraction: float
) -> tuple[SudaScores, tuple[int, float, float, float, float]]:
    """The scores with their DIS, and figures of them in the order of the result's fields."""
    exponent = 1 + (8 - len(coded.fields)) / 20
    uniques, pairs = map(int, engine.query_one("inquiries/risk/count_repeated", tuples=coded.tuples))
    rows, greatest, total = engine.query_one("inquiries/risk/measure_scores", scores=scores, exponent=-exponent)
    odds = pairs * (1 - fraction) / fraction
    dis = macro("risk.dis", odds, exponent, float(total or 1))
    (summed,) = engine.query_one("inquiries/risk/sum_dis", scores=scores, dis=dis)
    greatest = float(greatest or 0)
    return SudaScores(scores, dis), (
        int(rows),
        greatest,
        uniques / (uniques + odds) if uniques else 0.0,
        1 / (1 + odds / (greatest**exponent * float(total))) if rows else 0.0,
        float(summed or 0) / max(1, coded.row_count),
    )


def _contributions(
    coded: CodedColumns, weights: Mapping[int, float], counts: Mapping[tuple[Field, ...], int]
) -> dict[str, float]:
    """The share of all scores, in percent, that is of minimal uniques with each column."""
    scores = {subset: weights[len(subset)] * n for subset, n in counts.items()}
    total = sum(scores.values())
    return {
        field.attribute.name: 100 * sum(score for subset, score in scores.items() if field in subset) / (total or 1.0)
        for field in coded.fields
    }
