"""Columns by which released tables are joined: they show what the keys show that they refer to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sqlanon.policy.attributes import Role
from sqlanon.policy.keys import DRAWN, DrawnKey

PSEUDONYM = "{role: identifier, show: pseudonym, key: drawn}"


def problems(other: str, key: str, shown: Any, given: Any) -> Iterator[str]:
    """Say why the release could not join rows with those of a table about people.

    other, key: the table, and its column that is referred to. shown: how it is shown. given: how the policy shows the
    column that refers to it; None where it does not say so.
    """
    if not isinstance(shown, Mapping):
        yield f"{other} has no attribute '{key}', which would be the key: list it, or name another one as key: …"
    elif not _can_join(shown):
        yield (
            f"the release joins the tables by '{key}' of {other}, which shows no keys; write '{key}': {PSEUDONYM}"
            f" in the attributes of {other}."
        )
    elif given is not None and (not isinstance(given, Mapping) or _essence(given) != _essence(shown)):
        yield (
            f"the release joins the tables by it, so it shows what '{key}' of {other} shows; leave it out of the"
            " attributes."
        )


def unlisted(column: str, table: str) -> str:
    """Ask for the role of a column that refers to a table about no person, as others may know it of a row."""
    kept = "{role: insensitive} keeps it as it is, and no model judges it"
    return f"list '{column}' in the attributes of {table}; {kept}."


def several(table: str, people: str) -> str:
    """Refuse rows of two persons."""
    return (
        f"{table} refers to {people} by several columns, and rows of several persons can't be judged; name the one"
        " whose person the row is about, and give the others the role omit."
    )


def unpublished(database: str) -> str:
    """Refuse a database that can't publish several tables in one transaction."""
    return (
        f"source.url: {database} changes one table at a time, and tables that belong together are published together"
        " or not at all; copy them to DuckDB or PostgreSQL."
    )


def with_drawn(its: Any, drawn: DrawnKey) -> Any:
    """Return an attribute that has the key drawn for the whole release, if it asks for a drawn one."""
    return {**its, "key": drawn} if isinstance(its, Mapping) and its.get("key") == DRAWN else its


def _can_join(shown: Mapping[str, Any]) -> bool:
    role = shown.get("role")
    return role == Role.INSENSITIVE or (role == Role.IDENTIFIER and shown.get("show") == "pseudonym")


def _essence(its: Mapping[str, Any]) -> dict[str, Any]:
    """Tell what a column shows, whatever NULL means there."""
    key = its.get("key")
    return {**its, "nulls": None, "key": DRAWN if isinstance(key, DrawnKey) else key}
