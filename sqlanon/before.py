"""The source as it was: its equivalence classes over the raw quasi-identifiers, to compare the release with."""

from __future__ import annotations

from sqlanon.encoding import CodedTable
from sqlanon.engines.base import Engine
from sqlanon.metrics import ClassStatistics
from sqlanon.sql import expression


def source_statistics(engine: Engine, coded: CodedTable) -> ClassStatistics:
    """The class sizes of the source, from its coded rows: equal codes are equal values."""
    masks = [sum(f.mask for f in coded.quasi_identifiers if f.word == w) for w in range(coded.words)]
    columns = zip(coded.word_columns, masks, strict=True)
    keys = [expression("{word} & {mask}", word=word, mask=mask) for word, mask in columns if mask]
    if not keys:  # every quasi-identifier has a single value
        return ClassStatistics(coded.source_rows, 0, ((coded.source_rows, 1),))
    sizes = engine.query("encoding/measure_classes", rows=coded.rows, keys=keys)
    return ClassStatistics(coded.source_rows, 0, tuple((int(size), int(classes)) for size, classes in sizes))
