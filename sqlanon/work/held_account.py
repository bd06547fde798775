"""The account of some people, held while something about them is entered, and the groups that its persons are in then.

Persons are grouped by everything that was entered: by their class in each release, and by each answer that is about
them or not.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from sqlanon.catalog import Catalog
from sqlanon.catalog.accounts import AccountRelease, LineKind, ReleaseAccount
from sqlanon.engines.base import Engine
from sqlanon.errors import ConflictError
from sqlanon.sql import Relation, Text
from sqlanon.work.workspace import Workspace


@dataclass(frozen=True)
class AccountGroups:
    """The groups of an account's persons, with what is about to be entered.

    groups: a work table `(earlier, class, n, number)`. signatures: one of `(person, signature)`.
    persons, count, smallest, below_k, came, departed: their figures, as of `AccountRelease`.
    """

    groups: Relation
    signatures: Relation
    persons: int
    count: int
    smallest: int
    below_k: int
    came: int
    departed: int


@dataclass(frozen=True)
class AccountSize:
    """The lines of an account, with the one that is about to be entered; of the earlier ones, releases and answers."""

    lines: int
    releases: int
    answers: int


@dataclass(frozen=True)
class HeldAccount:
    """An account that nobody else changes until the transaction of the session ends."""

    session: Engine
    workspace: Workspace
    catalog: Catalog
    account: ReleaseAccount

    def hold(self) -> AccountSize:
        """Hold the account, and count one more line. Raises ConflictError where the account is gone."""
        tables = self.catalog.account_tables
        account = {"account": self.account.id, "accounts": tables["accounts"]}
        self.session.run("work/account/lock_account", **account)
        kinds = {"release": Text(LineKind.RELEASE), "answer": Text(LineKind.ANSWER)}
        size = self.session.query_one("work/account/count_lines", **account, **kinds, lines=tables["account_releases"])
        if not size[0]:
            raise ConflictError(f"The account of {self.account.name} was forgotten meanwhile: run again.")
        return AccountSize(*map(int, size))

    def group(self, members: Relation, k: int, *, is_release: bool = True) -> AccountGroups:
        """Group persons by all that was entered, and by their class among `members`, `(person, class)`, or none.

        is_release: whether who is no member is one whom the newest release lacks.
        """
        joined, groups, signatures = (
            self.workspace.table(f"history_{part}") for part in ("joined", "groups", "signatures")
        )
        of_persons = {"account": self.account.id, "persons": self.catalog.account_tables["account_persons"]}
        self.session.run("work/account/join_members", joined=joined, members=members, **of_persons)
        self.session.run("work/account/create_groups", groups=groups, joined=joined)
        self.session.run(
            "work/account/create_signatures",
            signatures=signatures,
            groups=groups,
            joined=joined,
            is_release=is_release,
        )
        figures = map(int, self.session.query_one("work/account/measure_groups", groups=groups, k=k))
        self.workspace.drop(joined)
        return AccountGroups(groups, signatures, *figures)

    def keep(self, grouped: AccountGroups) -> None:
        """Keep the groups that persons are in from now on."""
        of_persons = {"account": self.account.id, "persons": self.catalog.account_tables["account_persons"]}
        self.session.run("work/account/forget_signatures", **of_persons)
        self.session.run("work/account/keep_signatures", **of_persons, signatures=grouped.signatures)

    def enter(
        self, number: int, grouped: AccountGroups, k: int, kind: LineKind, run: str, source: str, about: str | None
    ) -> None:
        """Enter a line about persons; see `AccountRelease`."""
        of_line = (self.account.id, number, kind, run, source, about, datetime.now(UTC), k)
        moved = (grouped.came, grouped.departed) if kind is LineKind.RELEASE else (None, None)
        counted = (grouped.persons, grouped.count, grouped.smallest, grouped.below_k)
        self.catalog.enter_within(self.session, AccountRelease(*of_line, *counted, *moved))
        self.workspace.drop(grouped.groups, grouped.signatures)
