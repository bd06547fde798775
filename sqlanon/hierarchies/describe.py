"""Reads a hierarchy back: as lines of the semicolon format, and as a summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlanon.engines.base import Engine
from sqlanon.hierarchies.table import HierarchyTable

_PAGE = 10_000  # leaves fetched at a time
_QUOTED = ';"\r\n\ufeff'


@dataclass(frozen=True)
class HierarchyLevel:
    """A level above the values: how many groups it has, and the labels of the first of them."""

    level: int
    groups: int
    labels: tuple[str, ...]


@dataclass(frozen=True)
class HierarchySummary:
    """The size of a hierarchy and its levels; no values of the column are in it, only labels from level 1 up."""

    height: int
    leaves: int
    bits: int  # of a code
    levels: tuple[HierarchyLevel, ...]


def export_csv(engine: Engine, hierarchy: HierarchyTable) -> Iterator[str]:
    """The lines `leaf;level 1;...;*` in depth-first order, each with its line end.

    Read as a `csv` hierarchy of the same values they give the same codes.
    """
    levels = range(1, hierarchy.height + 1)
    for after in range(0, hierarchy.leaves, _PAGE):
        page = {"after": after, "until": after + _PAGE}
        for row in engine.query("hierarchies/export_leaves", table=hierarchy.table, levels=levels, **page):
            yield csv_line(row)


def csv_line(fields: Sequence[str]) -> str:
    """One line of the semicolon format, with its line end."""
    return ";".join(map(_field, fields)) + "\n"


def _field(text: str) -> str:
    """A field, in quotes where it would be read otherwise (a byte order mark, at the start of a file)."""
    if any(character in text for character in _QUOTED):
        return '"' + text.replace('"', '""') + '"'
    return text


def show(engine: Engine, hierarchy: HierarchyTable, limit: int = 10) -> HierarchySummary:
    """The number of groups at each level above the values, and the labels of up to `limit` of them."""
    levels = range(1, hierarchy.height + 1)
    counts = engine.query_one("hierarchies/count_groups", table=hierarchy.table, levels=levels)
    return HierarchySummary(
        height=hierarchy.height,
        leaves=hierarchy.leaves,
        bits=hierarchy.shifts[-1],
        levels=tuple(
            HierarchyLevel(level, groups, _labels(engine, hierarchy, level, limit))
            for level, groups in zip(levels, counts, strict=True)
        ),
    )


def _labels(engine: Engine, hierarchy: HierarchyTable, level: int, limit: int) -> tuple[str, ...]:
    rows = engine.query("hierarchies/sample_labels", table=hierarchy.table, level=level, limit=limit)
    return tuple(label for (label,) in rows)
