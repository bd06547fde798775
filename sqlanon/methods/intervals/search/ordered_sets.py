"""Single-dimensional ordered-set partitioning: from a coded table to intervals of its columns, the same for all rows.

LeFevre, DeWitt, Ramakrishnan, "Incognito: Efficient full-domain k-anonymity", SIGMOD 2005, section 5, name the model;
Bayardo and Agrawal, ICDE 2005, search it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlanon.encoding.axes import Axis, measured_axes
from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.distinct_tuples import WEIGHT, Tuples, expand
from sqlanon.encoding.domains import create_domains, require_attainable
from sqlanon.encoding.frequency.task import LatticeTask
from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError
from sqlanon.methods.intervals.policy import OrderedSets
from sqlanon.methods.intervals.search.cutting import Cut, CutProgress, CutRows, create_points
from sqlanon.methods.intervals.search.exact import ExactSearch
from sqlanon.models.base import PrivacyModel
from sqlanon.results.search_facts import Facts, IntervalFacts
from sqlanon.sql import Expression, Identifier, RedactedValue, Relation
from sqlanon.staging.classes import partition_of
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


def cut_greedily(rows: CutRows, points: Relation, report: Callable[[CutProgress], None]) -> tuple[list[Cut], int]:
    """Cut columns as long as a cut satisfies the models; returns the cuts in their order, and how many were tried."""
    by_size = all(model.decided_by_size for model in rows.task.models)
    cuts: list[Cut] = []
    tried: set[Cut] = set()
    while True:
        scored = rows.engine.query(
            "methods/intervals/score_cuts", rows=rows.table, points=points, axes=rows.axes, fewest=rows.fewest
        )
        for cut in (Cut(int(attribute), int(code)) for attribute, code in scored):
            if cut in tried:
                continue
            tried.add(cut)
            if by_size or rows.satisfies(cut):
                rows.cut(cut)
                cuts.append(cut)
                report(CutProgress(len(cuts), len(tried)))
                break
        else:
            return cuts, len(tried)


def partition_by_cuts(rows: CutRows, tuples: Tuples | None, cuts: Sequence[Cut], facts: Facts) -> Partition:
    """Write down the classes of rows that have been cut, and the tree that leads to them."""
    engine, workspace, levels = rows.engine, rows.workspace, _levels(rows, cuts)
    placed, nodes, assigned = (workspace.table(name) for name in ("cut_classes", "cut_nodes", "cut_leaves"))
    engine.run("methods/intervals/place_classes", placed=placed, rows=rows.table, levels=levels)
    engine.analyze(placed)
    engine.run("methods/intervals/create_nodes", nodes=nodes, placed=placed, levels=levels)
    engine.analyze(nodes)
    words = rows.coded.word_columns
    engine.run(
        "methods/intervals/assign_leaves",
        assigned=assigned,
        rows=rows.table,
        placed=placed,
        nodes=nodes,
        levels=levels,
        words=words,
    )
    engine.analyze(assigned)
    tree = workspace.table("cut_tree")
    engine.run("methods/intervals/create_tree", tree=tree, nodes=nodes, levels=levels)
    engine.analyze(tree)
    workspace.drop(rows.table, placed, nodes)
    done: Relation | Expression = assigned if tuples is None else expand(rows.coded, tuples, assigned)
    partition = partition_of(engine, workspace, rows.coded, done, len(cuts))
    return replace(partition, tree=tree, has_empty_leaves=True, facts=facts)


def _levels(rows: CutRows, cuts: Sequence[Cut]) -> list[dict[str, Any]]:
    """Describe the levels of the tree: the column, its cuts, and what they make of it.

    A table without cuts has one level, of a node that no cut has made.
    """
    codes = {axis: sorted(cut.code for cut in cuts if cut.attribute == axis.number) for axis in rows.axes}
    levels = [_level(number, axis, axis.number, made) for number, (axis, made) in enumerate(codes.items()) if made]
    return levels or [_level(0, rows.axes[0], None, [])]


def _level(number: int, axis: Axis, attribute: int | None, codes: Sequence[int]) -> dict[str, Any]:
    place = Identifier(f"place_{number}")
    ends = [RedactedValue(code) for code in codes]
    return {"axis": axis, "attribute": attribute, "codes": ends, "spans": spans_of(ends), "place": place}


@dataclass(frozen=True)
class CutSpan:
    """Neighbouring intervals of a column, as a node of the binary tree of its cuts.

    number: the place of an interval, if it is one alone; else one of its own. parent: of the span that it is part of,
        -1 for all intervals.
    lower, upper: its bounds within its parent; None for none.
    """

    number: int
    parent: int
    lower: RedactedValue | None
    upper: RedactedValue | None


def spans_of(cuts: Sequence[RedactedValue]) -> list[CutSpan]:
    """Halve the intervals of a column until each is alone; the spans below the whole, parents first."""
    if not cuts:
        return [CutSpan(0, -1, None, None)]
    spans: list[CutSpan] = []
    numbers = itertools.count(len(cuts) + 1)
    wholes = [(0, len(cuts) + 1, -1)]
    for first, last, parent in wholes:
        middle = (first + last) // 2
        cut = cuts[middle - 1]
        for begin, end, lower, upper in ((first, middle, None, cut), (middle, last, cut, None)):
            number = begin if end - begin == 1 else next(numbers)
            spans.append(CutSpan(number, parent, lower, upper))
            if end - begin > 1:
                wholes.append((begin, end, number))
    return spans
