"""Checks of uncertain values: that k rows are expected to fit, and that noise has the sizes that are released.

The sizes that a run chose for values are a witness, of which nothing is taken on trust: held against the source's raw
values, each has one, rows of a neighbourhood have the same, and of each the expectation is at least k, by its
definition, for every pair of values of a neighbourhood by itself. Held against the release, each size is that of as
many rows, and the numbers released with it are distributed as the values of these rows and noise of this size.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.methods.randomization.columns.numbers import UncertainColumn, in_units
from sqlanon.models.randomization.changes import greatest_released
from sqlanon.models.randomization.spreads import is_spread
from sqlanon.results.measures import Check
from sqlanon.sql import Expression, Identifier, Relation, macro
from sqlanon.verification.distributions import BinnedNumbers, numbers_fit

_BINS = 64
_MOST_PAIRS = 20_000_000
_TOLERANCE = 1e-6  # of an expectation, which is a sum of rounded probabilities
_SLACK = 1e-6  # of a number that its type rounds


@dataclass(frozen=True)
class UncertainFigures:
    """The figures of a column of the source and of the sizes of noise that its values have.

    wrong: rows without a size, and values and neighbourhoods with several. checked: the rows whose expectation was
    looked at; failing: those of them with less than k; least: the least expectation. numbers: by spread.
    """

    wrong: int
    checked: int
    failing: int
    least: float
    numbers: Mapping[int | None, BinnedNumbers]


def measure_uncertain(
    engine: Engine, source: Relation, columns: Mapping[str, UncertainColumn], spreads: Mapping[str, Relation]
) -> dict[str, UncertainFigures]:
    """Measure the uncertain columns of the source; in the transaction that the release is made in."""
    return {name: _measure(engine, source, one, spreads[name]) for name, one in columns.items()}


def _measure(engine: Engine, source: Relation, one: UncertainColumn, spreads: Relation) -> UncertainFigures:
    units, value = in_units(one.column, one.change.unit), Markup(Identifier(one.column.name))
    (values,) = engine.query_one("count_rows", table=spreads)
    unassigned, several, mixed, checked, failing, least = engine.query_one(
        "methods/randomization/count_fits",
        source=source,
        spreads=spreads,
        column=units,
        value=value,
        k=one.change.k * (1 - _TOLERANCE),
        parts=_parts(int(values), one),
        fit=macro(f"fits.{one.change.error}", Identifier("pairs")),
    )
    held = _held(one.column.name)
    numbers = _count(
        engine,
        relation=source,
        number=engine.render.macro("double", held),
        spread=macro("relations.column", Identifier("spreads"), Identifier("spread")),
        spreads=spreads,
        value=engine.render.macro("draws.whole", units, held),
    )
    wrong = int(unassigned) + int(several) + int(mixed)
    return UncertainFigures(wrong, int(checked), int(failing), float(least or 0), numbers)


def _parts(values: int, one: UncertainColumn) -> int:
    """Say of how many neighbourhoods one is looked at, so that there are not too many pairs of values."""
    return 1 + values * 3 * one.change.rule.least_rows(one.change.k) // _MOST_PAIRS


def count_released(engine: Engine, release: Relation, one: UncertainColumn) -> dict[int | None, BinnedNumbers]:
    """Count released rows by the sizes of their noise, in units, and by bins of their numbers."""
    unit = one.change.unit
    return _count(
        engine,
        relation=release,
        number=engine.render.macro("double", _held(one.column.name)),
        spread=engine.render.macro(
            "draws.whole_if_any", in_units(one.column, unit), _held(one.spread.name), greatest_released(unit)
        ),
        spreads=None,
        value=None,
    )


def count_odd_spreads(engine: Engine, release: Relation, one: UncertainColumn) -> int:
    """Count the rows of a release whose size of noise is none, or that of fewer rows than a neighbourhood has."""
    shown = count_released(engine, release, one)
    return one.change.rule.count_odd(one.change.k, {spread: of.rows for spread, of in shown.items()})


def _held(name: str) -> Expression:
    return macro("relations.column", Identifier("held"), Identifier(name))


def _count(engine: Engine, **given: Any) -> dict[int | None, BinnedNumbers]:
    counts: dict[int | None, dict[int, int]] = defaultdict(dict)
    ends: dict[int | None, tuple[float, float]] = {}
    for spread, low, high, bin_, n in engine.query("methods/randomization/count_by_spread", last=_BINS, **given):
        counts[spread][int(bin_)] = int(n)
        ends[spread] = (float(low), float(high))
    return {
        spread: BinnedNumbers(low, (high - low) / _BINS or 1.0, counts[spread], _BINS)
        for spread, (low, high) in ends.items()
    }


def count_different(one: Mapping[int | None, BinnedNumbers], other: Mapping[int | None, BinnedNumbers]) -> int:
    """Count the rows by which the sizes of noise of two tables differ."""
    rows = [{spread: numbers.rows for spread, numbers in side.items()} for side in (one, other)]
    return sum(abs(rows[0].get(spread, 0) - rows[1].get(spread, 0)) for spread in {*one, *other})


def spread_checks(
    figures: Sequence[UncertainFigures], released: Sequence[Mapping[int | None, BinnedNumbers]]
) -> dict[str, Check]:
    """Check that k rows are expected to fit, and that the release has the sizes of the source's values."""
    different = sum(
        one.wrong + count_different(one.numbers, shown) for one, shown in zip(figures, released, strict=True)
    )
    return {
        "expected_rows_fit": Check(sum(one.failing for one in figures), sum(one.checked for one in figures)),
        "spreads_equal": Check(different, sum(sum(n.rows for n in one.numbers.values()) for one in figures)),
    }


def count_impossible(
    one: UncertainColumn, source: Mapping[int | None, BinnedNumbers], released: Mapping[int | None, BinnedNumbers]
) -> int:
    """Count the sizes of noise that are none, or whose released numbers lie where their noise can't have put them."""
    return sum(not _is_possible(one, spread, source, shown) for spread, shown in released.items())


def _is_possible(
    one: UncertainColumn, spread: int | None, source: Mapping[int | None, BinnedNumbers], shown: BinnedNumbers
) -> bool:
    if spread is None or spread not in source or not is_spread(spread):
        return False
    true = source[spread]
    draws = one.change.rule.draws(spread)
    reach = (draws.greatest + 0.5) * one.change.unit
    slack = _SLACK * (one.change.unit + max(abs(shown.low), abs(shown.high)))
    return true.low - reach - slack <= shown.low and shown.high <= true.high + reach + slack


def all_fit(
    one: UncertainColumn, source: Mapping[int | None, BinnedNumbers], released: Mapping[int | None, BinnedNumbers]
) -> bool:
    """Tell whether the numbers released with each size are distributed as their originals and noise of this size."""
    return all(
        spread is not None
        and spread in released
        and numbers_fit(true, released[spread], one.change.noise(spread), true.rows, tests=len(source))
        for spread, true in source.items()
    )
