"""Calls for those who answer for a source: grant, list and close privacy budgets."""

from __future__ import annotations

from fractions import Fraction

from sqlanon.catalog.budget_records import Budget
from sqlanon.engines import connect
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import PolicyError
from sqlanon.plan.lookup import unknown_table
from sqlanon.plan.plan import find_source
from sqlanon.policy import Policy
from sqlanon.policy.differential_privacy import mechanism_of
from sqlanon.support.exact_numbers import parse_decimal
from sqlanon.work.session import catalog_place, open_catalog, open_recorded


def grant_budget(
    policy: Policy,
    epsilon: Fraction | int | str,
    reason: str,
    *,
    name: str | None = None,
    options: EngineOptions | None = None,
) -> Budget:
    """Add an amount to the budget of a policy's source; the first grant opens it. No row is looked at.

    Args:
        policy: says what the source is, what is protected (a row or a person), and where the catalog is.
        epsilon: the amount, a text such as `0.1` being exact; 0 only adds the source, which was renamed or made anew.
        reason: a sentence for those who read the ledger.
        name: of the budget; if not given, the one that the policy names.

    Raises:
        PolicyError: the source has another budget, the budget is closed or of another unit, or a value is wrong.
        AccessError, EngineError, ConflictError: the ledger can't be written.
    """
    asked = mechanism_of(policy.privacy)
    if asked is None:
        raise PolicyError("privacy: the policy does not ask for differential-privacy, which budgets are for.")
    if policy.source.table is None:
        raise PolicyError("source.file: a budget is of a table; load the file into one.")
    amount = _amount(epsilon)
    with connect(policy.source.url or "", options) as engine:
        source = find_source(policy, engine)
        if source is None:
            raise PolicyError(f"source.table: {unknown_table(engine, policy.source.table)}")
        with open_catalog(policy, engine) as catalog:
            identities = catalog.identities(str(source), source)
            return catalog.grant_budget(_name(policy, name), amount, reason, identities, asked.persons)


def list_budgets(policy: Policy, options: EngineOptions | None = None) -> list[Budget]:
    """List all budgets of a policy's catalog, by name, with their grants and what each run consumed.

    Raises PolicyError where there is no catalog yet.
    """
    with open_recorded(catalog_place(policy), options) as catalog:
        return catalog.budgets()


def close_budget(policy: Policy, *, name: str | None = None, options: EngineOptions | None = None) -> Budget:
    """Close a budget of a policy's catalog for good; if no name is given, the one that the policy names.

    Raises PolicyError where there is none, or it is closed.
    """
    with open_recorded(catalog_place(policy), options) as catalog:
        return catalog.close_budget(_name(policy, name))


def _name(policy: Policy, given: str | None) -> str:
    """Return the name of a budget, which a policy that names one must agree with."""
    named = None if policy.budget is None else policy.budget.ledger
    if given is not None and named is not None and given != named:
        raise PolicyError(f"budget.ledger: the policy names '{named}', not '{given}'.")
    if given is None and named is None:
        raise PolicyError("budget: the policy names none; write budget: {ledger: …} into it, or give its name.")
    return given or named or ""


def _amount(epsilon: Fraction | int | str) -> Fraction:
    read = parse_decimal(epsilon) if isinstance(epsilon, str) else Fraction(epsilon)
    if read is None:
        raise PolicyError(f"epsilon must be a decimal number such as 0.5, not '{epsilon}'.")
    return read
