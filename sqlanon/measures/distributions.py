"""Distributions of columns in the source and in the release, in shares of rows, without a text of either.

Numbers and dates are counted in bands between round ones; other values by how frequent they are, unnamed. A bar stands
for at least `LEAST` rows, or k if that is more, and counts are rounded to multiples of so many rows: neither a bar nor
the difference of two tells of fewer. Of a large source the bars are those of the witness, which is a
random sample then.

In the release the rows of a label count as if they were spread evenly over the values that the label stands for.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sqlanon.encoding.axes import Axis
from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.fields import Field
from sqlanon.engines.base import Engine, Kind
from sqlanon.hierarchies import HierarchyTable
from sqlanon.measures import bands
from sqlanon.measures.bands import Band, BandGrid
from sqlanon.results.measures import Bar, Distribution, Distributions
from sqlanon.sql import Identifier, RedactedValue, Relation, Statement, macro
from sqlanon.staging.partition import Partition
from sqlanon.staging.recode import Recoding
from sqlanon.values.expressions import double_of

LEAST = 5  # rows that a bar stands for, whatever k
MOST_COLUMNS = 40  # that are looked at, quasi-identifiers first
MOST_GROUPED = 100_000  # values of a hierarchy whose groups are counted
FREQUENT = 8  # values that have a bar of their own
COMMON = 0.02  # of the rows, that such a value has
ENDS = (0.025, 0.975)  # shares of the rows below and above which there is one band


@dataclass(frozen=True)
class _Part:
    """Values that have a bar: its label, their rows in the witness, and the positions from the first to the last."""

    label: str
    rows: int
    low: int
    high: int


@dataclass(frozen=True)
class _Column:
    """A column of the witness. Positions are codes, and leaves of a hierarchy."""

    field: Field
    raw: Markup
    axis: Axis | None  # of a quasi-identifier

    @property
    def kind(self) -> Kind:
        return self.field.attribute.column.kind

    @property
    def ordered(self) -> bool:
        return self.kind.is_numeric or self.kind.has_day

    @property
    def code(self) -> Markup:
        return self.field.code(Identifier("w"))

    @property
    def hierarchy(self) -> HierarchyTable | None:
        return None if self.axis is None else self.field.coding.hierarchy

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

    def number(self, engine: Engine) -> Markup:
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
            return bands.grid_of_months(float(low), float(high))
        return bands.grid_of_numbers(float(low), float(high), whole=self.kind is Kind.INTEGER)

    def label(self, grid: BandGrid, band: Band) -> str:
        if self.kind.has_day:
            return bands.label_of_months(grid, band)
        return bands.label_of_numbers(grid, band, whole=self.kind is Kind.INTEGER)


def measure_distributions(engine: Engine, recoding: Recoding, partition: Partition, k: int) -> Distributions:
    """Measure the columns of a recoded source; `partition` is the one whose regions the release shows.

    Looks at the witness, once or twice a column; at the leaves, once a quasi-identifier; and where rows were left out,
    once more at all rows for every kept column.
    """
    (rows,) = engine.query_one("count_rows", table=recoding.coded.witness)
    measuring = _Measuring(engine, recoding, partition, int(rows), max(k, LEAST))
    columns = list(_columns(recoding.coded, partition.axes))[:MOST_COLUMNS]
    grids = measuring.grids(columns)
    distributions = tuple(measuring.measure(column, grids.get(column.field.number)) for column in columns)
    return Distributions(measuring.rows, measuring.least, recoding.coded.witness_is_sample, distributions)


def _columns(coded: CodedTable, axes: Sequence[Axis]) -> Iterator[_Column]:
    for number, axis in enumerate(axes):
        yield _Column(axis.field, Markup(Identifier(f"r{number}")), axis)
    for number, field in enumerate(coded.kept):
        yield _Column(field, Markup(Identifier(f"v{number}")), None)


@dataclass(frozen=True)
class _Measuring:
    """A recoded source that is looked at, of which the witness has so many rows."""

    engine: Engine
    recoding: Recoding
    partition: Partition
    rows: int
    least: int

    def grids(self, columns: Sequence[_Column]) -> dict[int, BandGrid]:
        """The bands of every column that has an order and several values, by the number of its field."""
        ordered = [column for column in columns if column.ordered]
        if not ordered:
            return {}
        low, high = ENDS
        values = [column.number(self.engine) for column in ordered]
        asked = {"values": values, "low": low, "high": high}
        ends = self.engine.query_one("measures/measure_spread", witness=self._witness, **asked)
        pairs = ((column, *(pair or (None, None))) for column, pair in zip(ordered, ends, strict=True))
        grids = {column.field.number: column.grid(low, high) for column, low, high in pairs}
        return {number: grid for number, grid in grids.items() if grid is not None}

    @property
    def _witness(self) -> Relation:
        return self.recoding.coded.witness

    def measure(self, column: _Column, grid: BandGrid | None) -> Distribution:
        """The bars of a column."""
        banded = None if grid is None else self._banded(column, grid)
        parts, nulls = banded or self._frequent(column)
        others = self.rows - nulls - sum(part.rows for part in parts)
        if column.axis is None and not self.partition.omitted:  # the same rows
            shown: list[float] | None = [nulls, self.rows - nulls, *(part.rows for part in parts)]
        else:
            shown = self._shown(column, parts)
        after_null, after_value, *after = shown or [None] * (2 + len(parts))  # type: ignore[list-item]
        bars = [self._bar(part.label, part.rows, now, shown) for part, now in zip(parts, after, strict=True)]
        rest = None if after_value is None else after_value - sum(after)
        for label, before, now in (("all other values", others, rest), ("no value", nulls, after_null)):
            if max(before, now or 0) >= self.least:
                bars.append(self._bar(label, before, now, shown))
        attribute = column.field.attribute
        return Distribution(attribute.name, attribute.role.value, "bands" if banded else "frequency", tuple(bars))

    def _bar(self, label: str, before: int, after: float | None, shown: Sequence[float] | None) -> Bar:
        total = sum(shown[:2]) if shown else 0
        return Bar(label, self._share(before, self.rows), None if after is None else self._share(after, total))

    def _share(self, count: float, rows: float) -> float:
        """A share of rows whose count is rounded to a multiple of the least one."""
        return min(1.0, round(math.floor(count / self.least + 0.5) * self.least / max(1, rows), 4))

    def _banded(self, column: _Column, grid: BandGrid) -> tuple[list[_Part], int] | None:
        """The bands of a column, and the rows without a value; None where positions are in another order."""
        counted = self.engine.query(
            "measures/count_bands",
            witness=self._witness,
            value=column.number(self.engine),
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
        shown = bands.merged(narrow, self.least)
        inner = [band.low for band in shown[1:]]
        ends = zip([1, *inner], [*(low - 1 for low in inner), column.field.coding.leaves], strict=True)
        parts = [
            _Part(column.label(grid, band), band.rows, low, high)
            for band, (low, high) in zip(shown, ends, strict=False)
        ]
        return parts, self.rows - sum(band.rows for band in narrow)

    def _frequent(self, column: _Column) -> tuple[list[_Part], int]:
        """The most frequent values of a column, and the rows without a value."""
        counted = self.engine.query("measures/count_frequent", witness=self._witness, limit=FREQUENT + 1, **column.read)
        enough = max(self.least, COMMON * self.rows)
        known = [(int(place), int(n)) for place, n in counted if place is not None and n >= enough][:FREQUENT]
        parts = [_Part(_ordinal(rank), n, place, place) for rank, (place, n) in enumerate(known, start=1)]
        return parts, sum(int(n) for place, n in counted if place is None)

    def _shown(self, column: _Column, parts: Sequence[_Part]) -> list[float] | None:
        """The release's rows without a value and with one, and of these those in every part; None if not known."""
        spans = self._spans(column)
        if spans is None:
            return None
        ends = [{"low": RedactedValue(part.low), "high": RedactedValue(part.high)} for part in parts]
        everything = {"low": 1, "high": RedactedValue(column.field.coding.leaves)}
        sums = self.engine.query("measures/count_shown", spans=Markup(spans.text), bands=[everything, *ends])
        counted = {int(number): float(thousandths) / 1000 for number, thousandths in sums}
        return [counted.get(number, 0.0) for number in range(-1, len(ends) + 1)]

    def _spans(self, column: _Column) -> Statement | None:
        """The positions that the release's rows stand for."""
        render, coded, axis = self.engine.render, self.recoding.coded, column.axis
        suppressed_leaf = -1 if self.partition.suppressed_leaf is None else self.partition.suppressed_leaf
        of_leaves = {"leaves": self.partition.leaves, "axis": axis, "suppressed_leaf": suppressed_leaf}
        if axis is None:
            if coded.witness_is_sample or column.field.coding.is_aside:
                return None
            assigned, regions = self.recoding.partition.assigned, self.recoding.regions
            code = column.field.code(Identifier("r"))
            return render("measures/select_kept_spans", code=code, assigned=assigned, regions=regions)
        if column.hierarchy is None:
            return render("measures/select_code_spans", **of_leaves)
        if column.hierarchy.leaves > MOST_GROUPED:
            return None
        levels = [
            {"number": level, "there": axis.is_at("l", level), "shift": shift}
            for level, shift in enumerate(column.hierarchy.shifts)
        ]
        return render(
            "measures/select_group_spans",
            hierarchy=column.hierarchy.stored,
            levels=levels,
            is_null=axis.is_null("l"),
            **of_leaves,
        )


def _ordinal(rank: int) -> str:
    """The label of a value that is not named."""
    ending = {1: "", 2: "2nd ", 3: "3rd "}.get(rank, f"{rank}th ")
    return f"{ending}most frequent"
