"""Reasons why a drafted policy would be refused as it stands: those of a check, from what the profile measured."""

from __future__ import annotations

from sqlanon.engines.base import Engine
from sqlanon.errors import AccessError
from sqlanon.inquiries.profile.column_facts import Profile
from sqlanon.plan.checks import problems, subject_problems
from sqlanon.plan.plan import find_release
from sqlanon.plan.subject import PlanSubject
from sqlanon.policy import Policy
from sqlanon.work.publish.release_files import type_problems


def find_refusals(engine: Engine, profile: Profile, policy: Policy, table: str) -> tuple[str, ...]:
    """List the reasons why `sqlanon check` would refuse a draft, and run none of its statements on the rows.

    engine: the session of the profile. table: the source as people know it.
    """
    subject = PlanSubject(
        policy=policy,
        dialect=engine.traits,
        table=table,
        columns=tuple(facts.column for facts in profile.columns),
        rows=profile.rows,
        nulls={},
        distinct={},
        repetition=profile.repetition,
        uncountable={},
    )
    source = None if policy.source.file is not None else profile.relation
    refused = [
        error
        for error in find_release(policy, source, engine, replace=True)[1]
        if not (engine.traits.is_embedded and isinstance(error, AccessError))  # the session is for reading only
    ]
    file = policy.release.file
    untold = [] if file is None else type_problems(file, subject.released_as_they_are)
    return (
        *problems(subject),
        *subject_problems(subject),
        *map(str, refused),
        *(f"release.file: {problem}" for problem in untold),
    )
