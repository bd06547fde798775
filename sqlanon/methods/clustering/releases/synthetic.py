"""Synthetic rows, drawn from the means and covariances of groups (Aggarwal, Yu, EDBT 2004)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.coordinates import Coordinate, Scale
from sqlanon.engines.base import Engine
from sqlanon.errors import ProtectionError
from sqlanon.mechanisms.mechanisms import secret_key
from sqlanon.methods.clustering.releases.centres import Centre
from sqlanon.methods.clustering.verify_condensed import CondensedRows, DrawnNumber
from sqlanon.releases.clustering import Clusters
from sqlanon.results.search_facts import CondensedFacts
from sqlanon.sql import Identifier, RedactedValue, Relation, macro
from sqlanon.staging.partition import Partition
from sqlanon.staging.recode import Recoding, cell_name
from sqlanon.work.workspace import Workspace

GRID_BITS = 28  # of the greatest standard deviation in a group: the draws have 40
SIZE_BITS = 48  # of the number that is farthest from 0: doubles have 53, and some are left for the offset
OFFSET = 0.3819660112501051  # of a grid from 0, in its steps: no whole number, and no decimal fraction, is on a grid
ORDER_BITS = 40  # by which released rows are sorted, at random
REDRAWS = 10  # at most, of the rows that several groups show: of an ordinary table few are left after each
LEAST_DEVIATION = 0.05  # of a number that all rows of a group have, in its standard deviations over all rows


def draw_rows(
    engine: Engine, workspace: Workspace, coded: CodedTable, clusters: Clusters, scale: float
) -> CondensedRows:
    """Draw as many synthetic rows for each group as it has, and give each the kept values of some row of the group.

    1. Number the rows. 2. Measure the numbers of all. 3. Factor the covariance of every group. 4. Choose the grids of
    released numbers. 5. Draw.
    Raises ProtectionError where all rows have the same numbers.
    """
    numbers = [_number(engine, one) for one in clusters.coordinates if one.scale is Scale.CONTINUOUS]
    categories = [_category(one) for one in clusters.coordinates if one.scale is not Scale.CONTINUOUS]
    members, factors, regions, assigned = map(workspace.table, ("members", "factors", "regions", "drawn"))
    engine.run(
        "methods/clustering/condensation/create_members",
        members=members,
        assigned=clusters.assigned,
        words=coded.word_columns,
        numbers=numbers,
        categories=categories,
        key=secret_key(),
    )
    engine.analyze(members)
    _add_measures(engine, members, numbers)
    engine.run("methods/clustering/condensation/create_factors", factors=factors, members=members, numbers=numbers)
    engine.analyze(factors)
    counts = choose_grids(engine, factors, numbers)
    names = [one.field.attribute.name for one in clusters.coordinates if one.scale is Scale.CONTINUOUS]
    create_rows(
        engine,
        regions,
        members=members,
        factors=factors,
        numbers=numbers,
        categories=categories,
        names=names,
    )
    engine.run(
        "methods/clustering/condensation/assign_rows", assigned=assigned, members=members, words=coded.word_columns
    )
    engine.analyze(assigned)
    workspace.drop(members)
    facts = CondensedFacts(float(scale), *counts)
    partition = Partition(clusters.axes, regions, assigned, clusters.rounds, facts=facts)
    shown = tuple(Centre(axis, engine) for axis in clusters.axes)
    cells = tuple(cell for one in shown for cell in one.cells)
    recoding = Recoding(regions, cells, shown, partition, coded, has_ends=False, region_bits=ORDER_BITS)
    drawn_numbers = {one["number"]: DrawnNumber(one["floor"], one["grid"]) for one in numbers}
    return CondensedRows(recoding, clusters.assigned, factors, drawn_numbers, OFFSET)


def create_rows(
    engine: Engine,
    regions: Relation,
    *,
    members: Relation,
    factors: Relation,
    numbers: Sequence[Mapping[str, Any]],
    categories: Sequence[Mapping[str, Any]] = (),
    names: Sequence[str],
) -> None:
    """Draw a synthetic row for each member of a group from the group's factors, by the randomness of a secret key.

    Nobody could check equal rows of several groups: these are drawn again by another key, `REDRAWS` times at most.

    names: the columns of the numbers. Raises ProtectionError where rows of several groups are still equal then.
    """
    values = {
        "regions": regions,
        "members": members,
        "factors": factors,
        "numbers": numbers,
        "categories": categories,
        "offset": OFFSET,
    }
    cells = [one["cell"] for one in (*numbers, *categories)]
    engine.run("methods/clustering/condensation/create_rows", key=secret_key(), **values)
    for _ in range(REDRAWS):
        engine.analyze(regions)
        if not _has_shared(engine, regions, cells):
            return
        engine.run("methods/clustering/condensation/delete_shared", regions=regions, cells=cells)
        engine.run("methods/clustering/condensation/add_missing_rows", key=secret_key(), **values)
    engine.analyze(regions)
    if _has_shared(engine, regions, cells):
        raise ProtectionError(
            f"Synthetic rows of several groups are still equal after {REDRAWS + 1} draws ({', '.join(names)}): numbers"
            " of a column lie too close together beside its greatest numbers, or beside their distance from 0. In a"
            " view, leave rows with the greatest numbers out, show the logarithm, or subtract the least number."
        )


def _has_shared(engine: Engine, regions: Relation, cells: Sequence[Identifier]) -> bool:
    """Tell if several groups show an equal row."""
    return engine.query_one("methods/clustering/condensation/count_shared", regions=regions, cells=cells) != (0,)


def choose_grids(engine: Engine, factors: Relation, numbers: Sequence[dict[str, Any]]) -> tuple[int, int, int, int]:
    """Add the grid of each number, by its greatest deviation in a group and its distance from 0.

    Returns the number of groups, rows of the smallest and of the largest group, and widened numbers.
    """
    groups, smallest, largest, widened, *measured = engine.query_one(
        "methods/clustering/condensation/measure_factors", factors=factors, numbers=numbers
    )
    for one, deviation, size in zip(numbers, measured[::2], measured[1::2], strict=True):
        one["grid"] = _grid_of(float(deviation), float(size))
    return int(groups), int(smallest), int(largest), int(widened)


def _grid_of(deviation: float, size: float) -> RedactedValue | None:
    """The distance of neighbouring points of a column's grid, a power of two; None of a column without deviation.

    deviation: the greatest standard deviation of the column in a group. size: the greatest distance of a group's mean
    from 0.
    """
    if not deviation:
        return None
    return RedactedValue(math.ldexp(1.0, max(math.frexp(deviation)[1] - GRID_BITS, math.frexp(size)[1] - SIZE_BITS)))


def _number(engine: Engine, one: Coordinate) -> dict[str, Any]:
    """The values of a number for statements."""
    coding = one.field.coding
    value = one.value
    if coding.dictionary is None:
        units = engine.render.macro("double", macro("codes.whole", one.code, coding.before))
        value = macro("values.share", units, coding.scale or 1)
    return {
        "number": one.number,
        "cell": cell_name(one.number),
        "value": value,
        "code": one.code,
        "dictionary": one.dictionary,
        "alias": one.alias,
    }


def _category(one: Coordinate) -> dict[str, Any]:
    """The values of a column of categories for statements."""
    return {
        "number": one.number,
        "cell": cell_name(one.number),
        "code": one.code,
        "dictionary": one.dictionary,
        "alias": one.alias,
        "of_code": one.field.coding.value_of(
            macro("relations.column", Identifier(f"dealt_{one.number}"), Identifier(f"q{one.number}"))
        ),
    }


def _add_measures(engine: Engine, members: Relation, numbers: list[dict[str, Any]]) -> None:
    """Measure every number over all rows: sums of groups are about these means."""
    row = engine.query_one("methods/clustering/condensation/measure_numbers", members=members, numbers=numbers)
    if all(row[2::3]):
        raise ProtectionError("All rows have the same numbers, and synthetic rows would show them.")
    for place, one in enumerate(numbers):
        mean, deviation, is_constant = row[3 * place : 3 * place + 3]
        one["mean"] = RedactedValue(float(mean))
        one["floor"] = RedactedValue(0.0 if is_constant else LEAST_DEVIATION * float(deviation))
