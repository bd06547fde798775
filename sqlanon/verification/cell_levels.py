"""Published cells of columns that climbed hierarchies, level by level, read from their texts and the policy alone.

Each level of a hierarchy becomes a column: the label that a cell shows or is in, and `*` where the cell does not tell.
Of two cells one shows a group of the other, or the same, exactly where no such column shows two different texts. So the
check of a table with wildcards is one of these columns. Nothing of the search is read: no codes, and no hierarchy that
was built of values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.errors import PolicyError
from sqlanon.hierarchies.taxonomy import label_problems, paths_of_labels, read_taxonomy
from sqlanon.policy import Hierarchy
from sqlanon.policy.document import path_text
from sqlanon.sql import Expression, Identifier, Relation, Text, macro
from sqlanon.values.expressions import comparable

_PAIR = r"^\[?(-?[0-9]{1,37})(?:-(-?[0-9]{1,37})\))?$"  # a whole number, or an interval of these


def unfold(
    engine: Engine, table: Relation, columns: Mapping[str, Column], hierarchies: Mapping[str, Hierarchy]
) -> tuple[Expression, dict[str, Column], dict[str, tuple[str, ...]]]:
    """Write a relation of a table with the levels of some columns; returns its columns, and the names of the levels.

    hierarchies: of the columns whose cells may show groups.
    Raises PolicyError where a taxonomy can't be read, or its labels do not tell which values are meant.
    """
    described, levels = [], {}
    for place, (name, spec) in enumerate(hierarchies.items()):
        cell = macro("relations.column", Identifier("released"), Identifier(name))
        cell, entry = comparable(engine, cell, Kind.TEXT), Identifier(f"h{place}")
        kind = "lines" if spec.kind in ("csv", "mapping") else spec.kind
        one = _DESCRIBED[kind](name, spec, entry) | {"kind": kind, "cell": cell, "entry": entry}
        levels[name] = tuple(f"sqlanon_{place}_{level}" for level in range(one.pop("height")))
        described.append(one | {"names": [Identifier(key) for key in levels[name]]})
    shown = {key: replace(columns[name], name=key) for name, keys in levels.items() for key in keys}
    statement = engine.render("verification/unfold_cells", table=table, columns=described)
    relation = macro("relations.aliased", macro("relations.subquery", statement), Identifier("unfolded"))
    return relation, {**columns, **shown}, levels


def _lines(name: str, spec: Hierarchy, _entry: Identifier) -> dict[str, Any]:
    def error(what: str) -> PolicyError:
        return PolicyError(f"Hierarchy of column '{name}': {what}")

    lines = read_taxonomy(spec, None, error)
    problems = [f"{path_text(('attributes', name))}: {problem}" for problem in label_problems(lines, spec.unknown)]
    if problems:
        raise PolicyError(problems)
    paths = [[Text(text) for text in (label, *path)] for label, path in paths_of_labels(lines).items()]
    unknown = None if spec.unknown is None else Text(spec.unknown)
    return {"height": len(lines[0].labels), "lines": paths, "unknown": unknown}


def _mask(_name: str, spec: Hierarchy, _entry: Identifier) -> dict[str, Any]:
    assert spec.length is not None  # a policy without it is refused
    return {"height": spec.length, "length": spec.length, "side": spec.mask}


def _intervals(_name: str, spec: Hierarchy, entry: Identifier) -> dict[str, Any]:
    widths = [int(width) for width in spec.intervals or ()]
    low, high = (macro("relations.column", entry, Identifier(end)) for end in ("low", "high"))
    described = {"levels": [0, *widths], "origin": int(spec.origin), "pattern": Text(_PAIR), "low": low, "high": high}
    return described | {"height": len(widths) + 1}


def _periods(_name: str, spec: Hierarchy, _entry: Identifier) -> dict[str, Any]:
    return {"levels": ["value", *(spec.date or ())], "height": len(spec.date or ()) + 1}


_DESCRIBED: Mapping[str, Callable[[str, Hierarchy, Identifier], dict[str, Any]]] = {
    "lines": _lines,
    "mask": _mask,
    "intervals": _intervals,
    "date": _periods,
}


def compared_columns(quasi_identifiers: Sequence[str], levels: Mapping[str, tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Name the columns in which rows are compared, by quasi-identifier: its levels, where it has some."""
    return [levels.get(name, (name,)) for name in quasi_identifiers]
