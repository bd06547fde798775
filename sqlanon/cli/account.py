"""account: all that is out about the same people, and what it tells together; account forget drops it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sqlanon.cli.account_adopt import adopt_command, unentered
from sqlanon.cli.account_check import check_command
from sqlanon.cli.call import Call, Panel, command, with_default
from sqlanon.cli.catalog import PolicyOption, UrlOption, opened
from sqlanon.cli.deferred import files, known_release, linking, loading, people_of_source, sql
from sqlanon.cli.layout import WHOLE, table
from sqlanon.errors import PolicyError
from sqlanon.support.exact_numbers import decimal_text
from sqlanon.support.quantities import quantity

if TYPE_CHECKING:
    from sqlanon.catalog import Catalog
    from sqlanon.catalog.accounts import AccountRelease, ReleaseAccount
    from sqlanon.catalog.budget_records import Budget
    from sqlanon.engines.base import Engine

_HEADINGS = [
    *("number", "kind", "entered (UTC)", "rows", "loss (GCP)", "persons", "groups", "smallest", "below k"),
    *("came", "left", "run or question"),
]
_UNCOUNTED = "  Nobody knows who is in the groups of a stream: no release or answer is held against these lines."


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(
        cls=with_default("show"),
        help="All that is out about the same people: show, adopt, check or forget it; shown where no command is named.",
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
    """Show the releases and answers about the same people that were entered, and what they tell together.

    With --url, all accounts of a database's catalog. A group is the persons with the same classes in all releases, whom
    the same answers are about. Releases and answers with noise are listed with their cost, and the privacy budgets of
    the tables follow.
    """
    with opened(call, url, policy) as (engine, catalog):
        accounts = [] if catalog.current() is None else catalog.accounts()
        people = None if policy is None else _people_of(policy, engine, catalog)
        if policy is not None:
            accounts = [one for one in accounts if one.name == people]
        entered = [_whole(account, catalog, engine) for account in accounts]
        others = [] if people is None or entered or catalog.current() is None else unentered(engine, catalog, people)
    if call.json:
        call.emit({"accounts": [_object(one) for one in entered]})
    elif not entered:
        call.note("\n".join(["Nothing about these people is entered here.", *_unknown(others)]))
    else:
        print("\n\n".join(_text(one) for one in entered))


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
                f"The account of {people} knows {account.releases:,} releases and answers, and later ones could not be"
                " held against them any more. Nothing was forgotten; --yes forgets it for good."
            )
        catalog.forget_account(account)
    if call.json:
        call.emit({"forgotten": people})
    else:
        print(f"The account of {people} is forgotten, with its key.")


def _people_of(path: Path, engine: Engine, catalog: Catalog) -> str | None:
    """Name the people of a policy, as its runs enter releases; None where its source is not there."""
    policy = loading.load_policy(path)
    if policy.people is not None:
        return policy.people
    if policy.source.file is not None:
        return files.whole_path(policy.source.file)
    source = engine.resolve(sql.Relation.parse(policy.source.table or ""))
    known = None if catalog.current() is None else catalog
    return None if source is None else people_of_source.find_people(policy, engine, known, source).name


@dataclass(frozen=True)
class _Whole:
    """An account with its lines, the privacy budgets of the tables that these are about, and what it does not know.

    others: runs whose releases it lacks; changed: the releases that are not as it knows them, each as a sentence.
    """

    account: ReleaseAccount
    lines: list[AccountRelease]
    budgets: list[Budget]
    others: list[str]
    changed: list[str]


def _whole(account: ReleaseAccount, catalog: Catalog, engine: Engine) -> _Whole:
    lines = catalog.account_releases(account)
    tables = dict.fromkeys(one.source for one in lines if one.source.endswith('"'))
    releases = dict.fromkeys(one.about for one in lines if one.kind in known_release.KINDS and one.about is not None)
    changed = [
        known_release.changed_release(catalog, engine, account.name, name, sql.Relation.parse(name))
        for name in releases
    ]
    others = unentered(engine, catalog, account.name)
    return _Whole(account, lines, catalog.budgets_of(tables), others, list(filter(None, changed)))


def _object(whole: _Whole) -> dict[str, Any]:
    """An account as programs read it."""
    listed = [{**vars(one), "kind": one.kind.value, "entered": one.entered.isoformat()} for one in whole.lines]
    for one in listed:
        del one["account"]
        one["left"] = one.pop("departed")
    return {
        "people": whole.account.name,
        "opened": whole.account.opened.isoformat(),
        "releases": listed,
        "budgets": [one.as_json() for one in whole.budgets],
        "unentered": whole.others,
        "changed": whole.changed,
    }


def _text(whole: _Whole) -> str:
    """An account for people: a line for each release and answer, one for each budget, and runs that it lacks."""
    rows = [
        [
            *(one.number, one.kind.value, f"{one.entered:%Y-%m-%d %H:%M:%S}", _rows(one)),
            *(None if one.loss is None else f"{one.loss * 100:.4g} %", one.persons, one.groups, one.smallest),
            *(None if one.below_k is None else f"{one.below_k} (k = {one.k})", one.came, one.departed, _what(one)),
        ]
        for one in whole.lines
    ]
    parts = [f"People: {whole.account.name}", table(_HEADINGS, rows, widest=WHOLE)]
    if any(one.kind == "stream" for one in whole.lines):
        parts.append(_UNCOUNTED)
    parts += [
        f"  Budget {one.name}: epsilon {decimal_text(one.consumed, up=True)} of {decimal_text(one.granted, up=False)}"
        f" consumed by releases and answers with noise, {decimal_text(one.left, up=False)} left."
        for one in whole.budgets
    ]
    return "\n".join([*parts, *whole.changed, *_unknown(whole.others)])


def _unknown(runs: list[str]) -> list[str]:
    """Say which published runs an account does not know, and what can be done."""
    return [linking.unknown_warning(runs)] if runs else []


def _rows(line: AccountRelease) -> str | int | None:
    """Count the rows of a line, with those of nobody where there may be some."""
    if line.counterfeits is None:
        return line.rows or None
    return f"{line.rows:,} ({quantity(line.counterfeits, 'counterfeit')})"


def _what(line: AccountRelease) -> str:
    """Name the run or the question of a line, with its cost or its job."""
    run = [] if line.kind == "answer" else [line.run]
    return ": ".join([*run, *([] if line.about is None else [line.about])])
