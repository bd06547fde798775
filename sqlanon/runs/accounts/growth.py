"""The release that a run adds a batch to, and the reasons why it can't."""

from __future__ import annotations

from sqlanon.catalog import Catalog
from sqlanon.catalog.accounts import GrowingRelease
from sqlanon.engines.base import Engine
from sqlanon.engines.publishing import publisher_of
from sqlanon.errors import ConflictError, PolicyError
from sqlanon.plan.plan import Plan
from sqlanon.support.quantities import quantity


def find_growth(
    catalog: Catalog | None, target: Engine, plan: Plan, people: str, *, replace: bool
) -> GrowingRelease | None:
    """Find the batches of a plan's release, in the database `target`; None where a run makes the first one.

    catalog: of the database; None where there is none yet. people: whose account it is. replace: whether a release that
    no batch is in may be replaced.

    Raises PolicyError where it may not, and where the account's batches are in another release, or this one has batches
    of another account; ConflictError where the release does not have the rows that the account knows of it.
    """
    account = None if catalog is None else catalog.account(people)
    batches = () if catalog is None or account is None else catalog.batches(account)
    name, exists = plan.release_name, publisher_of(target).exists(plan.release)
    if account is None or not batches:
        if exists:
            _require_replaceable(catalog, name, people, replace=replace)
        return None
    assert catalog is not None
    growth = GrowingRelease(account, batches, catalog.departures(account))
    if batches[-1].about != name:
        raise PolicyError(
            f"history: batches of {account.name} are added to {batches[-1].about}, and this policy releases {name};"
            " release into that table, or name other people."
        )
    rows = target.query_one("count_rows", table=plan.release)[0] if exists else 0
    if rows != growth.rows:
        raise ConflictError(
            f"{name} has {quantity(int(rows), 'row')}, and the account of {account.name} knows {growth.rows:,} that"
            " were released there: the release was changed, or the catalog is an older one. Nothing was published."
            " Restore the release, or begin anew: `sqlanon account forget`, and then `run --replace`."
        )
    return growth


def _require_replaceable(catalog: Catalog | None, name: str, people: str, *, replace: bool) -> None:
    """Refuse to replace a release that has batches of other people, or that may not be replaced."""
    other = None if catalog is None else catalog.grown_by(name)
    if other is not None:
        raise PolicyError(
            f"history: {name} has batches of {other.name}, and this policy is about {people}. If these are the same"
            f" people, as where a table was renamed, write people: '{other.name}'; else choose another release."
        )
    if not replace:
        raise PolicyError(
            f"{name} exists, and no batch of these people is in it; allow it to be replaced (--replace), choose"
            " another name, or enter the run that released it (`sqlanon account adopt`)."
        )
