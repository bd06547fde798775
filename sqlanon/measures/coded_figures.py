"""The figures of a coded source that its result says, and the columns that single rows out."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.distinct_tuples import WEIGHT, Tuples
from sqlanon.encoding.fields import Field
from sqlanon.engines.base import Engine
from sqlanon.measures.before import count_values, source_statistics
from sqlanon.measures.metrics import ClassStatistics
from sqlanon.results.measures import CombinationRisk, Combinations
from sqlanon.sql import Expression, macro

MOST_COLUMNS = 12  # that are combined: those with the most values


BEST = 3  # combinations of one, two and three columns that are kept; pairs that a third column is added to


EXACT_ROWS = 200_000  # up to so many rows all combinations are counted in all of them


RANKING_ROWS = 50_000  # of a larger source, that say which combinations are the best


_PARTS = 4096  # that hashes can be told by


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


@dataclass(frozen=True)
class _Counts:
    """The counts of some fields: rows alone, rows in groups below k, all rows, groups."""

    fields: tuple[Field, ...]
    unique: int
    below: int
    rows: int
    groups: int

    @property
    def rank(self) -> tuple[int, int, int, tuple[int, ...]]:
        return -self.unique, -self.below, -self.groups, tuple(field.number for field in self.fields)


def measure_combinations(engine: Engine, coded: CodedTable, tuples: Tuples | None, k: int) -> Combinations:
    """Find the combinations by at most four statements, each a GROUP BY for every combination.

    tuples: the distinct tuples of the rows, where these have been counted.
    """
    least = max(k, 2)
    counting = _Counting(engine, coded, tuples, least)
    best = counting.best()
    part = None
    if coded.source_rows > EXACT_ROWS:
        part = max(1, _PARTS * EXACT_ROWS // coded.source_rows)
        best = counting.count([combination.fields for combination in best], part)
    listed = tuple(
        CombinationRisk(
            tuple(field.attribute.name for field in one.fields),
            round(one.unique / max(1, one.rows), 4),
            round(one.below / max(1, one.rows), 4),
        )
        for one in best
    )
    return Combinations(least, 1.0 if part is None else part / _PARTS, listed)


@dataclass(frozen=True)
class _Counting:
    engine: Engine
    coded: CodedTable
    tuples: Tuples | None
    k: int

    def best(self) -> list[_Counts]:
        """The best combinations of one, two and three columns, by all rows or a sample."""
        varied = [field for field in self.coded.quasi_identifiers if field.mask]
        single = self.count((field,) for field in varied)
        chosen = [combination.fields[0] for combination in sorted(single, key=lambda one: -one.groups)[:MOST_COLUMNS]]
        chosen.sort(key=lambda field: field.number)
        pairs = self._best(self.count(itertools.combinations(chosen, 2)))
        places = {
            tuple(sorted((*map(chosen.index, pair.fields), place))) for pair in pairs for place in range(len(chosen))
        }
        triples = self.count(
            tuple(chosen[place] for place in three) for three in sorted(places) if len(set(three)) == 3
        )
        return [*self._best(single), *pairs, *self._best(triples)]

    def _best(self, candidates: Iterable[_Counts]) -> list[_Counts]:
        return sorted(candidates, key=lambda one: one.rank)[:BEST]

    def count(self, combinations: Iterable[tuple[Field, ...]], part: int | None = None) -> list[_Counts]:
        """Count the groups of each combination; in a part of all of them, or else in the rows that rank them."""
        wanted = list(combinations)
        if not wanted:
            return []
        rows, is_weighted, sample, person = self.coded.rows, False, None, None
        if part is None and self.coded.source_rows > EXACT_ROWS:
            if self.coded.witness_is_sample:
                rows = self.coded.witness
            else:
                sample = max(1, _PARTS * RANKING_ROWS // self.coded.source_rows)
        elif self.tuples is not None:
            rows, is_weighted = self.tuples.table, True
            person = None if self.tuples.several is None else self.tuples.several.code
        counted = self.engine.query(
            "measures/count_unique",
            rows=rows,
            is_weighted=is_weighted,
            person=person,
            words=[Markup(str(word)) for word in self.coded.word_columns],
            sample=sample,
            part=part,
            k=self.k,
            combinations=[{"keys": self._keys(fields)} for fields in wanted],
        )
        return [_Counts(wanted[int(number)], *map(int, figures)) for number, *figures in counted]

    def _keys(self, fields: Sequence[Field]) -> list[Expression]:
        """Expressions that are equal where all these fields are."""
        masks = [sum(field.mask for field in fields if field.word == word) for word in range(self.coded.words)]
        columns = zip(self.coded.word_columns, masks, strict=True)
        return [macro("bits.masked", word, mask) for word, mask in columns if mask]
