"""account: all releases about the same people, and what they tell together; account forget drops it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sqlanon.cli.account_adopt import adopt_command, unentered, unentered_lines
from sqlanon.cli.account_check import check_command
from sqlanon.cli.call import Call, Panel, command, with_default
from sqlanon.cli.catalog import PolicyOption, UrlOption, opened
from sqlanon.cli.deferred import files, loading, sql
from sqlanon.cli.layout import table
from sqlanon.errors import PolicyError

if TYPE_CHECKING:
    from sqlanon.catalog.accounts import AccountRelease, ReleaseAccount
    from sqlanon.engines.base import Engine

_HEADINGS = ["release", "run", "entered (UTC)", "persons", "groups", "smallest", "below k", "came", "left"]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(
        cls=with_default("show"),
        help="Releases about the same people: show, adopt, check or forget them; shown where no command is named.",
    )
    command(group, "show")(show_account_command)
    command(group, "adopt", limits=True)(adopt_command)
    command(group, "check", limits=True)(check_command)
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
        people = None if policy is None else _people_of(policy, engine)
        if policy is not None:
            accounts = [one for one in accounts if one.name == people]
        entered = [(one, catalog.account_releases(one), unentered(catalog, one.name)) for one in accounts]
        others = [] if people is None or entered or catalog.current() is None else unentered(catalog, people)
    if call.json:
        call.emit({"accounts": [_object(*one) for one in entered]})
    elif not entered:
        call.note("\n".join(["No release about these people is entered here.", *unentered_lines(others)]))
    else:
        print("\n\n".join(_text(*one) for one in entered))


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


def _object(account: ReleaseAccount, releases: list[AccountRelease], others: list[str]) -> dict[str, Any]:
    """An account as programs read it."""
    listed = [{**vars(one), "entered": one.entered.isoformat()} for one in releases]
    for one in listed:
        del one["account"]
        one["left"] = one.pop("departed")
    return {
        "people": account.name,
        "opened": account.opened.isoformat(),
        "releases": listed,
        "unentered": others,
    }


def _text(account: ReleaseAccount, releases: list[AccountRelease], others: list[str]) -> str:
    """An account for people: a line for each release."""
    rows = [
        [
            one.number,
            one.run,
            f"{one.entered:%Y-%m-%d %H:%M:%S}",
            *(one.persons, one.groups, one.smallest, f"{one.below_k} (k = {one.k})", one.came, one.departed),
        ]
        for one in releases
    ]
    return "\n".join([f"People: {account.name}", table(_HEADINGS, rows), *unentered_lines(others)])
