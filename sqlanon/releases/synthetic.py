"""Synthetic rows, drawn from the means and covariances of groups (Aggarwal, Yu, EDBT 2004)."""

from __future__ import annotations

import secrets
from typing import Any

from markupsafe import Markup

from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.coordinates import Coordinate, Scale
from sqlanon.engines.base import Engine, Kind
from sqlanon.errors import ProtectionError
from sqlanon.releases.centres import Centre
from sqlanon.releases.clustering import Clusters
from sqlanon.results.facts import CondensedFacts
from sqlanon.sql import RedactedValue, Relation, expression
from sqlanon.staging.partition import Partition
from sqlanon.staging.recode import Recoding, cell_name
from sqlanon.verification.condensed import Drawn
from sqlanon.work.workspace import Workspace

KEY_BYTES = 32
LEAST_DEVIATION = 0.05  # of a number that all rows of a group have, in its standard deviations over all rows


def secret_key() -> RedactedValue:
    """Draw a key from the randomness of the operating system; no record and no log holds it."""
    return RedactedValue(secrets.token_hex(KEY_BYTES))


def draw_rows(engine: Engine, workspace: Workspace, coded: CodedTable, clusters: Clusters, scale: float) -> Drawn:
    """Draw as many synthetic rows for each group as it has, and give each the kept values of some row of the group.

    1. Number the rows. 2. Measure the numbers of all. 3. Factor the covariance of every group. 4. Draw.
    Raises ProtectionError where all rows have the same numbers.
    """
    key = secret_key()
    numbers = [_number(engine, one) for one in clusters.coordinates if one.scale is Scale.CONTINUOUS]
    categories = [_category(one) for one in clusters.coordinates if one.scale is not Scale.CONTINUOUS]
    members, factors, regions, assigned = map(workspace.table, ("members", "factors", "regions", "drawn"))
    engine.run(
        "condensation/create_members",
        members=members,
        assigned=clusters.assigned,
        words=coded.word_columns,
        numbers=numbers,
        categories=categories,
        key=key,
    )
    engine.analyze(members)
    _add_measures(engine, members, numbers)
    engine.run("condensation/create_factors", factors=factors, members=members, numbers=numbers)
    engine.analyze(factors)
    engine.run(
        "condensation/create_rows",
        regions=regions,
        members=members,
        factors=factors,
        numbers=numbers,
        categories=categories,
        key=key,
        order=[_order(engine, one) for one in clusters.coordinates],
    )
    engine.analyze(regions)
    engine.run("condensation/assign_rows", assigned=assigned, members=members, words=coded.word_columns)
    engine.analyze(assigned)
    measured = engine.query_one("condensation/measure_factors", factors=factors, numbers=numbers)
    workspace.drop(members)
    facts = CondensedFacts(float(scale), *map(int, measured))
    partition = Partition(clusters.axes, regions, assigned, clusters.rounds, facts=facts)
    shown = tuple(Centre(axis, engine.render) for axis in clusters.axes)
    cells = tuple(cell for one in shown for cell in one.cells)
    recoding = Recoding(regions, cells, shown, partition, coded, has_ends=False)
    return Drawn(recoding, clusters.assigned, factors, {one["number"]: one["floor"] for one in numbers})


def _number(engine: Engine, one: Coordinate) -> dict[str, Any]:
    """The values of a number for statements."""
    coding = one.field.coding
    value = one.value
    if coding.dictionary is None:
        units = engine.render.macro("double", expression("({code} + {before})", code=one.code, before=coding.before))
        value = expression("{units} / {scale}", units=units, scale=coding.scale or 1)
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
        "of_code": one.field.coding.value_of(Markup(f"dealt_{one.number}.q{one.number}")),
    }


def _add_measures(engine: Engine, members: Relation, numbers: list[dict[str, Any]]) -> None:
    """Measure every number over all rows: sums of groups are about these means."""
    row = engine.query_one("condensation/measure_numbers", members=members, numbers=numbers)
    if all(row[2::3]):
        raise ProtectionError("All rows have the same numbers, and synthetic rows would show them.")
    for place, one in enumerate(numbers):
        mean, deviation, is_constant = row[3 * place : 3 * place + 3]
        one["mean"] = RedactedValue(float(mean))
        one["floor"] = RedactedValue(0.0 if is_constant else LEAST_DEVIATION * float(deviation))


def _order(engine: Engine, one: Coordinate) -> Markup:
    """The key by which rows are ordered."""
    cell = expression("c.{cell}", cell=cell_name(one.number))
    is_text = one.scale is not Scale.CONTINUOUS and one.field.attribute.column.kind is Kind.TEXT
    return engine.render.macro("collate", cell) if is_text else cell
