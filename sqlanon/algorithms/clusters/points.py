"""Points: the coded rows in blocks of neighbours, with their coordinates, numbered in the order of their values."""

from __future__ import annotations

from collections.abc import Callable

from markupsafe import Markup

from sqlanon.algorithms.tree import mondrian
from sqlanon.encoding.axes import measured_axes
from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.coordinates import coordinates_of, measure_positions
from sqlanon.engines.base import Engine, Kind
from sqlanon.models.k_anonymity import KAnonymity
from sqlanon.policy import Clustering, Mondrian
from sqlanon.releases.clustering import Points
from sqlanon.sql import Identifier, Relation, expression
from sqlanon.work.journal import Progress
from sqlanon.work.workspace import Workspace

EXACT_ROWS = 4_000  # of a table that `blocks: auto` takes for one block
MOST_ROWS = 4_000  # of a block, about, of a table of `FAST_ROWS`
FAST_ROWS = 100_000  # larger tables get smaller blocks
LEAST_ROWS = 500  # about, of a block of any table


def create_points(
    engine: Engine,
    workspace: Workspace,
    coded: CodedTable,
    algorithm: Clustering,
    k: int,
    report: Callable[[Progress], None],
) -> Points:
    """Divide the rows into blocks, and give them coordinates."""
    measured = measure_positions(engine, coded)  # first: a tree takes the rows along
    size = rows_of_block(algorithm, coded.source_rows, k)
    rows: Relation | Markup
    if size is None:
        axes, rows = (
            measured_axes(engine, coded),
            Markup(engine.render("clusters/one_block", rows=coded.rows).text),
        )
        blocks, largest = 1, coded.source_rows
    else:
        tree = mondrian.search(engine, workspace, coded, None, (KAnonymity(size),), Mondrian(), report)
        axes, rows = tree.axes, tree.assigned
        blocks, largest = map(int, engine.query_one("clusters/measure_blocks", leaves=tree.leaves))
    coordinates = coordinates_of(measured, largest_block=largest, standardize=algorithm.standardize)
    table = workspace.table("points")
    aside = [field for field in coded.kept if field.coding.is_aside]
    engine.run(
        "clusters/create_points",
        points=table,
        rows=rows,
        words=coded.word_columns,
        coordinates=coordinates,
        keys=_keys(engine, coded),
        asides=[{"table": aside[0].coding.dictionary, "code": aside[0].code(Identifier("p"))}] if aside else [],
    )
    engine.analyze(table)
    return Points(table, axes, coordinates, coded.source_rows, blocks, largest)


def rows_of_block(algorithm: Clustering, rows: int, k: int) -> int | None:
    """Count the rows of the smallest block; None where all rows are one block."""
    if algorithm.blocks == "exact" or (algorithm.blocks == "auto" and rows <= EXACT_ROWS):
        return None
    auto = max(LEAST_ROWS, MOST_ROWS * FAST_ROWS // max(rows, FAST_ROWS))
    about = auto if algorithm.blocks == "auto" else int(algorithm.blocks)
    smallest = max(2 * about // 3, 2 * k)
    return smallest if 2 * smallest <= rows else None


def _keys(engine: Engine, coded: CodedTable) -> list[Markup]:
    """The sort keys of points: their values, column by column."""
    quasi = [field.code(Identifier("p")) for field in coded.quasi_identifiers]
    kept: list[Markup] = []
    for field in coded.kept:
        if not field.coding.is_aside:
            kept.append(field.code(Identifier("p")))
            continue
        value = Markup(field.value_column)
        if field.attribute.column.kind is Kind.TEXT:
            value = engine.render.macro("collate", value)
        kept.append(expression("{value} NULLS FIRST", value=value))
    return [*quasi, *kept]
