"""Publishing on DuckDB: views hold on to names alone, so a table is dropped and staging renamed in one transaction.

Indexes, constraints and defaults belong to the table itself: where the old one has any, its rows are replaced in place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import duckdb

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
from sqlanon.errors import AccessError, ConflictError, PolicyError, SqlanonError
from sqlanon.sql import Identifier, Relation, Text

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")  # a name that is written without quotes
_NAME = rf'(?:"(?:[^"]|"")+"|{_PLAIN.pattern})'


class DuckDBPublisher(Publisher):
    """See the module."""

    def problems(self, release: Relation, replace: bool, star: bool = False) -> list[SqlanonError]:
        schema = Text(release.schema) if release.schema else None
        catalog = Text(release.catalog) if release.catalog else None
        schemas = self.engine.query("work/publish/describe_schema", catalog=catalog, schema=schema)
        if not schemas:
            return [PolicyError(f"There is no schema for the release {release}; create it first.")]
        problems: list[SqlanonError] = []
        if schemas[0][0]:
            problems.append(AccessError(f"The database of {release} is open for reading only."))
        there = self.engine.resolve(release)
        known, form = there or release, self._form_of(there)
        if star:
            tables_of_star = Star.of(known).tables if form is not Form.STAR else ()
            problems += name_problems(known, [table for table in tables_of_star if self.exists(table)])
        if form is Form.NOTHING:
            return problems
        if form is Form.OTHER:
            return [
                *problems,
                PolicyError(f"{release} is a view or temporary; a release is a table: choose another."),
            ]
        if not replace:
            problems.append(
                PolicyError(f"{release} exists; allow it to be replaced (--replace) or choose another name.")
            )
        tables = Star.of(known).tables if form is Form.STAR else (known,)
        referrers = [
            n for table in tables for (n,) in self.engine.query("work/publish/list_referrers", **_names(table))
        ]
        if referrers:
            problems.append(
                PolicyError(f"{release} can't be replaced: foreign keys of {listed(referrers)} refer to it.")
            )
        missing = self._keepsakes(tables) if star or form is Form.STAR else []
        return [*problems, loses(release, missing)] if missing else problems

    def exists(self, release: Relation) -> bool:
        return self.engine.resolve(release) is not None

    def form(self, release: Relation) -> Form:
        return self._form_of(self.engine.resolve(release))

    def _form_of(self, known: Relation | None) -> Form:
        if known is None:
            return Form.NOTHING
        if self.engine.query("work/publish/describe_table", **_names(known)):
            return Form.TABLE
        parts = {"rows": Text(Star.of(known).rows.name), "classes": Text(Star.of(known).classes.name)}
        definitions = self.engine.query("work/publish/find_star", **_names(known), **parts, number=Text(CLASS_NUMBER))
        return Form.STAR if any(_joins_only(text, Star.of(known)) for (text,) in definitions) else Form.OTHER

    def _keepsakes(self, tables: Sequence[Relation]) -> list[str]:
        """List the belongings of tables that would be lost with them."""
        return [
            name for table in tables for (name,) in self.engine.query("work/publish/list_dependents", **_names(table))
        ]

    def guard(self, staging: Relation) -> Grants:  # noqa: ARG002 - see below
        """DuckDB has no privileges: whoever opens the file reads all of it."""
        return Grants()

    def rename(self, staging: Relation, release: Relation, grants: Grants) -> Publication:  # noqa: ARG002 - none
        try:
            with self.publishing():
                self.engine.run("work/publish/rename_table", table=staging, name=Identifier(release.name))
        except SqlanonError as error:
            _explain(release, error)
            raise
        self._checkpoint(staging)
        return Publication(PublishMethod.NEW)

    def change(self, staging: Relation | Star, release: Star, grants: Grants, wait: float) -> Publication:  # noqa: ARG002 - no locks
        name = release.view
        old = self.form(name)
        if old is Form.OTHER:
            raise ConflictError(f"{name} was altered meanwhile; nothing was published. Run again.")
        try:
            with self.publishing():
                self._change(staging, release, old)
        except SqlanonError as error:
            _explain(name, error)
            raise
        self._checkpoint(name)
        return Publication(PublishMethod.NEW if old is Form.NOTHING else PublishMethod.SWAP)

    def _change(self, staging: Relation | Star, release: Star, old: Form) -> None:
        missing = self._keepsakes(old_tables(release, old))
        if missing:
            raise loses(release.view, missing)
        own = {release.view, staging.view if isinstance(staging, Star) else staging}
        views = [] if old is Form.NOTHING else [view for view in self._working_views() if view not in own]
        comments = list(self.engine.query("work/publish/list_comments", **_names(release.view)))
        if isinstance(staging, Star):
            put_star(self.engine, staging, release, old, keeps_view=old is Form.STAR)
        else:
            drop_old(self.engine, release, old)
            self.engine.run("work/publish/rename_table", table=staging, name=Identifier(release.view.name))
        self._restore_comments(release.view, comments, is_view=isinstance(staging, Star))
        self._refuse_broken(release.view, views)

    def replace(self, staging: Relation, release: Relation, wait: float) -> Publication:  # noqa: ARG002 - no locks
        try:
            with self.publishing():
                old = self._existing(release)
                how = self._replace(self._existing(staging), old)
        except SqlanonError as error:
            _explain(release, error)
            raise
        self._checkpoint(old)
        return Publication(how)

    def _replace(self, staging: Relation, old: Relation) -> PublishMethod:
        keepsakes = [name for (name,) in self.engine.query("work/publish/list_dependents", **_names(old))]
        same_columns = self._row_type(staging) == self._row_type(old)
        if not keepsakes:
            self._swap(staging, old, check_views=not same_columns)
            return PublishMethod.SWAP
        if not same_columns:
            raise PolicyError(
                f"{old} has other columns than the new release, and replacing it would lose: {listed(keepsakes)}."
                " Drop these first, or choose another name."
            )
        self.engine.run("work/publish/delete_rows", table=old)
        self.engine.run("work/publish/insert_rows", table=old, staging=staging)
        self.engine.run("work/publish/drop_table", table=staging)
        return PublishMethod.IN_PLACE

    def add(self, staging: Relation, release: Relation, wait: float) -> Publication:  # noqa: ARG002 - no locks
        try:
            with self.publishing():
                old, new = self._existing(release), self._existing(staging)
                if self._row_type(new) != self._row_type(old):
                    raise other_columns(release)
                self.engine.run("work/publish/insert_rows", table=old, staging=new)
                self.engine.run("work/publish/drop_table", table=new)
        except SqlanonError as error:
            _explain(release, error)
            raise
        self._checkpoint(old)
        return Publication(PublishMethod.ADDED)

    def remove(self, release: Relation, leaving: Leaving, wait: float = 10.0) -> Publication:  # noqa: ARG002 - no locks
        try:
            with self.engine.transaction():
                old = self._existing(release)
                self._remove(old, leaving)
        except SqlanonError as error:
            _explain(release, error)
            raise
        self._checkpoint(old)
        return Publication(PublishMethod.REMOVED)

    def _swap(self, staging: Relation, old: Relation, check_views: bool) -> None:
        views = self._working_views() if check_views else []
        comments = [(column, text) for column, text in self.engine.query("work/publish/list_comments", **_names(old))]
        self.engine.run("work/publish/drop_table", table=old)
        self.engine.run("work/publish/rename_table", table=staging, name=Identifier(old.name))
        self._restore_comments(old, comments)
        self._refuse_broken(old, views)

    def _refuse_broken(self, release: Relation, views: list[Relation]) -> None:
        broken = [str(view) for view in views if not self._works(view)]
        if broken:
            raise PolicyError(
                f"The new columns of {release} would break {listed(broken)}; nothing was published. Drop or change"
                " these views first, or choose another name."
            )

    def _restore_comments(
        self, table: Relation, comments: list[tuple[str | None, str]], *, is_view: bool = False
    ) -> None:
        """Comment on the table (column None) and on those of its columns that it still has."""
        columns = {name.lower() for name, _ in self._row_type(table)} if comments else set()
        for column, text in comments:
            if column is None:
                self.engine.run("work/publish/comment_table", table=table, comment=Text(text), is_view=is_view)
            elif column.lower() in columns:
                self.engine.run(
                    "work/publish/comment_column", table=table, column=Identifier(column), comment=Text(text)
                )

    def _working_views(self) -> list[Relation]:
        views = [
            Relation(name, schema, catalog) for catalog, schema, name in self.engine.query("work/publish/list_views")
        ]
        return [view for view in views if self._works(view)]

    def _works(self, view: Relation) -> bool:
        """Tell whether the view's query still fits its tables; a query that does not bind harms no transaction."""
        try:
            self.engine.query("work/publish/probe_view", view=view)
        except SqlanonError as error:
            if isinstance(driver_error(error), (duckdb.BinderException, duckdb.CatalogException)):
                return False
            raise
        return True

    def _row_type(self, relation: Relation) -> list[tuple[str, str]]:
        return [(column.name, column.type) for column in self.engine.columns(relation)]

    def _existing(self, relation: Relation) -> Relation:
        known = self.engine.resolve(relation)
        if known is None:
            raise ConflictError(f"{relation} no longer exists; nothing was published.")
        return known

    def _checkpoint(self, release: Relation) -> None:
        """Free what was dropped. While transactions run it can't be done, and a later checkpoint does it."""
        assert release.catalog is not None
        if self.engine.in_transaction:  # of several tables that are published together
            return
        try:
            self.engine.run("work/publish/checkpoint", catalog=Identifier(release.catalog))
        except SqlanonError as error:
            if not isinstance(driver_error(error), duckdb.TransactionException):
                raise


def _names(relation: Relation) -> dict[str, Text]:
    """The parts of a fully qualified name, as literals."""
    return {"catalog": Text(relation.catalog or ""), "schema": Text(relation.schema or ""), "name": Text(relation.name)}


def _explain(release: Relation, error: SqlanonError) -> None:
    """Raise what an error means to publishing, where it means something."""
    if isinstance(driver_error(error), duckdb.TransactionException):
        raise ConflictError(f"{release} was written by another session; the old release stays. Run again.") from error


def _joins_only(text: str, star: Star) -> bool:
    """Tell whether a view's text, as DuckDB writes it, is the join of a star's tables by the number of the class."""
    columns = f"[rc]\\.{_NAME}"
    rows, classes = (_spelling(table) for table in star.tables)
    on = f"c.{CLASS_NUMBER} = r.{CLASS_NUMBER}"
    joined = f"\\({rows} AS r INNER JOIN {classes} AS c ON \\(\\({re.escape(on)}\\)\\)\\)"
    pattern = f"CREATE VIEW {_spelling(star.view)} AS SELECT {columns}(?:, {columns})* FROM {joined};?"
    return re.fullmatch(pattern, text.strip()) is not None


def _spelling(relation: Relation) -> str:
    """A pattern of the name, with or without what it can be found without; each part quoted or not."""
    parts = [
        re.escape(str(Identifier(part))) + (f"|{part}" if _PLAIN.fullmatch(part) else "") for part in relation.parts
    ]
    parts = [f"(?:{part})" for part in parts]
    return "".join(f"(?:{part}\\.)?" for part in parts[:-1]) + parts[-1]
