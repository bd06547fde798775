"""Releases of the same source by other rules: what is said of them, and when they are refused.

Two recodings of a source can be intersected as soon as the second is released: it is the second that is judged, and
releasing either again is not. docs/decisions/0023 says why.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

from sqlanon.catalog import Catalog, Released
from sqlanon.engines.base import Engine
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import AccessError, ConflictError, PolicyError
from sqlanon.plan.drawn_plan import DrawnPlan
from sqlanon.plan.people_of_source import find_people
from sqlanon.plan.plan import Plan
from sqlanon.policy import Policy
from sqlanon.runs.accounts.growth import find_growth
from sqlanon.runs.value_checks import TellMissing, check_values
from sqlanon.sql import Relation
from sqlanon.support.quantities import quantity
from sqlanon.work.session import open_existing_catalog, open_for_planning

AnyPlan = TypeVar("AnyPlan", bound=Plan | DrawnPlan)
LISTED = 5  # of the runs that an account does not know
SAME_RECODING = "same-recoding"
ALLOW = "allow"


def check_earlier_releases(
    released: Sequence[Released],
    source: str,
    republish: str | None,
    rules: str | None = None,
    digest: str | None = None,
    unread: Sequence[str] = (),
    entered: Collection[str] = (),
) -> str | None:
    """Return the warning about a release of `source` after those that were `released`, the newest first; None for none.

    republish: what the policy of the new release says. rules, digest: the run that found its rules, and their digest;
    None where they are not known yet, so that they may be any.
    unread: why other catalogs, which may hold further releases of the source, can't be read.
    entered: runs whose releases the account of the new one knows, which holds them against it.

    Raises PolicyError where this policy, or that of an earlier release, wants one recoding only; AccessError where this
    policy does, and not all catalogs can be read.
    """
    if unread and republish == SAME_RECODING:
        raise AccessError("\n".join(unread))
    warning = _warning_of(released, source, republish, rules, digest, entered)
    return "\n".join([*([] if warning is None else [warning]), *unread]) or None


def check_with_catalogs(
    catalog: Catalog,
    plan: Plan | DrawnPlan,
    republish: str | None,
    rules: str | None = None,
    digest: str | None = None,
) -> str | None:
    """Check a release against all that catalogs of the database know of its source; see `check_earlier_releases`."""
    released, unread = catalog.released(plan.source_place), catalog.unread(plan.source_place)
    return check_earlier_releases(released, plan.source_name, republish, rules, digest, unread)


def _warning_of(
    released: Sequence[Released],
    source: str,
    republish: str | None,
    rules: str | None,
    digest: str | None,
    entered: Collection[str],
) -> str | None:
    if SAME_RECODING in (republish, *(one.republish for one in released)):
        entered = ()
    others = [one for one in released if not one.is_by(rules, digest) and one.run not in entered]
    if not others:
        return None
    of_classes = next((one for one in others if not one.is_private), None)
    warning = (
        private_warning(others[0].shown, source) if of_classes is None else linked_warning(of_classes.shown, source)
    )
    if len(others) < len(released):
        return warning
    bound = next((one for one in others if one.republish == SAME_RECODING), None)
    if republish == SAME_RECODING:
        by = "already, and a search may find other rules" if rules is None and digest is None else "by other rules"
        raise PolicyError(_problem("republish: same-recoding forbids it", bound or others[0], source, by))
    if bound is None:
        return warning
    if republish != ALLOW:
        forbids = f"republish: same-recoding, in the policy of run {bound.shown}, forbids it"
        raise PolicyError(_problem(forbids, bound, source, "by other rules" if rules or digest else "before"))
    return f"{warning} The policy of run {bound.shown} says republish: same-recoding, this one says republish: allow."


def check_run(
    policy: Policy,
    *,
    replace: bool = False,
    options: EngineOptions | None = None,
    tell_missing: TellMissing | None = None,
) -> tuple[Plan, str | None]:
    """Check a policy against its table and the values there, and find why a run would be refused all the same.

    The second is None where no earlier release of the source, or of its people, refuses a run. Nothing is changed.
    `tell_missing` gets the values that hierarchies lack. Raises PolicyError with every problem found.
    """
    with open_for_planning(policy, options) as (engine, target):
        plan = check_values(policy, engine, target, replace, tell_missing)
        with open_existing_catalog(policy, engine, options, makes=True) as catalog:
            refusal = None if catalog is None else refusal_by_earlier(policy, plan, catalog)
            _require_people(policy, engine, catalog, plan)
            if refusal is None and policy.history.adds:
                refusal = _refusal_to_grow(catalog, engine, plan, replace=replace)
    return plan, refusal


def plan_and_refusal(
    policy: Policy, options: EngineOptions | None, plan: Callable[[Engine, Engine | None], AnyPlan]
) -> tuple[AnyPlan, str | None]:
    """Plan a run in a session that changes nothing, and find why earlier releases of the source refuse it.

    plan: gets the session of the source, and that of the release if it is another one.
    """
    with open_for_planning(policy, options) as (engine, target):
        planned = plan(engine, target)
        with open_existing_catalog(policy, engine, options, makes=True) as catalog:
            _require_people(policy, engine, catalog, planned)
            return planned, None if catalog is None else refusal_by_earlier(policy, planned, catalog)


def _require_people(policy: Policy, engine: Engine, catalog: Catalog | None, plan: Plan | DrawnPlan) -> None:
    """Refuse a policy with an account of nobody knows whom."""
    if policy.history.is_kept:
        place = plan.source_place
        find_people(policy, engine, catalog, Relation.parse(place) if place.endswith('"') else None)


def refusal_by_earlier(policy: Policy, plan: Plan | DrawnPlan, catalog: Catalog) -> str | None:
    """Find why earlier releases of the source refuse a run; None where they do not."""
    try:
        check_with_catalogs(catalog, plan, policy.republish)
    except PolicyError as refusal:
        return str(refusal)
    return None


def _refusal_to_grow(catalog: Catalog | None, engine: Engine, plan: Plan, *, replace: bool) -> str | None:
    """Find why the release can't get a batch; None where it can."""
    try:
        people = find_people(plan.policy, engine, catalog, plan.source)
        find_growth(catalog, engine, plan, people.name, replace=replace)
    except (ConflictError, PolicyError) as refusal:
        return str(refusal)
    return None


def refusal_warnings(refusal: str | None) -> tuple[str, ...]:
    """Say in the words of a warning why a run would be refused."""
    return () if refusal is None else (f"A run would be refused: {refusal}",)


def linked_warning(run: str, source: str) -> str:
    """Warn that a source was released by other rules before."""
    return (
        f"Run {run} released {source} by other rules: who holds both releases can intersect the classes of a person,"
        " and may be left with fewer rows than k. docs/jobs.md says more."
    )


def unentered_warning(people: str) -> str:
    """Warn that the account of these people doesn't know a release."""
    return (
        f"There is an account of releases about {people}, and this one is not entered: the policy has no `history`."
        " Later releases are not held against it. docs/several-releases.md says more."
    )


def unknown_warning(runs: Sequence[str]) -> str:
    """Warn that the account of a release doesn't know those of earlier runs, the newest first."""
    named = f"{', '.join(runs[:LISTED])}{', …' if len(runs) > LISTED else ''}"
    are = "is" if len(runs) == 1 else "are"
    return (
        f"{quantity(len(runs), 'published run')} about these people {are} not entered ({named}): later releases are not"
        " held against what was told there. `sqlanon account adopt RUN` enters one whose source is as it was."
    )


def noise_warning(run: str, source: str) -> str:
    """Warn that a source that is released with noise was released before."""
    return (
        f"Run {run} released {source} before: who holds both releases has less noise than one of them, as their mean"
        " has less. docs/randomization.md says more."
    )


def mining_warning(run: str, source: str) -> str:
    """Warn that a source whose rules are to be hidden was released before."""
    return f"Run {run} released {source} before: who holds that release may mine there what is hidden here."


def masking_warning(run: str, source: str) -> str:
    """Warn that a source whose rows are copied was released before."""
    return (
        f"Run {run} released {source} before: rows of that release and of this one can be joined by what they have in"
        " common, kept values among them."
    )


def private_warning(run: str, source: str) -> str:
    """Warn that a source was released with differential privacy before, whose budget does not cover this release."""
    return (
        f"Run {run} released {source} with differential privacy. This release is made without it: what who holds both"
        " learns of a person is bounded by no epsilon."
    )


def _problem(forbids: str, earlier: Released, source: str, how: str) -> str:
    return (
        f"{forbids}, as run {earlier.shown} released {source} {how}: `sqlanon apply {earlier.rules}`, or a job with its"
        " rules, recodes as it did. A run whose policy says `republish: allow` may recode otherwise, with a warning;"
        " docs/jobs.md says more."
    )
