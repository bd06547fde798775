"""Rules of a run that applied those of another one, and had to coarsen them to repair its release."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlanon.algorithms.tree.merging import TreeClasses, merge_failing
from sqlanon.catalog import RulesKind
from sqlanon.encoding.coded_table import CodedTable
from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError
from sqlanon.releases.earlier_groups import EarlierGroups
from sqlanon.releases.generalized import rules_of_levels
from sqlanon.releases.recoding import Generalization
from sqlanon.releases.rules.route_rows import route
from sqlanon.releases.rules.store_rules import MadeRules, StoredRules, store_coarsened
from sqlanon.runs.execution import ClassRun
from sqlanon.work.workspace import Workspace

_NODE_COLUMNS = ("node", "parent", "depth", "attribute", "lo", "hi")


@dataclass(frozen=True)
class OwnRules:
    """Coarser rules than those that were applied, which the run stores as its own; keep: does so."""

    keep: Callable[[ClassRun], StoredRules]

    @classmethod
    def of_tree(cls, run: ClassRun, pruned: StoredRules) -> OwnRules | None:
        """Return the rules of a pruned tree; None for a batch, as later ones go by the whole tree."""
        if run.policy.history.adds:
            return None
        assert pruned.tables is not None
        made = MadeRules(RulesKind.TREE, pruned.attributes, pruned.tables)
        return cls(lambda run: store_coarsened(run.engine, run.catalog, run.id, made, run.plan.quasi_identifiers))

    @classmethod
    def of_levels(cls, run: ClassRun, generalization: Generalization) -> OwnRules | None:
        """Return the rules of higher levels; None for a batch."""
        if run.policy.history.adds:
            return None
        return cls(lambda run: rules_of_levels(run.engine, generalization))


def require_mergeable(stored: StoredRules) -> None:
    """Refuse rules that show a number of each class, which a node above the classes has none of."""
    shown = next((one for one in stored.attributes if one.keeps_stand_in), None)
    if shown is not None and stored.record.kind is RulesKind.TREE:
        raise PolicyError(
            f"--repair: '{shown.name}' is shown as a {shown.show.value} of each class, and merged classes of stored"
            " rules have none; leave --repair out."
        )


def prune_rules(
    engine: Engine, workspace: Workspace, coded: CodedTable, rules: StoredRules, earlier: EarlierGroups
) -> StoredRules | None:
    """Undo splits of a tree of rules until no class divides an earlier group; None where not even the root does so."""
    assert rules.tables is not None
    routed = route(engine, workspace, coded, rules.attributes, rules.tables)
    if not earlier.find_remainder(routed.rows).is_empty:
        return None
    located = earlier.locate(routed.rows, routed.routes, is_odd=bool(routed.odd))
    workspace.drop(routed.rows, routed.routes)
    counted, leaves, nodes = (workspace.table(name) for name in ("counted_leaves", "pruned_leaves", "pruned"))
    ranges = {"leaves": rules.tables.leaves, "attributes": rules.attributes, "located": located.table}
    engine.run("runs/accounts/repair/count_leaves", counted=counted, **ranges)
    tree = TreeClasses(engine, workspace, counted, rules.tables.nodes)
    if not merge_failing(tree, located):
        return None
    tree.merge_leaves(leaves, rules.attributes)
    tree.prune_tree(nodes, _NODE_COLUMNS)
    engine.analyze(leaves, nodes)
    tree.end()
    return replace(rules, tables=replace(rules.tables, nodes=nodes, leaves=leaves))
