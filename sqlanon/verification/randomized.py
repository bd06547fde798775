"""Checks of releases whose values were changed at random, from raw values, the policy, and what is staged.

That no value lies where its change can't have put it, and that released values are distributed as source and change
together say, can be seen in the tables. That the key was secret and draws are independent can't. A distribution is
tested by bounds that a release made as it should be exceeds once in 10^9 times: for numbers, the greatest difference of
the share below a bound (Bretagnolle, 1980, for independent draws of different distributions); for categories, the
difference of a count from its expectation (Hoeffding, 1963).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.models.randomization.changes import AddedNoise, ChangeFact, Response
from sqlanon.plan.randomized import Randomized, RandomizedNumber, RandomizedPlan
from sqlanon.results.measures import Check
from sqlanon.sql import Identifier, RedactedValue, Relation
from sqlanon.values.digest import digest_head, table_statement
from sqlanon.values.expressions import double_of, text_of

_BINS = 256
_FALSE_ALARM = 1e-9


@dataclass(frozen=True)
class _Bins:
    """Rows of a column of numbers by bins of a width, from a least number on."""

    low: float
    width: float
    counts: Mapping[int, int]


@dataclass(frozen=True)
class OriginalFigures:
    """The figures of the source that a release is held against, of the snapshot that the release is made of.

    kept: digest of the columns that are released as they are. bins: of randomized numbers. counts: of categories.
    """

    rows: int
    kept: str
    bins: Mapping[str, _Bins]
    counts: Mapping[str, Mapping[str, int]]


def measure_figures(engine: Engine, plan: RandomizedPlan) -> OriginalFigures:
    """Measure the source by its raw values; call it in the transaction that stages the release."""
    (rows,) = engine.query_one("count_rows", table=plan.source)
    bins, counts = {}, {}
    for name, one in plan.randomized.items():
        if isinstance(one, RandomizedNumber):
            bins[name] = _measure_bins(engine, plan.source, one.column, *_ends(engine, plan.source, one.column))
        else:
            counts[name] = _count_values(engine, plan.source, one.column)
    return OriginalFigures(int(rows), _digest(engine, plan.source, plan.kept), bins, counts)


def check_randomized(
    engine: Engine, plan: RandomizedPlan, figures: OriginalFigures, release: Relation, noise: Relation
) -> dict[str, Check]:
    """Check a staged release and its table of changes, by the names of the checks."""
    columns = engine.columns(release)
    wanted = [(one.name, one.type) for one in plan.columns]
    differing = int([(one.name, one.type) for one in columns] != wanted)
    checks = {"columns_equal": Check(differing, len(wanted)), "changes_told": _check_facts(engine, plan, noise)}
    if differing:
        return checks
    (rows,) = engine.query_one("count_rows", table=release)
    checks["rows_equal"] = Check(abs(int(rows) - figures.rows), figures.rows)
    kept = int(_digest(engine, release, plan.kept) != figures.kept)
    checks["kept_columns_equal"] = Check(kept, len(plan.kept))
    impossible = [_count_impossible(engine, release, one, figures) for one in plan.randomized.values()]
    checks["values_possible"] = Check(sum(impossible), figures.rows * len(impossible))
    unlike = [not _fits(engine, release, one, figures) for one in plan.randomized.values()]
    checks["distributions_fit"] = Check(sum(unlike), len(unlike))
    return checks


def _digest(engine: Engine, relation: Relation, columns: Sequence[Column]) -> str:
    """Digest some columns of a relation, as a multiset of rows."""
    if not columns:
        return ""
    return digest_head(columns) + " ".join(map(str, engine.fetch_one(table_statement(engine, relation, columns))))


def _check_facts(engine: Engine, plan: RandomizedPlan, noise: Relation) -> Check:
    """Hold the table of changes against the policy's."""
    stated = {_comparable(row) for row in engine.query("randomize/list_changes", noise=noise)}
    wanted = {_comparable(row) for change in plan.changes for row in change.facts()}
    return Check(len(stated ^ wanted), len(wanted))


def _comparable(row: Sequence[object]) -> ChangeFact:
    attribute, method, parameter, true, shown, amount = row
    texts = (str(attribute), str(method), str(parameter))
    return (
        *texts,
        None if true is None else str(true),
        None if shown is None else str(shown),
        None if amount is None else float(str(amount)),
    )


def _ends(engine: Engine, relation: Relation, column: Column) -> tuple[float, float]:
    value = double_of(engine.render, Markup(Identifier(column.name)), column.kind)
    low, high = engine.query_one("randomize/measure_ends", relation=relation, number=value)
    return float(low), float(high)


def _measure_bins(engine: Engine, relation: Relation, column: Column, low: float, high: float) -> _Bins:
    width = max((high - low) / _BINS, 2.0**-1000) or 1.0
    counts = engine.query(
        "randomize/count_bins",
        relation=relation,
        number=double_of(engine.render, Markup(Identifier(column.name)), column.kind),
        low=RedactedValue(low),
        width=RedactedValue(width),
        last=_BINS,
    )
    return _Bins(low, width, {int(place): int(rows) for place, rows in counts})


def _count_values(engine: Engine, relation: Relation, column: Column) -> dict[str, int]:
    text = text_of(engine.render, Markup(Identifier(column.name)), column.kind, column.type)
    return {
        str(value): int(rows) for value, rows in engine.query("randomize/count_values", relation=relation, text=text)
    }


def _reach(one: RandomizedNumber) -> float:
    """The greatest change of a number: noise that is drawn, and the rounding of floats to units."""
    rounding = 0.5 if one.column.kind is Kind.FLOAT else 0.0
    return (one.draws.greatest + rounding) * one.change.unit


def _possible(one: RandomizedNumber, bins: _Bins) -> tuple[float, float]:
    """The least and the greatest number that may be released."""
    reach, slack = _reach(one), one.change.unit * 1e-6
    low, high = bins.low - reach, bins.low + bins.width * _BINS + reach
    if one.change.limits is not None:
        low, high = max(low, one.change.limits[0]), min(high, one.change.limits[1])
    return low - slack, high + slack


def _count_impossible(engine: Engine, release: Relation, one: Randomized, figures: OriginalFigures) -> int:
    """Count the released values that the change can't give: too far off, between the units, or not declared."""
    value = Markup(Identifier(one.column.name))
    if not isinstance(one, RandomizedNumber):
        counts = _count_values(engine, release, one.column)
        return sum(rows for text, rows in counts.items() if text not in one.change.released)
    low, high = _possible(one, figures.bins[one.column.name])
    (count,) = engine.query_one(
        "randomize/count_impossible",
        release=release,
        value=value,
        number=double_of(engine.render, value, one.column.kind),
        low=RedactedValue(low),
        high=RedactedValue(high),
        unit=one.change.unit if one.column.kind is Kind.FLOAT else None,
    )
    return int(count)


def _fits(engine: Engine, release: Relation, one: Randomized, figures: OriginalFigures) -> bool:
    """Tell whether released values are distributed as those of the source and their change say."""
    name = one.column.name
    if isinstance(one, RandomizedNumber):
        bins = figures.bins[name]
        low, high = _possible(one, bins)
        released = _measure_bins(engine, release, one.column, low, high)
        return numbers_fit(bins, released, one.change, figures.rows)
    counts = _count_values(engine, release, one.column)
    return categories_fit(figures.counts[name], counts, one.change, figures.rows)


def numbers_fit(source: _Bins, released: _Bins, change: AddedNoise, rows: int) -> bool:
    """Hold the shares of released numbers below the bounds of bins against those that are expected.

    A number of the source may lie anywhere in its bin, by which the expected share is bounded from both sides.
    """
    allowed = math.sqrt(math.log(2 * math.e / _FALSE_ALARM) / 2 / rows)
    function, below = change.distribution.function, 0
    for place in range(1, _BINS):
        below += released.counts.get(place - 1, 0)
        bound = released.low + place * released.width
        starts = [(source.low + bin_ * source.width, count) for bin_, count in source.counts.items()]
        most = math.fsum(count * function(bound - start + change.unit) for start, count in starts) / rows
        least = (
            math.fsum(count * function(bound - start - source.width - change.unit) for start, count in starts) / rows
        )
        if not least - allowed <= below / rows <= most + allowed:
            return False
    return True


def categories_fit(source: Mapping[str, int], released: Mapping[str, int], change: Response, rows: int) -> bool:
    """Hold the counts of released values against those that are expected."""
    allowed = math.sqrt(math.log(2 * len(change.released) / _FALSE_ALARM) / 2 * rows)
    true = [source.get(value, 0) for value in change.values]
    for place, value in enumerate(change.released):
        expected = math.fsum(count * row[place] for count, row in zip(true, change.matrix, strict=True))
        if abs(released.get(value, 0) - expected) > allowed:
            return False
    return True
