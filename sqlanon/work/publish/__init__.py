"""Make a verified staging relation the published release: readers see the old table or the new one, nothing between.

A release keeps what people attached to it: privileges, comments, owner, views, indexes, triggers, policies. Where the
old table has nothing that a rename would lose, staging takes its name; otherwise its rows are replaced in place, in
one transaction. Whatever fails, the old release stays as it was.
"""

from __future__ import annotations

from sqlanon.engines.base import Engine
from sqlanon.engines.publishing import Grant, Grants, Publication, PublishMethod, Record, nothing, publisher_of
from sqlanon.engines.star import Form, Star
from sqlanon.errors import ConflictError, EngineError, PolicyError, SqlanonError
from sqlanon.sql import Relation
from sqlanon.work.publish.parquet_values import parquet_value_problems
from sqlanon.work.publish.release_files import (
    FileRelease,
    check_file,
    is_text_file,
    leftover_parts,
    open_file,
    overwriting_problems,
    release_problems,
    type_problems,
)
from sqlanon.work.publish.transfer import carrying_problems, texts_of_csv, transfer

__all__ = [
    "FileRelease",
    "Grant",
    "Grants",
    "Publication",
    "PublishMethod",
    "Record",
    "carrying_problems",
    "check_file",
    "guard_staging",
    "is_text_file",
    "leftover_parts",
    "open_file",
    "overwriting_problems",
    "parquet_value_problems",
    "publish",
    "publish_star",
    "release_problems",
    "target_problems",
    "texts_of_csv",
    "transfer",
    "type_problems",
]


def target_problems(engine: Engine, release: Relation, replace: bool, star: bool = False) -> list[SqlanonError]:
    """List the errors that `publish` to `release` would raise; nothing is changed.

    star: the release is to be a view of two tables.
    """
    target = engine.resolve(release) or release
    return publisher_of(engine).problems(target, replace, star)


def guard_staging(engine: Engine, staging: Relation) -> Grants:
    """Take away what default privileges gave others on a staging table, and remember it for `publish`.

    Call it in the transaction that creates the table, before any row is in it.
    """
    return publisher_of(engine).guard(staging)


def publish(
    engine: Engine,
    staging: Relation,
    release: Relation,
    *,
    replace: bool,
    adds: bool = False,
    grants: Grants | None = None,
    wait: float = 10.0,
    record: Record = nothing,
) -> Publication:
    """Publish a verified, committed staging table as `release`, in one transaction of its own.

    adds: whether the rows are added to those of a release that is there, and of a table.
    `staging` is a sibling of `release` (same catalog and schema) and no longer exists afterwards. `grants` are what
    `guard_staging` remembered; an existing release keeps its own privileges instead. `wait` is how many seconds to
    wait for readers that hold the old table. `record` is called with the session at the end of the transaction, so that
    both happen or neither; again, if a first attempt was rolled back.

    Raises PolicyError (the name is taken, or holds something that is not a table), AccessError (no privilege),
    ConflictError (others hold the old release), EngineError (anything else); the old release then stays.
    """
    staging, release = _siblings(engine, staging, release)
    publisher = publisher_of(engine, record)
    problems = publisher.problems(release, replace or adds)
    if problems:
        raise problems[0]
    form = publisher.form(release)
    if adds:
        if form is not Form.TABLE:
            raise ConflictError(f"{release} is no table any more; nothing was added to it.")
        return publisher.add(staging, release, wait)
    if form is Form.STAR:
        return publisher.change(staging, Star.of(release), Grants(), wait)
    if form is Form.NOTHING:
        return publisher.rename(staging, release, grants or Grants())
    return publisher.replace(staging, release, wait)


def publish_star(
    engine: Engine,
    staged: Star,
    release: Relation,
    *,
    replace: bool,
    grants: Grants | None = None,
    wait: float = 10.0,
    record: Record = nothing,
) -> Publication:
    """Publish two verified, committed staging tables and their view as `release`; otherwise like `publish`."""
    _, release = _siblings(engine, staged.view, release)
    publisher = publisher_of(engine, record)
    problems = publisher.problems(release, replace, star=True)
    if problems:
        raise problems[0]
    return publisher.change(staged, Star.of(release), grants or Grants(), wait)


def _siblings(engine: Engine, staging: Relation, release: Relation) -> tuple[Relation, Relation]:
    """Both relations as the database knows them."""
    same_schema = (staging.catalog, staging.schema) == (release.catalog, release.schema)
    staged = engine.resolve(staging)
    if staged is None:
        raise EngineError(f"The staging table {staging} does not exist; nothing was published.")
    target = engine.resolve(release) or (staged.sibling(release.name) if same_schema else release)
    if (staged.catalog, staged.schema) != (target.catalog, target.schema) or staged.name == target.name:
        raise PolicyError(f"The staging table {staging} does not lie beside the release {release}.")
    return staged, target
