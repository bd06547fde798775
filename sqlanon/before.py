"""The source as it was: its equivalence classes over the raw quasi-identifiers, to compare the release with."""

from __future__ import annotations

from markupsafe import Markup

from sqlanon.encoding import CodedTable
from sqlanon.engines.base import Engine
from sqlanon.metrics import ClassStatistics
from sqlanon.partition.collapse import Tuples
from sqlanon.sql import expression


def source_statistics(engine: Engine, coded: CodedTable, tuples: Tuples | None) -> ClassStatistics:
    """The class sizes of the source, from its coded rows or their distinct tuples: equal codes are equal values."""
    keys = quasi_keys(coded)
    if not keys:  # every quasi-identifier has a single value
        return ClassStatistics(coded.source_rows, 0, ((coded.source_rows, 1),))
    rows, size = (coded.rows, "count(*)") if tuples is None else (tuples.table, "CAST(sum(w) AS BIGINT)")
    sizes = engine.query("encoding/measure_classes", rows=rows, keys=keys, size=Markup(size))
    return ClassStatistics(coded.source_rows, 0, tuple((int(size), int(classes)) for size, classes in sizes))


def quasi_keys(coded: CodedTable) -> tuple[Markup, ...]:
    """Expressions over coded rows that are equal where all quasi-identifiers are; none if each has a single value."""
    masks = [sum(f.mask for f in coded.quasi_identifiers if f.word == w) for w in range(coded.words)]
    columns = zip(coded.word_columns, masks, strict=True)
    return tuple(expression("{word} & {mask}", word=word, mask=mask) for word, mask in columns if mask)
