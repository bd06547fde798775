"""Publishing on PostgreSQL: by renaming where nothing is lost by it, otherwise by replacing the rows in place.

A rename is instant, and it needs the table to itself for that instant. It is not safe for a reader whose snapshot is
older than staging: that reader would find the new table empty (the manual's chapter on MVCC caveats). So older
transactions are waited for; where one does not end, the rows are replaced in place, which every snapshot survives.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from markupsafe import Markup

from sqlanon.engines.postgres.belongings import apply_grants, read_belongings, read_grants, restore_belongings, revoke
from sqlanon.engines.publishing import (
    Grants,
    Leaving,
    Publication,
    Publisher,
    PublishMethod,
    driver_error,
    listed,
    loses,
    other_columns,
)
from sqlanon.engines.star import CLASS_NUMBER, Form, Star, drop_old, name_problems, old_tables, put_star
from sqlanon.errors import AccessError, ConflictError, EngineError, PolicyError, SqlanonError
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
    """The differences between staging and the old release."""

    old: Table
    keepsakes: tuple[str, ...]  # what a rename would lose
    stale: tuple[str, ...]  # materialized views that will show the old rows
    same_columns: bool


class PostgresPublisher(Publisher):
    """See the module."""

    def problems(self, release: Relation, replace: bool, star: bool = False) -> list[SqlanonError]:
        if any(len(part.encode()) > MAX_IDENTIFIER_BYTES for part in release.parts):
            return [PolicyError(f"The name {release} has a part longer than {MAX_IDENTIFIER_BYTES} bytes.")]
        problems = self._schema_problems(release)
        if problems:
            return problems
        table = self._describe(release)
        form = self._form_of(release, table)
        if star:
            tables_of_star = Star.of(release).tables if form is not Form.STAR else ()
            problems += name_problems(release, [one for one in tables_of_star if self._describe(one) is not None])
        if table is not None and form is Form.STAR:
            problems += self._star_problems(release, table, replace, star)
        elif table is not None:
            problems += self._table_problems(release, table, replace)
            problems += self._change_problems(release, table, star) if star and not problems else []
        return problems

    def _schema_problems(self, release: Relation) -> list[SqlanonError]:
        schema = None if release.schema is None else Text(release.schema)
        rows = self.engine.query("work/publish/describe_schema", schema=schema)
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
        problems = _refusals(release, table, replace)
        referrers = [name for (name,) in self.engine.query("work/publish/list_referrers", oid=table.oid)]
        if referrers:
            problems.append(
                PolicyError(f"{release} can't be replaced: foreign keys of {listed(referrers)} refer to it.")
            )
        heirs = [name for (name,) in self.engine.query("work/publish/list_heirs", oid=table.oid)]
        if heirs:
            problems.append(PolicyError(f"{release} can't be replaced: {listed(heirs)} inherit from it."))
        return problems

    def _star_problems(self, release: Relation, view: Table, replace: bool, star: bool) -> list[SqlanonError]:
        problems = _refusals(release, view, replace)
        for table in Star.of(release).tables:
            problems += self._table_problems(table, self._existing(table), replace=True)
        return problems or self._change_problems(release, view, star)

    def _change_problems(self, release: Relation, old: Table, star: bool) -> list[SqlanonError]:
        """List the losses with the tables of a release that gives way to a star, or is one."""
        form = Form.TABLE if old.kind == "r" else Form.STAR
        tables = old_tables(Star.of(release), form)
        missing = self._list_missing(old, form, dict(zip(tables, tables, strict=True)))
        missing += [] if star or form is Form.TABLE else self._attached(old)
        return [loses(release, missing)] if missing else []

    def exists(self, release: Relation) -> bool:
        return self._describe(release) is not None

    def form(self, release: Relation) -> Form:
        return self._form_of(release, self._describe(release))

    def _form_of(self, release: Relation, table: Table | None) -> Form:
        if table is None or table.kind != "v":
            return Form.NOTHING if table is None else Form.TABLE if table.kind == "r" else Form.OTHER
        star = Star.of(release)
        names = {"rows": Text(star.rows.name), "classes": Text(star.classes.name), "number": Text(CLASS_NUMBER)}
        return Form.STAR if self.engine.query("work/publish/find_star", oid=table.oid, **names) else Form.OTHER

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
                self.engine.run("work/publish/rename_table", table=staging, name=Identifier(release.name))
                apply_grants(self.engine, release, grants)
        except SqlanonError as error:
            _explain(release, error)
            raise
        return Publication(PublishMethod.NEW)

    def replace(self, staging: Relation, release: Relation, wait: float) -> Publication:
        self._logged(staging)
        compared = self._compare(staging, release)
        if not compared.same_columns and compared.keepsakes:
            raise _differs(release, compared.keepsakes)
        patience = min(wait, ALTERNATIVE_PATIENCE) if compared.same_columns else wait
        if not compared.keepsakes and self._older_transactions_end(patience):
            try:
                return self._swap(staging, release, patience)
            except ConflictError:
                if not compared.same_columns or self.engine.in_transaction:  # which the conflict has ended
                    raise
        elif not compared.same_columns:
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
                compared = self._compare(staging, release)
                if compared.keepsakes:
                    raise ConflictError(f"{release} was altered meanwhile; nothing was published. Run again.")
                names = [
                    Identifier(name)
                    for name, *_ in self.engine.query("work/publish/list_row_type", oid=compared.old.oid)
                ]
                self.engine.run("work/publish/write_privileges", table=release, columns=names)
                belongings = read_belongings(self.engine, compared.old.oid, compared.old.owner)
                self.engine.run("work/publish/drop_table", table=release)
                self.engine.run("work/publish/rename_table", table=staging, name=Identifier(release.name))
                restore_belongings(self.engine, release, self._existing(release).oid, belongings)
        except SqlanonError as error:
            _explain(release, error)
            raise
        return Publication(PublishMethod.SWAP)

    def change(self, staging: Relation | Star, release: Star, grants: Grants, wait: float) -> Publication:
        name, old = release.view, self.form(release.view)
        for table in staging.tables if isinstance(staging, Star) else (staging,):
            self._logged(table)
        if old is not Form.NOTHING and not self._older_transactions_end(wait):
            raise ConflictError(
                f"{name} was not replaced: transactions older than the new table are still open, and would find it"
                " empty. Run again when they have ended."
            )
        try:
            with self.publishing():
                if old is not Form.NOTHING:
                    self._lock(name, "ACCESS EXCLUSIVE", wait)
                if self.form(name) is not old or old is Form.OTHER:
                    raise ConflictError(f"{name} was altered meanwhile; nothing was published. Run again.")
                stale = self._change(staging, release, old, grants)
        except SqlanonError as error:
            _explain(name, error)
            raise
        return Publication(PublishMethod.NEW if old is Form.NOTHING else PublishMethod.SWAP, _stale_notes(stale))

    def _change(self, staging: Relation | Star, release: Star, old: Form, grants: Grants) -> tuple[str, ...]:
        """Put the new relations in the place of the old ones; the materialized views that show the old rows."""
        if old is Form.NOTHING:
            self._put(staging, release, old, keeps_view=False)
            apply_grants(self.engine, release.view, grants)
            return ()
        compared = self._compare(staging.view if isinstance(staging, Star) else staging, release.view)
        keeps_view = old is Form.STAR and isinstance(staging, Star) and compared.same_columns
        self._refuse_losses(staging, release, compared.old, old, keeps_view=keeps_view)
        if old is Form.TABLE:
            columns = [
                Identifier(name) for name, *_ in self.engine.query("work/publish/list_row_type", oid=compared.old.oid)
            ]
            self.engine.run("work/publish/write_privileges", table=release.view, columns=columns)
        belongings = read_belongings(self.engine, compared.old.oid, compared.old.owner)
        self._put(staging, release, old, keeps_view=keeps_view)
        for table in release.tables if isinstance(staging, Star) else ():  # the view reads them as its owner
            self.engine.run("work/publish/set_owner", table=table, owner=Identifier(compared.old.owner))
        if not keeps_view:
            oid, is_view = self._existing(release.view).oid, isinstance(staging, Star)
            restore_belongings(self.engine, release.view, oid, belongings, is_view=is_view)
        return compared.stale

    def _put(self, staging: Relation | Star, release: Star, old: Form, *, keeps_view: bool) -> None:
        if isinstance(staging, Star):
            put_star(self.engine, staging, release, old, keeps_view=keeps_view)
        else:
            drop_old(self.engine, release, old)
            self.engine.run("work/publish/rename_table", table=staging, name=Identifier(release.view.name))

    def _refuse_losses(
        self, staging: Relation | Star, release: Star, old: Table, form: Form, *, keeps_view: bool
    ) -> None:
        """Refuse to drop what people attached to the old release; a view that stays keeps what is its own."""
        new = staging.tables if isinstance(staging, Star) else (staging, staging)
        missing = self._list_missing(old, form, dict(zip(old_tables(release, form), new, strict=False)))
        missing += [] if keeps_view or form is Form.TABLE else self._attached(old)
        if missing:
            raise loses(release.view, missing)

    def _list_missing(self, old: Table, form: Form, tables: Mapping[Relation, Relation]) -> list[str]:
        """List what `tables` of a release have that the new ones beside them would not, and the options of its view."""
        missing = [] if old.owner_can_be_given else ["its owner"]
        if form is Form.STAR:
            missing += [name for (name,) in self.engine.query("work/publish/list_view_properties", oid=old.oid)]
        for table, new in tables.items():
            existing, staged = self._existing(table), self._existing(new)
            missing += self._attached(existing, view=old.oid)
            missing += [
                n for (n,) in self.engine.query("work/publish/list_properties", oid=existing.oid, staging=staged.oid)
            ]
        return missing

    def _attached(self, old: Table, view: int = 0) -> list[str]:
        """List the relations that depend on a table or view, but for a view that reads it."""
        return [name for name, _ in self.engine.query("work/publish/list_dependents", oid=old.oid, own_view=view)]

    def _fill(self, staging: Relation, release: Relation, wait: float) -> Publication:
        """Replace the rows of the old table; other snapshots go on seeing all the old rows."""
        try:
            with self.publishing():
                self._lock(release, "SHARE ROW EXCLUSIVE", wait)
                compared = self._compare(staging, release)
                if not compared.same_columns:
                    raise ConflictError(f"{release} was altered meanwhile; nothing was published. Run again.")
                self._require_logged(release, compared.old)
                self.engine.run("work/publish/keep_scan_order")
                self.engine.run("work/publish/delete_rows", table=release)
                self.engine.run("work/publish/insert_rows", table=release, staging=staging)
                self._check_filled(staging, release, compared.old.rows_may_be_altered)
                self.engine.run("work/publish/drop_table", table=staging)
        except SqlanonError as error:
            _explain(release, error)
            raise
        return Publication(PublishMethod.IN_PLACE, (*_stale_notes(compared.stale), vacuum_note(release)))

    def add(self, staging: Relation, release: Relation, wait: float) -> Publication:
        self._logged(staging)
        try:
            with self.publishing():
                self._lock(release, "SHARE ROW EXCLUSIVE", wait)
                compared = self._compare(staging, release)
                if not compared.same_columns:
                    raise other_columns(release)
                self._require_logged(release, compared.old)
                if compared.old.rows_may_be_altered:
                    raise PolicyError(f"Triggers or rules of {release} may alter rows that are added: disable them.")
                self.engine.run("work/publish/keep_scan_order")
                self.engine.run("work/publish/insert_rows", table=release, staging=staging)
                self.engine.run("work/publish/drop_table", table=staging)
        except SqlanonError as error:
            _explain(release, error)
            raise
        return Publication(PublishMethod.ADDED, _stale_notes(compared.stale))

    def remove(self, release: Relation, leaving: Leaving, wait: float = 10.0) -> Publication:
        try:
            with self.engine.transaction():
                self._lock(release, "SHARE ROW EXCLUSIVE", wait)
                old = self._existing(release)
                problems = self._table_problems(release, old, replace=True)
                if problems:
                    raise problems[0]
                if old.rows_may_be_altered:
                    raise PolicyError(f"Triggers or rules of {release} may alter rows that leave: disable them.")
                self._remove(release, leaving)
        except SqlanonError as error:
            _explain(release, error)
            raise
        dependents = self.engine.query("work/publish/list_dependents", oid=old.oid, own_view=0)
        stale = tuple(name for name, materialized in dependents if materialized)
        return Publication(PublishMethod.REMOVED, _stale_notes(stale))

    def _require_logged(self, release: Relation, table: Table) -> None:
        if table.persistence != "p":
            raise PolicyError(f"{release} is UNLOGGED, a crash would empty it: SET LOGGED first.")

    def _check_filled(self, staging: Relation, release: Relation, thorough: bool) -> None:
        """Triggers and rules may have dropped or altered rows on their way."""
        self.engine.run("work/publish/fire_deferred")
        (staged,) = self.engine.query_one("count_rows", table=staging)
        (published,) = self.engine.query_one("count_rows", table=release)
        differences = abs(staged - published)
        if thorough and not differences:
            (differences,) = self.engine.query_one("work/publish/count_differences", table=release, staging=staging)
        if differences:
            raise ConflictError(
                f"Triggers or rules of {release} altered the rows on their way ({differences} differences); nothing was"
                " published. Disable them, or choose another name."
            )

    def _compare(self, staging: Relation, release: Relation) -> Comparison:
        old, new = self._existing(release), self._existing(staging)
        dependents = self.engine.query("work/publish/list_dependents", oid=old.oid, own_view=0)
        properties = self.engine.query("work/publish/list_properties", oid=old.oid, staging=new.oid)
        keepsakes = [*(name for name, _ in dependents), *(name for (name,) in properties)]
        if not old.owner_can_be_given:
            keepsakes.append("its owner")
        columns = [self.engine.query("work/publish/list_row_type", oid=oid) for oid in (old.oid, new.oid)]
        stale = tuple(name for name, materialized in dependents if materialized)
        return Comparison(old, tuple(keepsakes), stale, columns[0] == columns[1])

    def _describe(self, relation: Relation) -> Table | None:
        rows = self.engine.query("work/publish/describe_table", name=Text(str(relation)))
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
        self.engine.query("work/publish/set_lock_timeout", milliseconds=max(1, round(wait * 1000)))
        self.engine.run("work/publish/lock_table", table=relation, mode=Markup(mode))

    def _older_transactions_end(self, wait: float) -> bool:
        """Wait until no transaction of others is left that runs now; whether that came true in time."""
        older = self._transactions()
        deadline = time.monotonic() + wait
        while older and time.monotonic() < deadline:
            time.sleep(_POLL)
            older &= self._transactions()
        return not older

    def _transactions(self) -> set[str]:
        return {name for (name,) in self.engine.query("work/publish/list_transactions")}


def sqlstate(error: SqlanonError) -> str | None:
    """PostgreSQL's five-character code of what lies behind an error."""
    return getattr(driver_error(error), "sqlstate", None)


def _refusals(release: Relation, old: Table, replace: bool) -> list[SqlanonError]:
    """List the reasons that forbid to replace anything."""
    refusals: list[SqlanonError] = []
    if not replace:
        refusals.append(PolicyError(f"{release} exists; allow it to be replaced (--replace) or choose another name."))
    if not old.owned:
        refusals.append(AccessError(f"{release} belongs to {Identifier(old.owner)}; only its owner can replace it."))
    return refusals


def vacuum_note(release: Relation) -> str:
    """Say that the old rows of a release take room still, and how that ends."""
    return (
        f"The rows of {release} were replaced in place, and the old ones take room still: VACUUM (ANALYZE) {release};"
        " frees it once older transactions have ended. Autovacuum does so by and by."
    )


def _stale_notes(stale: tuple[str, ...]) -> tuple[str, ...]:
    return (f"These materialized views show the old rows until REFRESH: {listed(stale)}.",) if stale else ()


def _differs(release: Relation, keepsakes: tuple[str, ...]) -> PolicyError:
    return PolicyError(
        f"{release} has other columns than the new release, and replacing it would lose: {listed(keepsakes)}."
        " Drop these first, or choose another name."
    )


def _explain(release: Relation, error: SqlanonError) -> None:
    """Raise what an error means to publishing, where it means something."""
    meaning = _MEANINGS.get(sqlstate(error) or "")
    if meaning is not None:
        holders = error.holders if isinstance(error, ConflictError) else None
        raise ConflictError(f"{release} {meaning}" + (f" Now {holders}." if holders else ""), holders) from error
