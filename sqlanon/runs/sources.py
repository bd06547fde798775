"""The sources of releases and the checks of policies, by the method of a policy's algorithm."""

from __future__ import annotations

from typing import Any

from sqlanon.algorithms.search_options import SearchOptions
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import PolicyError
from sqlanon.policy import Policy
from sqlanon.results.method_result import MethodCheck
from sqlanon.runs.searching import Search
from sqlanon.runs.source import ReleaseSource
from sqlanon.support.methods import method_of


def source_of(policy: Policy, options: SearchOptions) -> ReleaseSource[Any, Any]:
    """Make the source of a policy's release.

    Raises PolicyError for options of a search that the policy's algorithm can't follow, or that searches for nothing.
    """
    if policy.algorithm.recodes.makes_classes:
        return Search(options.applied_to(policy).algorithm, options)
    options.refuse(policy)
    source: ReleaseSource[Any, Any] = _part_without_classes(policy, "source")(policy)
    return source


def check_without_classes(policy: Policy, options: EngineOptions | None = None) -> MethodCheck:
    """Check a policy whose release shows no classes, and find why a run would be refused; nothing is changed.

    Raises PolicyError with every problem.
    """
    checked: MethodCheck = _part_without_classes(policy, "check")(policy, options)
    return checked


def _part_without_classes(policy: Policy, part: str) -> Any:
    """Load a part of the method of a policy whose release shows no classes; raises PolicyError where it has none."""
    method = method_of(policy.algorithm.name)
    named = None if method is None else getattr(method, part)
    if method is None or named is None:
        raise PolicyError(f"algorithm: {policy.algorithm.name} makes no classes, and its package names no {part}.")
    return method.load(named)
