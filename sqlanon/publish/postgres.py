"""Publishing on PostgreSQL: by renaming where nothing is lost by it, otherwise by replacing the rows in place.

A rename is instant, and it needs the table to itself for that instant. It is not safe for a reader whose snapshot is
older than staging: that reader would find the new table empty (the manual's chapter on MVCC caveats). So older
transactions are waited for; where one does not end, the rows are replaced in place, which every snapshot survives.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from markupsafe import Markup

from sqlanon.errors import AccessError, ConflictError, EngineError, PolicyError, SqlanonError
from sqlanon.publish.base import Grants, How, Publication, Publisher, driver_error, listed
from sqlanon.publish.postgres_belongings import apply_grants, read_belongings, read_grants, restore_belongings, revoke
from sqlanon.sql import MAX_IDENTIFIER_BYTES, Identifier, Relation, Text

_KINDS = {
    "v": "view",
    "m": "materialized view",
    "f": "foreign table",
    "p": "partitioned table",
    "S": "sequence",
    "i": "index",
    "I": "index",
    "c": "composite type",
}
ALTERNATIVE_PATIENCE = 2.0  # seconds for others, where the rows can be replaced in place as well; autovacuum needs one
_POLL = 0.05  # seconds
_MEANINGS = {
    "42P07": "was created by someone else meanwhile; nothing was published.",
    "55P03": "is in use by other sessions; the old release stays. Run again when they end.",
    "40001": "was written by another session; the old release stays. Run again.",
    "40P01": "was written by another session; the old release stays. Run again.",
}


@dataclass(frozen=True)
class Table:
    """A relation of the database, as publishing sees it; the letters are PostgreSQL's relkind and relpersistence."""

    oid: int
    kind: str
    persistence: str
    owner: str
    owned: bool
    owner_can_be_given: bool
    rows_may_be_altered: bool  # by triggers or rules


@dataclass(frozen=True)
class Comparison:
    """What stands between staging and the old release."""

    old: Table
    keepsakes: tuple[str, ...]  # what a rename would lose
    stale: tuple[str, ...]  # materialized views that will show the old rows
    same_columns: bool


class PostgresPublisher(Publisher):
    """See the module."""

    def problems(self, release: Relation, replace: bool) -> list[SqlanonError]:
        if any(len(part.encode()) > MAX_IDENTIFIER_BYTES for part in release.parts):
            return [PolicyError(f"The name {release} has a part longer than {MAX_IDENTIFIER_BYTES} bytes.")]
        found = self._schema_problems(release)
        table = None if found else self._describe(release)
        return found if table is None else found + self._table_problems(release, table, replace)

    def _schema_problems(self, release: Relation) -> list[SqlanonError]:
        schema = Markup("NULL") if release.schema is None else Text(release.schema)
        rows = self.engine.query("publish/describe_schema", schema=schema)
        if not rows:
            return [PolicyError(f"There is no schema for the release {release}; create it first.")]
        ((name, writable),) = rows
        if not writable:
            name = Identifier(name)
            return [
                AccessError(f"The role can't create tables in schema {name}: GRANT CREATE, USAGE ON SCHEMA {name}.")
            ]
        return []

    def _table_problems(self, release: Relation, table: Table, replace: bool) -> list[SqlanonError]:
        if table.kind != "r" or table.persistence == "t":
            what = "temporary table" if table.kind == "r" else _KINDS.get(table.kind, "relation of another kind")
            return [PolicyError(f"{release} is a {what}; a release is a table: choose another name.")]
        found: list[SqlanonError] = []
        if not replace:
            found.append(PolicyError(f"{release} exists; allow it to be replaced (--replace) or choose another name."))
        if not table.owned:
            found.append(AccessError(f"{release} belongs to {Identifier(table.owner)}; only its owner can replace it."))
        referrers = [name for (name,) in self.engine.query("publish/list_referrers", oid=table.oid)]
        if referrers:
            found.append(PolicyError(f"{release} can't be replaced: foreign keys of {listed(referrers)} refer to it."))
        heirs = [name for (name,) in self.engine.query("publish/list_heirs", oid=table.oid)]
        if heirs:
            found.append(PolicyError(f"{release} can't be replaced: {listed(heirs)} inherit from it."))
        return found

    def exists(self, release: Relation) -> bool:
        return self._describe(release) is not None

    def guard(self, staging: Relation) -> Grants:
        table = self._existing(staging)
        grants = read_grants(self.engine, table.oid)
        others = Grants(tuple(grant for grant in grants.entries if grant.grantee != table.owner))
        revoke(self.engine, staging, others)
        return others

    def rename(self, staging: Relation, release: Relation, grants: Grants) -> Publication:
        self._logged(staging)
        try:
            with self.publishing():
                self.engine.run("publish/rename_table", table=staging, name=Identifier(release.name))
                apply_grants(self.engine, release, grants)
        except SqlanonError as error:
            _explain(release, error)
            raise
        return Publication(How.NEW)

    def replace(self, staging: Relation, release: Relation, wait: float) -> Publication:
        self._logged(staging)
        found = self._compare(staging, release)
        if not found.same_columns and found.keepsakes:
            raise _differs(release, found.keepsakes)
        patience = min(wait, ALTERNATIVE_PATIENCE) if found.same_columns else wait
        if not found.keepsakes and self._older_transactions_end(patience):
            try:
                return self._swap(staging, release, patience)
            except ConflictError:
                if not found.same_columns:
                    raise
        elif not found.same_columns:
            raise ConflictError(
                f"{release} was not replaced: transactions older than the new table are still open, and would find it"
                " empty. Run again when they have ended."
            )
        return self._fill(staging, release, wait)

    def _swap(self, staging: Relation, release: Relation, wait: float) -> Publication:
        """Drop the old table and give staging its name, privileges, comments and owner."""
        try:
            with self.publishing():
                self._lock(release, "ACCESS EXCLUSIVE", wait)
                found = self._compare(staging, release)
                if found.keepsakes:
                    raise ConflictError(f"{release} was altered meanwhile; nothing was published. Run again.")
                names = [Identifier(name) for name, *_ in self.engine.query("publish/list_row_type", oid=found.old.oid)]
                self.engine.run("publish/write_privileges", table=release, columns=names)
                belongings = read_belongings(self.engine, found.old.oid, found.old.owner)
                self.engine.run("publish/drop_table", table=release)
                self.engine.run("publish/rename_table", table=staging, name=Identifier(release.name))
                restore_belongings(self.engine, release, self._existing(release).oid, belongings)
        except SqlanonError as error:
            _explain(release, error)
            raise
        return Publication(How.SWAP)

    def _fill(self, staging: Relation, release: Relation, wait: float) -> Publication:
        """Replace the rows of the old table; other snapshots go on seeing all the old rows."""
        try:
            with self.publishing():
                self._lock(release, "SHARE ROW EXCLUSIVE", wait)
                found = self._compare(staging, release)
                if not found.same_columns:
                    raise ConflictError(f"{release} was altered meanwhile; nothing was published. Run again.")
                if found.old.persistence != "p":
                    raise PolicyError(f"{release} is UNLOGGED, a crash would empty it: SET LOGGED first.")
                self.engine.run("publish/keep_scan_order")
                self.engine.run("publish/delete_rows", table=release)
                self.engine.run("publish/insert_rows", table=release, staging=staging)
                self._check_filled(staging, release, found.old.rows_may_be_altered)
                self.engine.run("publish/drop_table", table=staging)
        except SqlanonError as error:
            _explain(release, error)
            raise
        notes = (f"These materialized views show the old rows until REFRESH: {listed(found.stale)}.",)
        return Publication(How.IN_PLACE, notes if found.stale else ())

    def _check_filled(self, staging: Relation, release: Relation, thorough: bool) -> None:
        """Triggers and rules may have dropped or altered rows on their way."""
        self.engine.run("publish/fire_deferred")
        (staged,) = self.engine.query_one("count_rows", table=staging)
        (published,) = self.engine.query_one("count_rows", table=release)
        differences = abs(staged - published)
        if thorough and not differences:
            (differences,) = self.engine.query_one("publish/count_differences", table=release, staging=staging)
        if differences:
            raise ConflictError(
                f"Triggers or rules of {release} altered the rows on their way ({differences} differences); nothing was"
                " published. Disable them, or choose another name."
            )

    def _compare(self, staging: Relation, release: Relation) -> Comparison:
        old, new = self._existing(release), self._existing(staging)
        dependents = self.engine.query("publish/list_dependents", oid=old.oid)
        properties = self.engine.query("publish/list_properties", oid=old.oid, staging=new.oid)
        keepsakes = [*(name for name, _ in dependents), *(name for (name,) in properties)]
        if not old.owner_can_be_given:
            keepsakes.append("its owner")
        columns = [self.engine.query("publish/list_row_type", oid=oid) for oid in (old.oid, new.oid)]
        stale = tuple(name for name, materialized in dependents if materialized)
        return Comparison(old, tuple(keepsakes), stale, columns[0] == columns[1])

    def _describe(self, relation: Relation) -> Table | None:
        rows = self.engine.query("publish/describe_table", name=Text(str(relation)))
        return Table(*rows[0]) if rows else None

    def _existing(self, relation: Relation) -> Table:
        table = self._describe(relation)
        if table is None:
            raise ConflictError(f"{relation} no longer exists; nothing was published.")
        return table

    def _logged(self, staging: Relation) -> None:
        table = self._existing(staging)
        if (table.kind, table.persistence) != ("r", "p"):
            raise EngineError(f"{staging} is not an ordinary, logged table; nothing was published.")

    def _lock(self, relation: Relation, mode: str, wait: float) -> None:
        self.engine.query("publish/set_lock_timeout", milliseconds=max(1, round(wait * 1000)))
        self.engine.run("publish/lock_table", table=relation, mode=Markup(mode))

    def _older_transactions_end(self, wait: float) -> bool:
        """Wait until no transaction of others is left that runs now; whether that came true in time."""
        older = self._transactions()
        deadline = time.monotonic() + wait
        while older and time.monotonic() < deadline:
            time.sleep(_POLL)
            older &= self._transactions()
        return not older

    def _transactions(self) -> set[str]:
        return {name for (name,) in self.engine.query("publish/list_transactions")}


def sqlstate(error: SqlanonError) -> str | None:
    """PostgreSQL's five-character code of what lies behind an error."""
    return getattr(driver_error(error), "sqlstate", None)


def _differs(release: Relation, keepsakes: tuple[str, ...]) -> PolicyError:
    return PolicyError(
        f"{release} has other columns than the new release, and replacing it would lose: {listed(keepsakes)}."
        " Drop these first, or choose another name."
    )


def _explain(release: Relation, error: SqlanonError) -> None:
    """Raise what an error means to publishing, where it means something."""
    meaning = _MEANINGS.get(sqlstate(error) or "")
    if meaning is not None:
        raise ConflictError(f"{release} {meaning}") from error
