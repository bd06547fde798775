"""Labels of hierarchies, held against raw values and the policy alone.

Each kind of hierarchy has a statement of its own here, which shares nothing with the one that builds the hierarchy of
a search: a mask is read from its text, a period from the parts of a day, an interval by arithmetic on the ends that its
label says, and a taxonomy from its lines, loaded anew. Where widths of intervals are no multiples of each other,
boundaries are snapped, and the labels of such levels are worked out again from the values by the formula of the grid.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.errors import PolicyError
from sqlanon.hierarchies.computed import computed_hierarchy
from sqlanon.hierarchies.intervals import label_intervals
from sqlanon.hierarchies.limits import NO_LIMITS, Limits
from sqlanon.hierarchies.taxonomy import read_taxonomy
from sqlanon.policy import Hierarchy
from sqlanon.sql import Expression, Identifier, RedactedValue, Relation, Text, macro
from sqlanon.staging.labels import EVERYTHING, NULL
from sqlanon.values.expressions import comparable, text_of
from sqlanon.verification.open_labels import OpenLabel, open_labels, own_labels

_FLOAT_UNITS = 2**52  # floats are counted exactly below so many units
_EXACT_DIGITS = 37  # of decimals


@dataclass(frozen=True)
class Ladder:
    """A hierarchy as the policy has it, for one column.

    spec: the policy's; that of a mask says its length. lines: the lines of a taxonomy, loaded by `load_lines`, and
    height the number of its levels above the value.
    levels: the levels that the release may show; None for all of them.
    """

    spec: Hierarchy
    lines: Relation | None = None
    height: int = 1
    levels: frozenset[int] | None = None

    def shows(self, level: int) -> bool:
        """Tell whether the release may show this level."""
        return self.levels is None or level in self.levels


@dataclass(frozen=True)
class Labelled:
    """Published cells beside raw values: two columns of a relation.

    may_be_starred: whether a cell may hide anything. limits: the numbers that stand for all beyond them.
    """

    witness: Relation | Expression
    column: Column
    raw: str
    cell: str
    may_be_starred: bool = True
    limits: Limits = NO_LIMITS


def with_length(
    engine: Engine, spec: Hierarchy, column: Column, relation: Relation | Expression, raw: str, least: int = 1
) -> Hierarchy:
    """The hierarchy with the length of its mask: the policy's, or that of the longest text of a column, if not less."""
    if spec.mask is None or spec.length is not None:
        return spec
    text = text_of(engine.render, Markup(Identifier(raw)), column.kind, column.type)
    (longest,) = engine.query_one("verification/measure_length", witness=relation, text=text)
    return spec.model_copy(update={"length": max(least, int(longest))})


def load_lines(engine: Engine, ladder: Ladder, column: Column, directory: Path | None, lines: Relation) -> Ladder:
    """Load the lines of a taxonomy into the table `lines`; other kinds of hierarchies have none.

    Raises PolicyError where a taxonomy can't be read.
    """
    added = computed_hierarchy(ladder.spec)
    if added is not None:
        return Ladder(ladder.spec, None, added.levels + 1, ladder.levels)
    if ladder.spec.kind not in ("csv", "mapping"):
        return ladder

    def error(what: str) -> PolicyError:
        return PolicyError(f"Hierarchy of column '{column.name}': {what}")

    read = read_taxonomy(ladder.spec, directory, error)
    height = len(read[0].labels)
    levels = range(height + 1)
    engine.run("verification/create_lines", lines=lines, levels=levels)
    engine.load(lines, [f"l{level}" for level in levels], [(line.value, *line.labels) for line in read])
    return Ladder(ladder.spec, lines, height, ladder.levels)


def count_untrue_labels(engine: Engine, labelled: Labelled, ladder: Ladder) -> int:
    """The rows whose cell is not a label that the policy's hierarchy gives their value."""
    return _COUNTERS.get(ladder.spec.kind, _count_computed)(engine, labelled, ladder)


def _count(engine: Engine, template: str, labelled: Labelled, ladder: Ladder, root: int, **values: Any) -> int:
    kind = labelled.column.kind
    raw, cell = (Markup(Identifier(name)) for name in (labelled.raw, labelled.cell))
    (count,) = engine.query_one(
        template,
        witness=labelled.witness,
        raw=comparable(engine, raw, kind),
        cell=comparable(engine, cell, Kind.TEXT),
        everything=Text(EVERYTHING),
        null=Text(NULL),
        root=labelled.may_be_starred or ladder.shows(root),
        **values,
    )
    return int(count)


def _text(engine: Engine, column: Column, value: str) -> Expression:
    text = text_of(engine.render, Markup(Identifier(value)), column.kind, column.type)
    return engine.render.macro("collate", text)


def _count_masks(engine: Engine, labelled: Labelled, ladder: Ladder) -> int:
    length = ladder.spec.length or 1
    inner = None if ladder.levels is None else sorted(level for level in ladder.levels if level < length)
    return _count(
        engine,
        "verification/count_untrue_masks",
        labelled,
        ladder,
        length,
        text=_text(engine, labelled.column, "raw"),
        length=length,
        left=ladder.spec.mask == "left",
        levels=inner,
        has_masked=any(ladder.shows(level) for level in range(1, length)),
    )


def _count_texts(engine: Engine, labelled: Labelled, ladder: Ladder, computed: Expression | None = None) -> int:
    """A value's own text, or a label of its line in a taxonomy."""
    unknown = ladder.spec.unknown
    lines = ladder.lines or computed
    inner = range(1, ladder.height) if lines is not None else ()
    above = any(ladder.shows(level) for level in inner)
    return _count(
        engine,
        "verification/count_untrue_texts",
        labelled,
        ladder,
        ladder.height,
        text=_text(engine, labelled.column, "raw"),
        lines=lines,
        unknown=None if unknown is None else Text(unknown if above else EVERYTHING),
        has_leaves=ladder.shows(0),
        levels=[level for level in inner if ladder.shows(level)],
    )


def _count_computed(engine: Engine, labelled: Labelled, ladder: Ladder) -> int:
    """Labels that a package's SELECT gives the raw values, computed anew."""
    added, column = computed_hierarchy(ladder.spec), labelled.column
    assert added is not None
    values = macro("verification.raw_values", labelled.witness, Identifier(labelled.raw))
    labels = added.labels(engine.render, column, values)
    lines = macro("verification.computed_lines", labels, _text(engine, column, "value"))
    return _count_texts(engine, labelled, ladder, lines)


def _count_spans(engine: Engine, template: str, labelled: Labelled, ladder: Ladder, height: int, **values: Any) -> int:
    """Look at cells with their ends; where one is untrue, at each of its values."""
    for each in (False, True):
        values |= {"text": _text(engine, labelled.column, "least"), "each": each}
        count = _count(engine, template, labelled, ladder, height, **values)
        if not count:
            return 0
    return count


def _count_periods(engine: Engine, labelled: Labelled, ladder: Ladder) -> int:
    names = ladder.spec.date or ()
    return _count_spans(
        engine,
        "verification/count_untrue_periods",
        labelled,
        ladder,
        len(names) + 1,
        kind=labelled.column.kind.value,
        has_leaves=ladder.shows(0),
        levels=[name for level, name in enumerate(names, start=1) if ladder.shows(level)],
    )


def _count_grids(engine: Engine, labelled: Labelled, ladder: Ladder) -> int:
    column, spec = labelled.column, ladder.spec
    decimals, origin, widths = _units(spec)
    limit = _limit(column, spec)
    shown = [level for level in range(1, len(widths) + 1) if ladder.shows(level)]
    snapped = [level for level in shown if not _is_multiple(widths, level)]
    within = labelled.limits.within(limit)  # beyond, intervals are open anyway
    opened = open_labels(engine, column, spec, within, [level for level in shown if level not in snapped], snapped)
    opened += own_labels(engine, column, labelled.limits) if ladder.shows(0) else []
    number = r"-?(?:0|[1-9][0-9]*)" + (rf"(?:[.][0-9]{{0,{decimals - 1}}}[1-9])?" if decimals else "")
    return _count_spans(
        engine,
        "verification/count_untrue_grids",
        labelled,
        ladder,
        len(widths) + 1,
        decimals=decimals,
        origin=origin,
        widths=[widths[level - 1] for level in shown if level not in snapped],
        snapped={"levels": snapped, "labels": _labels_anew(engine, column, spec)} if snapped else None,
        pair=Text(rf"^\[({number})-({number})\)$"),
        below=Text(f"(-Infinity--{limit:f}]"),
        above=Text(f"[{limit:f}-Infinity)"),
        limit=_typed(engine, column, limit),
        is_float=column.kind is Kind.FLOAT,
        type=macro("values.double_type") if column.kind is Kind.FLOAT else _decimal(column, decimals),
        has_leaves=ladder.shows(0),
        opened=[_opened(engine, column, label) for label in opened],
    )


def _labels_anew(engine: Engine, column: Column, spec: Hierarchy) -> Expression:
    return label_intervals(engine.render, spec, column, macro("verification.one_value", Identifier("least")))


def _opened(engine: Engine, column: Column, label: OpenLabel) -> dict[str, Any]:
    """A label with open ends, as its statement needs it."""
    low, high = (None if end is None else _typed(engine, column, end) for end in (label.low, label.high))
    return {"label": label.label, "low": low, "high": high, "closed": label.closed}


def _units(spec: Hierarchy) -> tuple[int, int, list[int]]:
    """The decimals that widths and origin need, and these as whole numbers of the last of them."""
    numbers = [Decimal(str(number)) for number in (spec.origin, *(spec.intervals or ()))]
    decimals = max(0, *(-int(number.normalize().as_tuple().exponent) for number in numbers))
    origin, *widths = (int(number.scaleb(decimals)) for number in numbers)
    return decimals, origin, widths


def _is_multiple(widths: Sequence[int], level: int) -> bool:
    """Tell whether a level's boundaries are the multiples of its width: no boundary of a finer level lies askew."""
    width, finer = widths[level - 1], widths[: level - 1]
    if all(width % other == 0 for other in finer):
        return True
    return width % finer[-1] == 0 and _is_multiple(widths, level - 1)


def _limit(column: Column, spec: Hierarchy) -> Decimal:
    """Numbers at this distance from 0 and beyond are in open intervals."""
    numbers = [Decimal(str(number)) for number in (spec.origin, *(spec.intervals or ()))]
    exponents = [int(number.normalize().as_tuple().exponent) for number in numbers if number]
    if column.kind is Kind.FLOAT:
        return Decimal(_FLOAT_UNITS).scaleb(max(-22, min(exponents))).normalize()
    scale = max(0, -min(exponents))
    return Decimal(1).scaleb(_EXACT_DIGITS - scale - (column.decimals or 0))


def _typed(engine: Engine, column: Column, number: Decimal) -> Expression:
    """A number in the column's arithmetic."""
    text = RedactedValue(f"{number:f}")  # it may be out of the data
    types = {Kind.FLOAT: macro("values.double_type"), Kind.DECIMAL: _decimal(column, 0)}
    return macro("values.cast", text, types.get(column.kind) or engine.render.macro("wide_integer"))


def _decimal(column: Column, decimals: int) -> Expression:
    return macro("values.decimal", max(decimals, column.decimals or 0))


_COUNTERS: dict[str, Callable[[Engine, Labelled, Ladder], int]] = {
    "mask": _count_masks,
    "date": _count_periods,
    "intervals": _count_grids,
    "csv": _count_texts,
    "mapping": _count_texts,
    "suppress": _count_texts,
}
