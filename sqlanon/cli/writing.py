"""Text files that commands write."""

from __future__ import annotations

from pathlib import Path

from sqlanon.engines.private import owners_alone
from sqlanon.errors import AccessError


def require_writable(path: Path) -> None:
    """Before a long search, not after it."""
    if not path.absolute().parent.is_dir():
        raise AccessError(f"{path} can't be written: there is no directory {path.absolute().parent}.")


def write(path: Path, text: str) -> None:
    """Write a file for its owner alone; one that is there keeps its mode. Raises AccessError if it can't be."""
    try:
        with open(path, "w", encoding="utf-8", opener=owners_alone) as file:
            file.write(text)
    except OSError as error:
        raise AccessError(f"{path} can't be written: {error.strerror}.") from None
