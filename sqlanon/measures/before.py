"""Figures to compare a release with: equivalence classes and values of the source, and the labels in their place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.distinct_tuples import WORTH_SHARE, SampledTuples, Tuples, sample_tuples
from sqlanon.encoding.fields import MOST_BITS, Field
from sqlanon.engines.base import Engine
from sqlanon.measures.metrics import ClassStatistics
from sqlanon.sql import Expression, Identifier, Relation, macro
from sqlanon.staging.recode import Recoding, cell_name

MOST_COUNTED = 50_000  # codes of the range of a column whose values are counted
FIRST_ROWS = 200_000  # of a larger source, that are looked at first
MOST_EXACT = 4_000_000  # rows of a source that are all counted in their classes, however many these are
ROWS_IN_PART = 1_000_000  # rows, about, of the part of a larger source that is counted
FEWER = 4  # times fewer if hardly a row of the source repeats
_SAMPLED = 1 / 16  # of the rows, to find the large classes
_REPEATED = 3  # rows of a class in that sample that make it a large one
_LARGE = 48  # rows of a class that are expected to
_TELLING = 1 / 100  # of the rows: of classes that matter to the discernibility, such a sample has some rows twice
_PARTS = 4096  # that hashes can be told by


def source_statistics(engine: Engine, coded: CodedTable, tuples: Tuples | None) -> ClassStatistics:
    """The class sizes of the source, from its coded rows or their distinct tuples: equal codes are equal values.

    Those of many different rows are estimated (decision 24). Where persons are counted, so are these, in every class
    that they have a row in.
    """
    members = coded.source_rows if tuples is None or tuples.persons is None else tuples.persons
    keys = quasi_keys(coded)
    if not keys:  # every quasi-identifier has a single value
        return ClassStatistics(members, 0, ((members, 1),))
    if tuples is None and coded.source_rows > MOST_EXACT:
        sampled = sample_tuples(engine, coded, coded.quasi_identifiers)
        if sampled.distinct_share > WORTH_SHARE:  # counting few classes is quick
            estimated = _estimate(engine, coded, keys, sampled)
            if estimated is not None:
                return estimated
    rows = coded.rows if tuples is None else tuples.table
    sizes = _count_classes(engine, rows, keys, is_weighted=tuples is not None)
    if tuples is not None and tuples.several is not None:
        members = _rows_of(sizes)
    return ClassStatistics(members, 0, tuple(sizes.items()))


def _estimate(
    engine: Engine, coded: CodedTable, keys: Sequence[Expression], sampled: SampledTuples
) -> ClassStatistics | None:
    """Class sizes from a random part of the classes, and from all large ones where there may be some; None if no row in
    the part is alone.

    How many rows the others have is known, so their number is that of the part times all their rows to those in it.
    Where a row is alone, no class is smaller: so the least size and the greatest risk are never estimates.
    """
    part = max(1, _PARTS * ROWS_IN_PART // coded.source_rows)
    if _repeats_little(sampled):
        fewer = max(1, part // FEWER)
        sizes = _count_classes(engine, coded.rows, keys, fewer)
        if max(sizes, default=_LARGE) < _LARGE:
            return _extrapolated(coded.source_rows, Counter(), sizes, fewer)
    return _extrapolated(coded.source_rows, *_count_large(engine, coded, keys, part), part)


def _extrapolated(rows: int, large: Counter[int], others: Counter[int], part: int) -> ClassStatistics | None:
    """The sizes of all classes, from those of the large ones and of others in a part; None if none of these is 1."""
    if 1 not in others:
        return None
    times = (rows - _rows_of(large)) / _rows_of(others)
    sizes = large + Counter({size: round(classes * times) for size, classes in others.items()})
    return ClassStatistics(rows, 0, tuple(sorted(sizes.items())), part / _PARTS)


def _repeats_little(sampled: SampledTuples) -> bool:
    """Tell whether a sample of enough rows has no tuple twice: classes large enough to matter would have shown."""
    return sampled.share >= _TELLING and sampled.once == sampled.rows


def _count_classes(
    engine: Engine, rows: Relation, keys: Sequence[Expression], part: int | None = None, *, is_weighted: bool = False
) -> Counter[int]:
    """Count classes by their size, of all hashes or in a part of them, in 4096ths."""
    sizes = engine.query("measures/measure_classes", rows=rows, keys=keys, is_weighted=is_weighted, part=part)
    return Counter({int(size): int(classes) for size, classes in sizes})


def _count_large(
    engine: Engine, coded: CodedTable, keys: Sequence[Expression], part: int
) -> tuple[Counter[int], Counter[int]]:
    """Count the large classes of each size, and the others in a part of the classes."""
    sizes = engine.query(
        "measures/estimate_classes",
        rows=coded.rows,
        keys=[{"code": key, "name": Identifier(f"key_{place}")} for place, key in enumerate(keys)],
        share=_SAMPLED,
        repeated=_REPEATED,
        part=part,
    )
    large = Counter({int(size): int(classes) for size, is_large, classes in sizes if is_large})
    return large, Counter({int(size): int(classes) for size, is_large, classes in sizes if not is_large})


def _rows_of(sizes: Mapping[int, int]) -> int:
    return sum(size * classes for size, classes in sizes.items())


def quasi_keys(coded: CodedTable) -> tuple[Expression, ...]:
    """Expressions over coded rows that are equal where all quasi-identifiers are; none if each has a single value."""
    masks = [sum(f.mask for f in coded.quasi_identifiers if f.word == w) for w in range(coded.words)]
    columns = zip(coded.word_columns, masks, strict=True)
    return tuple(macro("bits.masked", word, mask) for word, mask in columns if mask)


def count_values(engine: Engine, coded: CodedTable, tuples: Tuples | None) -> dict[str, int]:
    """Count the values of each quasi-identifier in the source; NULL is none.

    Those of a wide range of numbers are not counted: it would take longer than to check the release. Where the first
    rows have all values of a range, there are no others.
    """
    fields = coded.quasi_identifiers
    values = {f.attribute.name: f.coding.leaves for f in fields if f.coding.dictionary is not None}
    counted = [f for f in fields if f.coding.dictionary is None and f.coding.leaves <= MOST_COUNTED]
    few = [f for f in counted if f.coding.leaves <= MOST_BITS]
    rows = tuples.table if tuples else coded.rows
    if coded.source_rows > FIRST_ROWS:
        first = macro("measures.first_rows", rows, FIRST_ROWS)
        begun = _count(engine, "count_few_values", first, few)
        values |= {f.attribute.name: f.coding.leaves for f in few if begun[f.attribute.name] == f.coding.leaves}
        few = [f for f in few if f.attribute.name not in values]
    values |= _count(engine, "count_few_values", rows, few)
    return values | _count(engine, "count_values", rows, [f for f in counted if f.coding.leaves > MOST_BITS])


def _count(engine: Engine, template: str, rows: Relation | Expression, fields: Sequence[Field]) -> dict[str, int]:
    """Count the values of each of these fields in coded rows."""
    if not fields:
        return {}
    counts = engine.query_one(f"encoding/{template}", rows=rows, codes=[f.code(Identifier("r")) for f in fields])
    return {f.attribute.name: int(n) for f, n in zip(fields, counts, strict=True)}


def count_labels(engine: Engine, recoding: Recoding) -> dict[str, int]:
    """Count the labels that the release shows in place of a quasi-identifier's values; `*` of suppressed rows is none.

    Of an attribute that is shown as two bounds, the more frequent of them counts.
    """
    cells = [cell_name(number) for number in range(len(recoding.cells))]
    suppressed_leaf = recoding.partition.suppressed_leaf
    numbers = engine.query_one(
        "measures/count_labels", regions=recoding.regions, cells=cells, suppressed_leaf=suppressed_leaf
    )
    counts = dict(zip((str(cell.column.name) for cell in recoding.cells), numbers, strict=True))
    return {s.name: max(int(counts[cell.column.name]) for cell in s.cells) for s in recoding.shown}
