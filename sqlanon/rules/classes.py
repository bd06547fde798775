"""The classes that rules make of new rows: what they show, and which of them violate a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sqlanon.encoding.coded_table import CodedTable
from sqlanon.engines.base import Engine
from sqlanon.models.base import Groups, PrivacyModel
from sqlanon.partition.axes import Axis
from sqlanon.partition.domains import create_domains
from sqlanon.policy import Show
from sqlanon.release.cells import Cell, Shown
from sqlanon.release.labels import EVERYTHING
from sqlanon.release.recode import cell_name
from sqlanon.rules.box_labels import BoxLabels, create_box_labels
from sqlanon.rules.routing import Routed
from sqlanon.rules.tables import RuleAttribute, RuleTables
from sqlanon.sql import Identifier, Relation, Text, expression
from sqlanon.work.workspace import Workspace


@dataclass(frozen=True)
class Applied:
    """Rows with their regions, as `Recoding` has them.

    regions: `(leaf, n, c0, …, region)`; assigned: `(leaf, p0, …)`.
    """

    regions: Relation
    assigned: Relation | Markup
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
    engine.run("rules/create_used", used=used, leaves=rules.leaves, attributes=attributes, **values)
    engine.analyze(used)
    workspace.drop(routed.routes)
    axes = (Axis(n, field) for n, field in enumerate(coded.quasi_identifiers))
    shown = tuple(Shown(axis, engine.render) for axis in axes)
    box_labels = create_all_box_labels(engine, workspace, attributes, rules, used, shown)
    regions = workspace.table("regions")
    cells = [cell for face in box_labels for cell in face.values]
    engine.run(
        "rules/create_regions",
        regions=regions,
        used=used,
        box_labels=[face.joined for face in box_labels],
        cells=[{"name": cell_name(n), "value": cell} for n, cell in enumerate(cells)],
        order=order_of(engine, box_labels),
    )
    engine.analyze(regions)
    workspace.drop(*(face.table for face in box_labels))
    return Applied(regions, _assigned(coded, routed, used), shown)


def create_all_box_labels(
    engine: Engine,
    workspace: Workspace,
    attributes: Sequence[RuleAttribute],
    rules: RuleTables,
    used: Relation,
    shown: Sequence[Shown],
) -> list[BoxLabels]:
    """The cells of the boxes in `used`, attribute by attribute."""
    box_labels: list[BoxLabels] = []
    for attribute, one in zip(attributes, shown, strict=True):
        first = sum(len(face.values) for face in box_labels)
        box_labels.append(create_box_labels(engine, workspace, attribute, rules, used, first, one.hierarchy))
    return box_labels


def order_of(engine: Engine, box_labels: Sequence[BoxLabels]) -> list[Markup]:
    """The keys that regions are numbered by: what they show."""
    keys = []
    for face in box_labels:
        for number in range(face.first, face.first + len(face.values)):
            key = expression("s.{cell}", cell=cell_name(number))
            keys.append(engine.render.macro("collate", key) if face.attribute.show is Show.LABEL else key)
    return keys


def _assigned(coded: CodedTable, routed: Routed, used: Relation) -> Relation | Markup:
    """Rows with the number of what they show."""
    if not routed.odd:
        return routed.rows
    words = Markup("").join(expression(", r.{w}", w=w) for w in coded.word_columns)
    return expression(
        "(SELECT u.leaf{words} FROM {rows} AS r JOIN {used} AS u ON u.rule = r.leaf AND u.odd = r.odd)",
        words=words,
        rows=routed.rows,
        used=used,
    )


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

    def run(self) -> int:
        """The rows of all classes that fail."""
        self.engine.run("rules/create_suppressed", suppressed=self.table)
        suppressed, failing = 0, self._failing(0)
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
            "rules/create_failing",
            failing=failing,
            regions=self.applied.regions,
            suppressed=self.table,
            measures=[Markup(text) for text in self._measures(rows)],
        )
        classes, found = self.engine.query_one("rules/count_suppressed", classes=failing)
        self.engine.run("rules/add_suppressed", suppressed=self.table, failing=failing)
        self.classes += int(classes)
        self.workspace.drop(failing, *self.domains)
        return int(found)

    def _measures(self, rows: int) -> list[str]:
        rows_of = self._kept(None) if self.omits else expression("{rows} AS r", rows=self.applied.assigned)
        domains = create_domains(self.engine, self.workspace, self.coded, self.models, rows_of)
        named = {sensitive.name: sensitive for sensitive in domains}
        self.domains = tuple(sensitive.domain for sensitive in domains)
        texts = []
        for model in self.models:
            sensitive = named[model.attribute] if model.attribute is not None else None
            groups = Groups(
                classes=Markup("classes"),
                avs=None if sensitive is None else self._kept((sensitive.word, sensitive.mask)),
                domain=None if sensitive is None else expression("{t}", t=sensitive.domain),
                rows=rows,
                height=sensitive.height if sensitive else 0,
            )
            texts.append(model.measure(self.engine.render, groups).text)
        return texts

    def _kept(self, field: tuple[Any, int] | None) -> Markup:
        """The rows of the classes that are not suppressed, or the AVS groups of these classes."""
        source = expression(
            "FROM {rows} AS a JOIN {regions} AS g ON g.leaf = a.leaf"
            " WHERE g.region NOT IN (SELECT f.class FROM {suppressed} AS f)",
            rows=self.applied.assigned,
            regions=self.applied.regions,
            suppressed=self.table,
        )
        if field is None:
            return expression("(SELECT a.* {source}) AS kept", source=source)
        return expression(
            "(SELECT g.region AS class, a.{word} & {mask} AS s, count(*) AS n {source}"
            " GROUP BY g.region, a.{word} & {mask})",
            word=field[0],
            mask=field[1],
            source=source,
        )

    def release(self, stars: bool, ends: Sequence[Identifier] = ()) -> Relation:
        """The regions without those of suppressed classes, or with stars in their place; `ends` are kept too."""
        released = self.workspace.table("released")
        cells, number = [], 0
        for shown in self.applied.shown:
            for _ in shown.cells:
                star = Text(EVERYTHING) if shown.show is Show.LABEL else Markup("NULL")
                cells.append({"name": cell_name(number), "star": star})
                number += 1
        self.engine.run(
            "rules/release_regions",
            released=released,
            regions=self.applied.regions,
            suppressed=self.table,
            cells=cells,
            stars=stars,
            ends=ends,
        )
        self.engine.analyze(released)
        return released
