"""The intervals of all columns as a partition tree: a level for each column that is cut, in their order.

On a level each combination of intervals that rows have is divided into all intervals of the column, with rows or
without, by a binary tree of its cuts. So the leaves are all combinations of intervals that rows have, and where they
have none the column's interval stays whole: the rules of a release say something of every row that there may be, and
are hardly more than its classes.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlanon.encoding.axes import Axis
from sqlanon.encoding.distinct_tuples import Tuples, expand
from sqlanon.methods.intervals.search.cutting import Cut, CutRows
from sqlanon.results.search_facts import Facts
from sqlanon.sql import Expression, Identifier, RedactedValue, Relation
from sqlanon.staging.classes import partition_of
from sqlanon.staging.partition import Partition


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
