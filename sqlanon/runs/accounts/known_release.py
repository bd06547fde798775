"""Releases that are not as their account knows them: others changed them, or the catalog is an older one."""

from __future__ import annotations

from sqlanon.catalog import Catalog
from sqlanon.catalog.accounts import LineKind
from sqlanon.engines.base import Engine
from sqlanon.engines.publishing import publisher_of
from sqlanon.sql import Relation
from sqlanon.support.quantities import quantity
from sqlanon.values.digest import ROWS, table_digest

KINDS = (LineKind.RELEASE, LineKind.BATCH, LineKind.DEPARTURE)  # of lines about the rows of a release


def changed_release(catalog: Catalog, target: Engine, people: str, name: str, release: Relation) -> str | None:
    """Say how a release in the database `target` differs from the one that was entered last under its name.

    Releases differ by their rows, and by their digests where the run took one. None where it is gone, or nothing
    differs. A release that was never entered differs where the catalog has no run that released it, either.
    """
    account = catalog.account(people)
    lines = [] if account is None else catalog.account_releases(account)
    entered = [one for one in lines if one.about == name and one.kind in KINDS]
    if not publisher_of(target).exists(release):
        return None
    if not entered:
        return None if catalog.last_run_to(name) else _of_nobody(people, name)
    last = entered[-1]
    batches = [one for one in entered if one.kind is not LineKind.RELEASE]
    had = last.rows if last.kind is LineKind.RELEASE else sum(one.rows for one in batches)
    (rows,) = target.query_one("count_rows", table=release)
    differs = f"it has {quantity(int(rows), 'row')}, and had {had:,}" if rows != had else None
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


def _of_nobody(people: str, name: str) -> str:
    return (
        f"{name} was there, and neither the account of {people} nor the catalog knows who released it: another program"
        " did, or the catalog is an older one than the release. What it told with later releases is not known."
    )
