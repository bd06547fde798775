"""Private directories for what must not outlive a session, named so that `gc` can tell whose they are."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import BinaryIO

from sqlanon.errors import AccessError

PREFIX = "sqlanon-spill-"
SPILL = re.compile(PREFIX + r"(\d+)-\w+")
"""Names of such directories; the number is the id of the process that made one."""

_spooled: dict[BinaryIO, Path] = {}


def make_private_directory(parent: str | os.PathLike[str] | None = None) -> Path:
    """Make a directory that only this user can read, in `parent` or the system's directory for temporary files."""
    try:
        if parent is not None:
            Path(parent).mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=parent)).resolve()
    except OSError as error:
        raise AccessError(f"The temporary directory {parent} can't be used: {error.strerror}.") from None


def remove_directory(path: str | os.PathLike[str] | None) -> None:
    """Remove a private directory and what is in it."""
    if path is not None:
        shutil.rmtree(path, ignore_errors=True)


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
