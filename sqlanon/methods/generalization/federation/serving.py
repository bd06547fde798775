"""A site's process: it releases its table together with the other sites, and ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import PolicyError
from sqlanon.methods.generalization.federation.comparisons import MOST_DEGREE
from sqlanon.methods.generalization.federation.federation_plan import FederationPlan
from sqlanon.methods.generalization.federation.party import Party
from sqlanon.methods.generalization.federation.releasing import PublishTogether, SharedSearch
from sqlanon.methods.generalization.lattice.options import full_domain
from sqlanon.models import largest_k, models_of
from sqlanon.policy import AttributeSection, Policy, Recodes, Role
from sqlanon.policy.document import path_text
from sqlanon.results.run_result import RunResult
from sqlanon.runs.flow import carry_out, interruptible
from sqlanon.work.journal import Observer
from sqlanon.work.session import Session, open_session

LEVELS_ALONE = ("loss", "precision", "height", "discernibility", "aecs")


LEVELS_ALONE_DECIDE = ("precision", "height")


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


"""The quality models that need nothing of what is below the least levels that are searched."""


"""The quality models that need no more of a generalization than its levels and how many rows it suppresses."""


def require_scope(policy: Policy, plan: FederationPlan) -> None:
    """Raise PolicyError with all that keeps a policy from being carried out by the owners of a plan."""
    problems = [*_problems(policy), *_problems_of_columns(policy)]
    if not problems and plan.reveal == "decision":
        problems = [*_problems_of_decisions(policy, len(plan.sites))]
    if problems:
        raise PolicyError(problems)


def _problems_of_decisions(policy: Policy, sites: int) -> Iterator[str]:
    """Say what goes beyond a search that learns nothing but decisions."""
    algorithm = full_domain(policy)
    if algorithm.name != "optimal":
        yield f"algorithm: with reveal: decision, few generalizations are asked; choose optimal, not {algorithm.name}."
    if algorithm.quality not in LEVELS_ALONE_DECIDE:
        yield (
            f"algorithm.quality: {algorithm.quality} needs counts, which reveal: decision does not open; choose from"
            f" {', '.join(LEVELS_ALONE_DECIDE)}."
        )
    k = largest_k(models_of(policy))
    if k * sites > MOST_DEGREE:
        yield (
            f"privacy: with reveal: decision, k may be at most {MOST_DEGREE // sites:,} for {sites} sites: comparisons"
            " take longer the larger it is."
        )


def _problems(policy: Policy) -> Iterator[str]:
    if policy.algorithm.recodes is not Recodes.LEVELS or getattr(policy.algorithm, "suppresses_attributes", False):
        yield "algorithm: several owners release a full-domain generalization; choose optimal."
        return
    others = [model.model for model in policy.privacy if model.model != "k-anonymity"]
    if others:
        yield f"privacy: several owners are held to k-anonymity alone; leave out {', '.join(dict.fromkeys(others))}."
    if policy.suppressed != "omit":
        yield "suppressed: several owners leave suppressed rows out; write omit."
    if policy.remainder != "suppress":
        yield "remainder: several owners leave out what a class is too small for; write suppress."
    if policy.history.is_kept:
        yield "history: releases of several owners are entered in no account; leave history out."
    if policy.person is not None:
        yield "subject: several owners count rows; persons who are known to several of them can't be told. Write none."
    if policy.release.table is None:
        yield "release: a file can't be published in one step with other sites' releases; name a table."
    algorithm = full_domain(policy)
    quality, lows = algorithm.quality, algorithm.limits.values()
    if any(low for low, _ in lows) and quality not in LEVELS_ALONE:
        yield (
            f"algorithm.quality: {quality} needs counts below the least levels of algorithm.limits, which are not"
            f" opened; choose from {', '.join(LEVELS_ALONE)}."
        )


def _problems_of_columns(policy: Policy) -> Iterator[str]:
    for name, attribute in policy.attributes.items():
        if attribute.role is Role.QUASI_IDENTIFIER:
            yield from (f"{path_text(('attributes', name))}: {problem}" for problem in _problems_of(attribute))


def _problems_of(attribute: AttributeSection) -> Iterator[str]:
    hierarchy = attribute.hierarchy
    if hierarchy is None or hierarchy.kind not in ("csv", "mapping"):
        yield (
            "the values that it may have must be known to all owners beforehand; give it a hierarchy of kind csv or"
            " mapping."
        )
    elif hierarchy.unknown is not None:
        yield (
            "with unknown, the hierarchy's values would depend on rows; agree with the other owners on the values"
            " that it lacks, add them to it, and leave unknown out."
        )
    if attribute.bottom is not None or attribute.top is not None:
        yield "top and bottom coding is not for several owners; do it in a view, by numbers that all agree on."
