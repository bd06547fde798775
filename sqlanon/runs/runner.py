"""Runs: from a policy, whatever it asks for, to the published, recorded release."""

from __future__ import annotations

from collections.abc import Mapping

from sqlanon.algorithms.search_options import SearchOptions
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.policy import Policy
from sqlanon.results.records import AnyResult
from sqlanon.runs.flow import carry_out, interruptible
from sqlanon.runs.sink import Publish
from sqlanon.runs.sources import source_of
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
) -> AnyResult:
    """Anonymize the policy's source, as its algorithm does, and publish the release.

    replace: allow an existing release to be replaced.
    levels: release this full-domain generalization (the level of each quasi-identifier) in place of a search.
    time_limit: seconds after which the search for an optimum stops with the best that it has found.
    any_size: search exhaustively however large the lattice is.

    Raises what `carry_out` raises.
    """
    search_options = SearchOptions(levels, time_limit, any_size)
    source = source_of(policy, search_options)
    with interruptible(), open_session(policy, options or EngineOptions(), replace_release=replace) as session:
        result: AnyResult = carry_out(session, search_options.applied_to(policy), source, Publish(replace), observer)
        return result
