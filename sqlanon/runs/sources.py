"""The sources of releases and the checks of policies, by the method of a policy's algorithm."""

from __future__ import annotations

from typing import Any

from sqlanon.algorithms.search_options import SearchOptions
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.policy import Policy
from sqlanon.results.method_check import MethodCheck
from sqlanon.runs.searching import Search
from sqlanon.runs.source import ReleaseSource
from sqlanon.support.methods import Method, method_of


def source_of(policy: Policy, options: SearchOptions) -> ReleaseSource[Any, Any]:
    """Make the source of a policy's release.

    Raises PolicyError for options of a search that the policy's algorithm can't follow, or that searches for nothing.
    """
    if policy.algorithm.recodes.makes_classes:
        return Search(options.applied_to(policy).algorithm, options)
    options.refuse(policy)
    method = method_without_classes(policy)
    assert method.source is not None
    source: ReleaseSource[Any, Any] = method.load(method.source)(policy)
    return source


def check_without_classes(policy: Policy, options: EngineOptions | None = None) -> MethodCheck:
    """Check a policy whose release shows no classes, and find why a run would be refused; nothing is changed.

    Raises PolicyError with every problem.
    """
    method = method_without_classes(policy)
    assert method.check is not None
    checked: MethodCheck = method.load(method.check)(policy, options)
    return checked


def method_without_classes(policy: Policy) -> Method:
    """Find the method of a policy whose release shows no classes."""
    method = method_of(policy.algorithm.name)
    assert method is not None, "an algorithm whose releases show no classes is a method's"
    return method
