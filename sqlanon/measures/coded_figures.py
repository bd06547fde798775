"""The figures of a coded source that its result says, measured where its coded rows are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.distinct_tuples import WEIGHT, Tuples
from sqlanon.engines.base import Engine
from sqlanon.measures.before import count_values, source_statistics
from sqlanon.measures.combinations import measure_combinations
from sqlanon.measures.metrics import ClassStatistics
from sqlanon.results.measures import Combinations


@dataclass(frozen=True)
class CodedFigures:
    """The figures of coded rows.

    classes: sizes of the equivalence classes; None where the rows are not all of the source.
    combinations: columns that single rows out; None where nobody asked for them.
    values: how many values each quasi-identifier has.
    """

    classes: ClassStatistics | None
    combinations: Combinations | None
    values: Mapping[str, int]


@dataclass(frozen=True)
class CodedMeasurement:
    """A measurement of coded rows, for any session that holds them.

    tuples: the distinct tuples of the rows, where these have been counted.
    is_whole: whether the rows are all of the source.
    k: of the classes that combinations are compared with; None where these are not wanted.
    """

    coded: CodedTable
    tuples: Tuples | None
    is_whole: bool
    k: int | None

    def __call__(self, engine: Engine) -> CodedFigures:
        """Measure the rows by statements of this session."""
        coded, tuples, classes, combinations = self.coded, self.tuples, None, None
        if self.is_whole:
            classes = source_statistics(engine, coded, tuples)
            if self.k is not None:
                combinations = measure_combinations(engine, coded, tuples, self.k)
        return CodedFigures(classes, combinations, count_values(engine, coded, tuples))

    def with_rows(self, engine: Engine) -> CodedFigures:
        """Measure the rows in the session that holds them."""
        coded = self.coded
        counted = coded.rows if self.tuples is None else self.tuples.table
        sampled = coded.witness if coded.witness_is_sample else coded.rows
        rows = list(dict.fromkeys((counted, sampled)))
        return engine.measure_with_rows((), rows, [*coded.word_columns, WEIGHT], coded.source_rows, self)
