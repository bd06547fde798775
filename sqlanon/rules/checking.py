"""The check that rules have no gaps and no overlaps: siblings, put together from the leaves up, must give a box.

Boxes that are equal in all attributes but one and follow each other in that one are disjoint, and their union is a box.
So if that holds at every node, and the root's box is the whole domain, every point of it is in exactly one leaf.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlanon.engines.base import Engine
from sqlanon.errors import VerificationError
from sqlanon.rules.making import chosen_column
from sqlanon.rules.tables import RuleAttribute, RuleTables
from sqlanon.sql import Relation, expression
from sqlanon.workspace import Workspace


def require_partition(
    engine: Engine, workspace: Workspace, attributes: Sequence[RuleAttribute], rules: RuleTables
) -> None:
    """Raise VerificationError unless the leaves partition the whole domain; a statement a level, and one more."""
    lo, hi = (chosen_column(attributes, "b", name, of="n") for name in ("lo", "hi"))
    deeper: Relation | None = None
    for depth in range(rules.depth, 0, -1):
        merged = workspace.table("merged", depth)
        values = {"merged": merged, "deeper": deeper, "attributes": attributes, "lo": lo, "hi": hi, "depth": depth}
        engine.run("rules/merge_boxes", nodes=rules.nodes, leaves=rules.leaves, **values)
        engine.analyze(merged)
        workspace.drop(*([deeper] if deeper else []))
        deeper = merged
    lone = expression("(SELECT l.*, 0 AS torn FROM {leaves} AS l)", leaves=rules.leaves)
    torn, roots, whole, strays, orphans = engine.query_one(
        "rules/check_root",
        root=deeper or lone,
        nodes=rules.nodes,
        leaves=rules.leaves,
        attributes=attributes,
        depth=rules.depth,
    )
    workspace.drop(*([deeper] if deeper else []))
    if torn or strays or orphans or roots != 1 or whole != 1:
        raise VerificationError(
            f"The rules do not cover the domain once: {torn} nodes are not the union of what is below them, "
            f"{strays} rules and {orphans} nodes belong to none."
        )
