"""The checks of masks in a staged release, by the source's identifiers and the policy alone: without a key."""

from __future__ import annotations

from collections.abc import Sequence

from sqlanon.encoding.pseudonymized import identities_of, masks_of
from sqlanon.engines.base import Engine
from sqlanon.plan.plan import Attribute, Plan
from sqlanon.policy import Show
from sqlanon.results.measures import Check
from sqlanon.sql import Identifier, Text
from sqlanon.staging.staging import Staged
from sqlanon.work.workspace import Workspace


def check_pseudonyms(
    engine: Engine, workspace: Workspace, plan: Plan, staged: Staged, omitted: int
) -> dict[str, Check]:
    """Check that masks are those of the identifiers, by the names of the checks; none where the release has no masks.

    omitted: the rows of the source that the release lacks.
    """
    checks = {}
    apart = [(place, one) for place, one in enumerate(plan.pseudonyms) if one.show.tells_apart]
    others = [(place, one) for place, one in enumerate(plan.pseudonyms) if not one.show.tells_apart]
    if apart:
        checks["pseudonyms_distinct"] = _check_distinct(engine, workspace, plan, staged, omitted, apart)
    if others:
        checks["masks_true"] = _check_masks(engine, workspace, plan, staged, omitted, others)
    return checks


Placed = Sequence[tuple[int, Attribute]]
"""Masked attributes, each with its place among all."""


def _check_masks(
    engine: Engine, workspace: Workspace, plan: Plan, staged: Staged, omitted: int, masked: Placed
) -> Check:
    """Check that each mask is shown as often as values have it; where rows were left out no more often.

    Faked values are those that were made, of which none is the value itself.
    """
    (rows,) = engine.query_one("count_rows", table=staged.relation)
    violations = 0
    for place, attribute in masked:
        asked = plan.policy.attributes[attribute.name]
        surplus, missing, same = map(
            int,
            engine.query_one(
                "verification/count_untrue_shown",
                column=Identifier(attribute.name),
                identities=identities_of(workspace, place),
                fakes=masks_of(workspace, place),
                staged=staged.relation,
                show=asked.show.value,
                constant=Text(asked.constant or ""),
                first=asked.first,
                last=asked.last,
            ),
        )
        violations += surplus + same + (0 if omitted else missing)
    return Check(violations, rows)


def _check_distinct(
    engine: Engine, workspace: Workspace, plan: Plan, staged: Staged, omitted: int, pseudonyms: Placed
) -> Check:
    """Check that each value of an identifier has a pseudonym of its own in all its rows, and that none is shown.

    As many pseudonyms as identifiers must have as many rows. Where rows were left out there may be fewer of them, by
    one for each row at most. Surrogates are numbers, which may be those of other persons by chance.
    """
    (rows,) = engine.query_one("count_rows", table=staged.relation)
    violations = 0
    for place, attribute in pseudonyms:
        moved, surplus, raw = map(
            int,
            engine.query_one(
                "verification/count_untrue_pseudonyms",
                column=Identifier(attribute.name),
                identities=identities_of(workspace, place),
                staged=staged.relation,
                as_bytes=plan.policy.attributes[attribute.name].form == "bytes",
            ),
        )
        violations += moved if not omitted else max(surplus, -surplus - omitted, 0)
        violations += 0 if attribute.show is Show.SURROGATE else raw
    return Check(violations, rows)
