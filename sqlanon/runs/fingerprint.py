"""The fingerprint of a source: it tells whether the source has changed, for those who check a release later."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.plan.plan import Plan
from sqlanon.sql import Identifier, Relation
from sqlanon.values.expressions import hashable


def fingerprint(engine: Engine, plan: Plan) -> str:
    """Digest the rows of all columns that a release shows, whatever their order; by this version of the database.

    Identifiers are not among them, whatever the release shows in their place.
    """
    (digest,) = digest_rows(engine, plan.source, shown_columns(plan))
    return fingerprint_of(plan, digest)


def fingerprint_of(plan: Plan, digest: str) -> str:
    """Make the fingerprint from the digest of the rows in `shown_columns`."""
    names = [(one.name, one.column.type) for one in plan.read]
    return hashlib.sha256(f"{names} {digest}".encode()).hexdigest()


def shown_columns(plan: Plan) -> list[Column]:
    """List the columns whose values a release shows."""
    return [one.column for one in plan.read]


def digest_rows(engine: Engine, source: Relation, *columns: Sequence[Column]) -> list[str]:
    """Digest the rows of a table by each of some lists of its columns, in one scan."""
    lists = [[hashable(engine, one, Markup(Identifier(one.name))) for one in listed] for listed in columns]
    return list(map(str, engine.query_one("runs/digest_source", source=source, lists=lists)))
