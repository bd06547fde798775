"""Single-dimensional ordered-set partitioning: from a coded table to intervals of its columns, the same for all rows.

LeFevre, DeWitt, Ramakrishnan, "Incognito: Efficient full-domain k-anonymity", SIGMOD 2005, section 5, name the model;
Bayardo and Agrawal, ICDE 2005, search it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlanon.encoding.axes import measured_axes
from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.distinct_tuples import WEIGHT, Tuples
from sqlanon.encoding.domains import create_domains, require_attainable
from sqlanon.encoding.frequency.task import LatticeTask
from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError
from sqlanon.methods.intervals.policy import OrderedSets
from sqlanon.methods.intervals.search.cutting import Cut, CutProgress, CutRows, create_points
from sqlanon.methods.intervals.search.exact import ExactSearch
from sqlanon.methods.intervals.search.greedy import cut_greedily
from sqlanon.methods.intervals.search.grid import partition_by_cuts
from sqlanon.models.base import PrivacyModel
from sqlanon.results.search_facts import IntervalFacts
from sqlanon.sql import Identifier
from sqlanon.staging.partition import Partition
from sqlanon.work.workspace import Workspace


def search(
    engine: Engine,
    workspace: Workspace,
    coded: CodedTable,
    tuples: Tuples | None,
    models: Sequence[PrivacyModel],
    algorithm: OrderedSets,
    report: Callable[[CutProgress], None],
) -> Partition:
    """Cut the columns of the coded table, over its distinct tuples where these are given.

    Raises ProtectionError where no release can meet the models, and PolicyError where an exact search would have to
    choose among too many cuts.
    """
    sensitive = create_domains(engine, workspace, coded, models)
    require_attainable(engine, coded.source_rows, models, sensitive)
    axes = measured_axes(engine, coded)
    rows = CutRows(engine, workspace, coded, axes, LatticeTask(tuple(models), sensitive, coded.source_rows, 0))
    table, count = (coded.rows, 1) if tuples is None else (tuples.table, WEIGHT)
    rows.begin(table, count)
    points = workspace.table("cut_points")
    create_points(engine, points, rows.table, axes, algorithm.cuts)
    listed = [
        Cut(int(attribute), int(code))
        for attribute, code in engine.query("methods/intervals/list_points", points=points)
    ]
    if problems := list(algorithm.cut_problems(_count_by_column(listed, rows))):
        raise PolicyError(problems)
    cuts, tried = cut_greedily(rows, points, report)
    if algorithm.search == "exact":
        workspace.drop(rows.table)
        rows.begin(table, count)
        target = None if algorithm.target is None else coded.judged_field(algorithm.target).code(Identifier("r"))
        exact = ExactSearch(rows, listed, algorithm.quality, target, report)
        best, _ = exact.search(sum(1 << listed.index(cut) for cut in cuts))
        cuts, tried = [cut for place, cut in enumerate(listed) if best >> place & 1], exact.tried
        for cut in cuts:
            rows.cut(cut)
        workspace.drop(exact.cells)
    workspace.drop(points)
    return partition_by_cuts(rows, tuples, cuts, _facts(algorithm, rows, cuts, len(listed), tried))


def _facts(algorithm: OrderedSets, rows: CutRows, cuts: Sequence[Cut], places: int, tried: int) -> IntervalFacts:
    names = [axis.field.attribute.name for axis in rows.axes]
    intervals = {name: 1 + sum(cut.attribute == number for cut in cuts) for number, name in enumerate(names)}
    is_optimal = algorithm.search == "exact" and all(one.monotone_under_generalization for one in rows.task.models)
    return IntervalFacts(algorithm.quality, intervals, places, tried, is_optimal)


def _count_by_column(cuts: Sequence[Cut], rows: CutRows) -> dict[str, int]:
    return {axis.field.attribute.name: sum(cut.attribute == axis.number for cut in cuts) for axis in rows.axes}
