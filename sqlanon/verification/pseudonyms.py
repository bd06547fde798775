"""The check of a staged release's pseudonyms, by the source's identifiers alone: no key, and nothing that made them."""

from __future__ import annotations

from sqlanon.encoding.pseudonymized import identities_of
from sqlanon.engines.base import Engine
from sqlanon.plan.plan import Plan
from sqlanon.policy import Show
from sqlanon.results.measures import Check
from sqlanon.sql import Identifier
from sqlanon.staging.staging import Staged
from sqlanon.work.workspace import Workspace


def check_pseudonyms(
    engine: Engine, workspace: Workspace, plan: Plan, staged: Staged, omitted: int
) -> dict[str, Check]:
    """Check that each value of an identifier has a pseudonym of its own in all its rows, and that none is shown.

    As many pseudonyms as identifiers must have as many rows. Where rows were left out there may be fewer of them, by
    one for each row at most. Surrogates are numbers, which may be those of other persons by chance.
    """
    if not plan.pseudonyms:
        return {}
    (rows,) = engine.query_one("count_rows", table=staged.relation)
    violations = 0
    for place, attribute in enumerate(plan.pseudonyms):
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
    return {"pseudonyms_distinct": Check(violations, rows)}
