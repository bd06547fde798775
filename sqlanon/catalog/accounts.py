"""Accounts: all releases about the same people, and which of these were in the same classes in each of them.

A person is kept as a keyed digest, and with it the number of the group of persons who were in the same classes in all
releases so far, or in none, and whom the same answers were about. The key is the account's own, drawn when the account
is opened, and goes with it. The digest is the half of a SHA-256 of the key and the person: what is cut off keeps it
from being extended (Coron, Dodis, Malinaud, Puniya, CRYPTO 2005, section 3). Releases with noise, and of streams,
divide nobody, and are lines of the account alone.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from enum import StrEnum

from sqlanon.catalog import locks
from sqlanon.catalog.connection import Access, Transaction, plain
from sqlanon.catalog.location import database_of
from sqlanon.engines.base import Engine
from sqlanon.errors import ConflictError
from sqlanon.sql import Relation

_WAIT = 60.0  # seconds, as for a release of the same source
_BITS = 128  # of the key of an account
_TABLES = "accounts", "account_releases", "account_persons"


@dataclass(frozen=True)
class ReleaseAccount:
    """An account; `releases`: how many lines were entered, of whatever kind."""

    name: str
    id: int
    releases: int
    opened: datetime


class LineKind(StrEnum):
    """The kinds of what is entered in accounts."""

    RELEASE = "release"
    BATCH = "batch"  # rows that were added to a release, or are the first of it
    DEPARTURE = "departure"  # rows that left a release that has batches, a negative number of them
    ANSWER = "answer"
    NOISE = "noise"  # a release or an answer of differential privacy
    STREAM = "stream"  # a release of a condensed stream


@dataclass(frozen=True)
class AccountRelease:
    """A release, or another line, as it was entered; see the columns of `account_releases`."""

    account: int
    number: int
    kind: LineKind
    run: str
    source: str
    about: str | None
    entered: datetime
    k: int | None = None
    persons: int | None = None
    groups: int | None = None
    smallest: int | None = None
    below_k: int | None = None
    came: int | None = None
    departed: int | None = None
    rows: int = 0
    loss: float | None = None


@dataclass(frozen=True)
class GrowingRelease:
    """A release that batches are added to; batches: those that it has, at least one; departures: of their rows."""

    account: ReleaseAccount
    batches: tuple[AccountRelease, ...]
    departures: tuple[AccountRelease, ...] = ()

    @property
    def rows(self) -> int:
        """Return the number of rows that the release should have."""
        return sum(line.rows for line in (*self.batches, *self.departures))


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
        """The lines of an account, in the order in which they were entered."""
        of_account = {"account": account.id}
        return self._records(AccountRelease, "account_releases", of_account, ["number"], {"kind": LineKind})

    def batches(self, account: ReleaseAccount) -> tuple[AccountRelease, ...]:
        """The batches of an account's release, in the order in which they were added to it."""
        return self._of_kind(account, LineKind.BATCH)

    def departures(self, account: ReleaseAccount) -> tuple[AccountRelease, ...]:
        """The departures of rows from an account's release."""
        return self._of_kind(account, LineKind.DEPARTURE)

    def _of_kind(self, account: ReleaseAccount, kind: LineKind) -> tuple[AccountRelease, ...]:
        return tuple(one for one in self.account_releases(account) if one.kind is kind)

    def grown_by(self, release: str) -> ReleaseAccount | None:
        """Find the account whose batches are in a release; None where there is none."""
        return next((one for one in self.accounts() if any(b.about == release for b in self.batches(one))), None)

    def account_release(self, run: str) -> AccountRelease | None:
        """The release of a run as it was entered; None where it was not."""
        return next(iter(self._records(AccountRelease, "account_releases", {"run": run}, [], {"kind": LineKind})), None)

    def entered_runs(self, people: str) -> frozenset[str]:
        """Return the runs whose releases are entered in the account of these people."""
        account = self.account(people)
        return frozenset() if account is None else frozenset(one.run for one in self.account_releases(account))

    def open_account(self, people: str) -> ReleaseAccount:
        """Return the account of these people; where there is none, open one with a key of its own."""

        def write(transaction: Transaction) -> ReleaseAccount:
            where = {"name": people}
            if not transaction.select("accounts", ["id"], where):
                drawn = {"id": secrets.randbits(62), "key": secrets.token_hex(_BITS // 8)}
                transaction.insert("accounts", [where | drawn | {"releases": 0, "opened": datetime.now(UTC)}])
            return transaction.records(ReleaseAccount, "accounts", where)[0]

        with self.entering(people):
            return self._connection.do("open the account", write)

    def enter_alone(self, people: str, kind: LineKind, run: str, source: str, about: str) -> None:
        """Enter a line that divides nobody, for good, in a transaction of its own; opens the account if there is none.

        Raises ConflictError where somebody else has been at it for a minute, or forgets the account.
        """
        account = self.open_account(people)

        def write(transaction: Transaction) -> None:
            where = {"id": account.id}
            known = transaction.select("accounts", ["releases"], where)
            if not known:
                raise ConflictError(f"The account of {people} was forgotten meanwhile: run again.")
            number = known[0]["releases"] + 1
            transaction.update("accounts", where, releases=number)
            line = AccountRelease(account.id, number, kind, run, source, about, datetime.now(UTC))
            transaction.insert("account_releases", [vars(line)])

        with self.entering(people):
            self._connection.do("enter the line, so that nothing is out", write)

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
        """Record a line of an account in the transaction of a session, which lets it out."""
        row = {one.name: plain(getattr(entered, one.name)) for one in fields(entered)}
        self._insert_within(session, "account_releases", row | {"entered": self._connection.timestamp(entered.entered)})
