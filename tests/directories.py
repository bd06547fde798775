"""Directories of the tests in memory, named after the process that made them: what a killed session left is removed."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from pathlib import Path

import psutil

from tests.patience import PATIENCE

_ROOM = 4 * 2**30  # bytes
_OURS = re.compile(r"sqlanon-(?:pg|t)-(?P<process>\d+)-")


def make_directory(kind: str) -> Path:
    """Make an empty directory that lives until its maker removes it, or until the session after its maker's death."""
    return Path(tempfile.mkdtemp(prefix=f"sqlanon-{kind}-{os.getpid()}-", dir=_roomy_parent()))


def remove_left_directories() -> None:
    """Remove directories whose maker is dead, and end the servers in them: they would fill memory until a reboot."""
    for parent in (Path("/dev/shm"), Path("/tmp")):
        for directory in parent.glob("sqlanon-*-*-*"):
            made = _OURS.match(directory.name)
            if made is not None and not psutil.pid_exists(int(made["process"])):
                _end_server(directory)
                shutil.rmtree(directory, ignore_errors=True)


def _end_server(directory: Path) -> None:
    data = str(directory / "data")
    with contextlib.suppress(OSError, ValueError, psutil.NoSuchProcess):
        server = psutil.Process(int((directory / "data" / "postmaster.pid").read_text().split()[0]))
        if data in server.cmdline():
            server.terminate()
            server.wait(PATIENCE)


def _roomy_parent() -> str:
    """A short path, as a socket's has at most 107 bytes; in memory where there is room: commits are all but free."""
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > _ROOM
    return str(memory) if roomy else "/tmp"
