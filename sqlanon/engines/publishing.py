"""Publishing on every engine: the parts that differ are the methods of a `Publisher`; none of them knows of runs."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from sqlanon.engines.base import Engine
from sqlanon.engines.star import Form, Star
from sqlanon.errors import ConflictError, PolicyError, SqlanonError
from sqlanon.sql import Relation
from sqlanon.support.own_parts import load_part

STAGED_AS = "sqlanon_staging_"  # what the names of tables beside releases begin with


class PublishMethod(StrEnum):
    """In which way a staging relation became the release."""

    NEW = "new"  # there was no release; staging was renamed
    SWAP = "swap"  # the old table was dropped and staging renamed, in one transaction
    IN_PLACE = "in place"  # the old table's rows were replaced, in one transaction
    ADDED = "added"  # the rows were added to those of the old table, in one transaction
    REMOVED = "removed"  # rows of the old table were deleted, in one transaction


@dataclass(frozen=True)
class Publication:
    """The result of publishing; `notes` are for people (such as a materialized view that still shows the old rows)."""

    how: PublishMethod
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Grant:
    """One privilege on a table, or on one of its columns; a grantee of None is PUBLIC."""

    grantee: str | None
    privilege: str
    grantable: bool
    column: str | None = None


@dataclass(frozen=True)
class Grants:
    """The privileges that others would have had on staging, given back when it is published."""

    entries: tuple[Grant, ...] = ()


Record = Callable[[Engine], None]


@dataclass(frozen=True)
class LeavingRows:
    """Rows that leave a release: a relation `(place)` of where they are stored, and how many they are."""

    places: Relation
    count: int


Leaving = Callable[[Engine], LeavingRows]
"""Finds the rows that leave a release which nobody else changes until the transaction of the session ends."""


def nothing(_engine: Engine) -> None:
    """Record nothing."""


class Publisher(ABC):
    """Publishing on one engine. Both relations are siblings: they lie in the same catalog and schema."""

    def __init__(self, engine: Engine, record: Record = nothing) -> None:
        """`record` is called in the transaction that publishes, when all else is done."""
        self.engine = engine
        self._record = record

    @contextlib.contextmanager
    def publishing(self) -> Iterator[None]:
        """The transaction that publishes."""
        with self.engine.transaction():
            yield
            self._record(self.engine)

    @abstractmethod
    def problems(self, release: Relation, replace: bool, star: bool = False) -> list[SqlanonError]:
        """Everything that forbids publishing under this name, found without changing anything.

        star: the release is to be a view of two tables.
        """

    @abstractmethod
    def exists(self, release: Relation) -> bool:
        """Tell whether there is a table or a view of this name."""

    @abstractmethod
    def form(self, release: Relation) -> Form:
        """Return the form of the relation of this name."""

    def staging_of(self, release: Relation, token: str) -> Relation:
        """Name the table, beside the release, that is built and verified before it takes the release's place.

        token: tells the runs that write this release apart.
        """
        return release.sibling(STAGED_AS + token)

    def is_published(self, staging: Relation) -> bool:
        """Tell whether a staging table holds the rows of a release that readers see, so that it must stay."""
        del staging
        return False

    def rows_of(self, release: Relation) -> Relation:
        """Name the table whose rows a release shows, which stays the same one while it is read."""
        return release

    @abstractmethod
    def guard(self, staging: Relation) -> Grants:
        """Take every privilege on staging from everyone but its owner, and remember what was taken."""

    @abstractmethod
    def rename(self, staging: Relation, release: Relation, grants: Grants) -> Publication:
        """Publish under a name that nothing has."""

    @abstractmethod
    def change(self, staging: Relation | Star, release: Star, grants: Grants, wait: float) -> Publication:
        """Publish a star, or a table in the place of one, whatever has the name."""

    @abstractmethod
    def replace(self, staging: Relation, release: Relation, wait: float) -> Publication:
        """Publish in the place of an existing table."""

    def add(self, staging: Relation, release: Relation, wait: float) -> Publication:
        """Add the rows to those of an existing table of the same columns; refused where there are no transactions."""
        del staging, release, wait
        raise PolicyError(self.engine.traits.has_transactions.lacking)

    def remove(self, release: Relation, leaving: Leaving, wait: float = 10.0) -> Publication:
        """Delete rows of an existing table; nothing is recorded where none leave.

        Refused where there are no transactions.
        """
        del release, leaving, wait
        raise PolicyError(self.engine.traits.has_transactions.lacking)

    def _remove(self, table: Relation, leaving: Leaving) -> None:
        """Delete rows of a table that nobody else changes, and record that, in the transaction that is open."""
        (before,) = self.engine.query_one("count_rows", table=table)
        rows = leaving(self.engine)
        if not rows.count:
            return
        self.engine.run("work/publish/delete_places", table=table, places=rows.places)
        (after,) = self.engine.query_one("count_rows", table=table)
        if before - after != rows.count:
            raise ConflictError(
                f"Of {table} {rows.count:,} rows were to leave, and {before - after:,} would: row security, triggers or"
                " rules keep the others. The release stays as it was."
            )
        self._record(self.engine)


def publisher_of(engine: Engine, record: Record = nothing) -> Publisher:
    """Make the publisher on this engine; see `Publisher` for `record`."""
    publisher: Publisher = load_part(engine.traits.publisher)(engine, record)
    return publisher


def listed(names: Sequence[str], limit: int = 20) -> str:
    """A list of names for a message, cut where it grows long."""
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


def driver_error(error: SqlanonError) -> BaseException | None:
    """Return the driver's error behind one of our errors."""
    return error.__cause__ or error.__context__


def other_columns(release: Relation) -> PolicyError:
    """The error of rows that can't be added to a release."""
    return PolicyError(
        f"{release} has other columns than the rows that are to be added to it; nothing was published. Give it"
        " the columns that it had."
    )


def loses(release: Relation, keepsakes: Sequence[str]) -> PolicyError:
    """The error of a release whose tables are dropped, as one layout gives way to another or a star to a star."""
    return PolicyError(
        f"Replacing {release} would lose: {listed(keepsakes)}. Drop these first, or choose another name."
    )
