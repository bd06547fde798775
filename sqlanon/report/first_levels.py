"""The first levels of a partition tree: what was split, and how many rows went where. No value of the data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlanon.engines.base import Engine
from sqlanon.releases.rules.store_rules import StoredRules
from sqlanon.report.drawing.tree import DrawnNode

DEPTH = 3
_MOST = 400  # nodes that are read
_Box = dict[int, tuple[int, int]]


def first_levels(engine: Engine, stored: StoredRules) -> DrawnNode | None:
    """The tree of a rule set down to `DEPTH`, with the rows of the release; None where the rules are no tree.

    Parts that no row fell into are left out. The statements are two, each over one table.
    """
    if stored.tables is None or not stored.record.depth:
        return None
    nodes = engine.query("report/list_first_nodes", nodes=stored.tables.nodes, depth=DEPTH, most=_MOST)
    listed = [tuple(map(int, row)) for row in nodes]
    boxes: dict[int, _Box] = {0: {}}
    for node, parent, _, attribute, lo, hi in listed:
        if parent in boxes:
            boxes[node] = boxes[parent] | {attribute: (lo, hi)}
    whole = [{"attribute": stored.attributes[0], "lo": 0, "hi": stored.attributes[0].segments}]
    sides = [list(_sides(stored, box)) or whole for box in boxes.values()]
    counts = engine.query_one("report/count_boxes", leaves=stored.tables.leaves, boxes=sides)
    return _tree(stored, listed, dict(zip(boxes, map(int, counts), strict=True)))


def _sides(stored: StoredRules, box: _Box) -> Iterator[dict[str, Any]]:
    for number, (lo, hi) in box.items():
        yield {"attribute": stored.attributes[number], "lo": lo, "hi": hi}


def _tree(stored: StoredRules, listed: Sequence[tuple[int, ...]], rows: dict[int, int]) -> DrawnNode:
    nodes = {number: DrawnNode(count) for number, count in rows.items()}
    for number, parent, _, attribute, _, _ in listed:
        if rows.get(number):
            nodes[parent].split = stored.attributes[attribute].name
            nodes[parent].parts.append(nodes[number])
    for node in nodes.values():
        node.parts.sort(key=lambda part: -part.rows)
    return nodes[0]
