"""Charging of differentially private runs on the budget that their policy names, in the catalog's ledger."""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol

from sqlanon.catalog import Catalog
from sqlanon.catalog.budget_records import Budget, MechanismUse, Spending, amount, no_budget, remainder
from sqlanon.errors import BudgetError, PolicyError
from sqlanon.mechanisms.charges import Charge
from sqlanon.methods.differential_privacy.plan import PrivatePlan
from sqlanon.methods.differential_privacy.result import BudgetState
from sqlanon.work.session import Session

NO_BUDGET = (
    "budget: differential privacy needs a budget that counts what all releases of the source cost together:"
    " budget: {ledger: people, epsilon: 3}, granted by `sqlanon budget grant people --epsilon 3 --reason …`."
)


class Account(Protocol):
    """The account that a run is charged on."""

    def spend(self, session: Session, plan: PrivatePlan, run: str, charges: list[Charge]) -> BudgetState:
        """Write down what a run will cost, for good, before it looks at its source.

        Raises BudgetError where the budget does not have as much left; then nothing was written.
        """


class LedgerAccount:
    """The budgets of the session's catalog."""

    def spend(self, session: Session, plan: PrivatePlan, run: str, charges: list[Charge]) -> BudgetState:
        """Write an entry for every mechanism; see `Account` and `catalog.spend`.

        Raises PolicyError where the policy names no budget, or one that is not of its source.
        """
        catalog, spending = session.catalog, _spending(plan, run, charges)
        after = catalog.spend(spending, catalog.identities(plan.source_name, plan.source))
        return _state(after, spending, after.consumed - spending.epsilon)


def ask_budget(
    plan: PrivatePlan, charges: list[Charge], catalog: Catalog | None
) -> tuple[BudgetState | None, str | None]:
    """Find what a run would leave of its budget, or else why it would be refused; nothing is written.

    catalog: the one that the policy's runs have; None where none has been made yet.
    """
    try:
        spending = _spending(plan, "", charges)
        if catalog is None or not catalog.keeps_budgets:
            raise PolicyError(no_budget(spending.budget))
        before = catalog.require_budget(spending, catalog.identities(plan.source_name, plan.source))
    except (PolicyError, BudgetError) as refusal:
        return None, str(refusal)
    return _state(before, spending, before.consumed), None


def consumed_note(state: BudgetState) -> str:
    """Say of a run that ended early what it has consumed."""
    consumed, left = amount(Fraction(state.consumed)), remainder(Fraction(state.left))
    return (
        f"The run has consumed {consumed} of budget {state.ledger} all the same, of which {left} is left:"
        " nothing is given back, and another run consumes anew."
    )


def _spending(plan: PrivatePlan, run: str, charges: list[Charge]) -> Spending:
    budget = plan.policy.budget
    if budget is None:
        raise PolicyError(NO_BUDGET)
    uses = tuple(MechanismUse(one.mechanism, one.epsilon, Fraction(one.sensitivity), one.scale) for one in charges)
    return Spending(budget.ledger, budget.limit, plan.persons, run, plan.release_name, uses)


def _state(budget: Budget, spending: Spending, before: Fraction) -> BudgetState:
    """The account after a run; `before`: all that was consumed until then."""
    allowed = budget.allowed(spending.limit)
    left = allowed - before - spending.epsilon
    return BudgetState(budget.name, str(allowed), str(before), str(spending.epsilon), str(left))
