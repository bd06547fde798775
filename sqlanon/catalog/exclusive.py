"""A catalog on PostgreSQL is of one role alone: what others own, may write or have put into it is refused.

What a run writes down there, and what a job looks up, is acted on in the name of the role that runs policies. Whoever
else could write it, or have a function called when it is written, would act in that name.
"""

from __future__ import annotations

from typing import Any

from sqlanon.catalog.location import CatalogLocation
from sqlanon.catalog.tables import Tables
from sqlanon.engines.base import Engine
from sqlanon.errors import AccessError
from sqlanon.sql import Text

_SHOWN = 5
REMEDY = (
    "A catalog belongs to the role that runs policies, and nobody else but superusers may write it: they could act in"
    " that role's name. Nothing was done. Have an administrator run the script of `sqlanon grant-script` again and drop"
    " what does not belong there, or name another catalog in the policy (catalog: {schema: ...})."
)


def require_exclusive(session: Engine, location: CatalogLocation) -> None:
    """Refuse a catalog that others own or may write, or that holds code of theirs.

    Nobody can change that afterwards but the catalog's own role and superusers, so that one look is enough.

    Raises:
        AccessError: with the names of what was seen.
    """
    if session.traits.is_embedded:
        return
    place = place_of(location)
    seen = [
        *session.query("catalog/list_rights_of_others", schema=place["schema"], prefix=place["prefix"]),
        *session.query("catalog/list_foreign_code", schema=place["schema"], rules=place["rules"], names=place["names"]),
    ]
    if seen:
        raise AccessError(refusal(location, "; ".join(sorted({problem for (problem,) in seen})[:_SHOWN])))


def refusal(location: CatalogLocation, problems: str) -> str:
    """The message about a catalog that is not one role's alone."""
    return f"The catalog in schema {location.name} is not this role's alone: {problems}. {REMEDY}"


def place_of(location: CatalogLocation) -> dict[str, Any]:
    """Build the values of the statements about a catalog's tables."""
    return {
        "schema": Text(location.schema),
        "prefix": Text(location.prefix),
        "rules": Text(f"{location.prefix}rules_"),
        "names": [Text(location.prefix + name) for name in Tables.names()],
    }
