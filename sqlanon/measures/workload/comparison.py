"""Finds for rows of the source the class that the release shows them in, and lets trees learn from both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import ConflictError, PolicyError
from sqlanon.hierarchies.scratch import scratch_hierarchies
from sqlanon.hierarchies.table import HierarchyTable
from sqlanon.measures.workload import Prediction
from sqlanon.measures.workload.geometry import Geometry, Integers, Reader, Span, locate, rank
from sqlanon.measures.workload.tree import TreeScores, score_trees
from sqlanon.plan.checks import released_names
from sqlanon.plan.connecting import open_release, open_source
from sqlanon.policy import AttributeSection, Policy, Role, Show
from sqlanon.policy.algorithm_parameters import Recodes
from sqlanon.sql import Expression, Identifier, Relation, macro
from sqlanon.values.expressions import comparable, text_of

FEW_VALUES = 20  # of an integer: up to so many it is taken for a class

Texts = tuple[str | None, ...]


@dataclass(frozen=True)
class _SourceTexts:
    """Rows as texts, quasi-identifiers first and the target last; whether they are all rows."""

    kinds: dict[str, Kind]
    readers: list[Reader]
    rows: list[Texts]
    is_sample: bool


def compare_trees(
    policy: Policy, target: str, predict: Prediction | None, sample: int, options: EngineOptions | None
) -> TreeScores:
    """Train and test both trees, on the same folds of the same rows.

    Raises PolicyError for a policy whose regions can't be read back, ConflictError where the rows are not those that
    were released.
    """
    quasi = {name: one for name, one in policy.attributes.items() if one.role is Role.QUASI_IDENTIFIER}
    _check(policy, quasi)
    labelled = {n: one.hierarchy for n, one in quasi.items() if one.hierarchy and one.show is Show.LABEL}
    with (
        open_source(policy, options, read_only=not labelled) as (engine, table),
        scratch_hierarchies(engine, table, labelled) as built,
    ):
        source = _read_source(engine, table, quasi, built, target, sample)
    predicts = predict or _guess(source, target)
    with open_release(policy, options=options) as (engine, table):
        classes, sizes = _read_classes(engine, table, quasi)
    spans = _spans(source.readers, classes, quasi)
    geometry = rank(source.readers, [row[:-1] for row in source.rows], spans)
    box = locate(geometry)
    if not source.is_sample and not np.array_equal(np.bincount(box[box >= 0], minlength=len(sizes)), sizes):
        raise _unlike()
    return _score(source, geometry, box, target, predicts)


def _check(policy: Policy, quasi: Mapping[str, AttributeSection]) -> None:
    """Refuse what does not say which rows a class holds."""
    if policy.algorithm.recodes is Recodes.CLUSTERS:
        raise PolicyError(
            f"Trees can't be compared: {policy.algorithm.name} shows {', '.join(quasi)} as centres of clusters, which"
            " don't say which rows a cluster holds; leave --tree out."
        )
    problems = [f"attributes.{name}: {why}" for name, one in quasi.items() if (why := _untold(one)) is not None]
    if problems:
        raise PolicyError(problems)


def _untold(attribute: AttributeSection) -> str | None:
    """Say why the cells of an attribute don't tell the values of their rows; None if they do."""
    if attribute.show not in (Show.LABEL, Show.BOUNDS):
        return (
            f"show: {attribute.show.value} doesn't say which rows a class holds, and trees can't be compared; use show:"
            " label or bounds."
        )
    limits = [key for key in ("bottom", "top") if getattr(attribute, key) is not None]
    if limits:
        return f"values beyond {' and '.join(limits)} are shown as one, and trees can't be compared; leave --tree out."
    return None


def _read_source(
    engine: Engine,
    table: Relation,
    quasi: Mapping[str, AttributeSection],
    built: Mapping[str, HierarchyTable],
    target: str,
    sample: int,
) -> _SourceTexts:
    """All rows, or a random sample of so many; `built` are the hierarchies of attributes that are shown as labels."""
    columns = {column.name: column for column in engine.columns(table)}
    readers = [_reader(engine, table, columns[name], one, built.get(name)) for name, one in quasi.items()]
    values, joins = _values(engine, columns, quasi, built)
    values.append(_text(engine, columns[target]))
    (rows,) = engine.query_one("count_rows", table=table)
    wanted: dict[str, Any] = {"rows": table, "columns": values, "joins": joins}
    if rows > sample:
        wanted |= {"limit": sample, "digested": macro("values.line_of_columns", range(len(values)))}
    sampled = engine.query(
        "measures/workload/sample_rows" if rows > sample else "measures/workload/read_rows", **wanted
    )
    kinds = {name: column.kind for name, column in columns.items()}
    texts = [tuple(None if value is None else str(value) for value in row) for row in sampled]
    return _SourceTexts(kinds, readers, texts, is_sample=rows > sample)


def _reader(
    engine: Engine, table: Relation, column: Column, attribute: AttributeSection, built: HierarchyTable | None
) -> Reader:
    labels = order = None
    if built is not None:
        levels = list(range(built.height))
        listed = engine.query("measures/workload/list_labels", hierarchy=built.table, levels=levels)
        labels = {str(label): (int(first), int(last)) for label, first, last in listed}
    elif column.kind is Kind.ENUM:
        text = text_of(engine.render, Markup(Identifier("v")), column.kind, column.type)
        value = Identifier(column.name)
        listed = engine.query("measures/workload/list_values", rows=table, value=value, text=text)
        order = {str(text): place for place, (text,) in enumerate(listed)}
    return Reader(column.kind, labels, order, has_groups=attribute.hierarchy is not None)


def _values(
    engine: Engine,
    columns: Mapping[str, Column],
    quasi: Mapping[str, AttributeSection],
    built: Mapping[str, HierarchyTable],
) -> tuple[list[Expression], list[dict[str, Any]]]:
    """Write the value that stands for each quasi-identifier of a row, and the dimension tables to join."""
    values, joins = [], []
    for place, name in enumerate(quasi):
        column, alias = columns[name], Identifier(f"h{place}")
        if name not in built:
            values.append(_text(engine, column))
            continue
        values.append(macro("codes.of_entry", alias, Identifier("leaf")))
        raw = comparable(engine, macro("codes.in_row", Identifier(name)), column.kind)
        leaf = comparable(engine, macro("codes.of_entry", alias, Identifier("value")), column.kind)
        joins.append({"table": built[name].table, "alias": alias, "leaf": leaf, "value": raw})
    return values, joins


def _text(engine: Engine, column: Column) -> Expression:
    return text_of(engine.render, macro("codes.in_row", Identifier(column.name)), column.kind, column.type)


def _read_classes(
    engine: Engine, table: Relation, quasi: Mapping[str, AttributeSection]
) -> tuple[list[Texts], NDArray[np.int64]]:
    """Read the labels of each class, as texts, and its rows; in an order that does not depend on the engine."""
    columns = {column.name: column for column in engine.columns(table)}
    names = [released for name, one in quasi.items() for released in released_names(name, one)]
    cells = [_text(engine, columns[name]) for name in names]
    classes = engine.query("measures/workload/list_classes", rows=table, cells=cells)
    ordered = sorted(classes, key=lambda row: [(cell is not None, cell or "") for cell in row[:-1]])
    return [tuple(row[:-1]) for row in ordered], np.array([int(row[-1]) for row in ordered], dtype=np.int64)


def _spans(
    readers: Sequence[Reader], classes: Sequence[Texts], quasi: Mapping[str, AttributeSection]
) -> list[list[Span]]:
    """The classes as spans of each attribute; each text is read once."""
    widths = [len(released_names(name, one)) for name, one in quasi.items()]
    columns: list[list[Span]] = []
    first = 0
    for reader, width in zip(readers, widths, strict=True):
        cells = [one[first : first + width] for one in classes]
        known = {cell: reader.span(cell) for cell in set(cells)}
        if None in known.values():
            raise _unlike()
        columns.append([span for cell in cells if (span := known[cell]) is not None])
        first += width
    return [list(spans) for spans in zip(*columns, strict=True)]


def _guess(source: _SourceTexts, target: str) -> Prediction:
    kind = source.kinds[target]
    several = kind is Kind.INTEGER and len({row[-1] for row in source.rows}) > FEW_VALUES
    return "number" if kind in (Kind.DECIMAL, Kind.FLOAT) or several else "class"


def _score(source: _SourceTexts, geometry: Geometry, box: Integers, target: str, predicts: Prediction) -> TreeScores:
    """Rows without a known number are left out where a number is predicted."""
    texts = [row[-1] for row in source.rows]
    if predicts == "class":
        numbers = {
            text: n for n, text in enumerate(sorted(set(texts), key=lambda text: (text is not None, text or "")))
        }
        return score_trees(geometry, box, np.array([numbers[text] for text in texts]), predicts)
    if not source.kinds[target].is_numeric:
        raise PolicyError(f"The target '{target}' is no number; leave the prediction of a number out.")
    values = np.array([np.nan if text is None else float(text) for text in texts])
    known = np.abs(values) <= 1e150  # false for NaN
    if not known.any():
        raise PolicyError(f"The target '{target}' holds no number.")
    kept = Geometry(geometry.points[known], geometry.low, geometry.high, geometry.beyond)
    return score_trees(kept, box[known], values[known], predicts)


def _unlike() -> ConflictError:
    return ConflictError(
        "The rows of the source are not those that the release shows: the source changed after the run (run the policy "
        "again with --replace), a CSV file lost the types of its columns (release to Parquet), or a column with show: "
        "bounds holds NULL (use show: label)."
    )
