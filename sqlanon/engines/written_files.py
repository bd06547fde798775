"""Files that a run writes beside its databases: the release's own, and those in which rows are carried over.

A release may be a directory of Parquet files. No two of these can change places in one step everywhere: the old one is
put aside under a name of its own, then the new one takes its place, and whoever comes after a process that died between
the two puts the old one back.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
from pathlib import Path

from sqlanon.engines.private_files import private_directory

_PRIVATE = 0o600
_FOR_FILES = 0o666  # of the mode of a directory, what its files have


def sha256_of(path: str | Path) -> str:
    """Digest the bytes of a file, as `sha256sum` prints it; of a directory, what it prints of the files in it."""
    if Path(path).is_dir():
        lines = [f"{sha256_of(file)}  {file.name}\n" for file in sorted(Path(path).glob("*.parquet"))]
        return hashlib.sha256("".join(lines).encode()).hexdigest()
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

    def publish_directory(self, part: Path, target: Path) -> None:
        """Let a written directory take the target's place and mode, by two renames; see the module."""
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
        for file in part.iterdir():
            os.chmod(file, _PRIVATE if mode is None else mode & _FOR_FILES)
            _to_disk(file)
        os.chmod(part, stat.S_IRWXU if mode is None else mode)
        _to_disk(part)
        aside = aside_of(target)
        if mode is not None:
            os.rename(target, aside)
        try:
            os.rename(part, target)
        except OSError:
            put_back(target)
            raise
        with contextlib.suppress(OSError):  # it is published: what is left aside, the next run or `gc` removes
            _to_disk(target.parent)
            self.remove(aside)

    def remove(self, path: Path) -> None:
        """Remove a file, or a directory with its files, if there is one."""
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)

    def digest(self, path: Path) -> str:
        """Digest the bytes of a file, or of the files of a directory."""
        return sha256_of(path)


def aside_of(target: Path) -> Path:
    """The name of a released directory while another one takes its place."""
    return target.with_name(f".{target.name}.sqlanon-old")


def put_back(target: Path) -> str | None:
    """Undo, or end, what a process began that died while it published; says what was done, if anything."""
    aside = aside_of(target)
    if not aside.is_dir():
        return None
    if target.exists():
        shutil.rmtree(aside)
        return f"removed directory {aside}"
    os.rename(aside, target)
    return f"put directory {target} back"


def _to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
