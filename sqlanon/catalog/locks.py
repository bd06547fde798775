"""Locks that end with the session that holds them, so that a killed run holds none.

On PostgreSQL they are the session's advisory locks. DuckDB lets one process write a file, so there they are this
process's own. A name says what is locked, and where that is not unique, in which database.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
import time
import weakref
from collections.abc import Iterator

from sqlanon.engines.base import Engine
from sqlanon.errors import ConflictError, SqlanonError

_PAUSE = 0.2  # seconds between two looks at a lock that another holds
_guard = threading.Lock()
_of_process: set[str] = set()
_of_session: weakref.WeakKeyDictionary[Engine, set[str]] = weakref.WeakKeyDictionary()


def advisory_key(name: str) -> int:
    """The key of PostgreSQL's advisory lock for `name`: a signed 64-bit number."""
    return int.from_bytes(hashlib.sha256(b"sqlanon " + name.encode()).digest()[:8], "big", signed=True)


def take(engine: Engine, name: str) -> bool:
    """Take the lock called `name` for this session; False if it is held already, by this session or another."""
    with _guard:
        names = _of_session.setdefault(engine, set())
        if name in names:  # PostgreSQL would let the same session take it twice
            return False
        statement = engine.lock_statement(name, advisory_key(name))
        taken = name not in _of_process if statement is None else bool(engine.fetch_one(statement)[0])
        if taken:
            names.add(name)
        if taken and statement is None:
            _of_process.add(name)
        return taken


def give_back(engine: Engine, name: str) -> None:
    """Give the lock back. A session that broke meanwhile has lost it anyway."""
    names = _of_session.get(engine, set())
    if name not in names:
        return
    names.discard(name)
    statement = engine.unlock_statement(name, advisory_key(name))
    if statement is None:
        _of_process.discard(name)
        return
    with contextlib.suppress(SqlanonError):
        engine.fetch_one(statement)


@contextlib.contextmanager
def held(engine: Engine, name: str, conflict: str, wait: float = 0.0) -> Iterator[None]:
    """Hold a lock while the block runs; one that is held already is waited for so many seconds.

    Raises:
        ConflictError: with the message `conflict`, if the lock is held still.
    """
    until = time.monotonic() + wait
    while not take(engine, name):
        if time.monotonic() >= until:
            raise ConflictError(conflict)
        time.sleep(_PAUSE)
    try:
        yield
    finally:
        give_back(engine, name)
