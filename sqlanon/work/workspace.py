"""The tables that a run makes on its way, and their end: when the run ends, or when `gc` finds it dead.

On DuckDB work tables are temporary: they end with the session. On PostgreSQL they are unlogged tables in the catalog's
schema, so that several sessions can share them, and the ledger knows their common prefix before the first is made. On a
Spark of this machine they are files of a private directory, whose path the ledger knows before it has any.
"""

from __future__ import annotations

import contextlib
import copy
import os
import pickle
import secrets
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from sqlanon.catalog import Catalog, LedgerEntry, locks
from sqlanon.catalog.live import NoProgressError, orphans, progress_files, read_file, remove_files
from sqlanon.catalog.location import database_of
from sqlanon.engines.base import Engine, MadeRelation
from sqlanon.engines.private_files import remove_dead_directories, remove_dead_directory
from sqlanon.engines.publishing import publisher_of
from sqlanon.errors import Cancelled, ConflictError, SqlanonError
from sqlanon.sql import Relation, checked_name, short_hash
from sqlanon.support.environment import resolved
from sqlanon.work.publish.release_files import is_file_name, put_back_or_remove

T = TypeVar("T")


class Workspace:
    """The work tables and staging tables of one run.

    Use it in a `with` statement: everything the run made is dropped at its end, also after an error or an interrupt.
    """

    _part = ""

    def __init__(self, engine: Engine, catalog: Catalog, run: str, home: str | None = None) -> None:
        """`home` is the schema of the work tables on PostgreSQL, made if it is not there: by default the catalog's.

        Raises:
            AccessError: by default privileges others could read the work tables.
        """
        self._engine = engine
        self._catalog = catalog
        self._run = run
        self._staged_in: dict[str, Engine] = {}
        self._staged: set[LedgerEntry] = set()
        prefix = Relation(f"w_{short_hash(run)}_", home or catalog.location.schema)
        temporary = engine.temporary(prefix.name)
        if engine.traits.is_embedded:
            prefix = temporary
        self._named = temporary if engine.traits.places_work_tables else prefix
        directories = () if engine.traits.is_embedded else engine.prepare_work(prefix.schema or "")
        self._directories = [LedgerEntry.of_directory(run, path) for path in directories]
        if directories:
            prefix = temporary
        self._prefix = LedgerEntry(run, prefix, database_of(engine), is_prefix=True)
        if not engine.traits.is_embedded:
            for entry in self._directories or [self._prefix]:
                catalog.ledger_add(entry)

    def on(self, session: Engine) -> Workspace:
        """The same workspace for another session of the same database; the first one clears it."""
        other = copy.copy(self)
        other._engine = session
        return other

    def part(self, name: str) -> Workspace:
        """The same workspace for a part of the work, whose name the names of its tables begin with."""
        other = copy.copy(self)
        other._part = f"{self._part}{name}_"
        return other

    @property
    def prefix(self) -> str:
        """The beginning of the names of all its work tables."""
        return self._named.name + self._part

    def table(self, meaning: str, number: int | None = None) -> Relation:
        """The name of a work table, such as `w_1f0c9a3e_rows_3`; whoever makes it may drop it early with `drop`.

        Raises:
            PolicyError: the name would be longer than every engine keeps.
        """
        name = self.prefix + meaning + ("" if number is None else f"_{number}")
        return self._named.sibling(checked_name(name))

    def staging(self, release: Relation, session: Engine | None = None) -> Relation:
        """The name of the table, beside the release, that is built and verified before it takes the release's place.

        `session` is an engine of the release's database, if that is not the workspace's own; it is used to clear up.
        """
        target = self._engine if session is None else session
        table = publisher_of(target).staging_of(release, short_hash(self._run, str(release)))
        entry = LedgerEntry(self._run, table, database_of(target))
        if entry not in self._catalog.ledger(self._run):
            self._catalog.ledger_add(entry)
        self._staged.add(entry)
        self._staged_in[entry.database] = target
        return table

    def drop(self, *tables: Relation) -> None:
        """Drop tables of the run that are no longer needed; those that were never made are passed over."""
        _drop(self._engine, tables)

    def made(self) -> list[MadeRelation]:
        """List the work tables and views that there are and that this role may drop."""
        return _made(self._engine, self._prefix)[0]

    def drop_made(self, made: Sequence[MadeRelation]) -> None:
        """Drop work tables and views of the list."""
        _drop_views(self._engine, made)
        _drop(self._engine, [one.relation for one in made if not one.is_view])

    def close(self) -> None:
        """Drop everything the run made, on a session of its own if the run's session is broken.

        Rules that the run can be taken up with stay in that case: the server has been restarted, or the like.

        Raises:
            EngineError: the database can't be reached; `gc` drops the tables later.
        """
        self._remove_directory()
        sessions = {**self._staged_in, self._prefix.database: self._engine}
        for database, session in sessions.items():
            try:
                self._clear(database, session)
            except SqlanonError:
                with session.fork() as fresh:
                    self._clear(database, fresh, keeps=self._catalog.checkpoint(self._run) is not None)

    def _remove_directory(self) -> None:
        """Remove the run's own directory; others are the process's, which removes them when it ends."""
        self._engine.remove_work()
        if self._directories and not os.path.lexists(self._directories[0].relation.name):
            self._catalog.ledger_remove(*self._directories)

    def _clear(self, database: str, session: Engine, *, keeps: bool = False) -> None:
        entries = {self._prefix, *(self._staged if keeps else self._catalog.ledger(self._run))}
        there = [entry for entry in entries if entry.database == database]
        made = [one for entry in there for one in _made(session, entry)[0]]
        _drop_views(session, made)
        _drop(session, [one.relation for one in made if not one.is_view])
        self._catalog.ledger_remove(*there)
        if not keeps:
            self._catalog.forget_checkpoint(self._run)

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            self.close()
        except SqlanonError as failure:
            if error is None:
                raise
            error.add_note(f"The run's work tables could not be dropped ({failure}); `sqlanon gc` drops them.")


class TemporaryWorkspace(Workspace):
    """The work tables of a session that keeps no catalog: temporary tables, which end with the session."""

    def __init__(self, engine: Engine, prefix: str | None = None) -> None:
        """`prefix` is that of another session's workspace, for tables that are to be its own; else it is a new one."""
        self._engine = engine
        name = prefix or f"w_{secrets.token_hex(4)}_"
        self._named = engine.temporary(name)
        self._prefix = LedgerEntry(name, self._named, database_of(engine), is_prefix=True)

    def close(self) -> None:
        """Nothing is left when the session ends."""


def carry_out_keeping(workspace: Workspace, work: Callable[[], T]) -> T:
    """Carry out work, and drop the work tables that it made, but for those that its result names."""
    before = {one.relation for one in workspace.made()}
    result = work()
    named = pickle.dumps(result)  # names are in it as they are, also those within expressions
    made = [one for one in workspace.made() if one.relation not in before and one.relation.name.encode() not in named]
    workspace.drop_made(made)
    return result


@contextlib.contextmanager
def release_lock(
    engine: Engine, release: Relation, file: Path | None = None, *, keeper: Engine | None = None
) -> Iterator[None]:
    """Keep other runs from publishing to the same release: a table of the engine's database, or `file`.

    keeper: the session whose lock it is, if that is not the engine's own.

    Raises:
        ConflictError: another run is at it.
    """
    conflict = f"Another run is writing {file or release}: wait for it, or cancel it."
    place = file or engine.identity() or f"the memory of session {id(engine)}"
    with locks.held(keeper or engine, release_lock_name(release, str(place)), conflict):
        yield


def release_lock_name(release: Relation, place: str) -> str:
    """Name the lock of a release; `place` is its database, or its file."""
    return f"release {release} of {place}"


def gc(
    engine: Engine, catalog: Catalog, temp_directory: str | None = None, *, targets: Iterable[Engine] = ()
) -> list[str]:
    """Drop the tables of runs that are dead, give these runs their final status, remove their spill directories.

    Runs that are alive are left alone, and so are tables that belong to another role: its own `gc` drops them.

    Args:
        engine: a session with the database in which the runs worked.
        catalog: the catalog that `engine` has.
        temp_directory: where DuckDB spills, if it was told.
        targets: sessions with other databases, in which these runs may have staged a release.

    Returns:
        What was done, a line each.
    """
    done: list[str] = []
    sessions = {database_of(session): session for session in (*targets, engine)}
    with catalog.dead_runs() as runs:
        for run in runs:
            try:
                done += _clear_dead(sessions, engine, catalog, run)
            except Cancelled:
                raise
            except SqlanonError as error:
                done.append(f"skipped run {run}: {error}")
    if catalog.store.traits.is_embedded:
        done += _remove_live_files(catalog)
    return done + remove_spill([*sessions.values(), catalog.store], temp_directory)


def _clear_dead(sessions: dict[str, Engine], engine: Engine, catalog: Catalog, run: str) -> list[str]:
    catalog.forget_checkpoint(run)
    done = _remove_directories(catalog, run)
    reached = [entry for entry in catalog.ledger(run) if entry.database in sessions]  # others are dropped from there
    made = [(sessions[entry.database], entry, *_made(sessions[entry.database], entry)) for entry in reached]
    for session, entry, ours, _ in made:
        _drop_views(session, ours)  # first: they read tables
        if not entry.is_prefix and publisher_of(session).is_published(entry.relation):
            done.append(f"kept table {entry.relation}: run {run} published it, and had no time to record that")
    for session, entry, ours, others in made:
        _drop(session, [one.relation for one in ours if not one.is_view])
        done += [f"dropped {'view' if one.is_view else 'table'} {one.relation} of run {run}" for one in ours]
        if entry.is_prefix:
            done += session.remove_orphans(entry.relation)
        if not others:
            catalog.ledger_remove(entry)
    done += _remove_parts(engine, catalog, catalog.run(run).release)
    status = catalog.end_dead_run(run)
    return done if status is None else [*done, f"marked run {run} as {status}"]


def _remove_directories(catalog: Catalog, run: str) -> list[str]:
    """Remove the directories in which a dead run kept rows; those of other machines, and of other users, are named."""
    done = []
    for entry in catalog.ledger(run):
        if entry.is_directory and entry.directory is None:
            done.append(
                f"{entry.relation.name} of run {run} is on {entry.machine}, and is removed by `sqlanon gc` there"
            )
        elif (path := entry.directory) is not None:
            done += _remove_directory(path, run)
            if not os.path.lexists(path):
                catalog.ledger_remove(entry)
    return done


def _remove_directory(path: Path, run: str) -> list[str]:
    """Remove a directory of a dead run, and say so, or why it could not be."""
    try:
        if remove_dead_directory(path):
            return [f"removed directory {path} of run {run}"]
    except OSError as error:
        return [f"skipped directory {path} of run {run}: it can't be removed ({error.strerror})"]
    kept = f"kept {path} of run {run}: it is in use, or is not this user's; its owner's gc removes it"
    return [kept] if os.path.lexists(path) else []


def _remove_parts(engine: Engine, catalog: Catalog, release: str) -> list[str]:
    """Remove what a dead run had written of a release that is a file; of a table there is nothing."""
    if not is_file_name(release):
        return []
    path, keeper = resolved(release), engine if engine.traits.has_locks else catalog.store
    try:
        with release_lock(engine, Relation("file"), Path(path).resolve(), keeper=keeper):
            return put_back_or_remove(path)
    except ConflictError:
        return [f"skipped what was written of {release}: another run is writing it"]
    except OSError as error:
        return [f"skipped what was written of {release}: it can't be looked at ({error.strerror})"]


def _remove_live_files(catalog: Catalog) -> list[str]:
    """Remove what runs that are gone kept beside the catalog's database for others to see."""
    path = catalog.store.identity()
    if path is None:
        return []
    database, living = Path(path).resolve(), set(catalog.living_runs())
    done = [word for file in progress_files(database) if (word := _remove_progress(file)) is not None]
    for orphan, run in orphans(database):
        if run not in living:
            done.append(_removed(orphan))
    return done


def _remove_progress(file: Path) -> str | None:
    """Remove the progress of a run that is gone; says what was done, or why nothing was."""
    try:
        run = read_file(file)
    except FileNotFoundError:  # the run ended meanwhile
        return None
    except NoProgressError as problem:
        return f"skipped file {file}: {problem}; remove it, if nothing else uses it"
    return None if run.alive else _removed(file)


def _removed(file: Path) -> str:
    """Remove what a run kept beside its database, and say so, or why it could not be."""
    try:
        remove_files(file)
    except OSError as error:
        return f"skipped file {file}: it can't be removed ({error.strerror})"
    return f"removed file {file}"


def remove_spill(engines: Collection[Engine], temp_directory: str | None) -> list[str]:
    """Remove what dead processes spilled: into `temp_directory`, where temporary files go, beside DuckDB's files.

    Older versions let DuckDB choose the place; what is there may be of another program, and is named alone.
    """
    files = [Path(path) for engine in engines if engine.traits.is_embedded and (path := engine.identity())]
    spilled = [Path(temp_directory or tempfile.gettempdir()), Path(tempfile.gettempdir())]
    spilled += [place for engine in engines for place in engine.spill_places()]
    places = dict.fromkeys([*spilled, *(file.parent for file in files)])
    problems: list[str] = []
    done = [f"removed directory {path}" for place in places for path in remove_dead_directories(place, problems)]
    remedy = "holds raw data that a killed process spilled; remove it, if nothing else uses it"
    chosen = (Path(f"{file}.tmp") for file in dict.fromkeys(files))
    return done + problems + [f"{directory} {remedy}" for directory in chosen if any(directory.glob("duckdb_temp_*"))]


def _made(session: Engine, entry: LedgerEntry) -> tuple[list[MadeRelation], list[MadeRelation]]:
    """The tables and views of a ledger entry that exist: those that this role may drop, and those of other roles."""
    wanted = entry.relation
    made = [one for one in session.list_made(wanted) if entry.is_prefix or _is_left(session, one.relation, wanted)]
    return [one for one in made if one.ours], [one for one in made if not one.ours]


def _is_left(session: Engine, relation: Relation, wanted: Relation) -> bool:
    """Tell whether a relation is a staging table, by its name, that no release reads."""
    return relation.name == wanted.name and not publisher_of(session).is_published(relation)


def _drop_views(session: Engine, made: Iterable[MadeRelation]) -> None:
    for one in made:
        if one.is_view:
            session.run("work/publish/drop_view", view=one.relation)


def _drop(session: Engine, tables: Iterable[Relation]) -> None:
    """Drop tables, all at once."""
    names = list(tables)
    if names:
        session.run("catalog/drop_tables", tables=names)
