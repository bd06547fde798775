"""The release that a run adds a batch to, and the reasons why it can't."""

from __future__ import annotations

from sqlanon.catalog import Catalog
from sqlanon.catalog.accounts import GrowingRelease
from sqlanon.engines.base import Engine
from sqlanon.engines.publishing import publisher_of
from sqlanon.errors import ConflictError, PolicyError
from sqlanon.plan.plan import Plan
from sqlanon.support.quantities import quantity

_BEGIN_ANEW = "begin anew: `sqlanon account forget`, and then `run --replace`."


def find_growth(
    catalog: Catalog | None, target: Engine, plan: Plan, people: str, *, replace: bool
) -> GrowingRelease | None:
    """Find the batches of a plan's release, in the database `target`; None where a run makes the first one.

    catalog: of the database; None where there is none yet. people: whose account it is. replace: whether a release that
    no batch is in may be replaced.

    Raises PolicyError where it may not, and where the account's batches are in another release, or this one has batches
    of another account; ConflictError where the release does not have the rows that the account knows of it, or
    another run replaced it.
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
    _require_batches(catalog, growth, name, int(rows))
    return growth


def _require_batches(catalog: Catalog, growth: GrowingRelease, name: str, rows: int) -> None:
    """Refuse a release whose rows are not those of its batches: somebody changed it, or another run replaced it."""
    people = growth.account.name
    if rows != growth.rows:
        raise ConflictError(
            f"{name} has {quantity(rows, 'row')}, and the account of {people} knows {growth.rows:,} that were released"
            " there: the release was changed, or the catalog is an older one. Nothing was published. Restore the"
            f" release, or {_BEGIN_ANEW}"
        )
    last = catalog.last_run_to(name)
    if last is not None and last.id not in [batch.run for batch in growth.batches]:
        raise ConflictError(
            f"Run {last.id} replaced {name}, and the batches that the account of {people} knows are there no more."
            f" Nothing was published; to add batches, {_BEGIN_ANEW}"
        )


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
