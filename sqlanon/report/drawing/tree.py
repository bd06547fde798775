"""The first levels of a partition tree: every part as wide as its rows, under the part that it was split from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sqlanon.engines.base import Engine
from sqlanon.releases.rules.store_rules import StoredRules
from sqlanon.report.drawing.svg import (
    BLUE,
    DARK_BLUE,
    INK,
    PALE_BLUE,
    PAPER,
    cut,
    document,
    element,
    rect,
    text,
    width_of,
    words,
)
from sqlanon.support.quantities import quantity

_WIDTH, _ROW, _GAP = 860.0, 58.0, 3.0
DEPTH = 3
_MOST = 400  # nodes that are read
_Box = dict[int, tuple[int, int]]


@dataclass
class DrawnNode:
    """A part of the table: its rows, and the attribute that its own parts (the largest first) were split by."""

    rows: int
    split: str | None = None
    parts: list[DrawnNode] = field(default_factory=list)


def draw_tree(root: DrawnNode, key: str = "") -> str:
    """Blocks in rows, one row a level."""
    parts = list(_blocks(root, 0.0, 0, _WIDTH, None))
    depth = _depth(root)
    return document(_WIDTH, depth * _ROW + 2, "First levels of the partition tree", _described(root), parts, key)


def _described(root: DrawnNode) -> str:
    """The picture in words."""
    if root.split is None:
        return f"The tree is its root: {quantity(root.rows, 'row')}, not split."
    parts = ", ".join(f"{part.rows:,}" for part in root.parts[:8]) + (" and others" if len(root.parts) > 8 else "")
    next_ = sorted({part.split for part in root.parts if part.split})
    then = f" The parts were split by {', '.join(next_)}." if next_ else ""
    return f"{root.rows:,} rows were first split by {root.split}, into parts of {parts} rows.{then}"


def _depth(node: DrawnNode) -> int:
    return 1 + max((_depth(part) for part in node.parts), default=0)


def _blocks(node: DrawnNode, x: float, level: int, wide: float, parent: str | None) -> Iterator[str]:
    yield _block(node, x, level, wide, parent)
    total = sum(part.rows for part in node.parts)
    for part in node.parts:
        share = wide * part.rows / total
        yield from _blocks(part, x, level + 1, share, node.split)
        x += share


def _block(node: DrawnNode, x: float, level: int, wide: float, parent: str | None) -> str:
    y = level * _ROW + 1
    origin = "" if parent is None else f", a part by {parent}"
    later = "" if node.split is None else f", split by {node.split}"
    frame: dict[str, object] = {"rx": 3, "fill": (PALE_BLUE, PAPER)[level % 2], "stroke": BLUE, "stroke_width": 1.1}
    shape = rect(x + _GAP / 2, y, max(wide - _GAP, 0.8), _ROW - _GAP, **frame)
    labels = []
    for place, (content, size, weight) in enumerate(_lines(node, parent)):
        shown = cut(content, max(int((wide - 12) / (0.58 * size)), 0)) if wide > 44 else ""
        if len(shown) > 2:
            style = {"font_size": size, "font_weight": weight, "fill": INK if place == 0 else DARK_BLUE}
            labels.append(text(x + wide / 2, y + 23 + 18 * place, shown, text_anchor="middle", **style))
    return element(
        "g", element("title", words(f"{quantity(node.rows, 'row')}{origin}{later}")) + shape + "".join(labels)
    )


def _lines(node: DrawnNode, parent: str | None) -> list[tuple[str, float, str | None]]:
    head = f"{node.rows:,} rows" if parent is None or width_of(f"{node.rows:,} rows", 13) < 110 else f"{node.rows:,}"
    later = [] if node.split is None else [(f"by {node.split}", 12.0, None)]
    return [(head, 13.0, "600"), *later]


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
    sides = [
        [{"attribute": stored.attributes[number], "lo": lo, "hi": hi} for number, (lo, hi) in box.items()] or whole
        for box in boxes.values()
    ]
    counts = engine.query_one("report/count_boxes", leaves=stored.tables.leaves, boxes=sides)
    return _tree(stored, listed, dict(zip(boxes, map(int, counts), strict=True)))


def _tree(stored: StoredRules, listed: Sequence[tuple[int, ...]], rows: dict[int, int]) -> DrawnNode:
    nodes = {number: DrawnNode(count) for number, count in rows.items()}
    for number, parent, _, attribute, _, _ in listed:
        if rows.get(number):
            nodes[parent].split = stored.attributes[attribute].name
            nodes[parent].parts.append(nodes[number])
    for node in nodes.values():
        node.parts.sort(key=lambda part: -part.rows)
    return nodes[0]
