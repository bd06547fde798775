"""Text files that commands write."""

from __future__ import annotations

from pathlib import Path

from sqlanon.engines.private import umask_guard
from sqlanon.errors import AccessError


def require_writable(path: Path) -> None:
    """Before a long search, not after it."""
    if not path.absolute().parent.is_dir():
        raise AccessError(f"{path} can't be written: there is no directory {path.absolute().parent}.")


def write(path: Path, text: str) -> None:
    """Write a file, of the mode that the user's files have; raises AccessError if it can't be."""
    try:
        is_new = not path.exists()
        path.write_text(text, encoding="utf-8")
        if is_new:
            path.chmod(0o666 & ~umask_guard.usual())
    except OSError as error:
        raise AccessError(f"{path} can't be written: {error.strerror}.") from None
