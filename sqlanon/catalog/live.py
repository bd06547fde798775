"""Runs that go on: what they tell others, and how others ask them to end.

Where the catalog is in PostgreSQL, a run keeps a row in its table `live`. A DuckDB file is locked by the process that
works on it, so there the run keeps a small file beside the database, and heeds another one that asks it to end.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import stat
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlanon.catalog.connection import CatalogConnection
from sqlanon.errors import PolicyError
from sqlanon.support import process
from sqlanon.support.documents import parse_json

_VERSION = 1  # of the file
_MOST_BYTES = 2**20
_LEFT = re.compile(r"\.run-(\d{6}-\d{6}-[0-9a-f]{8})\.(?:part|cancel)$")
SILENT = 15.0  # seconds without a sign of life, after which a run counts as dead


@dataclass(frozen=True)
class LiveRun:
    """A run that has not ended, by its last report.

    state: `phase`, and the figures of its search (`sqlanon.work.control`); empty where it reports nothing on its way.
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
        self._connection.do("note that a run goes on no more", lambda t: t.delete("live", {"run": self._run}))


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


class NoProgressError(Exception):
    """A file that is no progress of a run, whatever its name; the text says why."""


def list_files(database: Path) -> Iterator[tuple[Path, LiveRun]]:
    """The runs that keep a file beside a DuckDB file, the oldest first; those whose process is gone count as dead.

    Files that are no progress of a run are passed over.
    """
    for file in progress_files(database):
        with contextlib.suppress(FileNotFoundError, NoProgressError):  # the first: the run ended meanwhile
            yield file, read_file(file)


def progress_files(database: Path) -> list[Path]:
    """List the files beside a DuckDB file that are called as the progress of a run is, the oldest first."""
    return sorted(database.parent.glob(f"{_escaped(database.name)}.run-*.json"))


def orphans(database: Path) -> list[tuple[Path, str]]:
    """List what runs left beside a DuckDB file without a progress file: unfinished ones, and requests; with the run."""
    left = sorted(database.parent.glob(f"{_escaped(database.name)}.run-*"))
    named = [(path, _LEFT.search(path.name)) for path in left if not path.with_suffix(".json").exists()]
    return [(path, name[1]) for path, name in named if name is not None and _is_own_file(path)]


def read_file(file: Path) -> LiveRun:
    """Read the progress of a run.

    Raises NoProgressError where the file is none, FileNotFoundError where it is gone.
    """
    try:
        text, at = _read_own_file(file)
        return _live_run(parse_json(text), file, max(0.0, time.time() - at))
    except FileNotFoundError:
        raise
    except OSError as error:
        raise NoProgressError(f"it can't be read ({error.strerror})") from None
    except (PolicyError, ValueError, OverflowError):
        raise NoProgressError("it holds no progress of a run") from None


def _read_own_file(file: Path) -> tuple[str, float]:
    """Read a file of this user's within bounds; returns its text, and when it was written."""
    descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with open(descriptor, "rb") as opened:
        made = os.fstat(descriptor)
        if not stat.S_ISREG(made.st_mode):
            raise NoProgressError("it is no file")
        data = opened.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise NoProgressError("it is too large for the progress of a run")
    return data.decode(), made.st_mtime


def _live_run(progress: Any, file: Path, silent: float) -> LiveRun:
    match progress:
        case {
            "version": int(),
            "run": str(run),
            "source": str(source),
            "release": str(release),
            "process": str(owner),
            "state": dict(state),
            "seconds": int() | float() as seconds,
        } if file.name.endswith(f".run-{run}.json") and process.is_identity(owner) and math.isfinite(seconds):
            if not all(map(_is_figure, state.items())):
                raise NoProgressError("it holds no progress of a run")
            return LiveRun(run, source, release, owner, state, seconds, silent, process.is_alive(owner))
    raise NoProgressError("it holds no progress of a run")


def _is_figure(item: tuple[str, Any]) -> bool:
    """Tell whether an entry of a state is the name of its phase, or a number."""
    name, value = item
    return isinstance(value, str if name == "phase" else int | float)


def _is_own_file(path: Path) -> bool:
    """Tell whether a path is a file of this user's, and no link."""
    made = path.lstat()
    return stat.S_ISREG(made.st_mode) and (not hasattr(os, "getuid") or made.st_uid == os.getuid())


def _escaped(name: str) -> str:
    """A name that a glob takes literally."""
    return "".join(f"[{char}]" if char in "*?[" else char for char in name)
