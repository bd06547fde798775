"""The program's commands, by the module that has them; a call loads only the module of its command."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Iterable
from typing import Annotated

import typer

from sqlanon import __version__
from sqlanon.support.methods import Method, added_methods, own_methods
from sqlanon.support.suggest import any_of

COMMANDS = {
    "policy": ("init", "check", "run"),
    "verify": ("verify",),
    "risk": ("risk",),
    "ask": ("ask", "ask-script"),
    "associations": ("associations",),
    "schema": ("schema",),
    "registry": ("models", "algorithms"),
    "utility": ("utility",),
    "loss": ("loss",),
    "catalog": ("runs", "show", "cancel", "gc", "db"),
    "account": ("account",),
    "roles": ("grant-script",),
    "rules": ("rules", "apply"),
    "jobs": ("freeze", "jobs", "job"),
    "schedules": ("schedule", "unschedule"),
    "export": ("export",),
    "record": ("record",),
    "report": ("report", "diff", "sweep"),
    "hierarchy": ("hierarchy",),
    "demo": ("demo",),
}  # in the order of the program's help; methods add theirs
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
    if word == "--version":
        return app
    own = own_commands()
    wanted = [module for module, names in own.items() if word in names]
    for module in wanted or own:
        importlib.import_module(module).register(app)
    if not wanted:
        _add_commands(app, {name for names in own.values() for name in names})
    return app


def own_commands() -> dict[str, tuple[str, ...]]:
    """List the program's own commands by the modules that have them, those of its methods last."""
    return {f"sqlanon.cli.{module}": names for module, names in COMMANDS.items()} | _commands_of(own_methods())


def _add_commands(app: typer.Typer, taken: set[str]) -> None:
    """Add the commands of installed packages; tell of those that can't be loaded, or whose name is taken."""
    for method in added_methods(_warn):
        for module, names in method.commands.items():
            if again := taken.intersection(names):
                _warn(f"{module} of the package {method.package} adds {any_of(sorted(again))}, which is there already.")
                continue
            try:
                method.load(f"{module}:register")(app)
                taken |= set(names)
            except Exception as error:  # whatever another package's code raises
                _warn(f"The commands of the package {method.package} are left out: {error}")


def _warn(error: Exception | str) -> None:
    print(f"Warning: {error}", file=sys.stderr)


def _commands_of(methods: Iterable[Method]) -> dict[str, tuple[str, ...]]:
    return {f"{method.package}.{module}": names for method in methods for module, names in method.commands.items()}


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
