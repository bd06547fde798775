"""Text files that commands write."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from urllib.parse import quote

from sqlanon.cli.call import Call
from sqlanon.engines.private_files import owners_alone
from sqlanon.errors import AccessError, PolicyError

STDOUT = "-"


def require_writable(path: Path | None) -> None:
    """Raise AccessError for a file in no directory, before a long search and not after it."""
    if path is not None and not path.absolute().parent.is_dir():
        raise AccessError(f"{path} can't be written: there is no directory {path.absolute().parent}.")


def link_to(file: Path, page: Path | None) -> str:
    """The address of a file as a page links to it: from the page's directory, or here, if it goes to stdout.

    Raises PolicyError where there is no such file.
    """
    if not file.is_file():
        raise PolicyError(f"There is no file {file} to link to: `sqlanon explore POLICY -o {quoted(file)}` makes it.")
    here = Path() if page is None or str(page) == STDOUT else page.absolute().parent
    return quote(Path(os.path.relpath(file.absolute(), here.absolute())).as_posix())


def quoted(path: Path) -> str:
    """A path as a shell takes it, for commands to go on with."""
    return shlex.quote(os.fspath(path))


def give(call: Call, output: Path | None, text: str) -> None:
    """Print a command's text, or write it where `--output` says; `-` is stdout."""
    if output is None or str(output) == STDOUT:
        give_exactly(text)
        return
    write(output, text)
    call.note(f"Wrote {output}.")


def give_exactly(text: str) -> None:
    """Print a text that programs read as it stands; in UTF-8, where stdout has no bytes for all of its characters."""
    whole = text if text.endswith("\n") else f"{text}\n"
    try:
        whole.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        sys.stdout.flush()
        sys.stdout.buffer.write(whole.encode("utf-8", "backslashreplace"))
        sys.stdout.buffer.flush()
    else:
        print(whole, end="")


def write(path: Path, text: str) -> None:
    """Write a file for its owner alone; one that is there keeps its mode. Raises AccessError if it can't be."""
    try:
        with open(path, "w", encoding="utf-8", opener=owners_alone) as file:
            file.write(text)
    except OSError as error:
        raise AccessError(f"{path} can't be written: {error.strerror}.") from None
