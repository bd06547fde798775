"""Hierarchies without a dimension table: the labels of a row's value by expressions, or from lines of a taxonomy."""

from __future__ import annotations

from sqlanon.engines.columns import Column
from sqlanon.errors import PolicyError
from sqlanon.hierarchies.dates import label_dates
from sqlanon.hierarchies.intervals import has_interval_keys, label_intervals
from sqlanon.hierarchies.taxonomy import read_taxonomy
from sqlanon.policy import Hierarchy
from sqlanon.sql import Expression, Identifier, Renderer, Text, macro


def has_keys(spec: Hierarchy, column: Column) -> bool:
    """Tell whether every label of a non-NULL value has a key: a number or a day that is found without the label."""
    return spec.date is not None or (spec.intervals is not None and has_interval_keys(spec, column))


def join_labels(
    render: Renderer,
    spec: Hierarchy,
    column: Column,
    value: Expression,
    text: Expression,
    alias: Identifier,
    *,
    keyed: bool = False,
) -> Expression:
    """Join a row to its labels `alias.l1, …` at all levels below the root, by its value, or the value's text.

    NULL and values that a taxonomy lacks have none. With `keyed`, labels that have keys have them as `alias.k1, …`.
    Raises PolicyError where a taxonomy can't be read.
    """
    if spec.added:
        raise PolicyError(
            f"Hierarchy of column '{column.name}': {spec.kind} is of an installed package, and labels of packages are"
            " not part of exports and procedures; use run and apply."
        )
    if spec.date is None and spec.intervals is None:
        return _join_lines(spec, column, text, alias)
    values = macro("hierarchies.one_value", value)
    label = label_dates if spec.date is not None else label_intervals
    labels = label(render, spec, column, values, keyed=keyed)
    return macro("hierarchies.computed", labels, alias)


def _join_lines(spec: Hierarchy, column: Column, text: Expression, alias: Identifier) -> Expression:
    def error(what: str) -> PolicyError:
        return PolicyError(f"Hierarchy of column '{column.name}': {what}")

    lines = read_taxonomy(spec, None, error)
    rows = [[Text(cell) for cell in (line.value, *line.labels[:-1])] for line in lines]
    return macro("hierarchies.lines", rows, len(rows[0]) - 1, alias, text)
