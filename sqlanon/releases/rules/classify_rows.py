"""Classes that stored rules make of coded rows: which rows, what they show, which of them violate a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlanon.catalog import RulesKind
from sqlanon.encoding.axes import Axis, carried
from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.domains import create_domains
from sqlanon.encoding.frequency.frequency_sets import (
    FrequencySet,
    FrequencySets,
    count_tuples,
    named_groups,
    sensitive_column,
)
from sqlanon.encoding.frequency.keys import WholeKeys
from sqlanon.encoding.frequency.stars import complete_stars
from sqlanon.encoding.frequency.task import LatticeTask
from sqlanon.engines.base import Engine
from sqlanon.models.base import Groups, PrivacyModel
from sqlanon.models.solver import settle_groups
from sqlanon.policy import Show
from sqlanon.releases.rules.box_labels import create_all_box_labels, order_of
from sqlanon.releases.rules.route_rows import Routed, route
from sqlanon.releases.rules.store_rules import RuleAttribute, RuleTables, StoredRules
from sqlanon.sql import Expression, Identifier, Relation, macro
from sqlanon.staging.cells import Cell, Shown
from sqlanon.staging.classes import partition_of
from sqlanon.staging.partition import Partition
from sqlanon.staging.recode import cell_name, create_regions
from sqlanon.work.workspace import Workspace

T = TypeVar("T")


def classify_rows(engine: Engine, workspace: Workspace, coded: CodedTable, rules: StoredRules) -> Applied:
    """Classify any rows by rules: every class shows what its rule shows, whatever the values of the rows."""
    return _CLASSIFY[rules.record.kind](engine, workspace, coded, rules)


def divide_rows(engine: Engine, workspace: Workspace, coded: CodedTable, rules: StoredRules) -> Partition:
    """Divide the very rows that the rules were made for, as the search did: each class as narrow as its values."""
    return _DIVIDE[rules.record.kind](engine, workspace, coded, rules)


def _divide_by_tree(engine: Engine, workspace: Workspace, coded: CodedTable, rules: StoredRules) -> Partition:
    assert rules.tables is not None
    routed = route(engine, workspace, coded, rules.attributes, rules.tables)
    assigned = _select(engine, "releases/rules/select_assigned", rows=routed.rows, words=coded.word_columns, used=None)
    return partition_of(engine, workspace, coded, assigned, rounds=0)


def _divide_by_cuts(engine: Engine, workspace: Workspace, coded: CodedTable, rules: StoredRules) -> Partition:
    assert rules.tables is not None
    return apply_cuts(engine, workspace, coded, rules.tables)


def _classify_by_tree(engine: Engine, workspace: Workspace, coded: CodedTable, rules: StoredRules) -> Applied:
    assert rules.tables is not None
    routed = route(engine, workspace, coded, rules.attributes, rules.tables)
    return show_regions(engine, workspace, coded, rules.attributes, rules.tables, routed)


def _classify_by_cuts(engine: Engine, workspace: Workspace, coded: CodedTable, rules: StoredRules) -> Applied:
    recoding = create_regions(engine, workspace, coded, _divide_by_cuts(engine, workspace, coded, rules))
    return Applied(recoding.regions, recoding.partition.assigned, recoding.shown)


_Apply = Callable[[Engine, Workspace, CodedTable, StoredRules], T]

_CLASSIFY: Mapping[RulesKind, _Apply[Applied]] = {
    RulesKind.TREE: _classify_by_tree,
    RulesKind.CUTS: _classify_by_cuts,
}

_DIVIDE: Mapping[RulesKind, _Apply[Partition]] = {
    RulesKind.TREE: _divide_by_tree,
    RulesKind.CUTS: _divide_by_cuts,
}


@dataclass(frozen=True)
class Applied:
    """Rows with their regions, as `Recoding` has them.

    regions: `(leaf, n, c0, …, region)`; assigned: `(leaf, p0, …)`.
    """

    regions: Relation
    assigned: Relation | Expression
    shown: tuple[Shown, ...]

    @property
    def cells(self) -> tuple[Cell, ...]:
        return tuple(cell for shown in self.shown for cell in shown.cells)


def show_regions(
    engine: Engine,
    workspace: Workspace,
    coded: CodedTable,
    attributes: Sequence[RuleAttribute],
    rules: RuleTables,
    routed: Routed,
) -> Applied:
    """Create the cells that every leaf with rows shows of them."""
    used = workspace.table("used")
    values = {"routed": routed.rows, "routes": routed.routes, "odd": routed.odd}
    engine.run("releases/rules/create_used", used=used, leaves=rules.leaves, attributes=attributes, **values)
    engine.analyze(used)
    workspace.drop(routed.routes)
    axes = (Axis(n, field) for n, field in enumerate(coded.quasi_identifiers))
    shown = tuple(Shown(axis, engine) for axis in axes)
    box_labels = create_all_box_labels(engine, workspace, attributes, rules, used, shown)
    regions = workspace.table("regions")
    cells = [cell for one in box_labels for cell in one.values]
    engine.run(
        "releases/rules/create_regions",
        regions=regions,
        used=used,
        box_labels=[one.joined for one in box_labels],
        cells=[{"name": cell_name(n), "value": cell} for n, cell in enumerate(cells)],
        order=order_of(engine, box_labels),
    )
    engine.analyze(regions)
    workspace.drop(*(one.table for one in box_labels))
    return Applied(regions, _assigned(engine, coded, routed, used), shown)


def _assigned(engine: Engine, coded: CodedTable, routed: Routed, used: Relation) -> Relation | Expression:
    """Rows with the number of what they show."""
    if not routed.odd:
        return routed.rows
    return _select(engine, "releases/rules/select_assigned", rows=routed.rows, words=coded.word_columns, used=used)


def _select(engine: Engine, template: str, **values: Any) -> Expression:
    """A statement that another one reads from."""
    return macro("relations.subquery", engine.render(template, **values))


def apply_cuts(engine: Engine, workspace: Workspace, coded: CodedTable, rules: RuleTables) -> Partition:
    """The classes of coded rows under the cuts, none of them suppressed."""
    axes = tuple(Axis(n, field, leveled=True) for n, field in enumerate(coded.quasi_identifiers))
    tables = [_create_levels(engine, workspace, axis, rules.segments) for axis in axes]
    engine.analyze(*tables)
    leaves, routed = workspace.table("leaves"), workspace.table("routed")
    heights = [axis.field.coding.hierarchy.height for axis in axes if axis.field.coding.hierarchy]
    values = {"rows": coded.rows, "axes": axes, "tables": tables, "leaves": leaves}
    engine.run("releases/rules/create_cut_classes", heights=heights, **values)
    engine.analyze(leaves)
    engine.run("releases/rules/assign_cut_rows", routed=routed, carried=carried("coded", coded.word_columns), **values)
    engine.analyze(routed)
    workspace.drop(*tables)
    return Partition(axes, leaves, routed, 0)


def _create_levels(engine: Engine, workspace: Workspace, axis: Axis, segments: Relation) -> Relation:
    hierarchy, table = axis.field.coding.hierarchy, workspace.table("code_levels", axis.number)
    assert hierarchy is not None
    engine.run(
        "releases/rules/create_code_levels",
        levels=table,
        dictionary=hierarchy.table,
        segments=segments,
        number=axis.number,
        height=hierarchy.height,
        numbers=[{"number": level, "shift": shift} for level, shift in enumerate(hierarchy.shifts)],
    )
    return table


@dataclass
class Suppression:
    """Finds the classes that violate a model, and those that do once these are gone, until none does."""

    engine: Engine
    workspace: Workspace
    coded: CodedTable
    models: Sequence[PrivacyModel]
    applied: Applied
    omits: bool
    rows: int
    classes: int = 0
    domains: tuple[Relation, ...] = ()

    @property
    def table(self) -> Relation:
        """`(class, n)`: what is suppressed."""
        return self.workspace.table("suppressed")

    def find(self) -> int:
        """The rows of classes that fail while all are there."""
        self.engine.run("releases/rules/create_suppressed", suppressed=self.table)
        return self._failing(0)

    def run(self) -> int:
        """The rows of all classes that fail."""
        suppressed, failing = 0, self.find()
        while failing and (suppressed := suppressed + failing) < self.rows:
            failing = self._failing(suppressed) if self.models_compare else 0
        return suppressed

    @property
    def models_compare(self) -> bool:
        """Tell whether a class can come to violate a model because others are left out."""
        return self.omits and not all(model.monotone_under_suppression for model in self.models)

    def _failing(self, suppressed: int) -> int:
        """Suppress the classes that fail among the rest; the rows in them."""
        failing = self.workspace.table("failing")
        rows = self.rows - (suppressed if self.omits else 0)
        self.engine.run(
            "releases/rules/create_failing",
            failing=failing,
            regions=self.applied.regions,
            suppressed=self.table,
            measures=self._render_measures(rows),
        )
        classes, failing_rows = self.engine.query_one("releases/rules/count_suppressed", classes=failing)
        self.engine.run("releases/rules/add_suppressed", suppressed=self.table, failing=failing)
        self.classes += int(classes)
        self.workspace.drop(failing, *self.domains)
        return int(failing_rows)

    def _render_measures(self, rows: int) -> list[Expression]:
        rows_of = self._kept(None) if self.omits else self.applied.assigned
        domains = create_domains(self.engine, self.workspace, self.coded, self.models, rows_of)
        named = {sensitive.name: sensitive for sensitive in domains}
        self.domains = tuple(sensitive.domain for sensitive in domains)

        def groups_of(model: PrivacyModel, *, sized: bool = False) -> Groups:
            sensitive = named[model.attribute] if model.attribute is not None else None
            avs = None if sensitive is None else self._kept((sensitive.word, sensitive.mask))
            return Groups(
                classes=Relation("classes") if avs is None or not sized else macro("tree.sizes_of_groups", avs),
                avs=avs,
                domain=None if sensitive is None else sensitive.domain,
                rows=rows,
                height=sensitive.height if sensitive else 0,
            )

        models = settle_groups(self.engine, self.models, lambda model: groups_of(model, sized=True))
        return [model.measure(self.engine.render, groups_of(model)) for model in models]

    def _kept(self, field: tuple[Any, int] | None) -> Expression:
        """The rows of the classes that are not suppressed, or the AVS groups of these classes."""
        kept = {"assigned": self.applied.assigned, "regions": self.applied.regions, "suppressed": self.table}
        if field is None:
            return _select(self.engine, "releases/rules/select_kept_rows", **kept)
        return _select(self.engine, "releases/rules/count_kept_groups", word=field[0], mask=field[1], **kept)

    def release(self, stars: bool, ends: Sequence[Identifier] = ()) -> Relation:
        """The regions without those of suppressed classes, or with stars in their place; `ends` are kept too."""
        released = self.workspace.table("released")
        cells, number = [], 0
        for shown in self.applied.shown:
            for _ in shown.cells:
                cells.append({"name": cell_name(number), "is_label": shown.show is Show.LABEL})
                number += 1
        self.engine.run(
            "releases/rules/release_regions",
            released=released,
            regions=self.applied.regions,
            suppressed=self.table,
            cells=cells,
            stars=stars,
            ends=ends,
        )
        self.engine.analyze(released)
        return released


def complete(search: Suppression, suppressed: int, most: int) -> int:
    """Suppress the smallest other classes, too, until the suppressed rows satisfy the models as one class.

    suppressed: the rows that `search` has suppressed; most: how many may be. Returns how many are then, or a number
    above `most` where no classes within it do; these stay as they are.
    """
    engine, workspace, coded = search.engine, search.workspace, search.coded
    domains = create_domains(engine, workspace, coded, search.models)
    tuples = workspace.table("tuples")
    engine.run(
        "releases/rules/create_tuples",
        tuples=tuples,
        assigned=search.applied.assigned,
        regions=search.applied.regions,
        sensitive=[{"word": s.word, "mask": s.mask, "column": sensitive_column(i)} for i, s in enumerate(domains)],
    )
    engine.analyze(tuples)
    task = LatticeTask(tuple(search.models), domains, search.rows, most, omits=False, judges_stars=True)
    base = FrequencySet(tuples, (), count_tuples(engine, tuples, -1))
    sets = FrequencySets(engine, workspace, coded, task, WholeKeys((), 1), base)
    rows = complete_stars(sets, named_groups(domains), ((), tuples, search.table), suppressed)
    (classes, _) = engine.query_one("releases/rules/count_suppressed", classes=search.table)
    search.classes = int(classes)
    workspace.drop(tuples, *(one.domain for one in domains))
    return rows
