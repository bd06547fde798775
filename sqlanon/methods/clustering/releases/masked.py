"""Loss and risk of centres that a release shows in place of values."""

from __future__ import annotations

from sqlanon.encoding.fields import word_column
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.measures.masking.categorical import greatest_dimension
from sqlanon.measures.masking.compared import JoinedColumn, compare_grouped, compare_joined
from sqlanon.measures.masking.measuring import DIMENSION, SAMPLE, measure_masking
from sqlanon.results.masking import Masking
from sqlanon.sql import Expression, Identifier, Relation, macro
from sqlanon.staging.recode import Recoding, cell_name

LEAST_SAMPLE = 50  # rows that are linked with groups, of a table however large
MOST_PAIRS = 50_000_000  # of rows that are linked and released ones


def measure_centres(engine: Engine, recoding: Recoding, witness: Relation) -> Masking:
    """Measure loss and risk of the centres of clusters.

    witness: `(r0, r1, …, leaf, …)`, every source row's raw values and cluster, beside the cells that are released for
        it. Rows are sampled by the codes of their values and their cluster.
    """
    columns = [_column(engine, recoding, number) for number in range(len(recoding.shown))]
    codes = _codes(recoding)
    leaf = Column("leaf", engine.traits.types["int64"], Kind.INTEGER)
    compared = compare_joined(engine, witness, columns, codes, leaf)
    categories = len(compared.categories)
    return measure_masking(compared, dimension=greatest_dimension(categories, DIMENSION), has_unique_link=True)


def _codes(recoding: Recoding) -> list[Expression]:
    """Write the codes of all quasi-identifiers of a row `s`: a number for each of its words."""
    masks: dict[int, int] = {}
    for shown in recoding.shown:
        field = shown.axis.field
        masks[field.word] = masks.get(field.word, 0) | field.mask
    return [macro("bits.masked", word_column(word), mask, Identifier("s")) for word, mask in sorted(masks.items())]


def measure_groups(engine: Engine, recoding: Recoding, witness: Relation) -> Masking:
    """Measure what synthetic rows lost of the whole table, and how many source rows find their group by distance.

    witness: `(r0, r1, …, leaf, …)`, every source row's raw values and group.
    """
    columns = [_column(engine, recoding, number) for number in range(len(recoding.shown))]
    integer = engine.traits.types["int64"]
    groups = Column("leaf", integer, Kind.INTEGER), Column("grouped", integer, Kind.INTEGER)
    compared = compare_grouped(engine, witness, recoding.regions, columns, groups)
    sample = min(SAMPLE, max(LEAST_SAMPLE, MOST_PAIRS // recoding.coded.source_rows))
    dimension = greatest_dimension(len(compared.categories), DIMENSION)
    return measure_masking(compared, dimension=dimension, sample=sample)


def _column(engine: Engine, recoding: Recoding, number: int) -> JoinedColumn:
    """The raw values of a quasi-identifier, and its cells: doubles in place of numbers, labels of groups, or values."""
    field = recoding.shown[number].axis.field
    raw, order = field.attribute.column, field.attribute.order or ()
    is_mean = raw.kind.is_numeric and not order
    kind, type_ = (Kind.FLOAT, engine.traits.types["float64"]) if is_mean else (raw.kind, raw.type)
    if field.coding.hierarchy is not None:  # the label of a group
        kind, type_ = Kind.TEXT, engine.traits.types["text"]
    before = Column(f"r{number}", raw.type, raw.kind)
    return JoinedColumn(field.attribute.name, before, Column(cell_name(number).name, type_, kind), tuple(order))
