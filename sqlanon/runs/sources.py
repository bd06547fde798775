"""Runs: from a policy, whatever its method, to the published, recorded release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlanon.algorithms.search_options import SearchOptions
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import PolicyError
from sqlanon.plan.repair import require_repairable
from sqlanon.policy import Policy
from sqlanon.results.method_result import MethodCheck
from sqlanon.results.records import AnyResult
from sqlanon.runs.flow import carry_out, interruptible
from sqlanon.runs.search_source import Search
from sqlanon.runs.sink import Publish
from sqlanon.runs.source import ReleaseSource
from sqlanon.support.methods import method_of
from sqlanon.work.journal import Observer
from sqlanon.work.session import open_session


def source_of(policy: Policy, options: SearchOptions, *, repair: bool = False) -> ReleaseSource[Any, Any]:
    """Make the source of a policy's release; repair: merge classes where the account would refuse them.

    Raises PolicyError for options of a search that the policy's algorithm can't follow, or that searches for nothing.
    """
    if repair:
        require_repairable(policy)
        options.refuse_repair()
    if policy.algorithm.recodes.makes_classes:
        return Search(options.applied_to(policy).algorithm, options, repairs=repair)
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


def run(
    policy: Policy,
    *,
    replace: bool = False,
    options: EngineOptions | None = None,
    observer: Observer | None = None,
    levels: Mapping[str, int] | None = None,
    time_limit: float | None = None,
    any_size: bool = False,
    repair: bool = False,
) -> AnyResult:
    """Anonymize the policy's source, as its algorithm does, and publish the release.

    replace: allow an existing release to be replaced.
    levels: release this full-domain generalization (the level of each quasi-identifier) in place of a search.
    time_limit: seconds after which the search for an optimum stops with the best that it has found.
    any_size: search exhaustively however large the lattice is.
    repair: merge classes until the release holds with all that the account of its people knows.

    Raises what `carry_out` raises.
    """
    search_options = SearchOptions(levels, time_limit, any_size)
    source = source_of(policy, search_options, repair=repair)
    with interruptible(), open_session(policy, options or EngineOptions(), replace_release=replace) as session:
        result: AnyResult = carry_out(session, search_options.applied_to(policy), source, Publish(replace), observer)
        return result
