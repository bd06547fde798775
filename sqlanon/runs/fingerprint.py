"""The fingerprint of a source: it tells whether the source has changed, for those who check a release later."""

from __future__ import annotations

import hashlib

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.plan.plan import Plan
from sqlanon.sql import Identifier
from sqlanon.values.expressions import hashable


def fingerprint(engine: Engine, plan: Plan) -> str:
    """Digest the rows of all columns that a release shows, whatever their order; by this version of the database.

    Identifiers are not among them, whatever the release shows in their place.
    """
    columns = [hashable(engine, one.column, Markup(Identifier(one.name))) for one in plan.read]
    (source,) = engine.query_one("encoding/digest_source", source=plan.source, columns=columns)
    names = [(one.name, one.column.type) for one in plan.read]
    return hashlib.sha256(f"{names} {source}".encode()).hexdigest()
