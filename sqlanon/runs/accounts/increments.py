"""Increments: a run adds the persons who came to a release, as a batch that satisfies the models by itself.

Rows that are released keep their labels, so that who holds the release of every night holds the batches, and each of
these is protected. Persons of a batch who are suppressed are in no account, and so wait for the next one.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from sqlanon.catalog.accounts import GrowingRelease
from sqlanon.errors import ConflictError, ProtectionError
from sqlanon.plan.plan import Plan
from sqlanon.runs.execution import ClassRun
from sqlanon.sql import Identifier, macro
from sqlanon.support.quantities import quantity
from sqlanon.values.expressions import text_of_person

ARRIVED = "arrived"  # what the name of the work table of a batch ends in


def arrivals(run: ClassRun, plan: Plan, growth: GrowingRelease) -> Plan:
    """Plan for the rows of the source whose persons no batch has, as a copy; in the transaction that reads it."""
    engine, person = run.engine, run.policy.person
    (column,) = [one for one in engine.columns(plan.source) if one.name == person]
    text = text_of_person(engine.render, macro("codes.in_source", Identifier(column.name)), column)
    tables, copy = run.catalog.account_tables, run.workspace.table(ARRIVED)
    names = [attribute.name for attribute in plan.coded]
    engine.run(
        "runs/accounts/create_arrivals",
        copy=copy,
        source=plan.source,
        columns=[{"name": Identifier(name), "stored": Identifier(f"c{n}")} for n, name in enumerate(names)],
        person=text,
        account=growth.account.id,
        accounts=tables["accounts"],
        persons=tables["account_persons"],
    )
    engine.analyze(copy)
    return replace(plan, source=copy)


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


def strangers_warning(run: ClassRun) -> str | None:
    """Warn where nobody who was released is in the source any more; None where somebody is, or nobody was released."""
    if run.growth is None or run.arrived is None or run.arrived < run.plan.rows:
        return None
    return (
        f"Nobody of the {quantity(run.growth.rows, 'person')} who were released before is in {run.plan.source_name} any"
        f" more. If '{run.policy.person}' is written otherwise than then, the same people are released twice."
    )


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
