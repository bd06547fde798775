"""Plans and draws for benchmarks of differentially private releases, in a database that ends with the process."""

from __future__ import annotations

from typing import Any

from sqlanon.algorithms.private.accounting import schedule_of
from sqlanon.algorithms.private.drawing import DrawnCounts, draw_counts
from sqlanon.algorithms.private.mechanisms import OpenDP
from sqlanon.engines.base import Engine
from sqlanon.plan.private import PrivatePlan, resolve_private
from sqlanon.policy.loading import build_policy
from sqlanon.sql import Relation
from sqlanon.work.workspace import Workspace


class PlainWorkspace(Workspace):
    """Work tables of a database that ends with the process."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def table(self, meaning: str, number: int | None = None) -> Relation:
        return Relation(f"w_{meaning}" + ("" if number is None else f"_{number}"))


def plan_release(
    engine: Engine, table: str, attributes: dict[str, Any], algorithm: dict[str, Any], epsilon: float = 1
) -> PrivatePlan:
    """Plan a release of a table of the engine's database."""
    policy = build_policy(
        {
            "source": {"url": "duckdb:///:memory:", "table": table},
            "release": {"table": "released"},
            "attributes": attributes,
            "privacy": [{"model": "differential-privacy", "epsilon": epsilon}],
            "algorithm": algorithm,
        }
    )
    return resolve_private(policy, engine)


def draw_release(engine: Engine, workspace: Workspace, plan: PrivatePlan) -> DrawnCounts:
    """Draw the noisy counts of a plan, and drop the places of rows."""
    drawn = draw_counts(engine, workspace, plan, schedule_of(plan), OpenDP(), lambda _: None)
    workspace.drop(workspace.table("places"))
    return drawn
