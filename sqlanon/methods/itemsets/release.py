"""The release of sets of items: every person's groups, each once."""

from __future__ import annotations

from dataclasses import dataclass

from sqlanon.encoding.axes import Axis
from sqlanon.encoding.coded_table import CodedTable
from sqlanon.engines.base import Engine
from sqlanon.measures.certainty_penalty import Loss
from sqlanon.methods.itemsets.counting import Baskets
from sqlanon.methods.itemsets.cut import ItemCut, items_of_classes, numbered
from sqlanon.plan.plan import Plan
from sqlanon.releases.generalized import Generalized
from sqlanon.results.measures import Check
from sqlanon.results.search_facts import FrequentItemsets, ItemsetFacts
from sqlanon.sql import Identifier
from sqlanon.staging.partition import Partition
from sqlanon.staging.recode import cell_name, create_regions
from sqlanon.staging.staging import Staged
from sqlanon.work.workspace import Workspace


@dataclass(frozen=True)
class ItemPartition(Partition):
    """The groups of items as classes, in which a person has one row.

    merged: the rows of persons who have another row of the same group already.
    penalty: the normalized certainty penalty of the items of all persons, from 0 to 1.
    places: the class of each item that is shown.
    """

    merged: int = 0
    penalty: float = 0.0
    places: tuple[tuple[int, int], ...] = ()

    @property
    def omitted(self) -> int:
        return self.suppressed + self.merged


@dataclass(frozen=True)
class ItemSets(Generalized):
    """Groups of items that persons have, as a cut through the hierarchy shows them."""

    decided: ItemPartition

    @classmethod
    def create(cls, engine: Engine, workspace: Workspace, coded: CodedTable, partition: ItemPartition) -> ItemSets:
        """Write down what each group shows."""
        return cls(create_regions(engine, workspace, coded, partition), partition)

    def check_claims(self, engine: Engine, workspace: Workspace, plan: Plan, staged: Staged) -> dict[str, Check]:
        """Check beside the rest that each group has one row for each person who has items of it."""
        checks = super().check_claims(engine, workspace, plan, staged)
        placed, coded = workspace.table("placed"), self.recoding.coded
        ((label,),) = [self.recoding.columns_of(one.name) for one in self._planned]
        (items,), person = coded.quasi_identifiers, plan.policy.person
        assert person is not None
        engine.run("methods/itemsets/create_placed", placed=placed)
        engine.load(placed, ["item", "class"], self.decided.places)
        engine.analyze(placed)
        (violations,) = engine.query_one(
            "methods/itemsets/count_unequal_sets",
            rows=coded.rows,
            placed=placed,
            regions=self.recoding.regions,
            cell=cell_name(0),
            label=label,
            staged=staged.relation,
            item=items.code(Identifier("coded")),
            person=coded.judged_field(person).code(Identifier("coded")),
        )
        workspace.drop(placed)
        rows = checks["rows_add_up"].rows
        return checks | {"sets_equal": Check(int(violations), rows)}

    def measure_loss(self, engine: Engine, unmatched_rows: int) -> Loss:  # noqa: ARG002
        penalty = round(self.decided.penalty, 9)
        return Loss(penalty, {one.name: penalty for one in self._planned})


def write_partition(
    baskets: Baskets, cut: ItemCut, axis: Axis, rounds: int, frequent: FrequentItemsets
) -> ItemPartition:
    """Write down the classes of a cut, and a row for each that a person has."""
    engine, workspace, classes = baskets.engine, baskets.workspace, numbered(cut.shown)
    assigned, leaves = workspace.table("assigned_items"), workspace.table("leaves")
    levels = {number: group.level for number, group in classes.items()}
    with baskets.placed(cut, classes) as placed, baskets.ranks(levels) as ranks:
        with engine.grouping_by_hash():
            engine.run(
                "methods/itemsets/create_assigned",
                assigned=assigned,
                baskets=baskets.table,
                placed=placed,
                words=baskets.coded.word_columns,
            )
        engine.run(
            "methods/itemsets/create_leaves", leaves=leaves, assigned=assigned, placed=placed, levels=ranks, axis=axis
        )
    engine.analyze(assigned, leaves)
    (shown,) = engine.query_one("count_rows", table=assigned)
    suppressed = cut.suppressed_rows
    merged = baskets.coded.source_rows - suppressed - int(shown)
    persons = sum(item.persons for item in cut.items.values())
    penalty = cut.cost / (cut.domain * persons)
    facts = ItemsetFacts(
        items=len(cut.items),
        groups=len(cut.shown),
        shown_items=sum(group.level == 0 for group in cut.shown),
        suppressed_items=len(cut.suppressed),
        merged_rows=merged,
        penalty=round(penalty, 9),
        frequent=frequent,
    )
    return ItemPartition(
        (axis,),
        leaves,
        assigned,
        rounds,
        suppressed,
        facts=facts,
        divides_equal_rows=True,
        merged=merged,
        penalty=penalty,
        places=tuple(items_of_classes(cut, classes)),
    )
