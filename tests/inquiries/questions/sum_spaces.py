"""Spaces of sums over a few persons in exact arithmetic, and their form whatever the persons are called.

A sum is the number whose bits are its persons. A space has all linear combinations of some sums; the sums in it tell
it from others, as it is made of such.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tests.inquiries.questions.linear import reduced

Sums = Sequence[int]


def persons_of(asked: int) -> set[int]:
    """The persons of a sum."""
    return {place for place in range(asked.bit_length()) if asked >> place & 1}


def extend(known: Sums, persons: int) -> tuple[list[int], list[list[int]]]:
    """List the sums in the space of known ones, and the others in groups: those of a group lead to the same space.

    Of each sum the part is taken that the space leaves, which is zero in the columns of the pivots: two sums lead to
    the same space where these parts are multiples of each other.
    """
    rows = reduced(_bits(np.array(known), persons).tolist())
    scale = math.lcm(*(value.denominator for row in rows for value in row))
    whole = np.array([[int(value * scale) for value in row] for row in rows])
    every = _bits(np.arange(1, 2**persons), persons)
    left = scale * every - every[:, [np.flatnonzero(row)[0] for row in whole]] @ whole
    groups: dict[bytes, list[int]] = defaultdict(list)
    for number, part in enumerate(left, start=1):
        groups[_direction(part)].append(number)
    return groups.pop(_direction(np.zeros(persons, np.int64)), []), list(groups.values())


def _bits(sums: npt.NDArray[np.int64], persons: int) -> npt.NDArray[np.int64]:
    return sums[:, None] >> np.arange(persons) & 1


def _direction(part: npt.NDArray[np.int64]) -> bytes:
    """The same for all multiples of a vector."""
    entries = part[np.flatnonzero(part)]
    return (part // (np.gcd.reduce(part) * np.sign(entries[0]))).tobytes() if len(entries) else part.tobytes()


def canonical(sums: Sums, persons: int) -> bytes:
    """Write sums so that those are equal which differ by the names of persons alone: the least of all their orders.

    Persons are told apart first by the sizes of the sums that they, and pairs with them, are in.
    """
    bits = _bits(np.array(sums), persons)
    together = bits.T[:, None, :] * bits.T[None, :, :] * (1 << bits.sum(axis=1) * 7)  # fewer than 128 of a size
    shared = together.sum(axis=2)
    alike: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for person in range(persons):
        alike[(shared[person, person], *sorted(shared[person]))].append(person)
    ordered = [alike[kind] for kind in sorted(alike)]
    named = np.zeros((1, len(sums)), np.uint8)
    for person, places in zip(itertools.chain(*ordered), _places(tuple(map(len, ordered))), strict=True):
        named = named | bits[:, person].astype(np.uint8) << places[:, None]
    named.sort(axis=1)
    for column in range(len(sums)):
        named = named[named[:, column] == named[:, column].min()]
    return named[0].tobytes()


@functools.cache
def _places(sizes: tuple[int, ...]) -> npt.NDArray[np.uint8]:
    """The places of persons (person, order) in all orders in which classes of these sizes follow one another."""
    starts = itertools.accumulate(sizes, initial=0)
    classes = [itertools.permutations(range(start, start + size)) for start, size in zip(starts, sizes, strict=False)]
    return np.array([list(itertools.chain(*one)) for one in itertools.product(*classes)], np.uint8).T
