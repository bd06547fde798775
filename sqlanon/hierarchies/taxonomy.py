"""Taxonomies: a file in the semicolon format, or a mapping in the policy."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from sqlanon.errors import PolicyError
from sqlanon.hierarchies.draft import HierarchyDraft, HierarchyTask
from sqlanon.hierarchies.nesting import check_nesting
from sqlanon.policy import Hierarchy
from sqlanon.sql import Identifier
from sqlanon.support.quantities import quantity

ROOT = "*"
_SEPARATORS = ";\t,"
_QUOTED = re.compile(r'"[^"]*"')
_MAX_FIELD = 1 << 30  # characters; the standard library's own limit is 131,072


class Line(NamedTuple):
    """A line of a taxonomy: where it stands, the value, and its labels from level 1 up."""

    place: int
    value: str
    labels: tuple[str, ...]


def draft_taxonomy(task: HierarchyTask) -> HierarchyDraft:
    """Match values with the lines of a taxonomy.

    Raises PolicyError for what is wrong with these, and for values that they lack, with their number, unless the
    hierarchy has `unknown`.
    """
    checked = read_taxonomy(task.spec, task.base_directory, task.error)
    source = _source_of(task.spec)
    height = len(checked[0].labels)
    levels = range(1, height + 1)
    task.engine.run("hierarchies/create_paths", paths=task.paths, levels=levels)
    rows: list[tuple[int | str | None, ...]] = [(line.place, line.value, *line.labels) for line in checked]
    if task.spec.unknown is not None:
        # the group of unknown values comes last; its missing value tells it from the file's lines
        rows.append((checked[-1].place + 1, None, *(task.spec.unknown for _ in levels[:-1]), ROOT))
    task.engine.load(task.paths, ["line", *(f"l{level}" for level in range(height + 1))], rows)
    check_nesting(task, height, task.paths)
    task.engine.run("hierarchies/match_paths", leaves=task.leaves, values=task.values, text=task.text, paths=task.paths)
    _check_matches(task, source)
    task.engine.run("hierarchies/group_paths", groups=task.groups, leaves=task.leaves, paths=task.paths, levels=levels)
    return HierarchyDraft(height=height, keys=(Identifier("l1"),), lines=len(checked))


def read_taxonomy(spec: Hierarchy, directory: Path | None, error: Callable[[str], PolicyError]) -> list[Line]:
    """The lines of a taxonomy, each with the root as its last label.

    They are those of a file `leaf;level 1;...;*` (separator `;`, tab or `,`; UTF-8; quotes as in CSV), or of a mapping
    from value to label, or to the labels from level 1 up. Raises PolicyError, with the line, for ragged lines, empty
    labels and leaves with two paths.
    """
    source = _source_of(spec)
    if spec.csv is not None:
        path = (directory or Path()) / Path(spec.csv).expanduser()
        checked = _rooted(list(_checked(read_lines(path, spec.csv, error), "line", source, error)))
    else:
        checked = _rooted(list(_checked(_lines_of(spec.mapping or {}), "entry", source, error)))
    if not checked:
        raise error(f"{source} is empty.")
    return checked


def _source_of(spec: Hierarchy) -> str:
    return "the mapping" if spec.csv is None else f"the file '{spec.csv}'"


def _lines_of(mapping: Mapping[str, str | tuple[str, ...]]) -> Iterator[Line]:
    for place, (value, labels) in enumerate(mapping.items(), start=1):
        yield Line(place, value, (labels,) if isinstance(labels, str) else tuple(labels))


def _check_matches(task: HierarchyTask, source: str) -> None:
    (missing,) = task.engine.query_one("hierarchies/count_unmatched", leaves=task.leaves)
    if missing:
        raise task.error(
            f'{source} lacks {missing} of the distinct values in the data; add them, or write unknown: "*" '
            "to put them in a group of their own under the root."
        )


def _checked(lines: Iterable[Line], unit: str, source: str, error: Callable[[str], PolicyError]) -> Iterator[Line]:
    """The lines without repetitions."""
    seen: dict[str, tuple[str, ...]] = {}
    depth: int | None = None
    for line in lines:
        where = f"{unit} {line.place} of {source}"
        depth = len(line.labels) if depth is None else depth
        if len(line.labels) != depth:
            raise error(f"{where} has {quantity(len(line.labels), 'level')} where those before have {depth}.")
        if not all(line.labels):
            raise error(f"{where} has an empty label.")
        if "\x00" in line.value or any("\x00" in label for label in line.labels):
            raise error(f"{where} holds a NUL character.")
        if line.value not in seen:
            seen[line.value] = line.labels
            yield line
        elif seen[line.value] != line.labels:
            raise error(f"{where} gives a value another path than a {unit} before.")


def _rooted(lines: list[Line]) -> list[Line]:
    """The lines with the root as last label: the last level itself where it has one group, a level more elsewhere."""
    tops = {line.labels[-1] if line.labels else line.value for line in lines}
    kept = -1 if lines and lines[0].labels and len(tops) == 1 else None
    return [Line(line.place, line.value, (*line.labels[:kept], ROOT)) for line in lines]


def read_lines(path: Path, shown: str, error: Callable[[str], PolicyError]) -> Iterator[Line]:
    """The lines of a taxonomy's file, called `shown` in the errors that `error` makes."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as failure:
        raise error(f"the file '{shown}' can't be read: {failure.strerror}.") from failure
    except UnicodeDecodeError as failure:
        raise error(f"the file '{shown}' is not UTF-8; convert it.") from failure
    limit = csv.field_size_limit(_MAX_FIELD)
    try:
        yield from _parse(text)
    except csv.Error as failure:
        raise error(f"the file '{shown}' is not well-formed: {failure}.") from failure
    finally:
        csv.field_size_limit(limit)


def _parse(text: str) -> Iterator[Line]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_separator(text))
    place = 1
    for fields in reader:
        if fields:
            yield Line(place, fields[0], tuple(fields[1:]))
        place = reader.line_num + 1


def _separator(text: str) -> str:
    """The first of semicolon, tab and comma that divides the first line; one in quotes does not."""
    first_line = next((line for line in _QUOTED.sub("", text).splitlines() if line), "")
    for separator in _SEPARATORS:
        if separator in first_line:
            return separator
    for separator in _SEPARATORS:  # a quote that stands within a field may have hidden it
        first = next((row for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) if row), [])
        if len(first) > 1:
            return separator
    return _SEPARATORS[0]
