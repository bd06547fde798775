"""Publishing on Spark: by a view over versions, or, where the catalog can, by replacing a table in one step.

There are no transactions. A statement that overwrites a table in place is never sent: where it fails, no row is left.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from sqlanon.engines.base import Engine
from sqlanon.engines.publishing import Grants, Publication, Publisher, PublishMethod, Record, nothing
from sqlanon.engines.spark.metastore import CatalogKind, Metastore
from sqlanon.engines.spark.versions import Versions, shown_version, version_of
from sqlanon.engines.star import Form, Star
from sqlanon.errors import PolicyError, SqlanonError
from sqlanon.sql import Identifier, Relation, macro

Publishing = Callable[[], AbstractContextManager[None]]


class SparkPublisher(Publisher):
    """See the module."""

    def __init__(self, engine: Engine, record: Record = nothing) -> None:
        super().__init__(engine, record)
        self._metastore = Metastore(engine)

    @contextlib.contextmanager
    def publishing(self) -> Iterator[None]:
        """Record first: the catalog is elsewhere, and what `record` raises forbids the step that readers see."""
        self._record(self.engine)
        yield

    def problems(self, release: Relation, replace: bool, star: bool = False) -> list[SqlanonError]:
        release = self._whole(release)
        if star:
            return [PolicyError(self.engine.traits.has_transactions.lacking)]
        kind = self._kind_of(release)
        if not kind.releases:
            return [PolicyError(kind.releases.lacking)]
        if not self._metastore.has_schema(Relation(release.schema or "", release.catalog)):
            return [PolicyError(f"There is no schema for the release {release}; create it first.")]
        return self._tables(kind).problems(release, replace)

    def exists(self, release: Relation) -> bool:
        return self.form(release) is not Form.NOTHING

    def form(self, release: Relation) -> Form:
        """Return TABLE for the view over a version too, as it is what a table is to the other engines."""
        release = self._whole(release)
        if self._kind_of(release).atomic_format is not None:
            known = self._metastore.format_of(release)
            return Form.NOTHING if known is None else Form.TABLE if known else Form.OTHER
        described = self._metastore.describe(release)
        if described is None:
            return Form.NOTHING
        is_table = described["type"] != "VIEW" or shown_version(release, described) is not None
        return Form.TABLE if is_table else Form.OTHER

    def staging_of(self, release: Relation, token: str) -> Relation:
        """Name the version that the release will show: it is never renamed, which some metastores can't."""
        if self._kind_of(self._whole(release)).atomic_format is not None:
            return super().staging_of(release, token)
        return version_of(release)

    def is_published(self, staging: Relation) -> bool:
        staging = self._whole(staging)
        tables = self._tables(self._kind_of(staging))
        return isinstance(tables, Versions) and tables.is_published(staging)

    def rows_of(self, release: Relation) -> Relation:
        """Name the version that a view shows now: between two statements the view may change over."""
        whole = self._whole(release)
        tables = self._tables(self._kind_of(whole))
        return (tables.shown(whole) if isinstance(tables, Versions) else None) or release

    def guard(self, staging: Relation) -> Grants:  # noqa: ARG002 - see below
        """A metastore knows no grants: whoever may read the files of a table reads it."""
        return Grants()

    def rename(self, staging: Relation, release: Relation, grants: Grants) -> Publication:  # noqa: ARG002 - none
        return self._tables(self._kind_of(release)).create(staging, release, self.publishing)

    def replace(self, staging: Relation, release: Relation, wait: float) -> Publication:  # noqa: ARG002 - no locks
        return self._tables(self._kind_of(release)).change(staging, release, self.publishing)

    def change(self, staging: Relation | Star, release: Star, grants: Grants, wait: float) -> Publication:  # noqa: ARG002 - see below
        """Raise PolicyError: a star takes changes of several tables that take effect together."""
        raise PolicyError(self.engine.traits.has_transactions.lacking)

    def _tables(self, kind: CatalogKind) -> Versions | AtomicTables:
        if kind.atomic_format is None:
            return Versions(self.engine, self._metastore)
        return AtomicTables(self.engine, self._metastore, kind.atomic_format)

    def _kind_of(self, release: Relation) -> CatalogKind:
        return self._metastore.kind_of(release.catalog or "")

    def _whole(self, release: Relation) -> Relation:
        """The release with the catalog and the schema that a name without them stands for."""
        if release.catalog is not None and release.schema is not None:
            return release
        home = self.engine.home()
        return Relation(release.name, release.schema or home.schema, release.catalog or home.catalog)


class AtomicTables:
    """Tables of one format, replaced in one step."""

    def __init__(self, engine: Engine, metastore: Metastore, table_format: str) -> None:
        self._engine = engine
        self._metastore = metastore
        self._format = table_format

    def problems(self, release: Relation, replace: bool) -> list[SqlanonError]:
        """List everything that forbids to publish under a name."""
        existing = self._metastore.format_of(release)
        if existing is None:
            return []
        if existing != self._format:
            return [
                PolicyError(
                    f"{release} is a view, or a table of another format than {self._format}, in which alone the catalog"
                    " replaces a table in one step: drop it, or choose another name."
                )
            ]
        if not replace:
            return [PolicyError(f"{release} exists; allow it to be replaced (--replace) or choose another name.")]
        return []

    def create(self, staging: Relation, release: Relation, publishing: Publishing) -> Publication:
        """Make the table under a name that nothing has."""
        self._write(staging, release, publishing, replace=False)
        return Publication(PublishMethod.NEW)

    def change(self, staging: Relation, release: Relation, publishing: Publishing) -> Publication:
        """Replace the table, rows and columns, in one step."""
        self._write(staging, release, publishing, replace=True)
        return Publication(PublishMethod.SWAP)

    def _write(self, staging: Relation, release: Relation, publishing: Publishing, *, replace: bool) -> None:
        query = macro("versions.query", [Identifier(column.name) for column in self._engine.columns(staging)], staging)
        with publishing():
            self._engine.run_there(
                "work/publish/replace_table",
                table=release,
                provider=Identifier(self._format),
                query=query,
                replace=replace,
            )
        self._engine.run_there("engines/drop_table", table=staging)
