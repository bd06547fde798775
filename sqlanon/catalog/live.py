"""Runs that go on: what they tell others, and how others ask them to end.

Where the catalog is in PostgreSQL, a run keeps a row in its table `live`. A DuckDB file is locked by the process that
works on it, so there the run keeps a small file beside the database, and heeds another one that asks it to end.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlanon.catalog.connection import CatalogConnection
from sqlanon.support import process

_VERSION = 1  # of the file
SILENT = 15.0  # seconds without a sign of life, after which a run counts as dead


@dataclass(frozen=True)
class LiveRun:
    """A run that has not ended, by its last report.

    state: `phase`, and the figures of its search (`sqlanon.work.figures`); empty where it reports nothing on its way.
    seconds: since it began, at the report; silent: the report's age, None where the run is not to report.
    alive: whether its process lives, as far as can be known.
    """

    run: str
    source: str
    release: str
    process: str
    state: Mapping[str, Any]
    seconds: float
    silent: float | None
    alive: bool

    @property
    def phase(self) -> str:
        return str(self.state.get("phase", "procedure"))


class Channel(ABC):
    """The connection of one run with sessions that follow or end the run."""

    @abstractmethod
    def tell(self, state: Mapping[str, Any], seconds: float) -> bool:
        """Tell how far the run is after so many seconds; whether it has been asked to end."""

    @abstractmethod
    def close(self) -> None:
        """The run goes on no more."""


class CatalogChannel(Channel):
    """A row of the catalog's table `live`."""

    def __init__(self, connection: CatalogConnection, run: str) -> None:
        self._connection = connection
        self._run = run
        self._connection.do("note that a run goes on", lambda t: t.rows("start_progress", {"run": run}))

    def tell(self, state: Mapping[str, Any], seconds: float) -> bool:
        values = {"run": self._run, "state": json.dumps(dict(state)), "seconds": seconds}
        rows = self._connection.do("note how far a run is", lambda t: t.rows("tell_progress", values))
        return any(row["cancel"] for row in rows)

    def close(self) -> None:
        forgotten = "note that a run goes on no more"
        self._connection.do(forgotten, lambda t: t.rows("delete_of_run", {"run": self._run}, of="live"))


def ask(connection: CatalogConnection, run: str) -> bool:
    """Ask a run to end; False where it keeps no row."""
    return bool(connection.do("ask a run to end", lambda t: t.rows("ask_to_end", {"run": run})))


class FileChannel(Channel):
    """`clinic.duckdb.run-ID.json` beside `clinic.duckdb`; `clinic.duckdb.run-ID.cancel` asks the run to end."""

    def __init__(self, database: Path, run: str, facts: Mapping[str, str]) -> None:
        """facts: source, release and process of the run."""
        self._file, self._request = _files(database, run)
        self._facts = {"version": _VERSION, "run": run, **facts}
        self.tell({}, 0.0)

    def tell(self, state: Mapping[str, Any], seconds: float) -> bool:
        progress = self._facts | {"state": dict(state), "seconds": seconds}
        part = self._file.with_suffix(".part")
        part.unlink(missing_ok=True)
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            json.dump(progress, file)
        part.replace(self._file)
        return _is_from_us(self._request)

    def close(self) -> None:
        remove_files(self._file)


def _files(database: Path, run: str) -> tuple[Path, Path]:
    stem = f"{database.name}.run-{run}"
    return database.with_name(stem + ".json"), database.with_name(stem + ".cancel")


def _is_from_us(request: Path) -> bool:
    """Tell whether there is a request of this user, or of root: others may be able to write in the directory."""
    with contextlib.suppress(FileNotFoundError):
        return not hasattr(os, "getuid") or request.lstat().st_uid in (os.getuid(), 0)
    return False


def ask_by_file(database: Path, run: str) -> None:
    """Ask a run on a DuckDB file to end."""
    _files(database, run)[1].touch(mode=0o600)


def remove_files(file: Path) -> None:
    """Remove what a run kept beside its database."""
    for path in (file, file.with_suffix(".cancel"), file.with_suffix(".part")):
        path.unlink(missing_ok=True)


def list_files(database: Path) -> Iterator[tuple[Path, LiveRun]]:
    """The runs that keep a file beside a DuckDB file, the oldest first; those whose process is gone count as dead."""
    for file in sorted(database.parent.glob(f"{_escaped(database.name)}.run-*.json")):
        try:
            progress, at = json.loads(file.read_text(encoding="utf-8")), file.stat().st_mtime
        except FileNotFoundError:  # it ended meanwhile
            continue
        yield file, _live_run(progress, max(0.0, time.time() - at))


def _live_run(progress: Mapping[str, Any], silent: float) -> LiveRun:
    names = ("run", "source", "release", "process", "state", "seconds")
    return LiveRun(
        **{name: progress[name] for name in names}, silent=silent, alive=process.is_alive(progress["process"])
    )


def _escaped(name: str) -> str:
    """A name that a glob takes literally."""
    return "".join(f"[{char}]" if char in "*?[" else char for char in name)
