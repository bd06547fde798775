"""The levels of a hierarchy in words of the policy alone: no value of the data, nor of a file, is among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlanon.policy.attributes import Hierarchy

VALUES, ALL = "the values themselves", "*, nothing is shown"


def level_words(hierarchy: Hierarchy, height: int, steps: Sequence[int]) -> tuple[str, ...]:
    """Say what each level shows.

    height: of the hierarchy on the table; steps: the level of the hierarchy that each level of the lattice stands for.
    """
    return tuple(_words(hierarchy, height, step) for step in steps)


def _words(hierarchy: Hierarchy, height: int, level: int) -> str:
    if level == 0:
        return VALUES
    if level == height:
        return ALL
    if hierarchy.mapping is not None:
        return _labels(hierarchy.mapping, level) or f"groups of level {level}"
    if hierarchy.intervals is not None and level <= len(hierarchy.intervals):
        return f"intervals of width {hierarchy.intervals[level - 1]:g}"
    if hierarchy.date is not None and level <= len(hierarchy.date):
        return f"{hierarchy.date[level - 1]}s"
    if hierarchy.mask is not None:
        side = "first" if hierarchy.mask == "left" else "last"
        return f"without the {side} {f'{level} characters' if level > 1 else 'character'}"
    return f"groups of level {level}"


def _labels(mapping: Mapping[str, str | tuple[str, ...]], level: int) -> str | None:
    """The first label of a level that the policy writes, and how many there are; None where it writes none."""
    lists = [(labels,) if isinstance(labels, str) else labels for labels in mapping.values()]
    labels = list(dict.fromkeys(one[level - 1] for one in lists if level <= len(one)))
    if not labels:
        return None
    return f"such as {labels[0]} ({len(labels):,} label{'s' if len(labels) > 1 else ''})"
