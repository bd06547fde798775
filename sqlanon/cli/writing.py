"""Text files that commands write."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from sqlanon.cli.call import Call
from sqlanon.engines.private import owners_alone
from sqlanon.errors import AccessError

STDOUT = "-"


def require_writable(path: Path | None) -> None:
    """Raise AccessError for a file in no directory, before a long search and not after it."""
    if path is not None and not path.absolute().parent.is_dir():
        raise AccessError(f"{path} can't be written: there is no directory {path.absolute().parent}.")


def quoted(path: Path) -> str:
    """A path as a shell takes it, for commands to go on with."""
    return shlex.quote(os.fspath(path))


def give(call: Call, output: Path | None, text: str) -> None:
    """Print a command's text, or write it where `--output` says; `-` is stdout."""
    if output is None or str(output) == STDOUT:
        print(text, end="" if text.endswith("\n") else "\n")
        return
    write(output, text)
    call.note(f"Wrote {output}.")


def write(path: Path, text: str) -> None:
    """Write a file for its owner alone; one that is there keeps its mode. Raises AccessError if it can't be."""
    try:
        with open(path, "w", encoding="utf-8", opener=owners_alone) as file:
            file.write(text)
    except OSError as error:
        raise AccessError(f"{path} can't be written: {error.strerror}.") from None
