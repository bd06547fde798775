"""Decision on a question, from the policy, the quasi-identifiers and the questions answered before.

Nobody looks at the aggregated column for it: who knows the quasi-identifiers and the questions could decide the same,
so that a denial tells nothing of the values (simulatable auditing; Kenthapadi, Mishra, Nissim, PODS 2005).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sqlanon.engines.base import Engine
from sqlanon.inquiries.questions.axes import TypedCondition, axes_of, key_of, literal_of
from sqlanon.inquiries.questions.row_space import (
    Marks,
    SumVerdict,
    audit_sum,
    block_width,
    most_columns,
    reaches,
)
from sqlanon.sql import Expression, Relation, macro

_BLOCKS = 64  # of large cells that are looked at first
_SPARE_BLOCKS = 2  # as the rows may not be independent in each
_SPARE_TUPLES = 4  # times those that are needed, in a share of the table
_MOST_CELLS = 50_000  # that are looked at where large ones don't suffice
_NEAR = 10  # the share of the work that sums on the question's columns may take


@dataclass(frozen=True)
class AskedTable:
    """A table whose persons are protected in groups of k; `person` tells them apart, None where each row is one.

    source: the table, or a query of it with the names of its columns.
    """

    engine: Engine
    source: Relation | Expression
    person: Expression | None
    k: int

    def span_values(self, spans: Sequence[TypedCondition]) -> list[dict[str, Any]]:
        """Build the values of conditions for templates."""
        return [
            {
                "key": key_of(self.engine, span.column),
                "test": span.test.value,
                "ends": [literal_of(end) for end in span.ends],
            }
            for span in spans
        ]


def audit(
    table: AskedTable, known: Sequence[Sequence[TypedCondition]], asked: Sequence[TypedCondition], persons: int
) -> SumVerdict:
    """Decide on the sum over the rows of a question, where others are known of the same column, or of related ones.

    The sum over all rows is taken for known as well.

    known: the conditions of the sums that are known; asked: those of the question.
    persons: how many the table has. Of many a share is looked at first, by a hash of their tuples: it has as many of
        these as are needed, where hardly two are equal. Then sums on the columns of the question alone, of few cells:
        what follows from these, or tells of few with them, does so with all. The largest of all tuples are looked at
        last, unless they are as many as those of the share, no larger, and too many for all cells.
    """
    if any(set(spans) == set(asked) for spans in known) or not asked:
        return SumVerdict.FOLLOWS
    questions = [*known, asked]
    most = most_columns(len(questions) + 1)
    tuples = block_width(len(questions) + 1) * (min(table.k, _BLOCKS) + _SPARE_BLOCKS)
    divisor = persons // (_SPARE_TUPLES * tuples)
    share: list[int] = []
    if divisor > 1:
        rows, share = _cells(table, questions, tuples, tuples, divisor)
        if reaches(rows, share, table.k):
            return SumVerdict.NEW
    own = {span.column for span in asked}
    near = [spans for spans in known if {span.column for span in spans} <= own]
    if len(near) < len(known):
        verdict = _audit_cells(table, [*near, asked], most_columns(len(near) + 2) // _NEAR)
        if verdict in (SumVerdict.FOLLOWS, SumVerdict.DENIED):
            return verdict
    if len(share) == tuples > most and share[tuples // divisor] == share[-1]:  # as many of it are among the largest
        return SumVerdict.DENIED
    rows, sizes = _cells(table, questions, tuples, tuples)
    if reaches(rows, sizes, table.k):
        return SumVerdict.NEW
    if len(sizes) > most:  # there are no fewer cells of all tuples than of some
        return SumVerdict.DENIED
    return _audit_cells(table, questions, most) or SumVerdict.DENIED


def _audit_cells(table: AskedTable, questions: Sequence[Sequence[TypedCondition]], most: int) -> SumVerdict | None:
    """Decide on the last of some questions by all cells; None where these are more than `most`."""
    most = min(_MOST_CELLS, most)
    rows, sizes = _cells(table, questions, None, most + 1)
    return None if len(sizes) > most else audit_sum(*_merged(rows, sizes), table.k)


def _cells(
    table: AskedTable,
    questions: Sequence[Sequence[TypedCondition]],
    tuples: int | None,
    most: int,
    divisor: int = 1,
) -> tuple[Marks, list[int]]:
    """Count the persons of cells, the largest first; marks tell which sums a cell is in, the whole first.

    tuples: how many distinct tuples to look at, the largest; None for all. divisor: of the tuples one in so many is
        looked at, with all its persons; 1 for all.
    """
    axes = axes_of(questions)
    cells = table.engine.query(
        "inquiries/questions/count_cells",
        source=table.source,
        person=table.person,
        axes=[
            {
                "key": key_of(table.engine, axis.column),
                "is_nominal": axis.is_nominal,
                "constants": [literal_of(end) for end in axis.constants],
            }
            for axis in axes
        ],
        mixed=[macro("output.key", number) for number in range(len(axes))],
        tuples=tuples,
        keys=[macro("output.key_of_row", number) for number in range(len(axes))],
        divisor=divisor,
        most=most,
    )
    places = np.array([cell[:-1] for cell in cells], dtype=np.int64).reshape(len(cells), len(axes))
    rows = np.ones((len(questions) + 1, len(cells)), dtype=bool)
    by_name = {axis.column.name: (places[:, number], axis.index) for number, axis in enumerate(axes)}
    for row, spans in zip(rows[1:], questions, strict=True):
        for span in spans:
            row &= span.holds(*by_name[span.column.name])
    return rows, [cell[-1] for cell in cells]


def _merged(rows: Marks, persons: Sequence[int]) -> tuple[Marks, list[int]]:
    """Merge the cells that are in the same sums."""
    columns, inverse = np.unique(rows, axis=1, return_inverse=True)
    sizes = np.zeros(columns.shape[1], dtype=np.int64)
    np.add.at(sizes, inverse.ravel(), np.asarray(persons, dtype=np.int64))
    return columns, [int(size) for size in sizes]
