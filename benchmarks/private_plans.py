"""Plans and draws for benchmarks of differentially private releases, in a database that ends with the process."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from sqlanon.engines.base import Engine
from sqlanon.mechanisms.mechanisms import Mechanisms, OpenDP
from sqlanon.methods.differential_privacy.drawing.accounting import schedule_of
from sqlanon.methods.differential_privacy.drawing.drawing import DrawnCounts, draw_counts
from sqlanon.methods.differential_privacy.plan import PrivatePlan, resolve_private
from sqlanon.policy.loading import build_policy
from sqlanon.sql import Relation
from sqlanon.work.workspace import Workspace


class PlainWorkspace(Workspace):
    """Work tables of a database that ends with the process."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def table(self, meaning: str, number: int | None = None) -> Relation:
        return Relation(f"w_{meaning}" + ("" if number is None else f"_{number}"))


class QuickNoise(OpenDP):
    """Noise of the same distribution by NumPy, for utility alone: it takes seconds for a million cells, not minutes."""

    def add_noise(self, counts: Sequence[int], epsilon: Fraction, sensitivity: int) -> list[int]:
        draw, chance = np.random.default_rng(), -math.expm1(-float(epsilon / sensitivity))
        one, other = draw.geometric(chance, (2, len(counts)))
        noisy: list[int] = (np.asarray(counts, dtype=np.int64) + one - other).tolist()
        return noisy


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


def draw_release(
    engine: Engine, workspace: Workspace, plan: PrivatePlan, mechanisms: Mechanisms | None = None
) -> DrawnCounts:
    """Draw the noisy counts of a plan, and drop the places of rows."""
    drawn = draw_counts(engine, workspace, plan, schedule_of(plan), mechanisms or OpenDP(), lambda _: None)
    workspace.drop(workspace.table("places"))
    return drawn
