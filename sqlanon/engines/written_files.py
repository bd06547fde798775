"""Files that a run writes beside its databases: the release's own, and those in which rows are carried over."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
from pathlib import Path

from sqlanon.engines.private import private_directory

_PRIVATE = 0o600


def sha256_of(path: str | Path) -> str:
    """Digest the bytes of a file, as `sha256sum` prints it."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class WrittenFiles:
    """All that runs do to files of their own; errors are those of the operating system."""

    def private_directory(self, parent: str | Path | None) -> contextlib.AbstractContextManager[Path]:
        """Make a directory that only this user can read, for the time of the block."""
        return private_directory(parent)

    def create(self, path: Path) -> None:
        """Create an empty file that only this user can read; there must be none."""
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _PRIVATE))

    def move(self, path: Path, place: Path) -> None:
        """Move a file from one private directory to another."""
        shutil.move(path, place)

    def publish(self, part: Path, target: Path) -> None:
        """Let a written file take the target's place and mode: readers find the old file or the new one."""
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else _PRIVATE  # its owner decides who reads it
        os.chmod(part, mode)
        _to_disk(part)
        os.replace(part, target)
        _to_disk(target.parent)

    def remove(self, path: Path) -> None:
        """Remove a file, if there is one."""
        path.unlink(missing_ok=True)

    def digest(self, path: Path) -> str:
        """Digest the bytes of a file."""
        return sha256_of(path)


def _to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
