"""Accounts: all releases about the same people, and which of these were in the same classes in each of them.

A person is kept as a keyed digest, and with it the number of the group of persons who were in the same classes in all
releases so far, or in none. The key is the account's own, drawn when the account is opened, and goes with it.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime

from sqlanon.catalog import locks
from sqlanon.catalog.connection import Access, Transaction
from sqlanon.catalog.location import database_of
from sqlanon.engines.base import Engine
from sqlanon.sql import Relation

_WAIT = 60.0  # seconds, as for a release of the same source
_PADDED = "inner_pad", "outer_pad"
_TABLES = "accounts", "account_releases", "account_persons"


@dataclass(frozen=True)
class ReleaseAccount:
    """An account; `releases`: how many were entered."""

    name: str
    id: int
    releases: int
    opened: datetime


@dataclass(frozen=True)
class AccountRelease:
    """A release as it was entered; see the columns of `account_releases`."""

    account: int
    number: int
    run: str
    entered: datetime
    k: int
    persons: int
    groups: int
    smallest: int
    below_k: int
    came: int
    departed: int


class Accounts(Access):
    """The accounts of a catalog."""

    @contextlib.contextmanager
    def entering(self, people: str) -> Iterator[None]:
        """Let nobody else enter a release about these people meanwhile; who does is waited for.

        Raises ConflictError where somebody has been at it for a minute.
        """
        conflict = f"Another run is entering a release about {people}: run again when it has ended."
        with locks.held(self._store, f"account {people} in {self.location.name} of {self._where}", conflict, _WAIT):
            yield

    @property
    def _where(self) -> str:
        return database_of(self._store)

    def account(self, people: str) -> ReleaseAccount | None:
        """The account of these people; None where no release about them was to be entered."""
        return next(iter(self._records(ReleaseAccount, "accounts", {"name": people})), None)

    def accounts(self) -> list[ReleaseAccount]:
        """All accounts, by their names."""
        return self._records(ReleaseAccount, "accounts", None, ["name"])

    def account_releases(self, account: ReleaseAccount) -> list[AccountRelease]:
        """The releases of an account, in the order in which they were entered."""
        return self._records(AccountRelease, "account_releases", {"account": account.id}, ["number"])

    def account_release(self, run: str) -> AccountRelease | None:
        """The release of a run as it was entered; None where it was not."""
        return next(iter(self._records(AccountRelease, "account_releases", {"run": run})), None)

    def open_account(self, people: str, pads: tuple[str, str]) -> ReleaseAccount:
        """Return the account of these people; where there is none, open one with a key, given by its pads."""

        def write(transaction: Transaction) -> ReleaseAccount:
            where = {"name": people}
            if not transaction.select("accounts", ["id"], where):
                drawn = {"id": secrets.randbits(62), **dict(zip(_PADDED, pads, strict=True))}
                transaction.insert("accounts", [where | drawn | {"releases": 0, "opened": datetime.now(UTC)}])
            return transaction.records(ReleaseAccount, "accounts", where)[0]

        with self.entering(people):
            return self._connection.do("open the account", write)

    def forget_account(self, account: ReleaseAccount) -> None:
        """Drop an account with its key: what it knew can't be known again."""

        def write(transaction: Transaction) -> None:
            transaction.delete("account_persons", {"account": account.id})
            transaction.delete("account_releases", {"account": account.id})
            transaction.delete("accounts", {"name": account.name})

        with self.entering(account.name):
            self._connection.do("forget the account", write)

    @property
    def account_tables(self) -> Mapping[str, Relation]:
        """The tables of accounts, for the session that publishes."""
        return {name: self.location.relation(name) for name in _TABLES}

    def enter_within(self, session: Engine, entered: AccountRelease) -> None:
        """Record a release of an account in the transaction that publishes it."""
        row = {one.name: getattr(entered, one.name) for one in fields(entered)}
        self._insert_within(session, "account_releases", row | {"entered": self._connection.timestamp(entered.entered)})
