"""The cost and the cells of a differentially private run, told before a row is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlanon.engines.session_limits import EngineOptions
from sqlanon.mechanisms.mechanisms import OpenDP
from sqlanon.methods.differential_privacy.charging import ask_budget
from sqlanon.methods.differential_privacy.drawing.accounting import schedule_of
from sqlanon.methods.differential_privacy.drawing.drawing import most_cells, require_cells
from sqlanon.methods.differential_privacy.plan import PrivatePlan, resolve_private
from sqlanon.methods.differential_privacy.policy_rules import target_rule
from sqlanon.methods.differential_privacy.result import BudgetState, Guarantee
from sqlanon.methods.differential_privacy.source import guarantee_of
from sqlanon.policy import Policy
from sqlanon.results.codec import to_json
from sqlanon.runs.linking import refusal_by_earlier, refusal_warnings
from sqlanon.work.session import open_existing_catalog, open_for_planning


@dataclass(frozen=True)
class PrivateCheck:
    """A policy that fits its table, and what follows from it.

    cells: of the release; the most that it may have where `is_exact` is not set. likely_noise: that a count does not
    exceed in 95 of 100 cases. threshold: the least noisy count of a cell that is released; None where all cells are, or
    where it follows from how many there will be. budget: after a run; None where it would be refused. refusal: why it
    would be.
    """

    plan: PrivatePlan
    guarantee: Guarantee
    cells: int
    is_exact: bool
    likely_noise: int
    threshold: int | None
    budget: BudgetState | None
    refusal: str | None

    @property
    def guarantee_object(self) -> Any:
        """The guarantee as plain values."""
        return to_json(self.guarantee)

    @property
    def budget_object(self) -> Any:
        """The budget as plain values."""
        return None if self.budget is None else to_json(self.budget)

    def as_json(self) -> dict[str, Any]:
        """One object of plain values, as `sqlanon check --json` prints it."""
        plan = self.plan
        return {
            "source": {"table": plan.source_name},
            "release": {"table": plan.release_name, "cells": self.cells, "cells_are_exact": self.is_exact}
            | ({} if self.threshold is None else {"threshold": self.threshold}),
            "attributes": [
                {"name": name, "type": domain.column.type, "places": domain.size}
                for name, domain in plan.domains.items()
            ],
            "target": None if plan.target is None else {"name": plan.target[0], "classes": plan.classes},
            "guarantee": self.guarantee_object,
            "likely_noise": self.likely_noise,
            "budget": self.budget_object,
            "warnings": [*plan.warnings, *refusal_warnings(self.refusal)],
            "problems": [],
        }


def rule_of_rows(policy: Policy) -> str | None:
    """Say which rows a run leaves out, before any is read; None where it counts all."""
    return target_rule(policy)


def check_private(
    policy: Policy,
    options: EngineOptions | None = None,
) -> PrivateCheck:
    """Check a policy that asks for differential privacy, by the names and types of its table alone.

    Raises PolicyError with every problem, also where the library of mechanisms is not installed.
    """
    library = OpenDP().library
    with open_for_planning(policy, options) as (engine, _):
        plan = resolve_private(policy, engine, replace=True)
        require_cells(plan)
        schedule = schedule_of(plan)
        with open_existing_catalog(policy, engine, options, makes=True) as catalog:
            budget, refusal = ask_budget(plan, schedule.charges, catalog)
            earlier = None if catalog is None else refusal_by_earlier(policy, plan, catalog)
        cells, is_exact = most_cells(plan, schedule), not plan.algorithm.chooses
        depends = plan.algorithm.least_released == "auto" and not is_exact
        return PrivateCheck(
            plan,
            guarantee_of(plan, schedule, library),
            cells,
            is_exact,
            schedule.likely_noise,
            None if depends else schedule.threshold(plan, cells),
            None if earlier else budget,
            earlier or refusal,
        )
