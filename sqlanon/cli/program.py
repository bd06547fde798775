"""The program: all commands, and what becomes of a command line that is wrong."""

from __future__ import annotations

import json
import signal
import sys
from typing import Annotated, Any

import typer

from sqlanon import __version__
from sqlanon.cli import (
    catalog,
    demo,
    export,
    hierarchy,
    jobs,
    lattice,
    policy,
    record,
    registry,
    report,
    roles,
    rules,
    schedules,
    schema,
    utility,
    verify,
)
from sqlanon.cli.call import INTERRUPTED
from sqlanon.documents import is_text
from sqlanon.engines.private import umask_guard
from sqlanon.engines.urls import scrubbed

_HELP = (
    "Anonymize a relational table where it lives.\n\n"
    "Exit codes: 0 done; 1 an error at run time; 2 a wrong command line or policy, or no such file; 3 the protection "
    "can't be met, or a verification failed; 4 no connection or no permission; 5 published, but the output could not "
    "be written; 130 interrupted."
)
_UsageError: Any = typer.BadParameter.__mro__[1]  # the base of all errors in a command line

app = typer.Typer(
    name="sqlanon",
    help=_HELP,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"sqlanon {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Options of the program itself."""


policy.register(app)
lattice.register(app)
verify.register(app)
schema.register(app)
registry.register(app)
utility.register(app)
catalog.register(app)
roles.register(app)
rules.register(app)
jobs.register(app)
schedules.register(app)
export.register(app)
record.register(app)
report.register(app)
hierarchy.register(app)
demo.register(app)


def main(arguments: list[str] | None = None) -> None:
    """Run the program with the arguments of the process, and end the process with the exit code.

    All files that it makes meanwhile are for their owner alone.
    """
    given = sys.argv[1:] if arguments is None else arguments
    _end_politely()
    mask = umask_guard.narrow()
    try:
        _refuse_what_is_no_text(given)
        code = app(given, prog_name="sqlanon", standalone_mode=False)
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
