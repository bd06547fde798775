"""Releases that show the centre of its cluster in place of a row's quasi-identifiers; their loss and risk."""

from __future__ import annotations

from dataclasses import dataclass

from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.fields import word_column
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.measures.masking.all_measures import DIMENSION, SAMPLE, measure_masking
from sqlanon.measures.masking.categorical import greatest_dimension
from sqlanon.measures.masking.compared import JoinedColumn, compare_grouped, compare_joined
from sqlanon.methods.clustering.releases.centres import create_centres
from sqlanon.methods.clustering.verify_centres import check_clusters
from sqlanon.plan.plan import Plan
from sqlanon.releases.clustering import Clusters, digest_clusters
from sqlanon.releases.equivalence_classes import EquivalenceClasses
from sqlanon.results.masking import Masking
from sqlanon.results.measures import Check
from sqlanon.sql import Expression, Identifier, Relation, macro
from sqlanon.staging.recode import Recoding, cell_name, witness_of
from sqlanon.staging.staging import Staged
from sqlanon.work.workspace import Workspace

LEAST_SAMPLE = 50  # rows that are linked with groups, of a table however large


MOST_PAIRS = 50_000_000  # of rows that are linked and released ones


@dataclass(frozen=True)
class Centres(EquivalenceClasses):
    """Clusters of similar rows, each shown as its centre.

    A centre is no region: the release has no loss of ranges, and leaves no rules by which new rows would be recoded.
    """

    @classmethod
    def create(cls, engine: Engine, workspace: Workspace, coded: CodedTable, clusters: Clusters) -> Centres:
        """Write down the centre of every cluster."""
        return cls(create_centres(engine, workspace, coded, clusters))

    def check_claims(self, engine: Engine, workspace: Workspace, plan: Plan, staged: Staged) -> dict[str, Check]:
        return check_clusters(engine, workspace, plan, self.recoding, staged)

    def digest_recoding(self, engine: Engine) -> str | None:
        return digest_clusters(engine, [one.name for one in self.recoding.shown], self.recoding.regions)

    def measure_masking(self, engine: Engine, workspace: Workspace) -> Masking | None:
        witness = witness_of(workspace)
        measured = measure_centres(engine, self.recoding, witness)
        workspace.drop(witness)
        return measured


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
