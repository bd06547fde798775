"""Costs between the values of a sensitive attribute, out of a file of lines `value;value;cost`."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import cached_property, lru_cache
from pathlib import Path

from sqlanon.errors import PolicyError
from sqlanon.support.environment import named, require_set

MOST_VALUES = 100
"""Values that a file of costs may have: it names each pair of them."""

MOST_UNITS = 10**9
"""The greatest cost in whole units, so that sums over a billion rows are exact in wide integers."""

_LANDMARKS = 16
_SEPARATORS = ";\t,"


@dataclass(frozen=True)
class Costs:
    """Costs of moving a row from a value to another one, in whole units, of which `most` make 1.

    values: the texts of the values, each in its place.
    units: the costs by places, symmetric, 0 on the diagonal. NULL has the last place, after those of the values: it is
        at the greatest cost from all of them.
    """

    values: tuple[str, ...]
    units: tuple[tuple[int, ...], ...]

    @property
    def most(self) -> int:
        """The greatest cost, which counts as 1."""
        return max(map(max, self.units))

    @cached_property
    def shortest(self) -> tuple[tuple[int, ...], ...]:
        """The costs of the cheapest ways, over other values too: the costs themselves where these are a metric."""
        least = [list(row) for row in self.units]
        places = range(len(least))
        for over in places:
            for one in places:
                for other in places:
                    least[one][other] = min(least[one][other], least[one][over] + least[over][other])
        return tuple(map(tuple, least))

    @property
    def is_metric(self) -> bool:
        """Tell whether no way over other values is cheaper than the direct one."""
        return self.shortest == self.units

    @property
    def dear_pairs(self) -> int:
        """The pairs of values between which a way over others is cheaper."""
        rows = enumerate(zip(self.units, self.shortest, strict=True))
        return sum(unit > least for place, both in rows for unit, least in list(zip(*both, strict=True))[:place])

    @cached_property
    def landmarks(self) -> tuple[int, ...]:
        """Places far from one another, the last one first: each next one is as far as can be from those before."""
        chosen = [len(self.units) - 1]
        while len(chosen) < min(_LANDMARKS, len(self.units)):
            nearest = [min(self.shortest[place][one] for one in chosen) for place in range(len(self.units))]
            if not max(nearest):
                break
            chosen.append(nearest.index(max(nearest)))
        return tuple(chosen)

    @cached_property
    def branches(self) -> tuple[tuple[int, frozenset[int]], ...]:
        """The edges of a tree of least total cost that spans the places: the cost of each, and the places below it."""
        joined, below = {0: 0}, {0: {0}}
        nearest = dict.fromkeys(range(1, len(self.units)), 0)
        order: list[int] = []
        while nearest:
            place = min(nearest, key=lambda one: (self.units[one][nearest[one]], one))
            joined[place], below[place] = nearest.pop(place), {place}
            order.append(place)
            for one, other in nearest.items():
                if self.units[one][place] < self.units[one][other]:
                    nearest[one] = place
        for place in reversed(order):
            below[joined[place]] |= below[place]
        return tuple((self.units[place][joined[place]], frozenset(below[place])) for place in order)


def read_costs(file: str) -> Costs:
    """Read the costs of a file; raises PolicyError, with the line, for whatever is wrong with it.

    A file is read again only if it changed.
    """
    require_set(file)
    path = Path(file).expanduser()
    try:
        about = path.stat()
    except OSError as failure:
        raise _error(file, f"can't be read: {failure.strerror}.") from failure
    return _read(file, about.st_mtime_ns, about.st_size, about.st_ino)


@lru_cache(maxsize=8)
def _read(file: str, *_version: int) -> Costs:
    places: dict[str, int] = {}
    given: dict[tuple[int, int], Decimal] = {}
    for line, fields in _lines(file):
        if len(fields) != 3:
            raise _error(file, f"has {len(fields)} fields in line {line}, and not the three of value;value;cost.")
        one, other = (places.setdefault(value, len(places)) for value in fields[:2])
        cost = _cost(file, line, fields[2])
        if one == other and cost:
            raise _error(file, f"gives a value a cost from itself in line {line}; that is 0.")
        if given.setdefault((min(one, other), max(one, other)), cost) != cost:
            raise _error(file, f"gives a pair of values another cost in line {line} than in a line before.")
        if len(places) > MOST_VALUES:
            raise _error(file, f"has more than {MOST_VALUES} values; put rare ones together in the data.")
    if not any(given.values()):
        raise _error(file, "has no cost above 0, so that nothing would be told apart.")
    lacking = sum((one, other) not in given for other in range(len(places)) for one in range(other))
    if lacking:
        raise _error(file, f"lacks {lacking:,} of the pairs of its {len(places):,} values; give each pair a line.")
    return Costs(tuple(places), _whole(file, len(places), given))


def _whole(file: str, values: int, given: dict[tuple[int, int], Decimal]) -> tuple[tuple[int, ...], ...]:
    """The costs in the greatest unit of which all are whole multiples."""
    exact = {pair: Fraction(cost) for pair, cost in given.items()}
    scale = math.lcm(*(cost.denominator for cost in exact.values()))
    units = {pair: int(cost * scale) for pair, cost in exact.items()}
    shared = math.gcd(*units.values())
    most = max(units.values()) // shared
    if most > MOST_UNITS:
        digits = len(str(MOST_UNITS)) - 1
        raise _error(file, f"has costs of more than {digits} digits between the greatest and the unit.")
    rows = [
        tuple(0 if one == other else units[min(one, other), max(one, other)] // shared for other in range(values))
        for one in range(values)
    ]
    return (*((*row, most) for row in rows), (most,) * values + (0,))


def _cost(file: str, line: int, text: str) -> Decimal:
    try:
        cost = Decimal(text.strip())
    except InvalidOperation:
        raise _error(file, f"has a cost in line {line} that is no number.") from None
    if not cost.is_finite() or cost < 0 or abs(cost.adjusted()) > 30:
        raise _error(file, f"has a cost in line {line} that is below 0, or not finite, or too long.")
    return cost


def _lines(file: str) -> Iterator[tuple[int, list[str]]]:
    """The lines that are not empty, with their numbers; of separators the first that divides the first line counts."""
    try:
        text = Path(file).expanduser().read_bytes().decode("utf-8-sig")
    except OSError as failure:
        raise _error(file, f"can't be read: {failure.strerror}.") from failure
    except UnicodeDecodeError as failure:
        raise _error(file, "is not UTF-8; convert it.") from failure
    if "\x00" in text:
        raise _error(file, "holds a NUL character.")
    line = 1
    try:
        separator = next((one for one in _SEPARATORS if len(_fields(text, one)) > 1), _SEPARATORS[0])
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
        for fields in reader:
            if fields:
                yield line, fields
            line = reader.line_num + 1
    except csv.Error as failure:
        raise _error(file, f"is not well-formed: {failure}.") from failure


def _fields(text: str, separator: str) -> Sequence[str]:
    return next((row for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) if row), [])


def _error(file: str, problem: str) -> PolicyError:
    return PolicyError(f"t-closeness: the file of costs '{named(file)}' {problem}")
