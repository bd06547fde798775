"""The standard streams of the program: stderr ends no command, and output that stdout does not take is said."""

from __future__ import annotations

import io
import os
import sys
from typing import Any


class UnwrittenOutput(OSError):
    """Output that stdout did not take: a full disk, a descriptor that is closed."""


class _Stderr(io.FileIO):
    """Progress, notes and errors; where nobody takes them any more they are lost, and the command goes on."""

    def write(self, data: Any) -> int:
        """Write bytes, or lose them."""
        try:
            return super().write(data) or 0
        except OSError:
            return len(data)


class _Stdout(io.FileIO):
    """The output of a command."""

    def write(self, data: Any) -> int:
        """Write bytes. Raises UnwrittenOutput, or BrokenPipeError where nobody reads any more."""
        try:
            return super().write(data) or 0
        except BrokenPipeError:
            raise
        except OSError as error:
            raise UnwrittenOutput(error.errno, error.strerror) from None


def open_streams() -> None:
    """Give the process streams of its own; one that was closed takes no file's place, and takes no output.

    Characters that a stream has no bytes for are escaped, such as on a terminal of ASCII. A text that is read as it
    stands, such as a draft, is written in UTF-8: see `writing.give_exactly`. Streams that a caller of `main` put in
    the place of those of the process stay.
    """
    for number, flags in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        _open_closed(number, flags)
    if sys.stdout is sys.__stdout__:
        sys.stdout = _text(_Stdout(1, "w", closefd=False), sys.stdout)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _text(_Stderr(2, "w", closefd=False), sys.stderr)


def _open_closed(number: int, flags: int) -> None:
    """Open a descriptor that is closed, so that no database gets its number, and what is printed, for a file."""
    try:
        os.fstat(number)
    except OSError:
        opened = os.open(os.devnull, flags)
        os.dup2(opened, number)
        if opened != number:
            os.close(opened)


def _text(raw: io.FileIO, stream: Any) -> io.TextIOWrapper:
    """The stream of a descriptor, of the encoding that another one has; stderr, and a terminal, take each line."""
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=getattr(stream, "encoding", "utf-8"),
        errors="backslashreplace",
        line_buffering=raw.isatty() or raw.fileno() == 2,
        write_through=getattr(stream, "write_through", False),
    )
