"""Runs that search: from a policy to the published, recorded release."""

from __future__ import annotations

from collections.abc import Mapping

from sqlanon.algorithms.lattice.options import SearchOptions
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.policy import Policy
from sqlanon.results.run_result import RunResult
from sqlanon.runs.flow import carry_out, interruptible
from sqlanon.runs.searching import Search
from sqlanon.runs.sink import Publish
from sqlanon.work.journal import Observer
from sqlanon.work.session import open_session


def run(
    policy: Policy,
    *,
    replace: bool = False,
    options: EngineOptions | None = None,
    observer: Observer | None = None,
    levels: Mapping[str, int] | None = None,
    time_limit: float | None = None,
    any_size: bool = False,
) -> RunResult:
    """Anonymize the policy's source and publish the release.

    replace: allow an existing release to be replaced.
    levels: release this full-domain generalization (the level of each quasi-identifier) in place of a search.
    time_limit: seconds after which the search for an optimum stops with the best that it has found.
    any_size: search exhaustively however large the lattice is.

    Raises what `carry_out` raises.
    """
    search_options = SearchOptions(levels, time_limit, any_size)
    adjusted = search_options.applied_to(policy)
    with interruptible(), open_session(policy, options or EngineOptions(), replace_release=replace) as session:
        return carry_out(session, adjusted, Search(adjusted.algorithm, search_options), Publish(replace), observer)
