"""The account of some people, held while something about them is entered, and the groups that its persons are in then.

Persons are grouped by everything that was entered: by their class in each release, and by each answer that is about
them or not.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlanon.catalog import Catalog
from sqlanon.catalog.accounts import AccountRelease, LineKind, ReleaseAccount, forgotten
from sqlanon.engines.base import Engine
from sqlanon.errors import ConflictError
from sqlanon.sql import Relation, Text
from sqlanon.work.workspace import Workspace

COUNTED_LINES: dict[str, Any] = {
    "releases": [Text(LineKind.RELEASE), Text(LineKind.BATCH)],
    "answer": Text(LineKind.ANSWER),
}
"""The kinds of lines that divide persons, as they are counted."""


@dataclass(frozen=True)
class AccountGroups:
    """The groups of an account's persons, with what is about to be entered.

    groups: a work table `(earlier, class, n, number)`. signatures: one of `(person, signature, batch, row_digest)`.
    moved: the persons of a batch, or whose rows leave, beside whom all are in their groups as before; None where all
        are grouped anew.
    persons, count, smallest, below_k, came, departed: their figures, as of `AccountRelease`.
    """

    groups: Relation
    signatures: Relation
    moved: Relation | None
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
class AccountLine:
    """The kind of a line of an account, and its meaning; see `AccountRelease`."""

    kind: LineKind
    run: str
    source: str
    about: str | None


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
        size = self.session.query_one(
            "work/account/count_lines", **account, **COUNTED_LINES, lines=tables["account_releases"]
        )
        if not size[0]:
            raise ConflictError(forgotten(self.account.name))
        return AccountSize(*map(int, size))

    def group(self, members: Relation, k: int, *, is_release: bool = True) -> AccountGroups:
        """Group persons by all that was entered, and by their class among `members`, `(person, class)`, or none.

        is_release: whether who is no member is one whom the newest release lacks.
        """
        joined, groups = self._table("joined"), self._table("groups")
        self.session.run("work/account/join_members", joined=joined, members=members, **self._of_persons)
        self.session.run("work/account/create_groups", groups=groups, joined=joined, first=0)
        return self._grouped(joined, groups, groups, k, None, is_release=is_release)

    def group_batch(self, members: Relation, number: int, k: int) -> AccountGroups:
        """Group the persons of a batch, `(person, class)`, who are in no other; all others stay in their groups.

        number: of the line that is about to be entered. Raises ConflictError where another batch has some of them.
        """
        of_members = {"members": members, **self._of_persons}
        last, taken = self.session.query_one("work/account/find_last_group", **of_members)
        if taken:
            raise ConflictError("Another run has released persons of this batch meanwhile: run again.")
        joined = self._table("joined")
        self.session.run("work/account/join_batch", joined=joined, number=number, **of_members)
        return self._group_moved(joined, int(last), members, k, comes=True)

    def group_leaving(self, members: Relation, number: int, k: int) -> AccountGroups:
        """Group the persons whose rows leave, `(person, signature)`; all others stay in their groups.

        number: of the line that is about to be entered.
        """
        last, _ = self.session.query_one("work/account/find_last_group", members=members, **self._of_persons)
        joined = self._table("joined")
        self.session.run("work/account/join_leaving", joined=joined, members=members, number=number)
        return self._group_moved(joined, int(last), members, k, comes=False)

    def _group_moved(self, joined: Relation, last: int, members: Relation, k: int, *, comes: bool) -> AccountGroups:
        """Number the groups of `members`, who are `joined`, after the last one; all others are in their groups."""
        own, groups = self._table("own_groups"), self._table("groups")
        self.session.run("work/account/create_groups", groups=own, joined=joined, first=last)
        others = {"joined": joined, **self._of_persons}
        self.session.run("work/account/join_groups", groups=groups, own=own, comes=comes, **others)
        grouped = self._grouped(joined, own, groups, k, members)
        self.workspace.drop(own)
        return grouped

    def _grouped(
        self, joined: Relation, own: Relation, groups: Relation, k: int, moved: Relation | None, is_release: bool = True
    ) -> AccountGroups:
        """Number the groups `own` of persons who are `joined`, and measure all `groups`."""
        signatures = self._table("signatures")
        self.session.analyze(joined, own)
        self.session.run(
            "work/account/create_signatures", signatures=signatures, groups=own, joined=joined, is_release=is_release
        )
        figures = map(int, self.session.query_one("work/account/measure_groups", groups=groups, k=k))
        self.workspace.drop(joined)
        return AccountGroups(groups, signatures, moved, *figures)

    def keep(self, grouped: AccountGroups) -> None:
        """Keep the groups that persons are in from now on."""
        if grouped.moved is None:
            self.session.run("work/account/forget_signatures", **self._of_persons)
        else:
            self.session.run("work/account/forget_batch", members=grouped.moved, **self._of_persons)
        self.session.run("work/account/keep_signatures", **self._of_persons, signatures=grouped.signatures)

    def enter(
        self,
        number: int,
        grouped: AccountGroups,
        k: int,
        line: AccountLine,
        rows: int = 0,
        loss: float | None = None,
        counterfeits: int | None = None,
    ) -> None:
        """Enter a line about persons; rows, loss, counterfeits: of a release or a batch; see `AccountRelease`."""
        moves = line.kind is not LineKind.ANSWER
        entered = AccountRelease(
            account=self.account.id,
            number=number,
            **vars(line),
            entered=datetime.now(UTC),
            k=k,
            persons=grouped.persons,
            groups=grouped.count,
            smallest=grouped.smallest,
            below_k=grouped.below_k,
            came=grouped.came if moves else None,
            departed=grouped.departed if moves else None,
            rows=rows,
            loss=loss,
            counterfeits=counterfeits,
        )
        self.catalog.enter_within(self.session, entered)
        self.workspace.drop(grouped.groups, grouped.signatures)

    @property
    def _of_persons(self) -> dict[str, Any]:
        return {"account": self.account.id, "persons": self.catalog.account_tables["account_persons"]}

    def _table(self, part: str) -> Relation:
        return self.workspace.table(f"history_{part}")
