"""Private files: directories for spilled data, and the modes of the files that a session makes.

A private directory is named so that `gc` can find it, and its process holds a lock on a file in it, so that `gc`
removes those of dead processes alone.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import shutil
import stat
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, TextIO

from sqlanon.errors import AccessError
from sqlanon.support import process

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_PREFIX = "sqlanon-spill-"
_NAME = re.compile(_PREFIX + r"(\d+)-\w+")  # the number is the id of the process that made it
_OWNER = "owner"  # the file that holds the identity of that process
_LONGEST = 4096  # characters of it
_OTHERS = 0o077

_held: dict[Path, TextIO] = {}  # the owner files of this process's directories, each with its lock
_spooled: dict[BinaryIO, Path] = {}
_swept: set[Path] = set()  # directories of dead processes that were removed on the way, for `gc` to name


def make_private_directory(parent: str | os.PathLike[str] | None = None) -> Path:
    """Make a directory that only this user can read, in `parent` or the system's directory for temporary files."""
    try:
        if parent is not None:
            Path(parent).mkdir(parents=True, exist_ok=True)
            _swept.update(remove_dead_directories(Path(parent)))
        directory = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=parent)).resolve()
        owner = open(directory / _OWNER, "x", encoding="utf-8", opener=owners_alone)  # noqa: SIM115
        owner.write(process.this_process_unasked())
        owner.flush()
        _lock(owner)
        _held[directory] = owner
        return directory
    except OSError as error:
        raise AccessError(f"The temporary directory {parent} can't be used: {error.strerror}.") from None


def remove_directory(path: str | os.PathLike[str] | None) -> None:
    """Remove a private directory and what is in it."""
    if path is not None:
        if (owner := _held.pop(Path(path), None)) is not None:
            owner.close()
        shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def private_directory(parent: str | os.PathLike[str] | None = None) -> Iterator[Path]:
    """A private directory for the time of the block."""
    directory = make_private_directory(parent)
    try:
        yield directory
    finally:
        remove_directory(directory)


def remove_dead_directories(parent: Path, problems: list[str] | None = None) -> Iterator[Path]:
    """Remove the private directories in `parent` that this user's dead processes left; name each.

    Those that this process removed before are named too. problems: is told of those that can't be removed.
    """
    for path in sorted(one for one in _swept if one.parent == parent):
        _swept.discard(path)
        yield path
    for path in sorted(parent.glob(f"{_PREFIX}*")):
        try:
            if remove_dead_directory(path):
                yield path
        except FileNotFoundError:  # another command has removed it meanwhile
            continue
        except OSError as error:
            if problems is not None:
                problems.append(f"skipped directory {path}: it can't be removed ({error.strerror})")


def remove_dead_directory(path: Path) -> bool:
    """Remove a private directory that a dead process of this user left; tell whether it was removed."""
    if not (_NAME.fullmatch(path.name) and os.path.lexists(path) and is_own_directory(path)) or _is_in_use(path):
        return False
    shutil.rmtree(path)
    return True


def is_own_directory(path: Path) -> bool:
    """Tell whether a path is a directory that this user made: the temporary directory is everyone's."""
    made = path.lstat()
    return path.is_dir() and not path.is_symlink() and (not hasattr(os, "getuid") or made.st_uid == os.getuid())


def _is_in_use(path: Path) -> bool:
    """Tell whether the process that made a private directory lives.

    It holds a lock until it ends, however it ends, which another container sees too; its identity tells where locks are
    not to be had, and between the making of the directory and the lock. Ids alone are used again.
    """
    try:
        with open(path / _OWNER, "r+", encoding="utf-8", opener=_without_waiting) as owner:
            made = os.fstat(owner.fileno()).st_mtime
            return not _lock(owner) or process.is_alive(owner.read(_LONGEST), made)
    except (OSError, ValueError):  # killed as it made the directory or removed it; made by an older version
        named = _NAME.fullmatch(path.name)
        return named is None or process.lived_at(int(named[1]), path.lstat().st_mtime)


def _without_waiting(path: str, flags: int) -> int:
    """An opener of files that somebody else may have put there: a link is not followed, a pipe is not waited for."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def _lock(owner: TextIO) -> bool:
    """Take the lock of a directory, where the file's system has locks; False where a living process holds it."""
    if fcntl is None:
        return True
    with contextlib.suppress(OSError):
        try:
            fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


class UmaskGuard:
    """Keeps the files that are made from others for as long as a session with a database's file is open.

    DuckDB writes beside its file at any time, and by the mask of the process: so that mask is narrowed meanwhile.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._masks: list[int] = []
        self._usual: int | None = None  # the user's own mask, while it is narrowed

    def enter(self, database: Path) -> int:
        """Narrow the mask to what the readers of a database's file are; of one that is new, to its owner."""
        mask = _OTHERS if not database.exists() else 0o777 & ~stat.S_IMODE(database.stat().st_mode) & _OTHERS
        with self._lock:
            self._masks.append(mask)
            self._set()
        return mask

    def narrow(self) -> int:
        """Keep all that is made from others."""
        with self._lock:
            self._masks.append(_OTHERS)
            self._set()
        return _OTHERS

    def leave(self, mask: int) -> None:
        """Take back what `enter` or `narrow` returned."""
        with self._lock:
            self._masks.remove(mask)
            self._set()

    def usual(self) -> int:
        """The mask of the user, for files that are to be as they want them."""
        with self._lock:
            if self._usual is not None:
                return self._usual
            mask = os.umask(_OTHERS)
            os.umask(mask)
            return mask

    def _set(self) -> None:
        if self._usual is None:
            self._usual = os.umask(_OTHERS)
        wanted = self._usual
        for mask in self._masks:
            wanted |= mask
        os.umask(wanted)
        if not self._masks:
            self._usual = None


umask_guard = UmaskGuard()
"""The guard of this process."""


def owners_alone(path: str, flags: int) -> int:
    """An opener of files: a new one is its owner's alone, one that is there keeps its mode."""
    return os.open(path, flags, 0o600)


def spool_standard_input() -> Path:
    """Copy standard input, once a process, to a private file that goes with the process."""
    stream: BinaryIO | None = getattr(sys.stdin, "buffer", None)
    if stream is None:
        raise AccessError("Standard input is closed; name a file.")
    if stream not in _spooled:
        directory = make_private_directory()
        atexit.register(remove_directory, directory)
        path = directory / "input.csv"
        with path.open("xb") as file:
            shutil.copyfileobj(stream, file)
        _spooled[stream] = path
    return _spooled[stream]
