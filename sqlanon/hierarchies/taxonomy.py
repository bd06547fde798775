"""Taxonomies: a file in the semicolon format, or a mapping in the policy; and what their labels tell."""

from __future__ import annotations

import csv
import io
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from sqlanon.errors import PolicyError
from sqlanon.hierarchies.draft import HierarchyDraft, HierarchyTask, nesting_problems
from sqlanon.policy import Hierarchy
from sqlanon.sql import Identifier
from sqlanon.support.quantities import quantity

ROOT = "*"


MOST_PROBLEMS = 10  # of one taxonomy that are listed line by line


_PLURALS = {"line": "lines", "entry": "entries"}


_SEPARATORS = ";\t,"


_QUOTED = re.compile(r'"[^"]*"')


_MAX_FIELD = 1 << 30  # characters; the standard library's own limit is 131,072


NULL = "NULL"  # the text of NULL in a release


class Line(NamedTuple):
    """A line of a taxonomy: where it stands, the value, and its labels from level 1 up."""

    place: int
    value: str
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Taxonomy:
    """The lines of a taxonomy, one a value, each with the root as its last label, and what is wrong with others."""

    lines: list[Line]
    problems: list[str]
    blank: tuple[str, ...] = ()
    """The labels of a line to complete, as the file or mapping has them: empty ones, and its root if it writes one."""

    @property
    def height(self) -> int:
        """The levels above the values; of a taxonomy with ragged lines, those of its first line."""
        return len(self.lines[0].labels)


def draft_taxonomy(task: HierarchyTask) -> HierarchyDraft:
    """Match values with the lines of a taxonomy.

    Raises PolicyError for all that is wrong with these, and for values that they lack, with their number, unless the
    hierarchy has `unknown`.
    """
    taxonomy = scan_taxonomy(task.spec, task.base_directory, task.error)
    problems, is_whole = list(taxonomy.problems), not taxonomy.problems
    levels = range(1, (taxonomy.height if is_whole else 1) + 1)
    match_values(task, taxonomy, levels)
    if is_whole:
        problems += nesting_problems(task, taxonomy.height, task.paths)
    (missing,) = task.engine.query_one("hierarchies/count_unmatched", leaves=task.leaves)
    if missing:
        problems.append(
            f"{_source_of(task.spec)} lacks {missing} of the distinct values in the data (sqlanon hierarchy missing"
            ' writes them to complete it); add them, or write unknown: "*" to put them in a group of their own under'
            " the root."
        )
    if problems:
        raise _together(problems, task.error)
    task.engine.run("hierarchies/group_paths", groups=task.groups, leaves=task.leaves, paths=task.paths, levels=levels)
    return HierarchyDraft(height=taxonomy.height, keys=(Identifier("l1"),), lines=len(taxonomy.lines))


def match_values(task: HierarchyTask, taxonomy: Taxonomy, levels: Sequence[int]) -> None:
    """Write the lines as a work table with these levels, and the values each with its line; NULL for those they lack.

    With one level, all lines are put under the root, so that values can be matched with ragged lines too.
    """
    lines, height = taxonomy.lines, len(levels)
    labels = [line.labels if height > 1 else (ROOT,) for line in lines]
    task.engine.run("hierarchies/create_paths", paths=task.paths, levels=levels)
    rows: list[tuple[int | str | None, ...]] = [
        (line.place, line.value, *own) for line, own in zip(lines, labels, strict=True)
    ]
    if task.spec.unknown is not None:
        # the group of unknown values comes last; its missing value tells it from the file's lines
        rows.append((lines[-1].place + 1, None, *(task.spec.unknown for _ in levels[:-1]), ROOT))
    task.engine.load(task.paths, ["line", *(f"l{level}" for level in range(height + 1))], rows)
    task.engine.run("hierarchies/match_paths", leaves=task.leaves, values=task.values, text=task.text, paths=task.paths)


def read_taxonomy(spec: Hierarchy, directory: Path | None, error: Callable[[str], PolicyError]) -> list[Line]:
    """Read the lines of a taxonomy, each with the root as its last label.

    They are those of a file `leaf;level 1;...;*` (separator `;`, tab or `,`; UTF-8; quotes as in CSV), or of a mapping
    from value to label, or to the labels from level 1 up. Raises PolicyError, with the lines, for ragged lines, empty
    labels and leaves with two paths.
    """
    taxonomy = scan_taxonomy(spec, directory, error)
    if taxonomy.problems:
        raise _together(taxonomy.problems, error)
    return taxonomy.lines


def scan_taxonomy(spec: Hierarchy, directory: Path | None, error: Callable[[str], PolicyError]) -> Taxonomy:
    """Read the lines of a taxonomy as `read_taxonomy` does, and list the problems of all lines.

    Raises PolicyError for a file that can't be read as lines, and for one without any.
    """
    source = _source_of(spec)
    if spec.csv is not None:
        path = (directory or Path()) / Path(spec.csv).expanduser()
        lines, problems = _checked(read_lines(path, spec.csv, error), "line", source)
    else:
        lines, problems = _checked(_lines_of(spec.mapping or {}), "entry", source)
    if not lines:
        raise _together(problems or [f"{source} is empty."], error)
    writes_root = _writes_root(lines)
    first = lines[0].labels
    blank = ("",) * (len(first) - writes_root) + first[-1:] * writes_root
    return Taxonomy(_rooted(lines, writes_root), problems, blank)


def _together(problems: Sequence[str], error: Callable[[str], PolicyError]) -> PolicyError:
    return PolicyError([str(error(problem)) for problem in problems])


def _source_of(spec: Hierarchy) -> str:
    return "the mapping" if spec.csv is None else f"the file '{spec.csv}'"


def _lines_of(mapping: Mapping[str, str | tuple[str, ...]]) -> Iterator[Line]:
    for place, (value, labels) in enumerate(mapping.items(), start=1):
        yield Line(place, value, (labels,) if isinstance(labels, str) else tuple(labels))


def _checked(lines: Iterable[Line], unit: str, source: str) -> tuple[list[Line], list[str]]:
    """Keep the first line of each value, and list the problems of lines: a few by their place, the others counted."""
    kept: dict[str, Line] = {}
    problems: list[str] = []
    for line in lines:
        first = next(iter(kept.values()), line)
        wrong = _problem_of(line, len(first.labels), kept.get(line.value), unit)
        if wrong is not None:
            problems.append(f"{unit} {line.place} of {source} {wrong}")
        if "\x00" not in line.value:  # which no database holds
            kept.setdefault(line.value, line)
    if (others := len(problems) - MOST_PROBLEMS) > 0:
        problems[MOST_PROBLEMS:] = [f"{others:,} more of its {_PLURALS[unit]} are wrong."]
    return list(kept.values()), problems


def _problem_of(line: Line, depth: int, earlier: Line | None, unit: str) -> str | None:
    """Say what is wrong with a line; None for nothing. `earlier` is the first line of the same value."""
    if len(line.labels) != depth:
        return f"has {quantity(len(line.labels), 'level')} where the first one has {depth}."
    if not all(line.labels):
        return "has an empty label."
    if "\x00" in line.value or any("\x00" in label for label in line.labels):
        return "holds a NUL character."
    if earlier is not None and earlier.labels != line.labels:
        return f"gives a value another path than {unit} {earlier.place}."
    return None


def _rooted(lines: list[Line], writes_root: bool) -> list[Line]:
    """The lines with the root as last label: in place of the last label that all have, a level more elsewhere."""
    kept = -1 if writes_root else None
    return [Line(line.place, line.value, (*line.labels[:kept], ROOT)) for line in lines]


def _writes_root(lines: list[Line]) -> bool:
    """Tell whether the last level of lines is one group."""
    return bool(lines[0].labels) and len({line.labels[-1] if line.labels else line.value for line in lines}) == 1


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
