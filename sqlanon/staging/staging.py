"""Staging of a release before anybody sees it: a table or part file beside the place that the release will take."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path

from sqlanon.engines.base import Engine
from sqlanon.engines.star import Star, create_view
from sqlanon.plan.plan import Plan
from sqlanon.plan.released_texts import texts_of_release
from sqlanon.sql import Identifier, Relation
from sqlanon.staging.recode import Recoding
from sqlanon.staging.rows import rows_for_a_file, stage
from sqlanon.staging.star import stage_star, star_columns
from sqlanon.values.digest import table_digest
from sqlanon.work.publish import FileRelease, Grants, Record, guard_staging, open_file, publish, publish_star, transfer
from sqlanon.work.session import Session
from sqlanon.work.workspace import Workspace

Write = Callable[[Relation], None]
"""Creates the table of the released rows."""


class Staged(ABC):
    """A staged release.

    relation: the staged rows, in the database where the source was coded.
    engine, final: the session and relation that will be the release; the same where one database holds all.
    star: the tables that `relation` reads, where it is a view.
    is_public_before_its_record: whether readers see the release before `record` is called.
    is_batch: whether the rows are added to those of the release that is there.
    """

    star: Star | None = None
    is_batch = False
    is_public_before_its_record = False

    def __init__(self, relation: Relation, engine: Engine, final: Relation) -> None:
        self.relation = relation
        self.engine = engine
        self.final = final

    def digest(self) -> str:
        """The digest of what will be released."""
        return table_digest(self.engine, self.final)

    @abstractmethod
    def publish(self, record: Record) -> tuple[str, ...]:
        """Let the release take its name, with `record` in the same transaction where there is one; notes for people."""


class StagedTable(Staged):
    """A table beside the release."""

    def __init__(
        self, relation: Relation, engine: Engine, final: Relation, release: Relation, grants: Grants, replace: bool
    ) -> None:
        super().__init__(relation, engine, final)
        self._release = release
        self._grants = grants
        self._replace = replace

    def publish(self, record: Record) -> tuple[str, ...]:
        publication = publish(
            self.engine,
            self.final,
            self._release,
            replace=self._replace,
            adds=self.is_batch,
            grants=self._grants,
            record=record,
        )
        return publication.notes


class StagedStar(Staged):
    """Two tables and their view beside the release."""

    def __init__(
        self, aside: Star, engine: Engine, star: Star, release: Relation, grants: Grants, replace: bool
    ) -> None:
        super().__init__(aside.view, engine, star.view)
        self.star = aside
        self._star = star
        self._release = release
        self._grants = grants
        self._replace = replace

    def publish(self, record: Record) -> tuple[str, ...]:
        publication = publish_star(
            self.engine, self._star, self._release, replace=self._replace, grants=self._grants, record=record
        )
        return publication.notes


class StagedFile(Staged):
    """A part file beside the release file."""

    is_public_before_its_record = True

    def __init__(self, relation: Relation, engine: Engine, final: Relation, file: FileRelease) -> None:
        super().__init__(relation, engine, final)
        self._file = file

    def digest(self) -> str:
        return self._file.digest()

    def publish(self, record: Record) -> tuple[str, ...]:
        self._file.commit()
        record(self.engine)
        return ()


@contextlib.contextmanager
def stage_release(
    session: Session, plan: Plan, workspace: Workspace, recoding: Recoding, replace: bool
) -> Iterator[Staged]:
    """Build the staged release of a recoding; see `stage_written`, which has the same contract."""

    def write(table: Relation) -> None:
        stage(session.engine, workspace, plan, recoding, table)

    if plan.policy.release.file is not None:
        with FileRelease(session.target, plan.policy.release.file, replace=replace) as file:
            if session.is_one_database and not session.engine.traits.writes_directories:
                yield _stage_narrow_rows(session, plan, workspace, recoding, file)
            else:
                yield _stage_file(session, plan, workspace, write, file)
    elif plan.policy.release.layout == "star":
        yield _stage_star(session, plan, workspace, recoding, replace)
    else:
        yield _stage_table(session, plan, workspace, write, replace)


@contextlib.contextmanager
def stage_written(session: Session, plan: Plan, workspace: Workspace, write: Write, replace: bool) -> Iterator[Staged]:
    """Build the staged release; an unpublished part file is removed at the end, tables go with the workspace.

    write: creates the table of the released rows, inside of a transaction of the session with the source's database.
    """
    if plan.policy.release.file is not None:
        with FileRelease(session.target, plan.policy.release.file, replace=replace) as file:
            yield _stage_file(session, plan, workspace, write, file)
    else:
        yield _stage_table(session, plan, workspace, write, replace)


def _stage_table(session: Session, plan: Plan, workspace: Workspace, write: Write, replace: bool) -> StagedTable:
    engine, target = session.engine, session.target
    final = workspace.staging(plan.release, target)
    if session.is_one_database:
        with engine.transaction():
            write(final)
            grants = guard_staging(engine, final)
        return StagedTable(final, engine, final, plan.release, grants, replace)
    staged = _stage_aside(engine, workspace, write)
    grants = transfer(engine, staged, target, final, as_text=_texts(plan, engine, staged))
    return StagedTable(staged, target, final, plan.release, grants, replace)


def _stage_star(session: Session, plan: Plan, workspace: Workspace, recoding: Recoding, replace: bool) -> StagedStar:
    engine, target = session.engine, session.target
    columns, release = star_columns(plan, recoding), Star.of(plan.release)
    view, rows, classes = (workspace.staging(one, target) for one in (release.view, *release.tables))
    final = aside = Star(view, rows, classes, columns)
    if not session.is_one_database:
        view, rows, classes = (workspace.table(f"staged_{part}") for part in ("view", "rows", "classes"))
        aside = Star(view, rows, classes, columns)
    with engine.transaction():
        stage_star(engine, workspace, plan, recoding, aside)
        if session.is_one_database:
            grants = _guard(engine, final)
    if not session.is_one_database:
        for table, place in zip(aside.tables, final.tables, strict=True):
            transfer(engine, table, target, place, as_text=_texts(plan, engine, table))
        with target.transaction():
            create_view(target, final)
            grants = guard_staging(target, final.view)
    return StagedStar(aside, target, final, plan.release, grants, replace)


def _guard(engine: Engine, star: Star) -> Grants:
    """Guard the tables, which readers of the view do not need, and the view, whose grants are the release's."""
    for table in star.tables:
        guard_staging(engine, table)
    return guard_staging(engine, star.view)


def _stage_narrow_rows(
    session: Session, plan: Plan, workspace: Workspace, recoding: Recoding, file: FileRelease
) -> StagedFile:
    view = Relation("released_rows", "main", "temp")
    with rows_for_a_file(session.engine, workspace, plan, recoding, view) as columns:
        file.write(view)
    final = open_file(session.target, Path(file.part), columns)
    return StagedFile(final, session.target, final, file)


def _stage_file(session: Session, plan: Plan, workspace: Workspace, write: Write, file: FileRelease) -> StagedFile:
    engine, target = session.engine, session.target
    staged = _stage_aside(engine, workspace, write)
    if session.is_one_database:
        with _as_text(engine, plan, staged) as written:
            file.write(written)
        final = open_file(target, file.part, engine.columns(staged))
        return StagedFile(final, target, final, file)
    rows = Relation("released_rows", "main", "memory")
    transfer(engine, staged, target, rows, as_text=_texts(plan, engine, staged))
    file.write(rows)
    return StagedFile(staged, target, open_file(target, Path(file.part), target.columns(rows)), file)


@contextlib.contextmanager
def _as_text(engine: Engine, plan: Plan, staged: Relation) -> Iterator[Relation]:
    """Inside there are the staged rows with the text of columns of which the policy asks for it."""
    columns = [(column, plan.policy.attributes[column.name].as_ == "text") for column in engine.columns(staged)]
    if not any(is_text for _, is_text in columns):
        yield staged
        return
    view = Relation("released_rows", "main", "temp")
    described = [{"name": Identifier(column.name), "as_text": is_text} for column, is_text in columns]
    engine.run("staging/view_as_text", view=view, staged=staged, columns=described)
    yield view
    engine.run("staging/drop_view", view=view)


def _texts(plan: Plan, engine: Engine, staged: Relation) -> frozenset[str]:
    """Name the staged columns that are released as text."""
    return texts_of_release(plan.policy, engine.columns(staged))


def _stage_aside(engine: Engine, workspace: Workspace, write: Write) -> Relation:
    """Stage into a work table, to be carried elsewhere."""
    staged = workspace.table("staged")
    with engine.transaction():
        write(staged)
    return staged
