"""The databases of a run: where the work is done, where the release goes, where the catalog is."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sqlanon.catalog import Catalog
from sqlanon.catalog.location import CatalogAddress, is_there
from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.engines.dialects import Dialect, dialect_of_url, find_dialect, is_embedded, require_catalog
from sqlanon.engines.embedded import EMBEDDED, MEMORY_URL, database_file, url_of_file
from sqlanon.engines.files import STANDARD_INPUT, directory_of, whole_path
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.engines.urls import scheme_of
from sqlanon.errors import AccessError, PolicyError
from sqlanon.sql import Relation, short_hash
from sqlanon.support.environment import require_set

if TYPE_CHECKING:
    from sqlanon.policy import Policy

LOCAL_CATALOG = "sqlanon.duckdb"


@dataclass(frozen=True)
class Session:
    """Open engines. `engine` does the work, beside the source; `target` holds the release, often the same engine.

    own_catalog: the catalog is in the database that the work is done in.
    new_catalog: its file, where this session made it.
    """

    engine: Engine
    target: Engine
    catalog: Catalog
    own_catalog: bool
    new_catalog: Path | None = None

    @property
    def engines(self) -> tuple[Engine, ...]:
        """The sessions that the run works with."""
        return (self.engine,) if self.is_one_database else (self.engine, self.target)

    @property
    def is_one_database(self) -> bool:
        return self.engine is self.target


class Opening(Protocol):
    """A way to open a session, as `connect` does."""

    def __call__(self, url: str, options: EngineOptions, *, create: bool) -> Engine: ...


@contextlib.contextmanager
def open_engines(
    policy: Policy, options: EngineOptions, opening: Opening = connect, *, replace_release: bool = True
) -> Iterator[tuple[Engine, Engine]]:
    """The engine of the source, and that of the release, which is the same unless the policy names another URL.

    A source file is read by DuckDB: in the release's database if that is one, otherwise in memory.
    replace_release: whether an existing release is no problem.
    """
    _require_possible(policy, replace_release)
    with contextlib.ExitStack() as stack:
        source, release = database_url(policy), policy.release.url
        options = replace(options, places=_places(policy))
        engine = stack.enter_context(opening(source or MEMORY_URL, options, create=policy.source.url is None))
        target = engine
        if carried_to(policy, engine.traits) is not None:
            target = stack.enter_context(opening(release or MEMORY_URL, options, create=release is not None))
        yield engine, target


def _require_possible(policy: Policy, replace_release: bool) -> None:
    """Raise PolicyError, before anything is opened, with all that the source's database is known not to do.

    A session may take many seconds to start.
    """
    problems = list(_unknown_databases(policy))
    dialect = None if policy.source.url is None else find_dialect(policy.source.url)
    if problems:
        raise PolicyError(problems)
    if dialect is None:
        return
    if not (able := dialect.carries_out(policy.algorithm.recodes)):
        problems.append(f"algorithm: {able.lacking}")
    keeper = dialect if policy.catalog.url is None else find_dialect(policy.catalog.url)
    if keeper is not None and not keeper.keeps_catalog:
        problems.append(f"catalog: {keeper.keeps_catalog.lacking}")
    problems += copying_problems(dialect, carried_to(policy, dialect))
    if dialect.writes_directories:
        problems += _directory_problems(policy, dialect, replace_release)
    if problems:
        raise PolicyError(problems)


def _unknown_databases(policy: Policy) -> Iterator[str]:
    """Say which databases no engine is for; a URL out of variables that are not set is told elsewhere."""
    for place in ("source", "release", "catalog"):
        url = getattr(policy, place).url
        if url is not None and scheme_of(url) is not None and find_dialect(url) is None:
            try:
                dialect_of_url(url)
            except PolicyError as error:
                yield f"{place}.url: {error}"


def copying_problems(source: type[Dialect], target: type[Dialect] | None) -> list[str]:
    """List why rows can't be carried over from one database to another; None is no other."""
    engines = () if target is None else (source, target)
    return [f"release: {one.copies_rows.lacking}" for one in engines if not one.copies_rows][:1]


def _directory_problems(policy: Policy, dialect: type[Dialect], replace_release: bool) -> list[str]:
    """List why a release can't be a directory of Parquet files at its place."""
    file, url = policy.release.file, policy.source.url
    if file is None or url is None:
        return []
    from sqlanon.work.publish.release_files import check_directory, overwriting_problems  # here, as in `_places`

    require_set(url, file)
    problems = overwriting_problems(file, policy.source.file)
    problems = problems or check_directory(dialect.writes_here(url), file, replace_release)
    return [f"release.file: {problem}" for problem in problems]


def _places(policy: Policy) -> tuple[str, ...] | None:
    """List the files that the sessions of a run reach: the source's files, the release's part file."""
    file, released = policy.source.file, policy.release.file
    if file is not None and ("://" in file or file == STANDARD_INPUT):
        return None
    source = () if file is None else (str(directory_of(file)),)
    if released is None:
        return source
    from sqlanon.work.publish.release_files import (
        part_of,  # here, as those who only look into a catalog publish nothing
    )

    return (*source, str(part_of(released)))


def carried_to(policy: Policy, dialect: type[Dialect]) -> type[Dialect] | None:
    """The dialect of the database that a release is carried over to, or that writes its file.

    None where the engine of this dialect, beside the source, holds or writes it itself.
    """
    release = policy.release.url
    if release is not None and release != database_url(policy):
        return find_dialect(release)
    return EMBEDDED if policy.release.file is not None and not dialect.reads_files else None


@contextlib.contextmanager
def open_for_planning(policy: Policy, options: EngineOptions | None) -> Iterator[tuple[Engine, Engine | None]]:
    """The engine of the source, and that of a release in another database, for planning: nothing is made.

    The second is None where there is no other database, or it is a DuckDB file that the run will make.
    """
    _require_possible(policy, replace_release=True)
    with contextlib.ExitStack() as stack:
        options = replace(options or EngineOptions(), places=_places(policy))
        engine = stack.enter_context(connect(policy.source.url or MEMORY_URL, options))
        url, target = policy.release.url, None
        if url is not None and url != policy.source.url:
            try:
                target = stack.enter_context(connect(url, options))
            except AccessError:
                if not is_embedded(url):
                    raise
        yield engine, target


def open_catalog(policy: Policy, engine: Engine, *, makes: bool = True) -> Catalog:
    """The catalog: where the policy says, else in the source's database, the release's, or a file of its own.

    makes: whether one that the policy names, and that is not there, is made. It is made only where no other catalog of
    the databases knows the source, as its name may be mistyped.

    Raises AccessError where the catalog that the policy names can't be used, or is not there and not made.
    """
    place = catalog_place(policy)
    if (file := _file_of_catalog(policy)) is not None:
        _make_home(file.parent)
    engine.require_writable()
    with contextlib.ExitStack() as undo:
        store = engine
        if place.url != database_url(policy):
            _require_file(place, policy, engine, makes=makes)
            store = undo.enter_context(connect(place.url, create=True))
        catalog = undo.enter_context(catalog_at(place, policy, engine, store))
        if place.is_named and catalog.current() is None:
            require_first(catalog, policy, makes=makes)
        catalog.upgrade()
        undo.pop_all()
    return catalog


def catalog_at(place: CatalogAddress, policy: Policy, engine: Engine, store: Engine) -> Catalog:
    """The catalog at a place, with the databases that could hold one if the policy named none."""
    catalog = Catalog(engine, store, place)
    usual = dict.fromkeys((_default_url(policy), *map(url_of_file, _local_catalogs(policy))))
    files = ((url, database_file(url)) for url in usual if url not in (place.url, database_url(policy)))
    catalog.usual = tuple(url for url, file in files if file is None or os.access(file, os.R_OK))
    return catalog


def _require_file(place: CatalogAddress, policy: Policy, engine: Engine, *, makes: bool) -> None:
    """Refuse a catalog that a policy names, in a file that is not there; see `require_first`."""
    file = database_file(place.url)
    if not place.is_named or file is None or file.exists():
        return
    with connect(MEMORY_URL) as nowhere, catalog_at(place, policy, engine, nowhere) as catalog:
        require_first(catalog, policy, makes=makes, database=str(file))


def require_first(catalog: Catalog, policy: Policy, *, makes: bool = True, database: str | None = None) -> None:
    """Refuse to make a catalog that a policy names where it may be mistyped; nothing is made here.

    database: the file that is to hold the catalog, where it is not there yet.

    Raises AccessError where another catalog of the databases knows the source, where the schema holds other tables, or
    where nothing is to be made.
    """
    source, engine = policy.source, catalog.engine
    table = None if source.table is None else engine.resolve(Relation.parse(source.table))
    name = str(table) if table is not None else "" if source.file is None else whole_path(source.file)
    knowing = catalog.holders(name, table) if name and name != STANDARD_INPUT else []
    if knowing or not makes:
        raise catalog.missing(knowing, database)
    catalog.require_own_schema()


def catalog_place(policy: Policy) -> CatalogAddress:
    """The place of a policy's catalog.

    Raises PolicyError where no catalog can be there.
    """
    url = policy.catalog.url or _default_url(policy)
    require_catalog(url)
    return CatalogAddress(url, policy.catalog.schema_, _release_schema(policy), policy.catalog.is_named)


def database_url(policy: Policy) -> str | None:
    """The URL of the database that the work is done in; None in memory."""
    release = policy.release.url
    return policy.source.url or (release if release is not None and is_embedded(release) else None)


def _default_url(policy: Policy) -> str:
    if policy.source.url is not None:
        return policy.source.url
    if policy.release.url is not None:
        return policy.release.url
    assert policy.source.file is not None, "a source without a URL is a file"
    assert policy.release.file is not None, "and a release without one too"
    return url_of_file(local_catalog(policy.source.file, policy.release.file))


def local_catalog(source: str, release: str) -> Path:
    """The file of the catalog for a source and a release that are files; it need not be there.

    It holds values of quasi-identifiers, so that it does not belong where the release is: it is beside the source, or,
    where that is the same directory or can't be written, in the user's own directory for the state of programs. A
    catalog that an older version made beside the release stays in use.
    """
    release_directory = Path(release).resolve().parent
    if not release_directory.is_dir():
        raise PolicyError(f"release.file: there is no directory {release_directory}.")
    older = release_directory / LOCAL_CATALOG
    if older.exists():
        return older
    home = directory_of(source)
    return (
        state_catalog(release_directory)
        if home == release_directory or not os.access(home, os.W_OK)
        else home / LOCAL_CATALOG
    )


def _local_catalogs(policy: Policy) -> tuple[Path, ...]:
    """List the files of catalogs that releases of a source file may have, in whatever directory each release is."""
    source = policy.source.file
    if source is None or source == STANDARD_INPUT or "://" in source:
        return ()
    home = directory_of(source)
    return home / LOCAL_CATALOG, state_catalog(home)


def state_catalog(directory: Path) -> Path:
    """The file of the catalog for releases in a directory that holds their source too."""
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return state / "sqlanon" / f"{directory.name}-{short_hash(str(directory.resolve()))}" / LOCAL_CATALOG


def _make_home(place: Path) -> None:
    """Make the directory of a catalog in the user's directory for state; others can't look into it."""
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        message = (
            f"The catalog's directory {place} can't be made ({error.strerror}); name its place (catalog: {{url: …}})."
        )
        raise AccessError(message) from None


def _release_schema(policy: Policy) -> str | None:
    if policy.release.table is None or policy.release.url not in (None, policy.source.url):
        return None
    named, dialect = Relation.parse(policy.release.table), find_dialect(database_url(policy) or MEMORY_URL)
    return named.schema if dialect is None else dialect.stored(named).schema


@contextlib.contextmanager
def open_session(
    policy: Policy, options: EngineOptions, *, replace_release: bool = True, makes_catalog: bool = True
) -> Iterator[Session]:
    """All that a run needs, closed at its end.

    replace_release: whether an existing release is no problem, so far as it is known before anything is opened.
    makes_catalog: see `open_catalog`.
    """
    catalog_place(policy)  # refused before anything is opened
    file = _file_of_catalog(policy)
    is_new = file is not None and not file.exists()
    with (
        open_engines(policy, options, replace_release=replace_release) as (engine, target),
        open_catalog(policy, engine, makes=makes_catalog) as catalog,
    ):
        own = has_own_catalog(policy)
        yield Session(engine, target, catalog, own_catalog=own, new_catalog=file if is_new else None)


def has_own_catalog(policy: Policy) -> bool:
    """Tell whether the catalog is in the database that the work is done in."""
    return policy.catalog.url in (None, database_url(policy))


def _file_of_catalog(policy: Policy) -> Path | None:
    """The file of a catalog that is a database of its own; None for another."""
    source, released = policy.source.file, policy.release.file
    if policy.catalog.url is not None or policy.source.url is not None or source is None or released is None:
        return None
    return local_catalog(source, released)


@contextlib.contextmanager
def open_existing_catalog(
    policy: Policy, engine: Engine, options: EngineOptions | None, *, makes: bool = False
) -> Iterator[Catalog | None]:
    """The catalog that a policy's runs have, with `engine` beside the source; None where none has been made yet.

    makes: whether the caller stands for a run, which makes one that the policy names.

    Raises AccessError where the catalog that the policy names can't be used, or is not there and not made, and where an
    older version made it.
    """
    place = catalog_place(policy)
    with contextlib.ExitStack() as stack:
        store = engine
        if place.url != policy.source.url:
            _require_file(place, policy, engine, makes=makes)
            try:
                store = stack.enter_context(connect(place.url, options))
            except AccessError:
                file = database_file(place.url)
                if file is None or file.exists():
                    raise
                yield None
                return
        if not place.is_named and not is_there(store, place.schema, place.fallback):
            yield None
            return
        catalog = stack.enter_context(catalog_at(place, policy, engine, store))
        if catalog.current() is None:
            require_first(catalog, policy, makes=makes)
            yield None
            return
        catalog.require_current()
        yield catalog


@contextlib.contextmanager
def open_recorded(place: CatalogAddress, options: EngineOptions | None = None) -> Iterator[Catalog]:
    """The catalog at a place (see `catalog_place`).

    Raises PolicyError if no run was ever recorded there, AccessError where somebody named the place or the database has
    other catalogs.
    """
    with connect(place.url, options) as engine, Catalog(engine, engine, place) as catalog:
        catalog.require_made(place)
        catalog.upgrade()
        yield catalog
