"""Distributions of columns in the source and in the release, in shares of rows, without a text of the data.

Numbers and dates are counted in bands between round ones; columns with a taxonomy by its groups, which the policy
names; other values by how frequent they are, unnamed. A bar stands
for at least `LEAST` rows, or k if that is more, and counts are rounded to multiples of so many rows: neither a bar nor
the difference of two tells of fewer. Where persons are counted, a bar stands for as many rows as can't be of fewer
persons. Of a large source the bars are those of the witness, which is a random sample then.

In the release the rows of a label count as if they were spread evenly over the values that the label stands for.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlanon.encoding.coded_table import sample_share
from sqlanon.engines.base import Engine
from sqlanon.measures.witness_columns import BarredValues, ColumnCount, CountedColumn, WitnessColumn, witness_columns
from sqlanon.results.measures import Bar, Distribution, Distributions
from sqlanon.sql import Identifier, RedactedValue, Statement
from sqlanon.staging.partition import Partition
from sqlanon.staging.recode import Recoding
from sqlanon.work.workspace import Workspace

LEAST = 5  # rows that a bar stands for, or persons, whatever k
MOST_COLUMNS = 40  # that are looked at, quasi-identifiers first
MOST_GROUPED = 100_000  # values of a hierarchy whose groups are counted


def rows_of_bars(k: int, most: int) -> int:
    """Return how many rows a bar stands for at least, so that they are of k persons.

    most: no person has more rows; 1 where rows are counted.
    """
    return max(k, LEAST) * most


def measure_distributions(
    engine: Engine, workspace: Workspace, recoding: Recoding, partition: Partition, least: int
) -> Distributions:
    """Measure the columns of a recoded source, no bar of fewer rows than `least`, by the witness, or a sample of it.

    partition: the one whose regions the release shows.

    Looks at the witness, where it is, once or twice a column; at the leaves, once a quasi-identifier; and where rows
    were left out, once more at all rows for every kept column.
    """
    whole, recoding = recoding.coded, _drawn(engine, workspace, recoding)
    coded = recoding.coded
    columns = tuple(itertools.islice(witness_columns(coded, partition.axes), MOST_COLUMNS))
    rows, counted = ColumnCount(coded, columns, least).with_rows(engine)
    measuring = _Measuring(engine, recoding, partition, rows, least)
    distributions = tuple(measuring.measure(column, one) for column, one in zip(columns, counted, strict=True))
    if coded.witness != whole.witness:
        workspace.drop(coded.witness)
    return Distributions(rows, least, coded.witness_is_sample, distributions)


def _drawn(engine: Engine, workspace: Workspace, recoding: Recoding) -> Recoding:
    """Draw as many witnesses as a large source has otherwise, where all of its rows are witnesses."""
    coded, share = recoding.coded, sample_share(recoding.coded.source_rows)
    if coded.witness_is_sample or share == 1:
        return recoding
    drawn = workspace.table("drawn_witness")
    engine.run("measures/draw_witness", drawn=drawn, witness=coded.witness, share=share)
    engine.analyze(drawn)
    return replace(recoding, coded=replace(coded, witness=drawn, witness_share=share))


@dataclass(frozen=True)
class _Measuring:
    """A recoded source that is looked at, of which the witness has so many rows."""

    engine: Engine
    recoding: Recoding
    partition: Partition
    rows: int
    least: int

    def measure(self, column: WitnessColumn, counted: CountedColumn) -> Distribution:
        """The bars of a column."""
        parts, nulls = counted.parts, counted.nulls
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
        return Distribution(attribute.name, attribute.role.value, counted.basis, tuple(bars))

    def _bar(self, label: str, before: int, after: float | None, shown: Sequence[float] | None) -> Bar:
        total = sum(shown[:2]) if shown else 0
        return Bar(label, self._share(before, self.rows), None if after is None else self._share(after, total))

    def _share(self, count: float, rows: float) -> float:
        """A share of rows whose count is rounded to a multiple of the least one."""
        return min(1.0, round(math.floor(count / self.least + 0.5) * self.least / max(1, rows), 4))

    def _shown(self, column: WitnessColumn, parts: Sequence[BarredValues]) -> list[float] | None:
        """The release's rows without a value and with one, and of these those in every part; None if not known."""
        spans = self._spans(column)
        if spans is None:
            return None
        ends = [{"low": RedactedValue(part.low), "high": RedactedValue(part.high)} for part in parts]
        everything = {"low": 1, "high": RedactedValue(column.field.coding.leaves)}
        sums = self.engine.query("measures/count_shown", spans=spans, bands=[everything, *ends])
        counted = {int(number): float(thousandths) / 1000 for number, thousandths in sums}
        return [counted.get(number, 0.0) for number in range(-1, len(ends) + 1)]

    def _spans(self, column: WitnessColumn) -> Statement | None:
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
