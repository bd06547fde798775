"""A site's process: it connects with the other sites, releases its table together with theirs, and ends."""

from __future__ import annotations

from pathlib import Path

from sqlanon.engines.session_limits import EngineOptions
from sqlanon.methods.generalization.federation.federation_plan import FederationPlan
from sqlanon.methods.generalization.federation.party import Party
from sqlanon.methods.generalization.federation.releasing import PublishTogether, SharedSearch
from sqlanon.methods.generalization.federation.scope import require_scope
from sqlanon.policy import Policy
from sqlanon.results.run_result import RunResult
from sqlanon.runs.flow import carry_out, interruptible
from sqlanon.work.journal import Observer
from sqlanon.work.session import Session, open_session


def serve(
    plan: FederationPlan,
    policy: Policy,
    site: str,
    key: Path,
    *,
    replace: bool = False,
    options: EngineOptions | None = None,
    observer: Observer | None = None,
) -> RunResult:
    """Release the policy's source, as one site of a plan, together with the sources of the other sites.

    site: the name of this site in the plan; key: the file of its private key.
    replace: allow an existing release to be replaced.

    Raises what `carry_out` raises; AccessError where another site can't be reached or leaves, PolicyError where the
    sites' policies differ. Nothing is published then, unless a note of the error says otherwise.
    """
    require_scope(policy, plan)
    with (
        interruptible(),
        open_session(policy, options or EngineOptions()) as session,
        Party(plan, site, key) as party,
    ):
        return release_together(session, policy, party, replace=replace, observer=observer)


def release_together(
    session: Session, policy: Policy, party: Party, *, replace: bool = False, observer: Observer | None = None
) -> RunResult:
    """Release the policy's source together with the other sites of a party, which do the same; raises as `serve`."""
    require_scope(policy, party.plan)
    search = SharedSearch(policy.algorithm, party)
    return carry_out(session, policy, search, PublishTogether(replace, party), observer)
