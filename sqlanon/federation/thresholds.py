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

from sqlanon.federation.party import Counts
from sqlanon.federation.shares import PRIME, Numbers, Sharing

MOST_DEGREE = 20_000  # of the polynomial, above which it takes minutes to find
_NUMBERS = 1_000_000  # that are held at once
_MODULUS = np.uint64(PRIME)


class Threshold:
    """Compares counts of cells, which are those of all sites together, with k; every site passes its own counts."""

    def __init__(self, sharing: Sharing, k: int) -> None:
        self._sharing, self._k = sharing, k
        degree = sharing.sites * k
        self._is_small = interpolate([1 if rows < k else 0 for rows in range(degree + 1)])
        self._small_rows = interpolate([rows if rows < k else 0 for rows in range(degree + 1)])

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

    def _open_sum(self, coefficients: Numbers, own: Counts, doing: str) -> int:
        total = np.zeros(1, np.uint64)
        for shares in self._evaluate(coefficients, own, doing):
            total = (total + shares.sum(dtype=np.uint64)) % _MODULUS
        return int(self._sharing.open(total, doing)[0])

    def _evaluate(self, coefficients: Numbers, own: Counts, doing: str) -> Iterator[Numbers]:
        """Compute shares of a polynomial's value at the count of each cell, some cells after the others."""
        step = max(1, math.isqrt(len(coefficients) - 1))
        most = max(1, _NUMBERS // step)
        capped = np.minimum(own.astype(np.uint64), np.uint64(self._k))
        for start in range(0, len(capped), most):
            counts = self._sharing.share_sum(capped[start : start + most], doing)
            yield self._value(coefficients, self._powers(counts, step, doing), doing)

    def _powers(self, counts: Numbers, most: int, doing: str) -> list[Numbers]:
        """Compute shares of the powers of counts, from the first, twice as many in each round of messages."""
        powers = [counts]
        while len(powers) < most:
            factors = powers[: most - len(powers)]
            products = self._sharing.multiply(np.concatenate(factors), np.tile(powers[-1], len(factors)), doing)
            powers += np.split(products, len(factors))
        return powers

    def _value(self, coefficients: Numbers, powers: list[Numbers], doing: str) -> Numbers:
        """Compute shares of the polynomial, in parts of as many coefficients as there are powers, the highest first."""
        step = len(powers)
        parts = [coefficients[start : start + step] for start in range(0, len(coefficients), step)]
        value = _linear(parts[-1], powers)
        for part in reversed(parts[:-1]):
            value = (self._sharing.multiply(value, powers[-1], doing) + _linear(part, powers)) % _MODULUS
        return value


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
