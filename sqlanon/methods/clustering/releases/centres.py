"""Centres of clusters, which the release shows in place of values; rescaled, they keep each column's variance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from markupsafe import Markup

from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.coordinates import LARGEST_EXPONENT, POSITION_BITS, Coordinate, Scale
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Kind
from sqlanon.errors import ProtectionError
from sqlanon.policy import Show
from sqlanon.releases.clustering import Clusters
from sqlanon.sql import Expression, Identifier, RedactedValue, Relation, macro
from sqlanon.staging.cells import Cell, Shown
from sqlanon.staging.partition import Partition
from sqlanon.staging.recode import Recoding, cell_name
from sqlanon.work.workspace import Workspace

FIXED_BITS = 52  # of a number from the least one on, in sums of numbers that are looked up


FIXED = 2**60  # units to 1, in sums of numbers between -1 and 1


LEAST_SHARE = 1e-12  # of a column's variance that its centres have, below which it is the noise of rounding


@dataclass(frozen=True)
class Centre(Shown):
    """An axis that is shown by the centre of each cluster, under its own name."""

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The column of the release that stands for this quasi-identifier."""
        return (Cell(Identifier(self.name), macro("values.list", [None]), ()),)


def create_centres(engine: Engine, workspace: Workspace, coded: CodedTable, clusters: Clusters) -> Recoding:
    """Write down what each cluster shows: the mean of its numbers, exactly summed, and the centre of its categories."""
    regions = workspace.table("regions")
    centres = [_centre(engine, workspace, clusters, one) for one in clusters.coordinates]
    order = [_order(engine, one) for one in clusters.coordinates]
    engine.run(
        "methods/clustering/search/create_centres",
        regions=regions,
        assigned=clusters.assigned,
        centres=centres,
        order=order,
    )
    workspace.drop(*(one["centres"] for one in centres if one["centres"] is not None))
    if clusters.facts.keep == "variance":
        regions = rescale_centres(engine, workspace, clusters.assigned, regions, centres, order)
    engine.analyze(regions)
    partition = Partition(
        clusters.axes, regions, clusters.assigned, clusters.rounds, clusters.omitted, facts=clusters.facts
    )
    shown = tuple(Centre(axis, engine) for axis in clusters.axes)
    cells = tuple(cell for one in shown for cell in one.cells)
    return Recoding(regions, cells, shown, partition, coded, has_ends=False)


def _centre(engine: Engine, workspace: Workspace, clusters: Clusters, one: Coordinate) -> dict[str, Any]:
    """The values of one attribute for the statement that writes centres.

    A coded number is so many units of `1 / scale_of_units` from code 1 on, which are added up as they are; a looked-up
    one is added up in units of `1 / power` from the least number on. Numbers between `-small` and `small`, of which a
    unit is more than a billionth, are added up as they are where a cluster has no others.
    """
    coding, power = one.field.coding, math.ldexp(1.0, one.exponent + FIXED_BITS - POSITION_BITS)
    return {
        "number": one.number,
        "name": one.field.attribute.name,
        "scale": one.scale,
        "cell": cell_name(one.number),
        "code": one.code,
        "before": coding.before,
        "scale_of_units": coding.scale or 1,
        "dictionary": one.dictionary,
        "alias": one.alias,
        "value": one.value,
        "low": one.low,
        "power": power,
        "small": RedactedValue(1e9 / power),
        "order": one.order,
        "type": Markup(one.field.attribute.column.type),
        "of_code": coding.value_of(macro("relations.column", Identifier(f"modes_{one.number}"), Identifier("code")))
        if one.scale is Scale.NOMINAL
        else None,
        "centres": _categories(engine, workspace, clusters, one),
    }


def _categories(engine: Engine, workspace: Workspace, clusters: Clusters, one: Coordinate) -> Relation | None:
    """Create the table of what each cluster shows of its categories; None of numbers."""
    table, assigned = workspace.table("centre", one.number), clusters.assigned
    if one.scale is Scale.CONTINUOUS:
        return None
    if one.scale is Scale.HIERARCHICAL:
        axis = clusters.axes[one.number]
        (cell,) = Shown(axis, engine).cells
        engine.run(
            "methods/clustering/search/create_ancestors",
            ancestors=table,
            assigned=assigned,
            axis=axis,
            code=one.code,
            dimension=axis.dimension,
            label=cell.value,
        )
    elif one.scale is Scale.NOMINAL:
        engine.run("methods/clustering/search/create_modes", modes=table, assigned=assigned, code=one.code)
    else:
        is_convex = one.field.attribute.show is Show.CONVEX_MEDIAN
        engine.run(
            "methods/clustering/search/create_medians",
            medians=table,
            rows=assigned,
            coordinates=[one],
            is_convex=is_convex,
        )
    return table


def _order(engine: Engine, one: Coordinate) -> Expression:
    """The key by which centres are ordered."""
    cell = Markup(cell_name(one.number))
    shows_values = one.scale in (Scale.ORDINAL, Scale.NOMINAL)
    is_text = one.scale is Scale.HIERARCHICAL or (shows_values and one.field.attribute.column.kind is Kind.TEXT)
    return engine.render.macro("collate", cell) if is_text else cell


@dataclass(frozen=True)
class Stretch:
    """The line by which the centres of a column are moved: its mean, the mean of the centres, and the factor."""

    mean: RedactedValue
    shown_mean: RedactedValue
    factor: RedactedValue


def rescale_centres(
    engine: Engine,
    workspace: Workspace,
    assigned: Relation,
    regions: Relation,
    centres: Sequence[dict[str, Any]],
    order: Sequence[Expression],
) -> Relation:
    """Create the regions anew with rescaled numbers; `centres` are the values of the statement that wrote them.

    Raises ProtectionError where the rows of a column differ and its centres don't.
    """
    numbers = [one for one in centres if one["scale"] is Scale.CONTINUOUS]
    stretches = _stretches(engine, assigned, regions, numbers)
    rescaled = workspace.table("rescaled")
    cells = [{"cell": one["cell"], "stretch": stretches.get(one["number"])} for one in centres]
    engine.run("releases/rescale_centres", rescaled=rescaled, regions=regions, cells=cells, order=order)
    workspace.drop(regions)
    return rescaled


def _stretches(
    engine: Engine, assigned: Relation, regions: Relation, numbers: Sequence[dict[str, Any]]
) -> dict[int, Stretch]:
    """Measure the stretch of each column that is not constant."""
    ranges = list(map(float, engine.query_one("releases/measure_ranges", assigned=assigned, numbers=numbers)))
    least = math.ldexp(1.0, -LARGEST_EXPONENT)
    varying = [
        one | {"centre": RedactedValue(low / 2 + high / 2), "factor": RedactedValue(_scale(high / 2 - low / 2))}
        for one, low, high in zip(numbers, ranges[::2], ranges[1::2], strict=True)
        if high / 2 - low / 2 > least
    ]
    if not varying:
        return {}
    rows, shown = engine.query("releases/measure_spreads", assigned=assigned, regions=regions, numbers=varying)
    return {
        one["number"]: _stretch(one, _mean_and_variance(rows, place), _mean_and_variance(shown, place))
        for place, one in enumerate(varying)
    }


def _scale(half: float) -> float:
    """Find the power of two by which differences of so much at most come to lie between -1 and 1."""
    return math.ldexp(1.0, -math.frexp(half)[1])


def _mean_and_variance(row: Sequence[Any], place: int) -> tuple[Fraction, Fraction]:
    """Read mean and variance out of the sums."""
    rows, total, squares = (int(row[column]) for column in (1, 2 + 2 * place, 3 + 2 * place))
    mean = Fraction(total, rows * FIXED)
    return mean, Fraction(squares, rows * FIXED) - mean**2


def _stretch(one: dict[str, Any], rows: tuple[Fraction, Fraction], shown: tuple[Fraction, Fraction]) -> Stretch:
    (mean, variance), (shown_mean, shown_variance) = rows, shown
    if shown_variance <= LEAST_SHARE * float(variance):
        raise ProtectionError(
            f"All clusters have the same mean in column '{one['name']}', so that keep: variance has nothing to rescale;"
            " leave it out, or ask for smaller clusters."
        )
    centre, factor = float(one["centre"].value), float(one["factor"].value)
    return Stretch(
        RedactedValue(centre + float(mean) / factor),
        RedactedValue(centre + float(shown_mean) / factor),
        RedactedValue(math.sqrt(variance / shown_variance)),
    )
