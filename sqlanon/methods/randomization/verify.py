"""Checks of releases whose values were changed at random, from raw values, the policy, and what is staged.

That no value lies where its change can't have put it, and that released values are distributed as source and change
together say, can be seen in the tables. That the key was secret and draws are independent can't.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.methods.randomization.columns.categories import RandomizedCategory
from sqlanon.methods.randomization.columns.numbers import RandomizedNumber, UncertainColumn
from sqlanon.methods.randomization.columns.plan_columns import Drawn
from sqlanon.methods.randomization.plan import RandomizedPlan
from sqlanon.methods.randomization.verify_uncertain import (
    UncertainFigures,
    all_fit,
    count_impossible,
    count_released,
    measure_uncertain,
    spread_checks,
)
from sqlanon.models.randomization.changes import ChangeFact, RandomChange, greatest_released
from sqlanon.results.measures import Check
from sqlanon.sql import Expression, Identifier, RedactedValue, Relation
from sqlanon.values.expressions import exact, hashable, text_of
from sqlanon.verification.distributions import BINS, BinnedNumbers, categories_fit, numbers_fit


@dataclass(frozen=True)
class OriginalFigures:
    """The figures of the source that a release is held against, of the snapshot that the release is made of.

    kept: digest of the columns that are released as they are, None without any. swapped: digests of the columns whose
    values are exchanged, each alone. bins: of randomized numbers. counts: of categories. uncertain: of numbers whose
    noise has sizes of their own.
    """

    rows: int
    kept: str | None
    swapped: Sequence[str]
    bins: Mapping[str, BinnedNumbers]
    counts: Mapping[str, Mapping[str, int]]
    uncertain: Mapping[str, UncertainFigures] = field(default_factory=dict)


@dataclass(frozen=True)
class CheckedRelease:
    """The checks of a staged release by their names, and the sum of the hashes of its rows.

    The sum tells later whether the release was changed; it is of one version of an engine. None where columns differ.
    """

    checks: Mapping[str, Check]
    row_hashes: str | None = None


def measure_figures(
    engine: Engine, plan: RandomizedPlan, spreads: Mapping[str, Relation] | None = None
) -> OriginalFigures:
    """Measure the source by its raw values, in two scans, and two of each uncertain column.

    Call it in the transaction that stages the release. spreads: the sizes of noise of uncertain columns.
    """
    rows, kept, *figures = engine.query_one(
        "methods/randomization/summarize_rows",
        relation=plan.source,
        kept=hashed(engine, plan.kept),
        swapped=_hashed_alone(engine, plan),
        numbers=[_number(engine, name) for name in plan.numbers],
    )
    swapped, ends = figures[: len(plan.swapped)], figures[len(plan.swapped) :]
    pairs = zip(ends[::2], ends[1::2], strict=True)
    spans = {name: (float(low), float(high)) for name, (low, high) in zip(plan.numbers, pairs, strict=True)}
    bins, counts = count_values(engine, plan.drawn, plan.source, spans)
    uncertain = measure_uncertain(engine, plan.source, plan.uncertain, spreads or {})
    return OriginalFigures(int(rows), kept, swapped, bins, counts, uncertain)


def check_randomized(
    engine: Engine, plan: RandomizedPlan, figures: OriginalFigures, release: Relation, noise: Relation
) -> CheckedRelease:
    """Check a staged release and its table of changes, in two scans of the release and one of each uncertain column."""
    columns = engine.columns(release)
    wanted = [(one.name, one.type) for one in plan.released]
    differing = int([(one.name, one.type) for one in columns] != wanted)
    checks = {
        "columns_equal": Check(differing, len(wanted)),
        "changes_told": check_facts(engine, plan.changes, noise),
    }
    if differing:
        return CheckedRelease(checks)
    spans = {name: _possible(one, figures.bins[name]) for name, one in plan.numbers.items()}
    rows, hashes, kept, *counted = engine.query_one(
        "methods/randomization/summarize_released",
        relation=release,
        whole=hashed(engine, plan.released),
        kept=hashed(engine, plan.kept),
        swapped=_hashed_alone(engine, plan),
        numbers=[
            *(
                bounded(engine, one.column, one.change.unit, tuple(map(RedactedValue, spans[name])))
                for name, one in plan.numbers.items()
            ),
            *(described for one in plan.uncertain.values() for described in bounded_pair(engine, one)),
        ],
    )
    swapped, impossible = counted[: len(plan.swapped)], counted[len(plan.swapped) :]
    bins, counts = count_values(engine, plan.drawn, release, spans)
    foreign = [count_foreign(one, counts[name]) for name, one in plan.categories.items()]
    unlike = [not _fits(one, figures, bins, counts) for one in plan.drawn]
    shown = {name: count_released(engine, release, one) for name, one in plan.uncertain.items()}
    for name, one in plan.uncertain.items():
        true = figures.uncertain[name].numbers
        foreign.append(count_impossible(one, true, shown[name]))
        unlike.append(not all_fit(one, true, shown[name]))
    altered = sum(one != other for one, other in zip(swapped, figures.swapped, strict=True))
    checks |= {
        "rows_equal": Check(abs(int(rows) - figures.rows), figures.rows),
        "kept_columns_equal": Check(int(kept != figures.kept), len(plan.kept)),
        **({"swapped_columns_equal": Check(altered, len(plan.swapped))} if plan.swapped else {}),
        "values_possible": Check(sum(map(int, impossible)) + sum(foreign), figures.rows * len(unlike)),
        "distributions_fit": Check(sum(unlike), len(unlike)),
        **(spread_checks(list(figures.uncertain.values()), list(shown.values())) if plan.uncertain else {}),
    }
    return CheckedRelease(checks, hashes)


def _hashed_alone(engine: Engine, plan: RandomizedPlan) -> list[list[Expression]]:
    """Each column whose values are swapped, as a hash of a row takes it."""
    return [hashed(engine, [one.column]) for one in plan.swapped.values()]


def hashed(engine: Engine, columns: Sequence[Column]) -> list[Expression]:
    """Columns whose values are released as they are, as a hash of a row takes them; see `digest_of_row`."""
    names = [(column, Markup(Identifier(column.name))) for column in columns]
    return [part for column, name in names for part in (hashable(engine, column, name), *exact(engine, column, name))]


def _number(engine: Engine, name: str) -> Expression:
    """A randomized number as a double; those of a size that doubles don't hold exactly are refused before."""
    return engine.render.macro("double", Markup(Identifier(name)))


def bounded(engine: Engine, column: Column, unit: float, span: tuple[Any, ...]) -> dict[str, Any]:
    """A column of released numbers for the statement, with what a number can be; redacted where rows tell it."""
    return {
        "value": Markup(Identifier(column.name)),
        "number": _number(engine, column.name),
        "low": span[0],
        "high": span[1],
        "unit": unit if column.kind is Kind.FLOAT else None,
    }


def bounded_pair(engine: Engine, one: UncertainColumn) -> list[dict[str, Any]]:
    """The column of uncertain numbers and that of the sizes of their noise for the statement; of any number."""
    unit = one.change.unit
    most = greatest_released(unit)
    return [bounded(engine, one.column, unit, (-most, most)), bounded(engine, one.spread, unit, (unit / 2, most))]


def count_values(
    engine: Engine, columns: Sequence[Drawn], relation: Relation, spans: Mapping[str, tuple[float, float]]
) -> tuple[dict[str, BinnedNumbers], dict[str, dict[str, int]]]:
    """Count rows by the bins of numbers, over their spans, and by the values of categories; one scan, if any."""
    described: list[dict[str, Any]] = []
    widths = {name: max((high - low) / BINS, 2.0**-1000) or 1.0 for name, (low, high) in spans.items()}
    for one in columns:
        name, value = one.column.name, Markup(Identifier(one.column.name))
        if isinstance(one, RandomizedNumber):
            low, width = RedactedValue(spans[name][0]), RedactedValue(widths[name])
            described.append({"text": None, "number": _number(engine, name), "low": low, "width": width})
        else:
            described.append({"text": text_of(engine.render, value, one.column.kind, one.column.type)})
    if not columns:
        return {}, {}
    counted: list[dict[Any, int]] = [{} for _ in columns]
    for place, *values, rows in engine.query(
        "methods/randomization/count_values", relation=relation, columns=described, last=BINS
    ):
        counted[int(place)][values[int(place)]] = int(rows)
    by_name = {one.column.name: counts for one, counts in zip(columns, counted, strict=True)}
    bins = {name: BinnedNumbers(span[0], widths[name], by_name.pop(name)) for name, span in spans.items()}
    return bins, by_name


def check_facts(engine: Engine, changes: Sequence[RandomChange], noise: Relation) -> Check:
    """Hold the table of changes against the policy's."""
    stated = {comparable_fact(row) for row in engine.query("methods/randomization/list_changes", noise=noise)}
    wanted = {comparable_fact(row) for change in changes for row in change.facts()}
    return Check(len(stated ^ wanted), len(wanted))


def comparable_fact(row: Sequence[object]) -> ChangeFact:
    """Write a row of a table of changes so that it equals another one by its values alone."""
    attribute, method, parameter, true, shown, amount = row
    texts = (str(attribute), str(method), str(parameter))
    return (
        *texts,
        None if true is None else str(true),
        None if shown is None else str(shown),
        None if amount is None else float(str(amount)),
    )


def reach_of(one: RandomizedNumber) -> float:
    """The greatest change of a number: noise that is drawn, and the rounding of floats to units."""
    rounding = 0.5 if one.column.kind is Kind.FLOAT else 0.0
    return (one.draws.greatest + rounding) * one.change.unit


def _possible(one: RandomizedNumber, bins: BinnedNumbers) -> tuple[float, float]:
    """The least and the greatest number that may be released."""
    reach, slack = reach_of(one), one.change.unit * 1e-6
    low, high = bins.low - reach, bins.high + reach
    if one.change.limits is not None:
        low, high = max(low, one.change.limits[0]), min(high, one.change.limits[1])
    return low - slack, high + slack


def count_foreign(one: RandomizedCategory, counts: Mapping[str, int]) -> int:
    """Count the released values of a category that are not declared, or that nothing becomes."""
    return sum(rows for text, rows in counts.items() if text not in one.change.released)


def _fits(
    one: Drawn,
    figures: OriginalFigures,
    bins: Mapping[str, BinnedNumbers],
    counts: Mapping[str, Mapping[str, int]],
) -> bool:
    """Tell whether released values are distributed as those of the source and their change say."""
    name = one.column.name
    if isinstance(one, RandomizedNumber):
        return numbers_fit(figures.bins[name], bins[name], one.change, figures.rows)
    return categories_fit(figures.counts[name], counts[name], one.change, figures.rows)
