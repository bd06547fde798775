"""Releases that are not as their account knows them: others changed them, or the catalog is an older one."""

from __future__ import annotations

from sqlanon.catalog import Catalog
from sqlanon.catalog.accounts import LineKind
from sqlanon.engines.base import Engine
from sqlanon.engines.publishing import publisher_of
from sqlanon.sql import Relation
from sqlanon.support.quantities import quantity
from sqlanon.values.digest import ROWS, table_digest


def changed_release(catalog: Catalog, target: Engine, people: str, name: str, release: Relation) -> str | None:
    """Say how a release in the database `target` differs from the one that was entered last under its name.

    Releases differ by their rows, and by their digests where the run took one. None where no such release was entered,
    or it is gone, or nothing differs.
    """
    account = catalog.account(people)
    lines = [] if account is None else catalog.account_releases(account)
    entered = [one for one in lines if one.about == name and one.kind is LineKind.RELEASE]
    if not entered or not publisher_of(target).exists(release):
        return None
    last = entered[-1]
    (rows,) = target.query_one("count_rows", table=release)
    differs = f"it has {quantity(int(rows), 'row')}, and had {last.rows:,}" if rows != last.rows else None
    digest = next((one.content_digest for one in catalog.releases(last.run)), None)
    if differs is None and digest is not None and digest.startswith(ROWS) and table_digest(target, release) != digest:
        differs = f"it has {quantity(int(rows), 'row')}, as then, with another digest"
    if differs is None:
        return None
    return (
        f"{name} is not the release of run {last.run}, which is the last one that the account of {people} knows"
        f" there: {differs}. Others changed it, or the catalog is an older one than the release. What it tells with"
        " other releases is not known. `sqlanon account check` groups persons by releases that exist."
    )
