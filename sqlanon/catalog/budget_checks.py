"""Checks before a privacy budget is spent or granted, and their messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from sqlanon.catalog.budget_records import Budget, Spending, amount, remainder, unit_text
from sqlanon.errors import BudgetError, PolicyError

LONGEST_NAME = 100  # characters
LONGEST_REASON = 1_000  # characters
_SHOWN = 5  # runs in an error


def require_covered(budget: Budget, spending: Spending, sources: Sequence[str], owners: Mapping[str, str]) -> None:
    """Check that a budget covers what a run would consume.

    sources: the identities of its source. owners: the budget that each known identity belongs to.

    Raises BudgetError where the amount does not suffice, PolicyError where the budget is not for this source or unit.
    """
    name = budget.name
    require_no_other(name, sources, owners)
    require_unit(budget, spending.unit)
    require_open(budget, BudgetError)
    if not budget.is_complete:
        raise BudgetError(
            f"The account of budget '{name}' is damaged: {budget.entries} entries were written, and not all are there."
            " Nothing was looked at. Restore the catalog from a backup."
        )
    if name not in (owners.get(source) for source in sources):
        raise PolicyError(
            f"The budget '{name}' was granted for another source, or this one was renamed, moved or made anew. If the"
            f" same people are in it, `sqlanon budget grant {name} --reason …` adds it to the budget; what was consumed"
            " stays consumed."
        )
    if budget.consumed + spending.epsilon > budget.allowed(spending.limit):
        raise BudgetError(_exhausted(budget, spending))


def require_no_other(name: str, sources: Sequence[str], owners: Mapping[str, str]) -> None:
    """Check that a source belongs to no other budget than the one of this name."""
    others = sorted({owners[source] for source in sources if source in owners} - {name})
    if others:
        raise PolicyError(
            f"The source has the budget '{others[0]}' already, perhaps under an earlier name, and a source has one"
            f" budget for good: use it (budget: {{ledger: {others[0]}, …}})."
        )


def budget_elsewhere(name: str, schema: str) -> str:
    """Say that a source has its budget in another catalog."""
    return (
        f"The source has the budget '{name}' already, in the catalog of schema {schema}, and a source has one budget"
        " for good: name that catalog in the policy (catalog: {schema: …})."
    )


def require_unit(budget: Budget, unit: str | None) -> None:
    """Check that a budget protects this unit."""
    if budget.unit != unit:
        raise PolicyError(
            f"The budget '{budget.name}' protects each {unit_text(budget.unit)}, and the policy each {unit_text(unit)}:"
            " amounts of the two can't be added up."
        )


def require_open(budget: Budget, error: type[BudgetError | PolicyError]) -> None:
    """Check that a budget is not closed."""
    if budget.closed is not None:
        raise error(f"The budget '{budget.name}' was closed at {budget.closed:%Y-%m-%d %H:%M} UTC, for good.")


def require_values(name: str, epsilon: Fraction, reason: str) -> None:
    """Check the values of a grant."""
    problems = []
    if not name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
        problems.append(f"The name of a budget has 1 to {LONGEST_NAME} printable characters.")
    if epsilon < 0:
        problems.append("A grant can't be negative: what was granted is never taken back; close the budget instead.")
    if not reason.strip() or len(reason) > LONGEST_REASON:
        problems.append(f"A grant needs a reason, of at most {LONGEST_REASON:,} characters, for those who read it.")
    if problems:
        raise PolicyError(problems)


def no_budget(name: str) -> str:
    """Say that there is no budget of this name, and how there will be one."""
    return (
        f"There is no budget '{name}': whoever answers for the source grants one,"
        f" `sqlanon budget grant {name} --epsilon … --reason …`."
    )


def _exhausted(budget: Budget, spending: Spending) -> str:
    """Say what is left of a budget, and who consumed the rest."""
    allowed = budget.allowed(spending.limit)
    left = max(allowed - budget.consumed, Fraction(0))
    uses = [
        f"{amount(use.epsilon)} {use.user} at {use.written:%Y-%m-%d %H:%M} UTC"
        for use in reversed(budget.uses[-_SHOWN:])
    ]
    if len(budget.uses) > _SHOWN:
        uses.append(f"and {len(budget.uses) - _SHOWN} more, see `sqlanon budget show {budget.name}`")
    consumed = f"; consumed so far: {', '.join(uses)}" if uses else ""
    return (
        f"The budget '{budget.name}' does not cover what was asked for: it would consume"
        f" {amount(spending.epsilon)}, and {remainder(left)} of {remainder(allowed)} are left{consumed}. Nothing was"
        " looked at."
    )
