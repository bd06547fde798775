"""Bands between round numbers or dates, which say how a column is distributed without a value of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

WANTED = 8  # bands of most of the values, about
MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200, 6000, 12_000)  # widths of bands of dates
_NICE = (1, 2, 5, 10)
_LEAST_WIDTH = 1e-150  # of bands of numbers; powers of ten beyond it are near the ends of doubles
_MOST_BANDS = 2**52  # that doubles can number


@dataclass(frozen=True)
class BandGrid:
    """Bands of one width, numbered by how many widths they begin above 0.

    low, high: between which most values lie; all lesser ones are counted in the first band, greater ones in the last.
    """

    width: Decimal
    low: float
    high: float

    @property
    def first(self) -> int:
        return self.number_of(self.low)

    @property
    def last(self) -> int:
        return self.number_of(self.high)

    def number_of(self, value: float) -> int:
        """The band of a value between `low` and `high`, as the statement reckons it."""
        return math.floor(value * self.factor / self.divisor + 1e-9)

    @property
    def factor(self) -> float:
        """The factor of values before they are divided, so that 0.7 is in the band that begins there."""
        return float(Decimal(1).scaleb(max(0, -_exponent(self.width))))

    @property
    def divisor(self) -> float:
        return float(self.width.scaleb(max(0, -_exponent(self.width))))

    def begin(self, number: int) -> Decimal:
        """Return the least value of a band."""
        return number * self.width


@dataclass(frozen=True)
class Band:
    """Some bands in one: their numbers, their rows, and the positions of their least and greatest value."""

    first: int
    last: int
    rows: int
    low: int
    high: int


def grid_of_numbers(low: float, high: float, *, whole: bool) -> BandGrid | None:
    """About eight bands, between multiples of 1, 2 or 5 times a power of ten.

    None where one value is nearly all, or where doubles can't number the bands.
    """
    if not low < high or not math.isfinite(high - low):
        return None
    rough, greatest = (high - low) / WANTED, max(abs(low), abs(high))
    if rough < _LEAST_WIDTH or greatest > 1 / _LEAST_WIDTH or greatest > _MOST_BANDS * rough:
        return None
    power = Decimal(1).scaleb(math.floor(math.log10(rough)))
    width = next(nice * power for nice in _NICE if float(nice * power) >= rough * (1 - 1e-9) or nice == _NICE[-1])
    return BandGrid(max(width, Decimal(1)) if whole else width, low, high)


def grid_of_months(low: float, high: float) -> BandGrid | None:
    """About eight bands of whole months, years, decades; months are counted from the year 0."""
    if not low < high:
        return None
    rough = (high - low) / WANTED
    return BandGrid(Decimal(next((width for width in MONTHS if width >= rough), MONTHS[-1])), low, high)


def merged(bands: Sequence[Band], least: int) -> list[Band]:
    """The bands, neighbours joined until each has `least` rows; none where all of them have fewer."""
    joined = list(bands)
    while len(joined) > 1 and min(band.rows for band in joined) < least:
        small = min(range(len(joined)), key=lambda place: (joined[place].rows, place))
        neighbours = [place for place in (small - 1, small + 1) if 0 <= place < len(joined)]
        other = min(neighbours, key=lambda place: joined[place].rows)
        a, b = sorted((small, other))
        low, high = joined[a], joined[b]
        both = replace(low, last=high.last, rows=low.rows + high.rows, high=max(low.high, high.high))
        joined[a : b + 1] = [both]
    return [band for band in joined if band.rows >= least]


def label_of_numbers(grid: BandGrid, band: Band, *, whole: bool) -> str:
    """The numbers of a band, in words; the outer ones are open."""
    low, high = grid.begin(band.first), grid.begin(band.last + 1)
    if band.first <= grid.first and band.last >= grid.last:
        return "all values"
    if band.first <= grid.first:
        return f"below {_written(high)}"
    if band.last >= grid.last:
        return f"{_written(low)} and more"
    if whole:
        return _written(low) if high - low == 1 else f"{_written(low)} to {_written(high - 1)}"
    return f"{_written(low)} to < {_written(high)}"


def label_of_months(grid: BandGrid, band: Band) -> str:
    """The months or years of a band, in words."""
    low, high = int(grid.begin(band.first)), int(grid.begin(band.last + 1))
    written = _year if low % 12 == high % 12 == 0 else _month
    if band.first <= grid.first and band.last >= grid.last:
        return "all dates"
    if band.first <= grid.first:
        return f"before {written(high)}"
    if band.last >= grid.last:
        return f"{written(low)} and later"
    step = 12 if written is _year else 1
    first, last = written(low), written(high - step)
    return first if first == last else f"{first} to {last}"


def _year(month: int) -> str:
    return str(month // 12)


def _month(month: int) -> str:
    return f"{month // 12}-{month % 12 + 1:02}"


def _written(number: Decimal) -> str:
    plain = number.normalize()
    return f"{plain:,.0f}" if plain == plain.to_integral_value() else f"{plain:,f}"


def _exponent(number: Decimal) -> int:
    exponent = number.normalize().as_tuple().exponent
    assert isinstance(exponent, int)
    return exponent
