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
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from enum import StrEnum

from sqlanon.catalog import locks
from sqlanon.catalog.connection import Access, Transaction, plain
from sqlanon.catalog.location import CatalogLocation, database_of
from sqlanon.catalog.sources import source_identities
from sqlanon.engines.base import Engine
from sqlanon.errors import ConflictError
from sqlanon.sql import Relation

ACCOUNT_WAIT = 60.0  # seconds, as for a release of the same source
KEY_BITS = 128  # of the key of an account
_TABLES = "accounts", "account_sources", "account_releases", "account_persons"


@dataclass(frozen=True)
class ReleaseAccount:
    """An account; `releases`: how many lines were entered, of whatever kind."""

    name: str
    id: int
    releases: int
    opened: datetime


@dataclass(frozen=True)
class People:
    """The people whom releases are about: the name of their account, and what it knows them by.

    identities: of the table that has their rows, see `catalog.sources`; none where the name alone says who they are.
    subject: its column that tells them apart; None where it is not known.
    """

    name: str
    identities: tuple[str, ...] = ()
    subject: str | None = None


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
    counterfeits: int | None = None


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


def account_lock_name(people: str, location: CatalogLocation, database: str) -> str:
    """Name the lock of an account."""
    return f"account {people} in {location.name} of {database}"


def busy(people: str) -> str:
    """Say that somebody else is entering something in an account."""
    return f"Another run is entering a release about {people}: run again when it has ended."


def forgotten(people: str) -> str:
    """Say that an account is gone that something was to be entered in."""
    return f"The account of {people} was forgotten meanwhile: run again."


class Accounts(Access):
    """The accounts of a catalog."""

    @contextlib.contextmanager
    def entering(self, people: str) -> Iterator[None]:
        """Let nobody else enter a release about these people meanwhile; who does is waited for.

        Raises ConflictError where somebody has been at it for a minute.
        """
        name = account_lock_name(people, self.location, self._where)
        with locks.held(self._store, name, busy(people), ACCOUNT_WAIT):
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

    def accounts_of(self, identities: Collection[str]) -> dict[str, str | None]:
        """Name the accounts that know people by a table of one of these identities, and the column that tells them."""
        columns = ["account", "identity", "subject"]
        known = self._ask(lambda transaction: transaction.select("account_sources", columns))
        known = [one for one in known if one["identity"] in identities]
        named = {one.id: one.name for one in self.accounts()} if known else {}
        return {named[one["account"]]: one["subject"] for one in known}

    def table_identities(self, table: Relation) -> tuple[str, ...]:
        """List the identities of a table of the engine's database, by its stored name; see `source_identities`."""
        return source_identities(self._engine, str(table), self._database, self._engine.resolve(table))

    def open_account(self, people: People) -> ReleaseAccount:
        """Return the account of these people; where there is none, open one with a key of its own."""

        def write(transaction: Transaction) -> ReleaseAccount:
            where = {"name": people.name}
            if not transaction.select("accounts", ["id"], where):
                drawn = {"id": secrets.randbits(62), "key": secrets.token_hex(KEY_BITS // 8)}
                transaction.insert("accounts", [where | drawn | {"releases": 0, "opened": datetime.now(UTC)}])
            account = transaction.records(ReleaseAccount, "accounts", where)[0]
            sources = transaction.select("account_sources", ["identity"], {"account": account.id})
            new = [one for one in people.identities if {"identity": one} not in sources]
            known_by = {"account": account.id, "subject": people.subject}
            transaction.insert("account_sources", [known_by | {"identity": one} for one in new])
            return account

        with self.entering(people.name):
            return self._connection.do("open the account", write)

    def enter_alone(self, people: People, kind: LineKind, run: str, source: str, about: str) -> None:
        """Enter a line that divides nobody, for good, in a transaction of its own; opens the account if there is none.

        Raises ConflictError where somebody else has been at it for a minute, or forgets the account.
        """
        account = self.open_account(people)

        def write(transaction: Transaction) -> None:
            where = {"id": account.id}
            known = transaction.select("accounts", ["releases"], where)
            if not known:
                raise ConflictError(forgotten(people.name))
            number = known[0]["releases"] + 1
            transaction.update("accounts", where, releases=number)
            line = AccountRelease(account.id, number, kind, run, source, about, datetime.now(UTC))
            transaction.insert("account_releases", [vars(line)])

        with self.entering(people.name):
            self._connection.do("enter the line, so that nothing is out", write)

    def forget_account(self, account: ReleaseAccount) -> None:
        """Drop an account with its key: what it knew can't be known again."""

        def write(transaction: Transaction) -> None:
            transaction.delete("account_persons", {"account": account.id})
            transaction.delete("account_releases", {"account": account.id})
            transaction.delete("account_sources", {"account": account.id})
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
