"""The program's commands, by the module that has them; a call loads only the module of its command."""

from __future__ import annotations

import functools
import importlib
from typing import Annotated

import typer

from sqlanon import __version__

COMMANDS = {
    "policy": ("init", "check", "run"),
    "lattice": ("lattice",),
    "explore": ("explore",),
    "verify": ("verify",),
    "risk": ("risk",),
    "ask": ("ask", "ask-script"),
    "associations": ("associations",),
    "audit": ("audit",),
    "schema": ("schema",),
    "registry": ("models", "algorithms", "qualities"),
    "utility": ("utility",),
    "loss": ("loss",),
    "reconstruct": ("reconstruct",),
    "catalog": ("runs", "show", "cancel", "gc", "db"),
    "budget": ("budget",),
    "roles": ("grant-script",),
    "rules": ("rules", "apply"),
    "jobs": ("freeze", "jobs", "job"),
    "condense": ("condense",),
    "federate": ("federate",),
    "schedules": ("schedule", "unschedule"),
    "export": ("export",),
    "record": ("record",),
    "report": ("report", "diff", "sweep"),
    "hierarchy": ("hierarchy",),
    "demo": ("demo",),
}  # in the order of the program's help
_HELP = (
    "Anonymize a relational table where it lives.\n\n"
    "Exit codes: 0 done; 1 an error at run time; 2 a wrong command line or policy, or no such file; 3 the protection "
    "can't be met, or a verification failed; 4 no connection or no permission; 5 published, but the output could not "
    "be written; 130 interrupted."
)


@functools.cache
def program(word: str | None = None) -> typer.Typer:
    """Build the program with all commands, or with those of one module where `word` is the name of a command."""
    app = typer.Typer(
        name="sqlanon",
        help=_HELP,
        no_args_is_help=True,
        add_completion=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    for module in [module for module, names in COMMANDS.items() if word in names] or COMMANDS:
        importlib.import_module(f"sqlanon.cli.{module}").register(app)
    return app


def _version(wanted: bool) -> None:
    if wanted:
        print(f"sqlanon {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Options of the program itself."""
