"""account: all releases about the same people, and what they tell together; account forget drops it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sqlanon.cli.call import Call, Panel, command, with_default
from sqlanon.cli.catalog import PolicyOption, UrlOption, opened
from sqlanon.cli.deferred import files, loading, sql
from sqlanon.cli.layout import table
from sqlanon.errors import PolicyError

if TYPE_CHECKING:
    from sqlanon.catalog.accounts import AccountRelease, ReleaseAccount
    from sqlanon.engines.base import Engine

_HEADINGS = [
    *("release", "run", "entered (UTC)", "kind", "rows", "loss (GCP)"),
    *("persons", "groups", "smallest", "below k", "came", "left"),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(
        cls=with_default("show"),
        help="Releases about the same people: show them, or forget them. Where neither is named, they are shown.",
    )
    command(group, "show")(show_account_command)
    command(group, "forget")(forget_command)
    app.add_typer(group, name="account", rich_help_panel=Panel.HISTORY)


def show_account_command(
    call: Call,
    policy: Annotated[
        Path | None, typer.Argument(help="A policy with `history`, whose people are meant.", show_default=False)
    ] = None,
    url: UrlOption = None,
) -> None:
    """Show which releases about the same people were entered, and what they tell together.

    With --url, all accounts of a database's catalog. A group is the persons with the same classes in all releases.
    """
    with opened(call, url, policy) as (engine, catalog):
        accounts = [] if catalog.current() is None else catalog.accounts()
        if policy is not None:
            accounts = [one for one in accounts if one.name == _people_of(policy, engine)]
        entered = [(account, catalog.account_releases(account)) for account in accounts]
    if call.json:
        call.emit({"accounts": [_object(account, releases) for account, releases in entered]})
    elif not entered:
        call.note("No release about these people is entered here.")
    else:
        print("\n\n".join(_text(account, releases) for account, releases in entered))


def forget_command(
    call: Call,
    people: Annotated[str, typer.Argument(metavar="NAME", help="The people, as `sqlanon account` names them.")],
    url: UrlOption = None,
    policy: PolicyOption = None,
    yes: Annotated[bool, typer.Option("--yes", help="Forget it for good.")] = False,
) -> None:
    """Drop an account with its key: no later release is held against those that it knew."""
    with opened(call, url, policy) as (_, catalog):
        account = None if catalog.current() is None else catalog.account(people)
        if account is None:
            raise PolicyError(f"There is no account of {people}; `sqlanon account` names them.")
        if not yes:
            raise PolicyError(
                f"The account of {people} knows {account.releases:,} releases, and later ones could not be held against"
                " them any more. Nothing was forgotten; --yes forgets it for good."
            )
        catalog.forget_account(account)
    if call.json:
        call.emit({"forgotten": people})
    else:
        print(f"The account of {people} is forgotten, with its key.")


def _people_of(path: Path, engine: Engine) -> str | None:
    """Name the people of a policy, as its runs enter releases; None where its source is not there."""
    policy = loading.load_policy(path)
    if policy.people is not None:
        return policy.people
    if policy.source.file is not None:
        return files.whole_path(policy.source.file)
    source = engine.resolve(sql.Relation.parse(policy.source.table or ""))
    return None if source is None else str(source)


def _object(account: ReleaseAccount, releases: list[AccountRelease]) -> dict[str, Any]:
    """An account as programs read it."""
    listed = [{**vars(one), "kind": one.kind.value, "entered": one.entered.isoformat()} for one in releases]
    for one in listed:
        del one["account"]
        one["left"] = one.pop("departed")
    return {"people": account.name, "opened": account.opened.isoformat(), "releases": listed}


def _text(account: ReleaseAccount, releases: list[AccountRelease]) -> str:
    """An account for people: a line for each release."""
    rows = [
        [
            one.number,
            one.run,
            f"{one.entered:%Y-%m-%d %H:%M:%S}",
            one.kind.value,
            one.rows,
            "" if one.loss is None else f"{one.loss * 100:.4g} %",
            *(one.persons, one.groups, one.smallest, f"{one.below_k} (k = {one.k})", one.came, one.departed),
        ]
        for one in releases
    ]
    return f"People: {account.name}\n{table(_HEADINGS, rows)}"
