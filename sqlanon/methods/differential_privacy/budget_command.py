"""budget show, grant, close: the ledger of privacy budgets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sqlanon.cli.call import HERE, ONLY_POLICY, Call, Panel, command
from sqlanon.cli.catalog import PolicyOption, UrlOption, opened
from sqlanon.cli.deferred import loading
from sqlanon.cli.layout import WHOLE, place_text, table
from sqlanon.support.exact_numbers import decimal_text

if TYPE_CHECKING:
    from sqlanon.catalog.budget_records import Budget

BudgetName = Annotated[str, typer.Argument(help="The budget's name, `ledger` in policies.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(help="Privacy budgets: show, grant, close.", no_args_is_help=True)
    command(group, "show")(show_command)
    command(group, "grant")(grant_command)
    command(group, "close")(close_command)
    app.add_typer(group, name="budget", rich_help_panel=Panel.UPKEEP)


def show_command(
    call: Call,
    name: Annotated[str | None, typer.Argument(help="The budget's name; if not given, all are listed.")] = None,
    url: UrlOption = None,
    policy: PolicyOption = None,
) -> None:
    """Show what was granted of privacy budgets, what each run consumed, and what is left.

    With a name: its grants, its source, and the runs with their releases; as JSON every mechanism, too.
    """
    with opened(call, url, policy) as (_, catalog):
        is_there = catalog.current() is not None
        budgets = ([catalog.budget(name)] if name is not None else catalog.budgets()) if is_there else []
        entries = catalog.budget_entries(name) if is_there and name is not None else None
    if call.json:
        call.emit({"budgets": [budget.as_json(entries) for budget in budgets]})
    elif not budgets:
        call.note("No privacy budget is recorded here.")
    else:
        print(_list_text(budgets) if name is None else _budget_text(budgets[0]))


def grant_command(
    call: Call,
    name: BudgetName,
    reason: Annotated[str, typer.Option("--reason", help="A sentence for those who read the ledger.")],
    epsilon: Annotated[
        str, typer.Option("--epsilon", help="The amount to add, such as 0.5; 0 only adds the source as it is now.")
    ] = "0",
    policy: Annotated[
        Path, typer.Option("--policy", "-p", help=f"A policy of the source. {ONLY_POLICY}", show_default=False)
    ] = HERE,
) -> None:
    """Add to the privacy budget of the policy's source; the first grant opens it. No row is looked at.

    A grant is never taken back. A source that was renamed, moved or made anew is added by a grant without --epsilon.
    """
    from sqlanon.methods.differential_privacy import granting

    loaded = loading.load_policy(policy)
    budget = granting.grant_budget(loaded, epsilon, reason, name=name, options=call.options)
    _tell(call, budget, "Recorded the grant.")


def close_command(call: Call, name: BudgetName, url: UrlOption = None, policy: PolicyOption = None) -> None:
    """Close a privacy budget for good: no run consumes of it any more, and its source gets no other."""
    with opened(call, url, policy, upgrade=True) as (_, catalog):
        budget = catalog.close_budget(name)
    _tell(call, budget, "Closed the budget.")


def _tell(call: Call, budget: Budget, done: str) -> None:
    if call.json:
        call.emit(budget.as_json())
    else:
        print(f"{done}\n\n{_budget_text(budget)}")


def _list_text(budgets: list[Budget]) -> str:
    rows = [
        [
            one.name,
            _unit(one),
            *_sums(one),
            len(one.uses),
            "open" if one.closed is None else f"closed {_time(one.closed)}",
        ]
        for one in budgets
    ]
    return table(
        ["budget", "protects each", "granted", "consumed", "left", "runs", "state"], rows, indent="", widest=WHOLE
    )


def _budget_text(budget: Budget) -> str:
    granted, consumed, left = _sums(budget)
    closed = "" if budget.closed is None else f" It was closed at {_time(budget.closed)} UTC."
    damaged = "" if budget.is_complete else "\nThe account is DAMAGED: entries are missing. Restore it from a backup."
    grants = [
        [_time(one.granted), decimal_text(one.epsilon, up=False), one.granted_by, one.reason] for one in budget.grants
    ]
    uses = [
        [_time(one.written), decimal_text(one.epsilon, up=True), one.run, place_text(one.release), one.mechanisms]
        for one in budget.uses
    ]
    return "\n\n".join(
        (
            f"Budget {budget.name}: {granted} granted, {consumed} consumed, {left} left, in epsilon for each"
            f" {_unit(budget)}.{closed}{damaged}\nSource: {', '.join(budget.sources)}",
            table(["granted (UTC)", "epsilon", "by", "reason"], grants, widest=WHOLE),
            table(["consumed (UTC)", "epsilon", "run", "release", "mechanisms"], uses, widest=WHOLE)
            if uses
            else "No run has consumed of it.",
        )
    )


def _sums(budget: Budget) -> list[str]:
    return [
        decimal_text(budget.granted, up=False),
        decimal_text(budget.consumed, up=True),
        decimal_text(budget.left, up=False),
    ]


def _unit(budget: Budget) -> str:
    return "row" if budget.unit is None else f"person ({budget.unit})"


def _time(written: Any) -> str:
    return f"{written:%Y-%m-%d %H:%M}"
