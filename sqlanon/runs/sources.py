"""The sources of releases and the checks of policies, by what a policy's algorithm releases, loaded when used."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlanon.algorithms.lattice.options import SearchOptions
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.policy import Policy, Recodes
from sqlanon.runs.source import ReleaseSource

if TYPE_CHECKING:
    from sqlanon.plan.drawn_plan import DrawnPlan
    from sqlanon.plan.plan import Plan
    from sqlanon.runs.private_check import PrivateCheck


@dataclass(frozen=True)
class Family:
    """The names of a source and of its check, each as `module:name`."""

    source: str
    check: str


CLASSES = Family("sqlanon.runs.searching:Search", "sqlanon.runs.linking:check_run")
"""The entry of all searches for classes."""

ENTRIES = {
    Recodes.COUNTS: Family("sqlanon.runs.private_runs:PrivateDraw", "sqlanon.runs.private_check:check_private_run"),
    Recodes.NOISE: Family("sqlanon.runs.randomizing:RandomDraw", "sqlanon.runs.randomizing:check_randomized_run"),
    Recodes.ITEMS: Family("sqlanon.runs.rule_hiding:RuleHiding", "sqlanon.runs.rule_hiding:check_hiding_run"),
}
"""The entries of algorithms that make no classes."""


def source_of(policy: Policy, options: SearchOptions) -> ReleaseSource[Any, Any]:
    """Make the source of a policy's release; see `RunSource.of`."""
    source: ReleaseSource[Any, Any] = _load(_entry_of(policy).source).of(policy, options)
    return source


def check_of(
    policy: Policy, options: EngineOptions | None = None
) -> tuple[Plan | PrivateCheck | DrawnPlan, str | None]:
    """Check a policy against its table, and find why a run would be refused all the same; None where it would not.

    Nothing is changed. The first is the plan, or for differential privacy a `PrivateCheck`.
    Raises PolicyError with every problem.
    """
    check = _load(_entry_of(policy).check)
    checked: tuple[Plan | PrivateCheck | DrawnPlan, str | None] = check(policy, options=options)
    return checked


def _entry_of(policy: Policy) -> Family:
    return ENTRIES.get(policy.algorithm.recodes, CLASSES)


def _load(entry: str) -> Any:
    module, _, name = entry.partition(":")
    return getattr(importlib.import_module(module), name)
