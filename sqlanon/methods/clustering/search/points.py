"""Points: the coded rows in blocks of neighbours, with their coordinates, numbered in the order of their values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlanon.algorithms.tree.partitioning import partition_at_medians
from sqlanon.encoding.axes import Axis, measured_axes
from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.coordinates import coordinates_of, measure_positions
from sqlanon.encoding.row_order import canonical_order
from sqlanon.engines.base import Engine
from sqlanon.errors import ProtectionError
from sqlanon.methods.clustering.policy import Clustering
from sqlanon.models.k_anonymity import KAnonymity
from sqlanon.plan.cluster_checks import small_strata_problem
from sqlanon.releases.clustering import Points
from sqlanon.sql import Expression, Identifier, RedactedValue, Relation
from sqlanon.work.journal import Progress
from sqlanon.work.workspace import Workspace

EXACT_ROWS = 4_000  # of a table that `blocks: auto` takes for one block
MOST_ROWS = 2_000  # of a block, about, of a table of `FAST_ROWS`
FAST_ROWS = 25_000  # larger tables get smaller blocks
LEAST_ROWS = 250  # about, of a block of any table
SLOW_ROWS = 500  # about, of a block, where a method takes longer


def create_points(
    engine: Engine,
    workspace: Workspace,
    coded: CodedTable,
    algorithm: Clustering,
    k: int,
    report: Callable[[Progress], None],
) -> Points:
    """Divide the rows into blocks, and give them coordinates.

    Raises ProtectionError where the policy keeps strata apart, and one has fewer than k rows.
    """
    measured = measure_positions(engine, coded)  # first: a tree takes the rows along
    target = algorithm.stratified_by
    if target is None:
        stratum, blocked = (
            None,
            _divide(engine, workspace, coded, rows_of_block(algorithm, coded.source_rows, k), report),
        )
    else:
        field = coded.judged_field(target)
        stratum = field.code(Identifier("coded"))
        blocked = divide_strata(engine, workspace, coded, field.code(Identifier("r")), (algorithm, k), report)
    coordinates = coordinates_of(measured, largest_block=blocked.largest, standardize=algorithm.standardize)
    table = workspace.table("points")
    keys, asides = canonical_order(engine, coded)
    engine.run(
        "methods/clustering/search/create_points",
        points=table,
        rows=blocked.rows,
        stratum=stratum,
        words=coded.word_columns,
        coordinates=coordinates,
        keys=keys,
        asides=asides,
    )
    engine.analyze(table)
    return Points(
        table,
        blocked.axes,
        coordinates,
        coded.source_rows,
        blocked.blocks,
        blocked.largest,
        has_strata=stratum is not None,
    )


@dataclass(frozen=True)
class Blocked:
    """Coded rows in blocks.

    rows: `(leaf, p0, …)`: a block is a leaf, of a stratum where there are any.
    blocks, largest: the number of blocks, and of the rows of the largest.
    """

    rows: Relation | Expression
    axes: tuple[Axis, ...]
    blocks: int
    largest: int


def _divide(
    engine: Engine, workspace: Workspace, coded: CodedTable, size: int | None, report: Callable[[Progress], None]
) -> Blocked:
    """Divide rows into blocks of at least `size`; None for one block."""
    if size is None:
        rows = engine.render("methods/clustering/search/one_block", rows=coded.rows)
        return Blocked(rows, measured_axes(engine, coded), 1, coded.source_rows)
    tree = partition_at_medians(engine, workspace, coded, None, (KAnonymity(size),), report)
    blocks, largest = map(int, engine.query_one("methods/clustering/search/measure_blocks", leaves=tree.leaves))
    return Blocked(tree.assigned, tree.axes, blocks, largest)


def divide_strata(
    engine: Engine,
    workspace: Workspace,
    coded: CodedTable,
    code: Expression,
    wanted: tuple[Clustering, int],
    report: Callable[[Progress], None],
) -> Blocked:
    """Divide the rows of each stratum into blocks.

    code: of the stratum, read from a coded row `r`. wanted: the algorithm, and the rows of the smallest cluster.
    Raises ProtectionError where a stratum has fewer rows than that.
    """
    algorithm, k = wanted
    strata = [
        (RedactedValue(int(stratum)), int(rows))
        for stratum, rows in engine.query("methods/clustering/search/count_strata", rows=coded.rows, code=code)
    ]
    few = sum(rows < k for _, rows in strata)
    if few:
        raise ProtectionError(small_strata_problem(algorithm.stratified_by or "", few, len(strata), k))
    axes, blocks, largest, divided = measured_axes(engine, coded), 0, 0, []
    for number, (stratum, rows) in enumerate(strata):
        size = rows_of_block(algorithm, rows, k)
        if size is None:
            blocks, largest = blocks + 1, max(largest, rows)
            continue
        part = workspace.part(f"stratum_{number}")
        own = part.table("rows")
        engine.run(
            "methods/clustering/search/create_stratum", stratum_rows=own, rows=coded.rows, code=code, stratum=stratum
        )
        engine.analyze(own)
        block = _divide(engine, part, replace(coded, rows=own, source_rows=rows), size, report)
        blocks, largest = blocks + block.blocks, max(largest, block.largest)
        divided.append({"stratum": stratum, "assigned": block.rows})
    united = engine.render(
        "methods/clustering/search/unite_strata", rows=coded.rows, code=code, divided=divided, words=coded.word_columns
    )
    return Blocked(united, axes, blocks, largest)


def rows_of_block(algorithm: Clustering, rows: int, k: int) -> int | None:
    """Count the rows of the smallest block; None where all rows are one block."""
    exact = min(EXACT_ROWS, algorithm.largest_block or EXACT_ROWS)
    if algorithm.blocks == "exact" or (algorithm.blocks == "auto" and rows <= exact):
        return None
    fast = algorithm.largest_block is None
    auto = max(LEAST_ROWS, MOST_ROWS * FAST_ROWS // max(rows, FAST_ROWS)) if fast else SLOW_ROWS
    about = auto if algorithm.blocks == "auto" else int(algorithm.blocks)
    smallest = max(2 * about // 3, 2 * k)
    return smallest if 2 * smallest <= rows else None
