"""Increments: a run adds the persons who came to a release, as a batch that satisfies the models by itself.

Rows that are released keep their labels, so that who holds the release of every night holds the batches, and each of
these is protected. Persons of a batch who are suppressed are in no account, and so wait for the next one.
"""

from __future__ import annotations

from datetime import UTC, datetime

from sqlanon.catalog.accounts import GrowingRelease
from sqlanon.encoding.coded_rows import copied
from sqlanon.engines.publishing import publisher_of
from sqlanon.errors import ConflictError, PolicyError, ProtectionError
from sqlanon.plan.plan import Plan
from sqlanon.runs.execution import ClassRun
from sqlanon.sql import Identifier, macro
from sqlanon.support.quantities import quantity
from sqlanon.values.expressions import text_of

ARRIVED = "arrived"  # what the name of the work table of a batch ends in


def find_growth(run: ClassRun, *, replace: bool) -> GrowingRelease | None:
    """Find the batches of a run's release; None where the run makes the first one.

    replace: whether a release that no batch is in may be replaced.

    Raises PolicyError where it may not, and where the account's batches are in another release; ConflictError where the
    release does not have the rows that the account knows of it.
    """
    assert run.way_out is not None
    account = run.catalog.account(run.way_out.accounts[0])
    batches = () if account is None else run.catalog.batches(account)
    name, exists = run.plan.release_name, publisher_of(run.session.target).exists(run.plan.release)
    if account is None or not batches:
        if exists and not replace:
            raise PolicyError(
                f"{name} exists, and no batch of these people is in it; allow it to be replaced (--replace), choose"
                " another name, or enter the run that released it (`sqlanon account adopt`)."
            )
        return None
    growth = GrowingRelease(account, batches)
    if batches[-1].about != name:
        raise PolicyError(
            f"history: batches of {account.name} are added to {batches[-1].about}, and this policy releases {name};"
            " release into that table, or name other people."
        )
    rows = run.session.target.query_one("count_rows", table=run.plan.release)[0] if exists else 0
    if rows != growth.rows:
        raise ConflictError(
            f"{name} has {quantity(int(rows), 'row')}, and the account of {account.name} knows {growth.rows:,} that"
            " were released there: the release was changed, or the catalog is an older one. Nothing was published."
            " Restore the release, or begin anew: `sqlanon account forget`, and then `run --replace`."
        )
    return growth


def arrivals(run: ClassRun, plan: Plan, growth: GrowingRelease) -> Plan:
    """Plan for the rows of the source whose persons no batch has, as a copy; in the transaction that reads it."""
    engine, person = run.engine, run.policy.person
    (column,) = [one for one in engine.columns(plan.source) if one.name == person]
    text = text_of(engine.render, macro("codes.in_source", Identifier(column.name)), column.kind, column.type)
    tables = run.catalog.account_tables
    is_new = macro("accounts.is_new", text, tables["accounts"], tables["account_persons"], growth.account.id)
    return copied(engine, plan, run.workspace, ARRIVED, is_new)


def require_enough(run: ClassRun, growth: GrowingRelease, persons: int) -> None:
    """Let persons wait for others, as the policy says, or where nobody came.

    Raises ProtectionError where they wait, ConflictError where the clock is behind that of an earlier run.
    """
    history, last, now = run.policy.history, growth.batches[-1].entered, datetime.now(UTC)
    if not persons:
        raise ProtectionError(f"Nobody came since the batch of {last:%Y-%m-%d %H:%M} (UTC): nothing was published.")
    if history.batch is None or persons >= history.batch:
        return
    ends = ""
    if history.longest_wait is not None:
        if now < last:
            raise ConflictError(
                f"The last batch is of {last:%Y-%m-%d %H:%M} (UTC), and it is {now:%Y-%m-%d %H:%M} by the clock here:"
                " set the clock. Nothing was published."
            )
        if now >= last + history.longest_wait:
            return
        ends = f", or until {last + history.longest_wait:%Y-%m-%d %H:%M} (UTC)"
    raise ProtectionError(f"A batch is of {history.batch:,} persons at least{ends}: nothing was published.")


def waiting(persons: int) -> str:
    """Say that persons wait for the next batch."""
    return f"{quantity(persons, 'person')} came since the last batch, and wait for the next."


def note_of_batch(run: ClassRun, growth: GrowingRelease) -> str:
    """Say how a batch compares with the largest one, as larger batches lose less."""
    outcome, largest = run.outcome, max(growth.batches, key=lambda batch: batch.rows)
    assert outcome.verification is not None
    rows = outcome.verification.statistics.rows
    wait = "" if run.arrived is None or rows == run.arrived else f" {waiting(run.arrived - rows)}"
    compared = ""
    if outcome.gcp is not None and largest.loss is not None and largest.rows > rows and largest.loss < outcome.gcp:
        compared = (
            f" It loses {outcome.gcp * 100:.3g} % (GCP), and the batch of {quantity(largest.rows, 'row')}"
            f" {largest.loss * 100:.3g} %: larger batches lose less, and history.batch lets persons wait for one."
        )
    return f"This batch has {quantity(rows, 'row')}.{compared}{wait}"
