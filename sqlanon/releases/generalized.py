"""Releases that show regions of the domain in place of quasi-identifiers: one kind for each kind of recoding function.

Regions are the leaves of a partition tree (Mondrian, Rothko), levels those of a full-domain generalization, cuts those
of a top-down specialization; all of them are written, checked and measured alike, and differ in the rules they leave.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlanon.catalog import Catalog, RulesKind
from sqlanon.encoding.coded_table import CodedTable
from sqlanon.engines.base import Engine
from sqlanon.measures.certainty_penalty import Loss, measure_loss
from sqlanon.measures.distributions import measure_distributions
from sqlanon.measures.workload.measures import Measures
from sqlanon.measures.workload.views import measures_of_run
from sqlanon.plan.plan import Attribute
from sqlanon.releases.equivalence_classes import EquivalenceClasses
from sqlanon.releases.recoding import Generalization
from sqlanon.releases.rules.box_labels import show_boxes
from sqlanon.releases.rules.build_rules import attributes_of, levels_record, make_cuts, make_tree
from sqlanon.releases.rules.store_rules import MadeRules, StoredRules, rules_digest, store_rules
from sqlanon.results.measures import Distributions
from sqlanon.staging.partition import Partition
from sqlanon.staging.recode import create_regions
from sqlanon.work.workspace import Workspace


@dataclass(frozen=True)
class Generalized(EquivalenceClasses):
    """Equivalence classes of rows, each shown as a region of the domain."""

    def measure_loss(self, engine: Engine, unmatched_rows: int) -> Loss | None:
        shown = self._as_shown
        return measure_loss(engine, replace(shown, suppressed=shown.suppressed + unmatched_rows))

    def measure_prediction(self, engine: Engine, target: str) -> tuple[Measures, Measures] | None:
        return measures_of_run(engine, self.recoding, target)

    def measure_distributions(self, engine: Engine, workspace: Workspace, least: int) -> Distributions | None:
        return measure_distributions(engine, workspace, self.recoding, self._as_shown, least)

    def make_rules(self, engine: Engine, workspace: Workspace) -> MadeRules | None:  # noqa: ARG002
        """Make the rules of the recoding in work tables; None where they need none, or there are none."""
        return None

    def keep_rules(self, engine: Engine, catalog: Catalog, workspace: Workspace, run: str) -> StoredRules | None:
        made = self.make_rules(engine, workspace)
        if made is None:
            return None
        stored = store_rules(engine, catalog, run, made, self._planned)
        workspace.drop(*made.tables.all)
        return stored

    @property
    def _as_shown(self) -> Partition:
        """The classes, as wide as the release shows them."""
        return self.partition

    @property
    def _planned(self) -> list[Attribute]:
        return [axis.field.attribute for axis in self.partition.axes]


@dataclass(frozen=True)
class Regions(Generalized):
    """The leaves of a partition tree: regions that may overlap in any one column.

    boxes: the rules that the release is written by, where it shows ranges from cut to cut.
    widened: the classes as wide as these boxes.
    """

    boxes: MadeRules | None = None
    widened: Partition | None = None

    @classmethod
    def create(
        cls, engine: Engine, workspace: Workspace, coded: CodedTable, partition: Partition, ranges: str
    ) -> Regions:
        """Write down the regions, over the values of their classes, or from cut to cut (`ranges: cuts`)."""
        recoding = create_regions(engine, workspace, coded, partition)
        if ranges != "cuts" or partition.tree is None:
            return cls(recoding)
        names = workspace.table("rule_names")
        boxes = make_tree(engine, workspace, recoding, names)
        boxed, widened = show_boxes(engine, workspace, recoding, boxes, names)
        workspace.drop(names)
        return cls(boxed, boxes, widened)

    @property
    def _as_shown(self) -> Partition:
        return self.partition if self.widened is None else self.widened

    def make_rules(self, engine: Engine, workspace: Workspace) -> MadeRules | None:
        """Make the boxes of the tree; None where the search has not written its tree down.

        Raises VerificationError where the boxes have gaps or overlaps.
        """
        if self.partition.tree is None:
            return None
        return self.boxes or make_tree(engine, workspace, self.recoding)


@dataclass(frozen=True)
class Levels(Generalized):
    """A full-domain generalization: whole columns at one level of their hierarchies, or at one for each pass."""

    generalization: Generalization

    @classmethod
    def create(cls, engine: Engine, workspace: Workspace, coded: CodedTable, generalization: Generalization) -> Levels:
        """Write down the regions of every class."""
        return cls(create_regions(engine, workspace, coded, generalization), generalization)

    @property
    def lattice(self) -> Mapping[str, Any] | None:
        return self.generalization.chart

    def keep_rules(self, engine: Engine, catalog: Catalog, workspace: Workspace, run: str) -> StoredRules:  # noqa: ARG002
        """Store the levels of every pass, which need no tables."""
        return rules_of_levels(engine, self.generalization)


def rules_of_levels(engine: Engine, generalization: Generalization) -> StoredRules:
    """Make the rules of a full-domain generalization."""
    attributes = attributes_of(generalization)
    record = levels_record(engine, attributes, generalization.passes)
    digest = rules_digest(engine, record, attributes, None, [axis.field.attribute for axis in generalization.axes])
    return StoredRules(record, attributes, None, {}, digest)


@dataclass(frozen=True)
class Cuts(Generalized):
    """Cuts through hierarchies: each branch of a column at a level of its own, the same for all rows."""

    @classmethod
    def create(cls, engine: Engine, workspace: Workspace, coded: CodedTable, partition: Partition) -> Cuts:
        """Write down the regions of every class."""
        return cls(create_regions(engine, workspace, coded, partition))

    def make_rules(self, engine: Engine, workspace: Workspace) -> MadeRules:
        """Make the list of the groups that their children have replaced."""
        tables = make_cuts(engine, workspace, self.partition)
        return MadeRules(RulesKind.CUTS, attributes_of(self.partition), tables)


@dataclass(frozen=True)
class Reapplied(Generalized):
    """Rows recoded by the rules of another run.

    in_codes: whether the regions are intervals of these rows' codes, so that the loss can be measured.
    """

    in_codes: bool = False

    def measure_loss(self, engine: Engine, unmatched_rows: int) -> Loss | None:
        return super().measure_loss(engine, unmatched_rows) if self.in_codes else None

    def measure_prediction(self, engine: Engine, target: str) -> tuple[Measures, Measures] | None:
        return super().measure_prediction(engine, target) if self.in_codes else None

    def measure_distributions(self, engine: Engine, workspace: Workspace, least: int) -> Distributions | None:
        return super().measure_distributions(engine, workspace, least) if self.in_codes else None

    def keep_rules(self, engine: Engine, catalog: Catalog, workspace: Workspace, run: str) -> None:
        """Keep none: the rules are those of the other run."""
