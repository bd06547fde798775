"""The session of a dry run: the databases of a run, which are looked at and never written."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from sqlanon.catalog.tables import TABLE_NAMES
from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.engines.embedded import database_file, open_in_place_of
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import AccessError
from sqlanon.policy import Policy
from sqlanon.runs.dry_run.answers import FakeAnswers
from sqlanon.runs.dry_run.catalog import RecordingCatalog
from sqlanon.runs.dry_run.engine import RecordingEngine
from sqlanon.work.session import (
    Session,
    catalog_at,
    catalog_place,
    database_url,
    has_own_catalog,
    open_engines,
    require_first,
)

_RELEASE = "-- In the release's database.\n"
_CATALOG = "-- In the catalog's database.\n"


@contextlib.contextmanager
def open_dry_session(policy: Policy, options: EngineOptions, answers: FakeAnswers) -> Iterator[Session]:
    """All that a run needs, where nothing is written; a DuckDB file that a run would make is not made."""
    with contextlib.ExitStack() as stack:
        opened: list[RecordingEngine] = []

        def opening(url: str, options: EngineOptions, *, create: bool) -> Engine:
            opened.append(_open_recording(stack, url, options, create, answers, _RELEASE if opened else ""))
            return opened[-1]

        engine, target = stack.enter_context(open_engines(policy, options, opening))
        place = catalog_place(policy)
        is_own = place.url == database_url(policy)
        store = opened[0] if is_own else _open_recording(stack, place.url, options, True, answers, _CATALOG)
        there = stack.enter_context(catalog_at(place, policy, opened[0].inner, store.inner))
        if place.is_named and there.current() is None:
            require_first(there, policy)
        with RecordingCatalog(engine, store, answers.script, there) as catalog:
            answers.of_catalog = tuple(str(there.location.relation(name)) for name in TABLE_NAMES)
            catalog.upgrade()
            yield Session(engine, target, catalog, own_catalog=has_own_catalog(policy))


def _open_recording(
    stack: contextlib.ExitStack, url: str, options: EngineOptions, create: bool, answers: FakeAnswers, where: str
) -> RecordingEngine:
    """A session that writes nothing; an empty database in memory stands for a DuckDB file that a run would make."""
    try:
        return RecordingEngine(stack.enter_context(connect(url, options)), answers, where)
    except AccessError:
        file = database_file(url)
        if not create or file is None or file.exists():
            raise
    inner = stack.enter_context(open_in_place_of(file, options))
    return RecordingEngine(inner, answers, where, file.absolute())
