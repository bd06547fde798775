"""Labels of taxonomies as readers of a release see them: which groups a label is in, told by the label alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from sqlanon.hierarchies.taxonomy import ROOT, Line

NULL = "NULL"  # the text of NULL in a release


def label_problems(lines: Sequence[Line], unknown: str | None) -> Iterator[str]:
    """Say why a label alone would not tell readers which values are meant; sentences that go on from a column's name.

    A label may be on several levels where it stands for the same values on all of them.
    """
    labels = {label for line in lines for label in _path(line)}
    for reserved in (ROOT, NULL):
        if reserved in labels or unknown == reserved:
            yield f"`{reserved}` is a value or label of its hierarchy, and means more in the release; rename it there."
    if unknown in labels:
        yield "the label of unknown values is a value or label of its hierarchy too; give it a name of its own."
    ambiguous = sum(1 for _ in _ambiguous(lines))
    if ambiguous:
        yield (
            f"labels of its hierarchy stand for other values at one level than at another ({ambiguous:,} do), so that"
            " readers could not tell which are meant; give each group a name that no value and no other group has."
        )


def paths_of_labels(lines: Iterable[Line]) -> dict[str, tuple[str, ...]]:
    """List what each label shows of the levels from the values up, the root left out: `*` below its own level."""
    paths: dict[str, tuple[str, ...]] = {}
    for line in lines:
        path = _path(line)
        for level, label in enumerate(path):
            shown = (ROOT,) * level + path[level:]
            if label not in paths or paths[label].count(ROOT) > level:
                paths[label] = shown
    return paths


def _path(line: Line) -> tuple[str, ...]:
    """The value and its labels, without the root."""
    return (line.value, *line.labels[:-1])


def _ambiguous(lines: Sequence[Line]) -> Iterator[str]:
    """List the labels that stand for different values at different levels."""
    levels: defaultdict[str, set[int]] = defaultdict(set)
    for line in lines:
        for level, label in enumerate(_path(line)):
            levels[label].add(level)
    several = {label for label, on in levels.items() if len(on) > 1}
    values: defaultdict[tuple[str, int], set[int]] = defaultdict(set)
    for place, line in enumerate(lines):
        for level, label in enumerate(_path(line)):
            if label in several:
                values[label, level].add(place)
    for label in several:
        if len({frozenset(values[label, level]) for level in levels[label]}) > 1:
            yield label
