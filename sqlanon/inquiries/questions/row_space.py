"""Audit of sums by linear algebra: what follows from sums that are known.

Every sum that is known is a row of zeros and ones over the groups of persons that no known sum tells apart (Chin,
Ozsoyoglu, IEEE TSE 8(6), 1982). What can be worked out from them are the linear combinations of these rows. A
combination whose entries are zero but for groups of fewer than k persons together says something of these few:
their sum, or enough for all but one of them to learn the value of the last.

All arithmetic is exact, modulo a prime. Where the rows are independent modulo the prime, a combination of rational
numbers leads to one modulo the prime that is zero wherever the first one is: reducing can show more combinations, and
hides none. So what passes here passes in rational numbers too, and what can't be decided is denied.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.int64]
Marks = npt.NDArray[np.bool_]
"""Sums as a row each that tells which groups are in it: an eighth of the memory of numbers, for many groups."""

PRIME = 2**31 - 1  # products of two remainders fit into 64 bits
_MOST_WORK = 500_000_000  # multiplications of an elimination, about three seconds
_LEAST_WIDTH = 1_024  # of a block, so that sums over one row in a hundred have some columns
_MOST_BRANCHES = 5_000  # of a search for a light combination
_MOST_MULTIPLE = 60  # common denominator of the rational numbers that are tried


class SumVerdict(StrEnum):
    """Result of an audit: the sum is new and harmless, follows from known ones, or must not be told."""

    NEW = "new"
    FOLLOWS = "follows"
    DENIED = "denied"


def audit_sum(marks: Marks, persons: Sequence[int], k: int) -> SumVerdict:
    """Decide on the last of some sums; the others are known.

    marks: a row for each sum, a column for each group. persons: the size of each group.
    """
    sizes = np.asarray(persons, dtype=np.int64)
    if is_certain(marks[:, sizes >= k]):
        return SumVerdict.NEW
    rows = marks.astype(np.int64)
    if rows.shape[1] > most_columns(len(rows)):
        return SumVerdict.DENIED
    while (combination := _dependence(rows)) is not None:
        last = int(np.flatnonzero(combination)[-1])
        if not _holds_exactly(combination, rows):
            return SumVerdict.DENIED
        if last == len(rows) - 1:
            return SumVerdict.FOLLOWS
        rows = np.delete(rows, last, axis=0)
    return SumVerdict.DENIED if _has_light_combination(rows, sizes, k) else SumVerdict.NEW


def most_columns(rows: int) -> int:
    """The most columns that so many rows are reduced with."""
    return _MOST_WORK // rows**2


def block_width(rows: int) -> int:
    """The columns of a block that `reaches` looks at."""
    return max(_LEAST_WIDTH, 2 * rows)


def reaches(rows: Marks, persons: Sequence[int], k: int) -> bool:
    """Tell whether it is certain that every combination of the rows has k persons in it, or more.

    The columns are divided into blocks. Where the rows are independent in the columns of a block alone, a combination
    that is not zero has an entry that is not zero there, and so the persons of one group of the block.

    persons: the size of each group.
    """
    if not len(persons):  # as in a share of a table whose tuples are few
        return False
    blocks = max(1, len(persons) // block_width(len(rows)))
    least = [min(persons[place::blocks]) for place in range(blocks)]
    certain, open_ = 0, sum(least)
    for place, few in enumerate(least):
        certain += few if is_certain(rows[:, place::blocks]) else 0
        open_ -= few
        if certain >= k or certain + open_ < k:
            break
    return certain >= k


def is_certain(rows: Marks) -> bool:
    """Tell whether rows are independent modulo 2, and so in rational numbers."""
    if rows.shape[1] < len(rows):
        return False
    by_last: dict[int, int] = {}
    for packed in np.packbits(rows, axis=1):
        row = int.from_bytes(packed.tobytes(), "big")
        while row and (last := row.bit_length()) in by_last:
            row ^= by_last[last]
        if not row:
            return False
        by_last[row.bit_length()] = row
    return True


def _dependence(rows: Matrix) -> Matrix | None:
    """Find factors by which the rows add up to zeros modulo the prime; None where the rows are independent."""
    whole = np.hstack([rows % PRIME, np.eye(len(rows), dtype=np.int64)])
    rank = len(reduce_rows(whole, rows.shape[1]))
    return None if rank == len(rows) else whole[rank, rows.shape[1] :]


def _holds_exactly(factors: Matrix, rows: Matrix) -> bool:
    """Tell whether factors stand for rational numbers by which the rows add up to zeros."""
    inverse = pow(int(factors[np.flatnonzero(factors)[-1]]), -1, PRIME)
    for multiple in range(1, _MOST_MULTIPLE + 1):
        scaled = factors * inverse % PRIME * multiple % PRIME
        whole = np.where(scaled > PRIME // 2, scaled - PRIME, scaled)
        if np.abs(whole).max() <= 1_000_000 and not (whole @ rows).any():
            return True
    return False


def _has_light_combination(rows: Matrix, sizes: Matrix, k: int) -> bool:
    """Tell whether a combination that is not zero has fewer than k persons in it; also where that takes too long."""
    order = np.argsort(-sizes, kind="stable")
    reduced = rows[:, order] % PRIME
    large = int((sizes >= k).sum())
    rank = len(reduce_rows(reduced, large))
    return _Search(sizes[order][large:], k).finds(reduced[rank:, large:], 0, np.zeros(len(sizes) - large, dtype=bool))


class _Search:
    """Search for a light vector of a space: of each group it tries to have it in, and to leave it out."""

    def __init__(self, sizes: Matrix, k: int) -> None:
        self._sizes = sizes
        self._k = k
        self._left = _MOST_BRANCHES

    def finds(self, space: Matrix, persons: int, taken: npt.NDArray[np.bool_]) -> bool:
        """Tell whether a vector of the space, independent rows, has fewer than k persons, those of `taken` counted."""
        if not len(space):
            return False
        self._left -= 1
        open_columns = np.flatnonzero(space.any(axis=0) & ~taken)
        if self._left < 0 or not len(open_columns):
            return True
        column = open_columns[np.argmax(self._sizes[open_columns])]
        more = persons + int(self._sizes[column])
        if more < self._k:
            with_column = taken.copy()
            with_column[column] = True
            if self.finds(space, more, with_column):
                return True
        return self.finds(_without(space, int(column)), persons, taken)


def _without(space: Matrix, column: int) -> Matrix:
    """The vectors of a space that are zero in a column, which some are not."""
    place = int(np.flatnonzero(space[:, column])[0])
    pivot = space[place] * pow(int(space[place, column]), -1, PRIME) % PRIME
    others = np.delete(space, place, axis=0)
    reduced: Matrix = (others - others[:, column, None] * pivot) % PRIME
    return reduced


def reduce_rows(rows: Matrix, columns: int) -> list[int]:
    """Bring rows, in place, into reduced echelon form by the first columns; the columns of the pivots."""
    pivots: list[int] = []
    for column in range(columns):
        rank = len(pivots)
        if rank == len(rows):
            break
        below = np.flatnonzero(rows[rank:, column])
        if not len(below):
            continue
        rows[[rank, rank + below[0]]] = rows[[rank + below[0], rank]]
        rows[rank] = rows[rank] * pow(int(rows[rank, column]), -1, PRIME) % PRIME
        others = np.flatnonzero(rows[:, column])
        others = others[others != rank]
        rows[others] = (rows[others] - rows[others, column, None] * rows[rank]) % PRIME
        pivots.append(column)
    return pivots
