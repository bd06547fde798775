"""From a partition to the staged release: every row shows its region instead of its quasi-identifiers.

The order of the staged rows is a function of the released multiset alone (by region, then by the kept columns), so
that it tells nothing about the order of the source.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.fields import MOST_BITS
from sqlanon.engines.base import Engine
from sqlanon.sql import Expression, Identifier, RedactedValue, Relation
from sqlanon.staging.cells import Cell, Shown
from sqlanon.staging.labels import quote_member
from sqlanon.staging.partition import Partition
from sqlanon.values.expressions import double_of, text_of
from sqlanon.work.workspace import Workspace

FEW_ROWS = 1_000_000  # so many different rows are few
LEAST_REPEATED = 4  # times as many rows there must be: counting fewer costs as much as sorting all


@dataclass(frozen=True)
class Recoding:
    """The regions of a partition as the release shows them.

    regions: `(leaf, n, region, c0, c1, …, e0, e1, …)`; region numbers rank the regions by what they show, `e0, e1, …`
        are the ends of those that are shown as a number.
    cells: the release's columns for `c0, c1, …`.
    boxed: whether a region is shown from cut to cut: bounds leave out the upper one, and are NULL where there is none.
    has_ends: whether `regions` has the ends of those that are shown as a number.
    region_bits: of the greatest number of a region; None where it is at most the number of rows.
    """

    regions: Relation
    cells: tuple[Cell, ...]
    shown: tuple[Shown, ...]
    partition: Partition
    coded: CodedTable
    boxed: bool = False
    has_ends: bool = True
    region_bits: int | None = None

    @property
    def ends(self) -> tuple[Identifier, ...]:
        """The columns `e0, e1, …` of the regions."""
        return tuple(end_name(i) for i in range(sum(len(one.ends) for one in self.shown))) if self.has_ends else ()

    @property
    def own_columns(self) -> tuple[Identifier, ...]:
        """The release's columns that stand for no quasi-identifier, behind all others: numbers of classes."""
        shown = {cell.column for one in self.shown for cell in one.cells}
        return tuple(cell.column for cell in self.cells if cell.column not in shown)

    def columns_of(self, attribute: str) -> tuple[Identifier, ...]:
        """The release's columns that stand for a quasi-identifier."""
        return tuple(cell.column for shown in self.shown if shown.name == attribute for cell in shown.cells)


def create_regions(engine: Engine, workspace: Workspace, coded: CodedTable, partition: Partition) -> Recoding:
    """Write down what each leaf shows."""
    shown = tuple(Shown(axis, engine) for axis in partition.axes)
    known = _create_known(engine, workspace, partition)
    extras = [
        *[_create_set(engine, workspace, partition, s) for s in shown if s.needs_set],
        *[_create_mean(engine, workspace, partition, s) for s in shown if s.needs_mean],
    ]
    cells = tuple(cell for s in shown for cell in s.cells)
    regions = workspace.table("regions")
    engine.run(
        "staging/create_regions",
        regions=regions,
        leaves=partition.leaves,
        axes=partition.axes,
        known=known,
        dictionaries=[_ends(s) for s in shown if s.axis.field.coding.dictionary is not None],
        extras=extras,
        cells=[{"name": cell_name(i), "value": cell.value} for i, cell in enumerate(cells)],
        ends=[{"name": end_name(i), "value": value} for i, value in enumerate(end for s in shown for end in s.ends)],
        order=[key for cell in cells for key in cell.order],
    )
    workspace.drop(*(extra["table"] for extra in extras), *([known] if known else []))
    engine.analyze(regions)
    return Recoding(regions, cells, shown, partition, coded)


def cell_name(number: int) -> Identifier:
    """The name of a cell in work tables."""
    return Identifier(f"c{number}")


def end_name(number: int) -> Identifier:
    """The name, in work tables, of the end of a region that is shown as a number."""
    return Identifier(f"e{number}")


def _ends(shown: Shown) -> dict[str, Any]:
    """Describe the dictionary rows of the least and, where cells look at it, of the greatest code of a region."""
    number, coding = shown.axis.number, shown.axis.field.coding
    return {
        "table": coding.hierarchy.table if coding.hierarchy is not None else coding.dictionary,
        "low": Identifier(f"low_{number}"),
        "high": Identifier(f"high_{number}") if shown.needs_greatest else None,
        "known": Identifier(f"known_{number}"),
        "hi": shown.axis.hi,
    }


def _create_known(engine: Engine, workspace: Workspace, partition: Partition) -> Relation | None:
    """The least known code of leaves that hold NULL beside known values."""
    axes = [axis for axis in partition.axes if axis.has_null]
    if not axes:
        return None
    table = workspace.table("known")
    engine.run("staging/create_known", known=table, assigned=partition.assigned, leaves=partition.leaves, axes=axes)
    return table


def _create_set(engine: Engine, workspace: Workspace, partition: Partition, shown: Shown) -> dict[str, Any]:
    table = workspace.table("set", shown.axis.number)
    coding = shown.axis.field.coding
    text = text_of(engine.render, Markup(Identifier("value")), shown.kind, shown.axis.field.attribute.column.type)
    engine.run(
        "staging/create_sets",
        sets=table,
        assigned=partition.assigned,
        leaves=partition.leaves,
        axis=shown.axis,
        dictionary=coding.dictionary,
        member=quote_member(engine.render, text),
        always_quoted=quote_member(engine.render, text, always=True),
        limit=shown.axis.field.attribute.set_limit,
        last=RedactedValue(coding.leaves) if coding.leaves <= MOST_BITS else None,
    )
    return {"table": table, "alias": Identifier(f"set_{shown.axis.number}")}


def _create_mean(engine: Engine, workspace: Workspace, partition: Partition, shown: Shown) -> dict[str, Any]:
    table, field = workspace.table("mean", shown.axis.number), shown.axis.field
    value = (
        Markup(Identifier("value"))
        if field.coding.dictionary is not None
        else field.coding.value_of(Markup(Identifier("code")))
    )
    value = double_of(engine.render, value, shown.kind)
    engine.run(
        "staging/create_means",
        means=table,
        assigned=partition.assigned,
        suppressed_leaf=-1 if partition.suppressed_leaf is None else partition.suppressed_leaf,
        axis=shown.axis,
        dictionary=field.coding.dictionary,
        value=value,
        scale=2.0**64,
    )
    return {"table": table, "alias": Identifier(f"mean_{shown.axis.number}")}


def rows_repeat(engine: Engine, recoding: Recoding) -> bool:
    """Tell whether so many released rows are equal that it pays to count them."""
    if recoding.coded.source_rows < LEAST_REPEATED * FEW_ROWS:
        return False
    (different,) = engine.query_one("count_rows", table=recoding.regions)
    for field in recoding.coded.kept:
        different *= field.coding.leaves + 1
    return bool(different <= FEW_ROWS)


def witness_of(workspace: Workspace) -> Relation:
    """Name the table of source rows beside the regions that they went to."""
    return workspace.table("witnessed")


def create_witness(engine: Engine, workspace: Workspace, recoding: Recoding) -> Relation:
    """Raw quasi-identifiers `r0…`, kept values `v0…`, beside the `leaf` of the region that they went to.

    The value of a person that the release hides is behind the kept ones.
    """
    table = witness_of(workspace)
    raw = [
        *(Identifier(f"r{i}") for i in range(len(recoding.shown))),
        *(Identifier(f"v{i}") for i in range(len(recoding.coded.kept) + (recoding.coded.person is not None))),
    ]
    assigned, words = _leaves_by_words(recoding)
    engine.run(
        "staging/create_witness",
        witnessed=table,
        sample=recoding.coded.witness_is_sample,
        witness=recoding.coded.witness,
        assigned=assigned,
        words=words,
        paired=recoding.partition.divides_equal_rows and not recoding.coded.witness_is_sample,
        raw=raw,
    )
    return table


def _leaves_by_words(recoding: Recoding) -> tuple[Relation | Expression, list[dict[str, Any]]]:
    """The leaves of all words of rows, and the words by which the witness has them; by tuples, where these have leaves.

    A sample is coded by itself, which is not true of its tuples.
    """
    coded, assigned, tuples = recoding.coded, recoding.partition.assigned, recoding.partition.tuples
    if tuples is None or tuples.expanded != assigned or coded.witness_is_sample or not any(tuples.masks):
        return assigned, coded.witnessed_words
    masked = zip(coded.word_columns, tuples.masks, strict=True)
    return tuples.leaves, [{"name": column, "mask": mask} for column, mask in masked if mask]
