"""Comparisons of counts of all sites with k, of which nothing but the outcome asked for is opened.

Each site counts at most k of its rows in a cell: the sum over m sites is below k exactly where that of all rows is, and
is then equal to it. It is at most m·k, so that a polynomial of that degree, which has the values wanted at
0, 1, …, m·k, can be computed with shares: some 2·√(m·k) products a cell (Paterson, Stockmeyer, SIAM Journal on
Computing 2(1), 1973).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from sqlanon.methods.generalization.federation.party import Counts
from sqlanon.methods.generalization.federation.shares import PRIME, Numbers, Sharing

MOST_DEGREE = 20_000  # of the polynomial, above which it takes minutes to find
_NUMBERS = 1_000_000  # that are held at once
_MODULUS = np.uint64(PRIME)


class Polynomial:
    """The polynomial that has given values at 0, 1, 2, …, computed with shares."""

    def __init__(self, values: list[int]) -> None:
        self._coefficients = interpolate(values)
        self.step = max(1, math.isqrt(len(values) - 1))

    def at(self, sharing: Sharing, numbers: Numbers, doing: str) -> Numbers:
        """Compute shares of the values at numbers, given shares of these.

        Its parts, of as many coefficients as there are powers, follow one another, the highest first.
        """
        powers = self._powers(sharing, numbers, doing)
        starts = range(0, len(self._coefficients), self.step)
        *parts, highest = (self._coefficients[start : start + self.step] for start in starts)
        value = _linear(highest, powers)
        for part in reversed(parts):
            value = (sharing.multiply(value, powers[-1], doing) + _linear(part, powers)) % _MODULUS
        return value

    def _powers(self, sharing: Sharing, numbers: Numbers, doing: str) -> list[Numbers]:
        """Compute shares of the powers of numbers, from the first, twice as many in each round of messages."""
        powers = [numbers]
        while len(powers) < self.step:
            factors = powers[: self.step - len(powers)]
            products = sharing.multiply(np.concatenate(factors), np.tile(powers[-1], len(factors)), doing)
            powers += np.split(products, len(factors))
        return powers


class Threshold:
    """Compares counts of cells, which are those of all sites together, with k; every site passes its own counts."""

    def __init__(self, sharing: Sharing, k: int) -> None:
        self._sharing, self._k = sharing, k
        counts = range(sharing.sites * k + 1)
        self._is_small = Polynomial([1 if rows < k else 0 for rows in counts])
        self._small_rows = Polynomial([rows if rows < k else 0 for rows in counts])

    def sum_small(self, own: Counts, doing: str) -> int:
        """Open the number of rows in cells of fewer than k rows."""
        return self._open_sum(self._small_rows, own, doing)

    def count_small(self, own: Counts, doing: str) -> int:
        """Open the number of cells of fewer than k rows, the empty ones among them."""
        return self._open_sum(self._is_small, own, doing)

    def find_large(self, own: Counts, doing: str) -> list[int]:
        """Open which cells have k rows or more, by number."""
        opened = [self._sharing.open(shares, doing) for shares in self._evaluate(self._is_small, own, doing)]
        return np.flatnonzero(np.concatenate(opened) == 0).tolist()

    def _open_sum(self, polynomial: Polynomial, own: Counts, doing: str) -> int:
        total = np.zeros(1, np.uint64)
        for shares in self._evaluate(polynomial, own, doing):
            total = (total + shares.sum(dtype=np.uint64)) % _MODULUS
        return int(self._sharing.open(total, doing)[0])

    def _evaluate(self, polynomial: Polynomial, own: Counts, doing: str) -> Iterator[Numbers]:
        """Compute shares of a polynomial's value at the count of each cell, some cells after the others."""
        most = max(1, _NUMBERS // polynomial.step)
        capped = np.minimum(own.astype(np.uint64), np.uint64(self._k))
        for start in range(0, len(capped), most):
            counts = self._sharing.share_sum(capped[start : start + most], doing)
            yield polynomial.at(self._sharing, counts, doing)


def _linear(coefficients: Numbers, powers: list[Numbers]) -> Numbers:
    """A polynomial of a degree below the number of powers: shares of these are all it takes."""
    value = np.full(len(powers[0]), coefficients[0])
    for coefficient, power in zip(coefficients[1:], powers, strict=False):
        value = (value + coefficient * power) % _MODULUS
    return value


def interpolate(values: list[int]) -> Numbers:
    """Find the coefficients, the constant first, of the polynomial with these values at 0, 1, 2, …: Newton's form."""
    differences = np.array(values, np.uint64)
    for order in range(1, len(values)):
        steps = differences[order:] + _MODULUS - differences[order - 1 : -1]
        differences[order:] = steps % _MODULUS * np.uint64(pow(order, -1, PRIME)) % _MODULUS
    coefficients = np.zeros(len(values), np.uint64)
    for place in reversed(range(len(values))):
        shifted = np.concatenate([np.zeros(1, np.uint64), coefficients[:-1]])
        coefficients = (shifted + np.uint64(PRIME - place) * coefficients) % _MODULUS
        coefficients[0] = (coefficients[0] + differences[place]) % _MODULUS
    return coefficients
