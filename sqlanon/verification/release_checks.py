"""The checks of a staged release beside its privacy models; each returns its number of violations, 0 being a pass."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.hierarchies.limits import NO_LIMITS, Limits
from sqlanon.policy import Show
from sqlanon.sql import Expression, Identifier, Relation, Text, free_name, macro
from sqlanon.staging.labels import EVERYTHING, MEMBER, NULL, OPEN, OPEN_SPAN, PLAIN, SEVERAL, SINGLE, VALUES
from sqlanon.values.expressions import comparable, double_of, exact, hashable, text_of
from sqlanon.verification.limited import clamped, is_limit
from sqlanon.verification.policy_labels import Labelled, Ladder, count_untrue_labels
from sqlanon.verification.unknown import KNOWN, count_shown_nulls, with_known

_RANGES_OF = {
    Kind.INTEGER: "BIGINT",
    Kind.DECIMAL: "NUMERIC",
    Kind.FLOAT: "NUMERIC",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
    Kind.TIMESTAMPTZ: "TIMESTAMP WITH TIME ZONE",
}
"""The SQL type of the values in ranges, by their kind."""


@dataclass(frozen=True)
class ReleasedRegion:
    """The published form of a source's quasi-identifier, and the columns of the witness that hold it.

    column: the source's column; raw: the witness's column with its values; cells: the one with what was published, or
    two with the least and greatest value for `show: bounds`; ends: the two with the least and the greatest value of a
    region that was published as a number, if that is to be checked. Bounds that are `boxed`, or of a hierarchy, leave
    out the upper one, and are open where they are NULL.
    hierarchy: the policy's, if it has one.
    exact_ranges: whether a region is no wider than the values of its class.
    limits: the numbers that stand for all beyond them: of labels and ranges those are open ends.
    hides_nulls: whether classes that hold NULL show nothing but NULL.
    """

    column: Column
    raw: str
    cells: tuple[str, ...]
    show: Show = Show.LABEL
    hierarchy: Ladder | None = None
    ends: tuple[str, ...] = ()
    boxed: bool = False
    exact_ranges: bool = False
    limits: Limits = NO_LIMITS
    hides_nulls: bool = False


@dataclass(frozen=True)
class Claims:
    """The claims that the release is held against.

    rows: of the source, with their raw values and the `leaf` of the class that each went to.
    classes: what each class shows, by its `leaf`.
    cells: the columns of the classes, cells and ends, that the rows lack.
    is_sample: whether these are not all rows.
    suppressed_leaf: the leaf of suppressed rows that are shown with `*`, if there is one.
    """

    rows: Relation | Expression
    classes: Relation
    cells: Sequence[Identifier] = ()
    is_sample: bool = False
    suppressed_leaf: int | None = None

    @property
    def witness(self) -> Relation | Expression:
        """The rows, each with what its class shows."""
        return macro("verification.with_cells", self.rows, self.classes, self.cells) if self.cells else self.rows

    @property
    def starred(self) -> int:
        """The leaf of suppressed rows that are shown, or one that no row has."""
        return -1 if self.suppressed_leaf is None else self.suppressed_leaf


def rows_add_up(source_rows: int, staged_rows: int, suppressed: int) -> int:
    """The rows by which the staged ones and those left out miss the source's."""
    return abs(source_rows - staged_rows - suppressed)


def columns_equal(expected: Sequence[object], actual: Sequence[object]) -> int:
    """The places at which a list of columns (names, or names with types) is not what was expected."""
    return sum(wanted != seen for wanted, seen in itertools.zip_longest(expected, actual))


def multisets_equal(
    engine: Engine, source_multiset: Relation | Expression, staged: Relation, columns: Sequence[Column], suppressed: int
) -> int:
    """The rows by which the kept columns, taken together, differ from the source's.

    `source_multiset` has those columns and a column of counts, `n` or the first name like it that is free: how often
    their values occur. The staged rows must be among them, with exactly `suppressed` ones missing. Values are equal
    when they are byte-identical: numbers that print differently are not (1.0 and 1.00, 0 and -0), nor are texts that
    a collation takes for equal. Rows are counted by their values only where digests leave a doubt.
    """
    parts = [part for column in columns for part in exact(engine, column, Markup(Identifier(column.name)))]
    count = free_name("n", [column.name for column in columns])
    if columns and not suppressed and _digests_equal(engine, source_multiset, staged, columns, count):
        return 0
    with engine.grouping_by_hash():
        surplus, missing = engine.query_one(
            "verification/compare_multisets", source=source_multiset, staged=staged, columns=parts, count=count
        )
    return int(surplus) + abs(int(missing) - suppressed)


def _digests_equal(
    engine: Engine,
    source_multiset: Relation | Expression,
    staged: Relation,
    columns: Sequence[Column],
    count: Identifier,
) -> bool:
    """Tell whether both have the same rows, by sums of hashes: other rows would have to sum up alike in 64 bits."""
    names = [(column, Markup(Identifier(column.name))) for column in columns]
    hashed = [part for column, name in names for part in (hashable(engine, column, name), *exact(engine, column, name))]
    (equal,) = engine.query_one(
        "verification/digest_multisets", source=source_multiset, staged=staged, columns=hashed, count=count
    )
    return bool(equal)


def classes_equal(
    engine: Engine,
    witness: Relation | Expression,
    staged: Relation | Expression,
    keys: Sequence[tuple[Expression, Expression]],
    *,
    counted: bool = False,
) -> int:
    """The rows by which the classes of a staged release differ from the source rows that went to them.

    keys: what is equal, as the release has it and as the witness does. counted: each witness stands for `n` equal ones.
    """
    with engine.grouping_by_hash():
        surplus, missing = engine.query_one(
            "verification/compare_classes", witness=witness, staged=staged, keys=keys, counted=counted
        )
    return int(surplus) + int(missing)


def regions_contain(engine: Engine, claims: Claims, regions: Sequence[ReleasedRegion]) -> int:
    """The cells of the witness, over all attributes, that are not true of the value that they stand for."""
    return sum(region_violations(engine, claims, regions))


def region_violations(engine: Engine, claims: Claims, regions: Sequence[ReleasedRegion]) -> tuple[int, ...]:
    """The rows of the witness that each attribute's cells do not cover.

    It takes one statement for all attributes whose cells are the intervals of their classes' own values, one for all
    whose cells are wider intervals, if they cover their values, and one or a few for each other attribute.

    Cells are read by the grammar of docs/labels.md, whatever wrote them; one that can't be read covers nothing. A
    number covers what lies between the ends of its region: a midpoint must be in their middle, a mean between them and,
    where the witness is no sample, the mean of its class's values.
    """
    exact_intervals = [region for region in regions if _has_exact_intervals(region) and not region.hides_nulls]
    wide_intervals = [region for region in regions if _has_wide_intervals(region) and not region.hides_nulls]
    loose = iter(_loose_intervals(engine, claims, exact_intervals))
    untrue = iter(_untrue_intervals(engine, claims, wide_intervals))
    counts = []
    for region in regions:
        if region in exact_intervals:
            counts.append(next(loose))
        elif region in wide_intervals and not next(untrue):
            counts.append(0)
        else:
            counts.append(_violations(engine, claims, region))
    return tuple(counts)


def _has_intervals(region: ReleasedRegion) -> bool:
    """Tell whether cells are texts of intervals that no hierarchy gave."""
    return region.show is Show.LABEL and region.hierarchy is None and region.column.kind in VALUES


def _has_exact_intervals(region: ReleasedRegion) -> bool:
    """Tell whether cells are texts of the intervals from the least to the greatest value of their classes."""
    return _has_intervals(region) and region.exact_ranges


def _has_wide_intervals(region: ReleasedRegion) -> bool:
    """Tell whether cells are texts of intervals that may be wider than the values of their classes."""
    return _has_intervals(region) and not region.exact_ranges


def _hidden_violations(engine: Engine, claims: Claims, region: ReleasedRegion) -> int:
    """Classes that hold NULL show nothing but NULL; what others show covers their values."""
    rows = with_known(claims.witness, region.raw, region.cells, exact_ranges=region.exact_ranges)
    shown = count_shown_nulls(engine, claims.witness, region.raw, region.cells)
    known = replace(region, raw=KNOWN, hides_nulls=False)
    return shown + _violations(engine, replace(claims, rows=rows, cells=()), known)


def _violations(engine: Engine, claims: Claims, region: ReleasedRegion) -> int:
    if region.hides_nulls:
        return _hidden_violations(engine, claims, region)
    if _has_exact_intervals(region):
        return sum(_loose_intervals(engine, claims, [region]))
    if region.show in (Show.MEAN, Show.MIDPOINT):
        return _number_violations(engine, claims, region)
    return _outside(engine, claims, region)


def _outside(engine: Engine, claims: Claims, region: ReleasedRegion) -> int:
    kind, witness = region.column.kind, claims.witness
    if region.show is Show.BOUNDS:
        return _outside_bounds(engine, witness, region, region.cells) + _loose_ends(engine, claims, region)
    if region.hierarchy is not None and region.show is Show.LABEL:
        (cell,) = region.cells
        labelled = Labelled(witness, region.column, region.raw, cell, claims.suppressed_leaf is not None, region.limits)
        return count_untrue_labels(engine, labelled, region.hierarchy)
    raw, *cells = (Markup(Identifier(name)) for name in (region.raw, *region.cells))
    values: dict[str, Any] = {"witness": witness, "raw": comparable(engine, raw, kind)}
    if region.show is Show.RANGE:
        return _count(
            engine, "verification/count_outside_ranges", **values, cell=cells[0], type=Markup(_RANGES_OF[kind])
        )
    values |= {"cell": comparable(engine, cells[0], Kind.TEXT), "everything": Text(EVERYTHING), "null": Text(NULL)}
    if kind in VALUES:
        return _count(engine, "verification/count_outside_intervals", **values, **interval_grammar(region.column))
    values |= set_grammar(region.column)
    outside = _count(engine, "verification/count_outside_sets", **values, single=SINGLE, several=SEVERAL)
    if not region.exact_ranges:
        return outside
    return outside + _count(engine, "verification/count_loose_sets", **values, suppressed_leaf=claims.starred)


def _loose_intervals(engine: Engine, claims: Claims, regions: Sequence[ReleasedRegion]) -> list[int]:
    """Count, of each attribute, the rows of classes whose cell is not the interval of their own values."""
    if not regions:
        return []
    counts = engine.query_one(
        "verification/count_loose_intervals",
        rows=claims.rows,
        classes=claims.classes,
        regions=[_interval_of(engine, region, place) for place, region in enumerate(regions)],
        everything=Text(EVERYTHING),
        null=Text(NULL),
        suppressed_leaf=claims.starred,
    )
    return list(map(int, counts))


def _untrue_intervals(engine: Engine, claims: Claims, regions: Sequence[ReleasedRegion]) -> list[int]:
    """Count, of each attribute, the texts of intervals that do not cover all rows of the classes that show them."""
    if not regions:
        return []
    counts = engine.query_one(
        "verification/count_untrue_intervals",
        rows=claims.rows,
        classes=claims.classes,
        regions=[
            _extent_of(engine, region, place) | interval_grammar(region.column) for place, region in enumerate(regions)
        ],
        everything=Text(EVERYTHING),
        null=Text(NULL),
    )
    return list(map(int, counts))


def _extent_of(engine: Engine, region: ReleasedRegion, place: int) -> dict[str, Any]:
    """The cell of a class, its raw values, and the names of the least and the greatest of these and of their number."""
    raw, cell, *names = (
        Markup(Identifier(name))
        for name in (region.raw, region.cells[0], f"least_{place}", f"greatest_{place}", f"valued_{place}")
    )
    return {
        "raw": comparable(engine, raw, region.column.kind),
        "cell": comparable(engine, cell, Kind.TEXT),
        **dict(zip(("least", "greatest", "valued"), names, strict=True)),
    }


def _interval_of(engine: Engine, region: ReleasedRegion, place: int) -> dict[str, Any]:
    """The same with open ends, and the texts of the two values."""
    column, limits = region.column, region.limits
    extent = _extent_of(engine, region, place)
    return extent | {
        "raw": clamped(engine, extent["raw"], column, limits),
        "least_text": text_of(engine.render, extent["least"], column.kind, column.type),
        "greatest_text": text_of(engine.render, extent["greatest"], column.kind, column.type),
        "opens_low": is_limit(extent["least"], limits.bottom, column),
        "opens_high": is_limit(extent["greatest"], limits.top, column),
    }


def _raw(engine: Engine, region: ReleasedRegion) -> Expression:
    """The number that a raw value stands for, or another raw value."""
    return clamped(engine, Markup(Identifier(region.raw)), region.column, region.limits)


def _loose_ends(engine: Engine, claims: Claims, region: ReleasedRegion) -> int:
    """The rows of classes whose two ends are not their own least and greatest value, where regions are tight."""
    if not region.exact_ranges or region.hierarchy is not None:
        return 0
    ends = region.ends or region.cells
    raw = _raw(engine, region)
    low, high = (Identifier(name) for name in ends)
    return _count(
        engine,
        "verification/count_loose_ends",
        witness=claims.witness,
        raw=raw,
        low=low,
        high=high,
        suppressed_leaf=claims.starred,
    )


def _outside_bounds(
    engine: Engine, witness: Relation | Expression, region: ReleasedRegion, bounds: Sequence[str]
) -> int:
    """The rows whose value is not between two columns: the bounds of a group, where there is a hierarchy."""
    kind, grouped = region.column.kind, region.boxed or region.hierarchy is not None
    ends = (Markup(Identifier(name)) for name in bounds)
    raw, low, high = (comparable(engine, value, kind) for value in (_raw(engine, region), *ends))
    return _count(
        engine, "verification/count_outside_bounds", witness=witness, raw=raw, low=low, high=high, grouped=grouped
    )


def _number_violations(engine: Engine, claims: Claims, region: ReleasedRegion) -> int:
    """The rows that a number does not stand for: beyond its region's ends, or it is not their middle or mean."""
    if not region.ends:
        return 0
    kind, is_middle = region.column.kind, region.show is Show.MIDPOINT
    cell, *columns = (Markup(Identifier(name)) for name in (*region.cells, *region.ends))
    raw, *ends = (double_of(engine.render, column, kind) for column in (_raw(engine, region), *columns))
    low, high = ends if is_middle else columns  # of a mean they are doubles already
    values: dict[str, Any] = {"witness": claims.witness, "cell": cell, "low": low, "high": high}
    untrue = _count(engine, "verification/count_untrue_numbers", **values, is_middle=is_middle)
    if is_middle:
        outside = _outside_bounds(engine, claims.witness, region, region.ends)
        return untrue + outside + _loose_ends(engine, claims, region)
    values |= {"raw": raw, "suppressed_leaf": claims.starred}
    untrue += _count(engine, "verification/count_beyond_ends", **values)
    return untrue if claims.is_sample else untrue + _count(engine, "verification/count_untrue_means", **values)


def interval_grammar(column: Column) -> dict[str, Any]:
    """The patterns of a single value and of a pair, and how their ends are read as values of the column's type."""
    value = VALUES[column.kind]
    return {
        "single": Text(f"^(?:{value})$"),
        "pair": Text(f"^({value}|{OPEN})-({value}|{OPEN})$"),
        "type": Markup(column.type),
        "is_day": column.kind in (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ),
    }


def set_grammar(column: Column) -> dict[str, Any]:
    """The patterns of a member, of an interval of texts and of its two ends; and their type, if it is no text."""
    return {
        "interval": Text(rf"^(?:\[{OPEN_SPAN}\]|[{{]NULL, {OPEN_SPAN}[}}])$"),
        "span": Text(OPEN_SPAN),
        "member": Text(MEMBER),
        "plain": Text(f"^{PLAIN}$"),
        "type": Markup(column.type) if column.kind is Kind.ENUM else None,
    }


def _count(engine: Engine, template: str, **values: Any) -> int:
    (count,) = engine.query_one(template, **values)
    return int(count)
