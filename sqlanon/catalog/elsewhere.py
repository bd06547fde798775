"""Other catalogs that a role may read: what they hold of a source binds as what its own catalog holds.

Another name in a policy opens another catalog, and a source's history, budget and releases stay its own all the same.
So gates look for them in every catalog of the source's database and of the catalog's.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Literal, TypeVar

from sqlanon.catalog.connection import Access, Transaction
from sqlanon.catalog.location import (
    CatalogLocation,
    KnownCatalog,
    catalog_marks,
    database_of,
    is_same_database,
    known_catalog,
    place_of,
)
from sqlanon.catalog.migrate import revisions
from sqlanon.catalog.sources import (
    SourceIdentity,
    identify_joined,
    identify_recorded,
    identify_source,
    source_identities,
)
from sqlanon.catalog.tables import VERSION_TABLE
from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.engines.driver import Row, driver_of
from sqlanon.errors import AccessError, ConflictError, EngineError
from sqlanon.sql import Relation

Owner = Literal["history", "budget"]
Result = TypeVar("Result")


@dataclasses.dataclass(frozen=True)
class Database:
    """A database whose catalogs are looked into; `has_source`: it holds the source.

    name: the database; None where it holds the catalog itself.
    """

    transaction: Transaction
    name: str | None
    has_source: bool


class Elsewhere(Access):
    """The catalogs beside this one."""

    def others(self, source: str | None = None) -> list[KnownCatalog]:
        """List the other catalogs, also those that the role may not read; source: a table as SQL writes it."""

        def read_there(database: Database) -> list[KnownCatalog]:
            return self._others(database, source if database.has_source else None)

        return self._in_each_database(read_there)

    def unread(self, source: str) -> list[str]:
        """List why what is known of a source is not known whole: catalogs that can't be read, one sentence each.

        On PostgreSQL a catalog counts if its owner may read the table. source: a table as SQL writes it, or a file.
        """
        table = source if source.endswith('"') else None
        return [_unread(one, source) for one in self.others(table) if one.problem is not None and one.concerned]

    def require_known(self, source: str) -> None:
        """Refuse to decide by what is known of a source where a catalog that may know more can't be read.

        Raises AccessError with the remedy.
        """
        if problems := self.unread(source):
            raise AccessError("\n".join(problems))

    def holders(self, source: str, relation: Relation | None) -> list[CatalogLocation]:
        """List the other catalogs that hold a release, a history or a budget of a source.

        source: as a run records it. relation: the resolved table; None of a file.
        """
        identities = source_identities(self._engine, source, self._database, relation)
        wanted = identify_source(source, self._database)
        released = self._read_elsewhere("releases", lambda transaction: self._of_source(transaction, wanted))
        owned = self._owners_elsewhere("history") + self._owners_elsewhere("budget")
        holding = [location for location, _ in released] + [
            location for location, owners in owned if any(one in owners for one in identities)
        ]
        return list(dict.fromkeys(holding))

    def _of_source(self, transaction: Transaction, wanted: SourceIdentity) -> list[Row]:
        """Read the runs of a catalog that released a source."""
        bound = {} if wanted.is_file else {"name": wanted.name, "database": wanted.database}
        return [
            row
            for row in transaction.rows("select_released", bound, of_file=wanted.is_file)
            if identify_recorded(row["source"], row["database"], row["recoding"]) == wanted
            or wanted in identify_joined(row["database"], row["recoding"])
        ]

    def _owners_elsewhere(self, kind: Owner) -> list[tuple[CatalogLocation, dict[str, str]]]:
        """Read the history, or the budget, that each identity of a source has in each other catalog."""
        return self._read_elsewhere(f"{kind}_sources", lambda transaction: [owners_of_sources(transaction, kind)])

    def _read_elsewhere(
        self, table: str, read: Callable[[Transaction], list[Result]]
    ) -> list[tuple[CatalogLocation, Result]]:
        """Read from each other catalog that may be read, and that has a table."""

        def read_there(database: Database) -> list[tuple[CatalogLocation, Result]]:
            known = [one for one in self._others(database, None) if one.problem is None and table in one.holds]
            return [(one.location, row) for one in known for row in read(database.transaction.at(one.location.tables))]

        return self._in_each_database(read_there)

    def _others(self, database: Database, source: str | None) -> list[KnownCatalog]:
        rows = database.transaction.rows("list_catalogs", **catalog_marks(source))
        known = [known_catalog(tuple(row.values())) for row in rows]
        others = [one for one in known if database.name is not None or not self._is_own(one.location)]
        return [_checked(database.transaction, one.in_database(database.name)) for one in others]

    def _is_own(self, location: CatalogLocation) -> bool:
        fold = self._store.traits.fold
        return (fold(location.schema), location.prefix) == (fold(self.location.schema), self.location.prefix)

    def _in_each_database(self, work: Callable[[Database], list[Result]]) -> list[Result]:
        """Do work in the database of the catalog, then in others: of the source, and where a catalog is by default."""
        is_one = is_same_database(self._engine, self._store)
        results = self._ask(lambda transaction: work(Database(transaction, None, is_one)))
        if not is_one and self._engine.traits.keeps_catalog:
            with reading(self._engine) as transaction:
                results += work(Database(transaction, database_of(self._engine), True))
        for url in self.usual:
            with _opened(url) as engine, reading(engine) as transaction:
                results += work(Database(transaction, database_of(engine), False))
        return results


@contextlib.contextmanager
def _opened(url: str) -> Iterator[Engine]:
    """Open a database that may hold another catalog.

    Raises ConflictError where another process holds it.
    """
    try:
        engine = connect(url)
    except ConflictError as error:
        raise ConflictError(
            f"Another catalog may know the source, and it can't be read now: {error} Run the command again after that."
        ) from None
    with engine:
        yield engine


@contextlib.contextmanager
def reading(engine: Engine) -> Iterator[Transaction]:
    """Open a transaction that reads the catalogs of a database, in a session of its own."""
    with contextlib.closing(engine.fork()) as session:
        driver = driver_of(session)
        try:
            with driver.transaction():
                yield Transaction(driver, session.render, {})
        except driver.errors as error:
            raise EngineError(f"The other catalogs could not be read: {type(error).__name__}.") from error


def _checked(transaction: Transaction, one: KnownCatalog) -> KnownCatalog:
    """Add the reason why a catalog that may be read is not: it holds code of others, or is of a newer version."""
    if one.problem is not None:
        return one
    revision = transaction.at(one.location.tables).select(VERSION_TABLE, ["version_num"])
    if revision and revision[0]["version_num"] not in revisions():
        return dataclasses.replace(one, problem="A newer version of sqlanon made it: upgrade sqlanon.")
    if one.owner is not None and (code := transaction.rows("list_foreign_code", **place_of(one.location))):
        seen = sorted(row["problem"] for row in code)[0]
        return dataclasses.replace(one, problem=f"It is no plain catalog: {seen}. Have an administrator drop that.")
    return one


def owners_of_sources(transaction: Transaction, kind: Owner) -> dict[str, str]:
    """Read the history, or the budget, that each identity of a source belongs to, in the order of their addition."""
    rows = transaction.select(f"{kind}_sources", ["identity", kind], None, ["added", "identity"])
    return {row["identity"]: row[kind] for row in rows}


def add_sources(transaction: Transaction, kind: Owner, name: str, sources: Sequence[str], now: datetime) -> None:
    """Let a history, or a budget, know the identities of its source that are new."""
    known = owners_of_sources(transaction, kind)
    new = [{"identity": one, kind: name, "added": now} for one in sources if one not in known]
    transaction.insert(f"{kind}_sources", new)


def _unread(one: KnownCatalog, source: str) -> str:
    about = "may know" if one.owner is None else f"belongs to role {one.owner}, who may read"
    return f"The catalog in schema {one.location.shown} can't be read, and it {about} {source}. {one.problem}"
