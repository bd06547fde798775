"""Columns of the witness in parts that may have a bar: bands between round numbers or dates, groups, frequent values.

The labels of a taxonomy name the bars of its groups. Columns are counted in whatever session holds the rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from markupsafe import Markup

from sqlanon.encoding.axes import Axis
from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.fields import Field
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Kind
from sqlanon.hierarchies import HierarchyTable
from sqlanon.sql import Expression, Identifier, RedactedValue, macro
from sqlanon.values.expressions import double_of

FREQUENT = 8  # values that have a bar of their own


COMMON = 0.02  # of the rows, that such a value has


ENDS = (0.025, 0.975)  # shares of the rows below and above which there is one band


WANTED = 8  # bands of most of the values, about


MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200, 6000, 12_000)  # widths of bands of dates


_NICE = (1, 2, 5, 10)


_LEAST_WIDTH = 1e-150  # of bands of numbers; powers of ten beyond it are near the ends of doubles


_MOST_BANDS = 2**52  # that doubles can number


@dataclass(frozen=True)
class BarredValues:
    """Values that share a bar: its label, their rows in the witness, and the positions from the first to the last."""

    label: str
    rows: int
    low: int
    high: int


@dataclass(frozen=True)
class WitnessColumn:
    """A column of the witness. Positions are codes, and leaves of a hierarchy."""

    field: Field
    name: Identifier
    axis: Axis | None  # of a quasi-identifier

    @property
    def kind(self) -> Kind:
        return self.field.attribute.column.kind

    @property
    def ordered(self) -> bool:
        return self.kind.is_numeric or self.kind.has_day

    @property
    def raw(self) -> Expression:
        """The value as it is in the source."""
        return Markup(self.name)

    @property
    def reads_raw(self) -> bool:
        """Tell whether statements about it read more than codes."""
        return self.ordered or self.field.coding.is_aside

    @property
    def code(self) -> Expression:
        return self.field.code(Identifier("w"))

    @property
    def hierarchy(self) -> HierarchyTable | None:
        return None if self.axis is None else self.field.coding.hierarchy

    @property
    def has_labels(self) -> bool:
        """Tell whether its hierarchy is a taxonomy, whose labels the policy gives."""
        hierarchy = self.field.attribute.hierarchy
        return hierarchy is not None and hierarchy.kind in ("csv", "mapping")

    @property
    def read(self) -> dict[str, Any]:
        """Return the values for statements that read positions."""
        if self.field.coding.is_aside:  # the code is the number of the row
            position, table = macro("measures.position_aside", self.raw, self.code), None
        elif self.hierarchy is None:
            position, table = macro("measures.position", self.code), None
        else:
            position, table = Markup(Identifier("leaf")), self.hierarchy.stored
        return {"position": position, "code": self.code, "hierarchy": table}

    def number(self, engine: Engine) -> Expression:
        """The value as a double, a date as months; NULL for what is none."""
        attribute = self.field.attribute
        if self.kind.has_day:
            return engine.render.macro("measures.months", self.raw)
        value = attribute.limits.coded(engine.render, self.raw, attribute.column)
        finite = engine.render.macro("is_finite_number", self.raw, self.kind.value)
        return macro("measures.number", double_of(engine.render, value, self.kind), finite)

    def grid(self, low: float | None, high: float | None) -> BandGrid | None:
        if low is None or high is None:
            return None
        if self.kind.has_day:
            return grid_of_months(float(low), float(high))
        return grid_of_numbers(float(low), float(high), whole=self.kind is Kind.INTEGER)

    def label(self, grid: BandGrid, band: Band) -> str:
        if self.kind.has_day:
            return label_of_months(grid, band)
        return label_of_numbers(grid, band, whole=self.kind is Kind.INTEGER)


def witness_columns(coded: CodedTable, axes: Sequence[Axis]) -> Iterator[WitnessColumn]:
    """List the columns of a witness, quasi-identifiers first."""
    for number, axis in enumerate(axes):
        yield WitnessColumn(axis.field, Identifier(f"r{number}"), axis)
    for number, field in enumerate(coded.kept):
        yield WitnessColumn(field, Identifier(f"v{number}"), None)


@dataclass(frozen=True)
class CountedColumn:
    """A column of the witness in parts, and its rows without a value; basis: `bands`, `groups` or `frequency`."""

    basis: str
    parts: Sequence[BarredValues]
    nulls: int


@dataclass(frozen=True)
class ColumnCount:
    """A count of some columns of the witness, for any session that holds it."""

    coded: CodedTable
    columns: Sequence[WitnessColumn]
    least: int

    def with_rows(self, engine: Engine) -> tuple[int, list[CountedColumn]]:
        """Count in the session that holds the witness."""
        expected = int(self.coded.source_rows * self.coded.witness_share)
        tables = dict.fromkeys(one.hierarchy.stored for one in self.columns if one.hierarchy is not None)
        read = [*self.coded.word_columns, *(one.name for one in self.columns if one.reads_raw)]
        return engine.measure_with_rows(tuple(tables), [self.coded.witness], read, expected, self)

    def __call__(self, engine: Engine) -> tuple[int, list[CountedColumn]]:
        """Count the rows of the witness, and each column, by statements of this session."""
        (rows,) = engine.query_one("count_rows", table=self.coded.witness)
        grids = self._grids(engine)
        return int(rows), [self._count(engine, int(rows), one, grids.get(one.field.number)) for one in self.columns]

    def _grids(self, engine: Engine) -> dict[int, BandGrid]:
        """The bands of every column that has an order and several values, by the number of its field."""
        ordered = [column for column in self.columns if column.ordered]
        if not ordered:
            return {}
        low, high = ENDS
        values = [column.number(engine) for column in ordered]
        asked = {"values": values, "low": low, "high": high}
        ends = engine.query_one("measures/measure_spread", witness=self.coded.witness, **asked)
        pairs = ((column, *(pair or (None, None))) for column, pair in zip(ordered, ends, strict=True))
        grids = {column.field.number: column.grid(low, high) for column, low, high in pairs}
        return {number: grid for number, grid in grids.items() if grid is not None}

    def _count(self, engine: Engine, rows: int, column: WitnessColumn, grid: BandGrid | None) -> CountedColumn:
        banded = None if grid is None else self._banded(engine, rows, column, grid)
        return banded or self._grouped(engine, rows, column) or self._frequent(engine, rows, column)

    def _grouped(self, engine: Engine, rows: int, column: WitnessColumn) -> CountedColumn | None:
        """The groups of a taxonomy, on its finest level that has few, named by its labels; None where no level has.

        A group's values are neighbours in the hierarchy, so that its positions are those from its first to its last.
        """
        hierarchy = column.hierarchy
        if hierarchy is None or not column.has_labels:
            return None
        asked = {"witness": self.coded.witness, "hierarchy": hierarchy.stored, "code": column.code}
        for level in range(1, hierarchy.height):
            label = Identifier(f"l{level}")
            groups = engine.query("measures/count_groups", label=label, limit=FREQUENT + 1, **asked)
            if len(groups) <= FREQUENT:
                parts = [
                    BarredValues(str(name), int(n or 0), int(least), int(greatest))
                    for name, n, least, greatest in groups
                ]
                known = sum(part.rows for part in parts)
                return CountedColumn("groups", [part for part in parts if part.rows >= self.least], rows - known)
        return None

    def _banded(self, engine: Engine, rows: int, column: WitnessColumn, grid: BandGrid) -> CountedColumn | None:
        """The bands of a column; None where positions are in another order."""
        counted = engine.query(
            "measures/count_bands",
            witness=self.coded.witness,
            value=column.number(engine),
            low=RedactedValue(grid.low),
            high=RedactedValue(grid.high),
            factor=grid.factor,
            divisor=RedactedValue(grid.divisor),
            **column.read,
        )
        narrow = [Band(int(number), int(number), *map(int, rest)) for number, *rest in counted]
        in_order = all(a.high < b.low for a, b in itertools.pairwise(narrow))
        if not in_order and not column.field.coding.is_aside:
            return None
        shown = merged(narrow, self.least)
        inner = [band.low for band in shown[1:]]
        ends = zip([1, *inner], [*(low - 1 for low in inner), column.field.coding.leaves], strict=True)
        parts = [
            BarredValues(column.label(grid, band), band.rows, low, high)
            for band, (low, high) in zip(shown, ends, strict=False)
        ]
        return CountedColumn("bands", parts, rows - sum(band.rows for band in narrow))

    def _frequent(self, engine: Engine, rows: int, column: WitnessColumn) -> CountedColumn:
        """The most frequent values of a column."""
        asked = {"witness": self.coded.witness, "limit": FREQUENT + 1}
        counted = engine.query("measures/count_frequent", **asked, **column.read)
        enough = max(self.least, COMMON * rows)
        known = [(int(place), int(n)) for place, n in counted if place is not None and n >= enough][:FREQUENT]
        parts = [BarredValues(_ordinal(rank), n, place, place) for rank, (place, n) in enumerate(known, start=1)]
        return CountedColumn("frequency", parts, sum(int(n) for place, n in counted if place is None))


def _ordinal(rank: int) -> str:
    """The label of a value that is not named."""
    ending = {1: "", 2: "2nd ", 3: "3rd "}.get(rank, f"{rank}th ")
    return f"{ending}most frequent"


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
