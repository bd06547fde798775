"""Text files that commands write."""

from __future__ import annotations

from pathlib import Path

from sqlanon.errors import AccessError


def require_writable(path: Path) -> None:
    """Before a long search, not after it."""
    if not path.absolute().parent.is_dir():
        raise AccessError(f"{path} can't be written: there is no directory {path.absolute().parent}.")


def write(path: Path, text: str) -> None:
    """Write a file; raises AccessError if it can't be."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise AccessError(f"{path} can't be written: {error.strerror}.") from None
