"""Releases that are views over versions: each run writes a table of its own, and the view changes over to it.

The change of the view is one change of the metastore, the only one that readers see. A version notes which one it
replaces; the one that the view showed before is kept until the next publication, as readers may be in the middle of it.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from sqlanon.engines.base import Engine
from sqlanon.engines.publishing import Publication, PublishMethod
from sqlanon.engines.spark.dialect import SparkSQL
from sqlanon.engines.spark.errors import condition_of
from sqlanon.engines.spark.metastore import Metastore
from sqlanon.errors import ConflictError, EngineError, PolicyError, SqlanonError
from sqlanon.sql import Expression, Identifier, Relation, Text, macro

_VERSION = re.compile(r"(?P<release>.+)_v_[0-9a-f]{8}")
_LAST_NAME = re.compile(r'"(?P<name>\w+)"\s*\Z')
_NAME = re.compile(r"\w+", re.ASCII)  # of a table, as a metastore takes it
_LONGEST = 117  # characters of a release: metastores keep names of 128
_REPLACES = Text("sqlanon.replaces")
Publishing = Callable[[], AbstractContextManager[None]]


def version_of(release: Relation) -> Relation:
    """Name a new version of a release; no other has the name, be it left by a run that was killed."""
    return release.sibling(f"{release.name}_v_{secrets.token_hex(4)}".lower())


class Versions:
    """The versions of releases, and the views over them."""

    def __init__(self, engine: Engine, metastore: Metastore) -> None:
        self._engine = engine
        self._metastore = metastore

    def problems(self, release: Relation, replace: bool) -> list[SqlanonError]:
        """List everything that forbids to publish under a name."""
        if not _NAME.fullmatch(release.name) or len(release.name) > _LONGEST:
            return [
                PolicyError(
                    f"The name {release} has other characters than letters, digits and _, or more than {_LONGEST} of"
                    " them, which Spark's metastore does not take; choose another name."
                )
            ]
        described = self._metastore.describe(release)
        if described is None:
            return []
        if shown_version(release, described) is None:
            kind = "view of somebody else" if described["type"] == "VIEW" else "table"
            return [
                PolicyError(
                    f"{release} is a {kind}; with Spark, a release is a view over a table of its own, as no table's"
                    " rows can be replaced there in one step: drop it, or choose another name."
                )
            ]
        if not replace:
            return [PolicyError(f"{release} exists; allow it to be replaced (--replace) or choose another name.")]
        return []

    def shown(self, release: Relation) -> Relation | None:
        """Find the version that the view of a release shows; None where there is no such view."""
        described = self._metastore.describe(release)
        return None if described is None else shown_version(release, described)

    def is_published(self, table: Relation) -> bool:
        """Tell whether a table is the version that a release shows, or the one before."""
        match = _VERSION.fullmatch(table.name)
        shown = None if match is None else self.shown(table.sibling(match["release"]))
        return shown is not None and table in (shown, self._replaced_by(shown))

    def create(self, version: Relation, release: Relation, publishing: Publishing) -> Publication:
        """Show a first version under a name that nothing has."""
        self._show(version, release, publishing, "work/publish/create_version_view")
        return Publication(PublishMethod.NEW)

    def change(self, version: Relation, release: Relation, publishing: Publishing) -> Publication:
        """Let the view of a release show another version, and drop those that nobody reads any more."""
        described = self._metastore.describe(release)
        old = None if described is None else shown_version(release, described)
        if described is None or old is None:
            raise ConflictError(f"{release} was altered meanwhile; nothing was published. Run again.")
        notes = self._keep_comments(described, version)
        self._engine.run_there(
            "work/publish/mark_version", version=version, property=_REPLACES, replaced=Text(old.name)
        )
        self._show(version, release, publishing, "work/publish/repoint_view")
        return Publication(PublishMethod.SWAP, notes + self._drop_older(old))

    def _show(self, version: Relation, release: Relation, publishing: Publishing, template: str) -> None:
        """Make or change the view; an error that came after the change was made does not undo it."""
        try:
            with publishing():
                query = _query(self._existing(version), version)
                self._engine.run_there(template, view=release, query=query)
        except SqlanonError as error:
            if self._shows(release, version, error):
                return
            if condition_of(error.__cause__ or error).startswith("TABLE_OR_VIEW_ALREADY_EXISTS"):
                raise ConflictError(
                    f"{release} was created by someone else meanwhile; nothing was published."
                ) from error
            raise

    def _shows(self, release: Relation, version: Relation, error: SqlanonError) -> bool:
        """Tell whether a view changed over before an error came; where that can't be told, the error says so."""
        try:
            return self.shown(release) == version
        except SqlanonError:
            error.add_note(f"It can't be told whether {release} shows the new release, {version}, or the one before.")
            raise error from None

    def _keep_comments(self, described: Mapping[str, Any], version: Relation) -> tuple[str, ...]:
        """Give the comments of the view's columns to those of a version, which the view has them from; notes."""
        columns = {column["name"].lower() for column in self._existing(version)["columns"]}
        missing = []
        for column in described["columns"]:
            name, comment = Identifier(column["name"]), column.get("comment")
            if comment and {"'", "\\"} <= set(comment):  # no literal of Spark's holds both, but an expression does
                missing.append(name)
            elif comment and column["name"].lower() in columns:
                self._engine.run_there("work/publish/comment_column", table=version, column=name, comment=Text(comment))
        return tuple(f"The comment on {name} holds a quote and a backslash, and could not be kept." for name in missing)

    def _drop_older(self, old: Relation) -> tuple[str, ...]:
        """Drop the versions that an old one replaced; a note where one could not be dropped.

        The release is published by now, so that nothing here may end the run, not even an interrupt.
        """
        try:
            version = self._replaced_by(old)
            while version is not None:
                older = self._replaced_by(version)
                self._engine.run_there("engines/drop_table", table=version)
                version = older
        except (SqlanonError, KeyboardInterrupt) as error:
            return (f"Versions older than {old} could not be dropped and are to be dropped by hand ({error}).",)
        return ()

    def _replaced_by(self, version: Relation) -> Relation | None:
        """Look up the version that another one replaced; None where there was none, or that other one is gone."""
        described = self._metastore.describe(version) or {}
        name = described.get("table_properties", {}).get(_REPLACES.value, "")
        return version.sibling(name) if _is_version(name, version.name.rpartition("_v_")[0]) else None

    def _existing(self, version: Relation) -> Mapping[str, Any]:
        described = self._metastore.describe(version)
        if described is None:
            raise EngineError(f"{version} no longer exists; nothing was published.")
        return described


def shown_version(release: Relation, described: Mapping[str, Any]) -> Relation | None:
    """Find the version that a view shows; None where it is no view, or does anything else."""
    named = _LAST_NAME.search(described.get("view_text", ""))
    if described["type"] != "VIEW" or named is None or not _is_version(named["name"], release.name):
        return None
    version = release.sibling(named["name"])
    query = SparkSQL.renderer().written(_query(described, version))
    return version if _on_one_line(described["view_text"]) == _on_one_line(query) else None


def _is_version(name: str, release: str) -> bool:
    match = _VERSION.fullmatch(name)
    return match is not None and match["release"] == release


def _query(described: Mapping[str, Any], version: Relation) -> Expression:
    """Select the columns of a description from a version."""
    return macro("versions.query", [Identifier(column["name"]) for column in described["columns"]], version)


def _on_one_line(text: str) -> str:
    return " ".join(text.split())
