"""The check that rules have no gaps and no overlaps: the boxes are worked out anew, from the root of the tree down.

The root's box is the whole domain. Where children follow each other in one attribute from end to end of their parent's
box, and have all else of it, they cover it once: every point of it is in exactly one of them. So if that holds at every
node, every point of the domain is in exactly one leaf; and the rules must be just the leaves, with their boxes.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlanon.engines.base import Engine
from sqlanon.errors import VerificationError
from sqlanon.rules.making import chosen_column
from sqlanon.rules.tables import RuleAttribute, RuleTables
from sqlanon.work.workspace import Workspace


def require_partition(
    engine: Engine, workspace: Workspace, attributes: Sequence[RuleAttribute], rules: RuleTables
) -> None:
    """Raise VerificationError unless the leaves partition the whole domain; two statements, however deep the tree."""
    followed = workspace.table("followed")
    lo, hi = (chosen_column(attributes, "b", name, of="n") for name in ("lo", "hi"))
    values = {"followed": followed, "nodes": rules.nodes, "attributes": attributes}
    engine.run("rules/follow_tree", parent_lo=lo, parent_hi=hi, **values)
    engine.analyze(followed)
    torn, strays, orphans = engine.query_one("rules/count_torn", rules=rules.leaves, **values)
    workspace.drop(followed)
    if torn or strays or orphans:
        raise VerificationError(
            f"The rules do not cover the domain once: {torn} nodes are not the union of what is below them, "
            f"{strays} rules and {orphans} nodes belong to none."
        )
