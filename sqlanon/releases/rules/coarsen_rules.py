"""Rules of a tree as far down as some rows allow: each leaf holds rows enough, or none.

Few rows would violate the models in nearly every leaf of a tree that was grown for many. So splits are undone, from the
leaves up: as long as a leaf with rows violates a model, the node above it takes its place, with all that is below that.
What a leaf shows is a box of the tree in the end as before, and boxes of several batches are nested, or apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlanon.encoding.coded_table import CodedTable
from sqlanon.engines.base import Engine
from sqlanon.models.base import PrivacyModel
from sqlanon.releases.rules.classify_rows import Applied, Suppression
from sqlanon.releases.rules.route_rows import route
from sqlanon.releases.rules.store_rules import RuleTables, StoredRules
from sqlanon.sql import Relation
from sqlanon.work.workspace import Workspace


def coarsen_rules(
    engine: Engine, workspace: Workspace, coded: CodedTable, models: Sequence[PrivacyModel], rules: StoredRules
) -> StoredRules:
    """Undo splits of a tree of rules until each leaf with rows satisfies the models, or is the root.

    Rows with values that the rules don't know undo none: no node shows what they hold. Neither do rules that show a
    mean or a midpoint, which a node above the leaves has none of.
    """
    assert rules.tables is not None
    if any(attribute.keeps_stand_in for attribute in rules.attributes):
        return rules
    coarsening = _Coarsening(engine, workspace, coded, models, rules)
    boxes = workspace.table("followed")
    engine.run("releases/rules/follow_tree", followed=boxes, nodes=rules.tables.nodes, attributes=rules.attributes)
    engine.analyze(boxes)
    tables, rounds = rules.tables, 0
    while (pruned := coarsening.prune(tables, boxes, rounds)) is not None:
        workspace.drop(*((tables.nodes, tables.leaves) if rounds else ()))
        tables, rounds = pruned, rounds + 1
    workspace.drop(boxes)
    return replace(rules, tables=tables)


@dataclass(frozen=True)
class _Coarsening:
    engine: Engine
    workspace: Workspace
    coded: CodedTable
    models: Sequence[PrivacyModel]
    rules: StoredRules

    def prune(self, tables: RuleTables, boxes: Relation, rounds: int) -> RuleTables | None:
        """Put the nodes above leaves that violate a model in the place of these; None where there are no such nodes."""
        joining, nodes, leaves = (self.workspace.table(name, rounds) for name in ("joining", "pruned", "pruned_leaves"))
        self._find_joining(tables, joining)
        (count,) = self.engine.query_one("count_rows", table=joining)
        if count:
            values = {"joining": joining, "tree": tables.nodes}
            self._run("prune_nodes", nodes=nodes, **values)
            self._run(
                "prune_leaves",
                pruned=leaves,
                leaves=tables.leaves,
                boxes=boxes,
                attributes=self.rules.attributes,
                **values,
            )
            self.engine.analyze(nodes, leaves)
        self.workspace.drop(joining)
        return replace(tables, nodes=nodes, leaves=leaves) if count else None

    def _find_joining(self, tables: RuleTables, joining: Relation) -> None:
        """List the nodes above leaves that violate a model."""
        routed = route(self.engine, self.workspace, self.coded, self.rules.attributes, tables)
        classes, odd = self.workspace.table("leaf_classes"), bool(routed.odd)
        self._run("create_leaf_classes", classes=classes, routed=routed.rows, routes=routed.routes, odd=odd)
        self.engine.analyze(classes)
        applied = Applied(classes, routed.rows, ())
        search = Suppression(
            self.engine, self.workspace, self.coded, self.models, applied, omits=False, rows=self.coded.source_rows
        )
        search.find()
        self._run("list_joining", joining=joining, suppressed=search.table, classes=classes, tree=tables.nodes)
        self.workspace.drop(routed.rows, routed.routes, classes, search.table)

    def _run(self, name: str, **values: object) -> None:
        self.engine.run(f"releases/rules/{name}", **values)
