"""The program as a process: signals, exit codes, and messages on command lines that are wrong."""

from __future__ import annotations

import json
import signal
import sys
from typing import Any

import typer

from sqlanon.cli.call import INTERRUPTED
from sqlanon.cli.commands import program
from sqlanon.cli.streams import open_streams
from sqlanon.engines.private_files import umask_guard
from sqlanon.engines.urls import scrubbed
from sqlanon.support.documents import is_text

_UsageError: Any = typer.BadParameter.__mro__[1]  # the base of all errors in a command line


def main(arguments: list[str] | None = None) -> None:
    """Run the program with the arguments of the process, and end the process with the exit code.

    All files that it makes meanwhile are for their owner alone.
    """
    given = sys.argv[1:] if arguments is None else arguments
    _end_politely()
    open_streams()
    mask = umask_guard.narrow()
    try:
        _refuse_what_is_no_text(given)
        code = program(given[0] if given else None)(given, prog_name="sqlanon", standalone_mode=False)
        _end_as_decided()
    except _UsageError as error:
        code = _wrong_usage(error, "--json" in given)
    except (typer.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    finally:
        umask_guard.leave(mask)
    sys.exit(code or 0)


def _refuse_what_is_no_text(given: list[str]) -> None:
    """Bytes that are no UTF-8 come as half characters, which can neither be printed nor be sent to a database."""
    for place, argument in enumerate(given, 1):
        if not is_text(argument):
            raise typer.BadParameter(f"argument {place} of the command line is not text in UTF-8.")


def _end_politely() -> None:
    """Let a polite kill, and a terminal that is closed, end the run like Ctrl-C: nothing is left behind.

    A hang-up that is ignored (nohup) stays so.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.default_int_handler)


def _end_as_decided() -> None:
    """Let interrupts that come while the interpreter ends change the exit code no more; a kill still ends it."""
    for name in ("SIGINT", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _wrong_usage(error: Any, as_json: bool) -> int:
    """The command line is wrong; what was typed may hold a password."""
    code, message = int(error.exit_code), scrubbed(str(error.format_message()))
    if as_json:
        print(
            json.dumps({"error": {"type": "UsageError", "message": message, "problems": [message], "exit_code": code}})
        )
    elif type(error).__name__ == "NoArgsIsHelpError":
        error.show()
    else:
        usage = [] if error.ctx is None else [error.ctx.get_usage().strip()]
        print("\n".join([*usage, f"Error: {message}"]), file=sys.stderr)
    return code
