"""The rows of a table, or of a run's work tables, as the measures see them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.fields import Field
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.measures.before import quasi_keys
from sqlanon.measures.workload.measures import Measures, View, measure, measure_whole
from sqlanon.sql import Expression, Identifier, Relation, macro
from sqlanon.staging.recode import Recoding
from sqlanon.values.expressions import comparable, double_of, text_of

_EXACT = 2**53  # up to here every whole number is a double


def table_view(engine: Engine, table: Relation, classes: Sequence[str], target: str) -> View:
    """The rows of any table, in classes of equal values in some columns."""
    columns = {column.name: column for column in engine.columns(table)}
    keys = tuple(comparable(engine, _named(name), columns[name].kind) for name in classes)
    return _view(engine, table, keys, columns[target], _named(target))


def measures_of_run(engine: Engine, recoding: Recoding, target: str) -> tuple[Measures, Measures]:
    """Measure how well the raw quasi-identifiers predict the target, and how well the published classes do."""
    coded, omitted = recoding.coded, recoding.partition.omitted
    rows = coded.rows if omitted else recoding.partition.assigned  # trees use the coded rows up
    before = _coded_view(engine, coded, target, rows, quasi_keys(coded))
    whole = measure_whole(engine, before, coded.source_rows, lacking=omitted > 0)
    published = macro("measures.with_regions", recoding.partition.assigned, recoding.regions)
    after = _coded_view(engine, coded, target, published, (macro("codes.in_row", Identifier("region")),))
    return measure(engine, before, whole), measure(engine, after, whole)


def _named(name: str) -> Expression:
    return macro("codes.in_row", Identifier(name))


def _view(
    engine: Engine, rows: Relation | Expression, keys: tuple[Expression, ...], column: Column, value: Expression
) -> View:
    kind = column.kind
    number = double_of(engine.render, value, kind) if kind.is_numeric else None
    text = text_of(engine.render, value, kind, column.type)
    return View(rows, keys, comparable(engine, value, kind), text, number)


def _coded_view(
    engine: Engine, coded: CodedTable, target: str, rows: Relation | Expression, keys: tuple[Expression, ...]
) -> View:
    """Rows of codes; the target's value is looked up only where its code does not do."""
    field = coded.judged_field(target)
    code, kind = field.code(Identifier("r")), field.attribute.column.kind
    if field.coding.dictionary is None:
        return View(rows, keys, code, macro("values.text", code), _number_of(engine, field, code))
    if not kind.is_numeric and not field.coding.keyed:
        return View(rows, keys, code, macro("values.text", code), None)
    joined = macro("measures.with_values", rows, field.coding.dictionary, field.code(Identifier("a")))
    return _view(engine, joined, keys, field.attribute.column, macro("codes.in_row", Identifier("looked_up")))


def _number_of(engine: Engine, field: Field, code: Expression) -> Expression:
    """The number that a code without a dictionary stands for, as a double."""
    origin = field.coding.origin or 0
    value = macro("measures.whole", code, origin)
    if abs(origin) + field.coding.leaves < _EXACT:
        return engine.render.macro("double", value)
    return double_of(engine.render, value, Kind.INTEGER)
