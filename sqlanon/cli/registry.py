"""models, algorithms: the parts that policies can name, own ones and those of installed packages."""

from __future__ import annotations

from typing import Any

import typer

from sqlanon.cli.call import Call, Panel, command
from sqlanon.cli.deferred import algorithms, models
from sqlanon.cli.layout import table


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "models", Panel.CHOICE)(models_command)
    command(app, "algorithms", Panel.CHOICE)(algorithms_command)


def models_command(call: Call) -> None:
    """List the privacy models that a policy can ask for, those of installed packages too."""
    show_choices(call, "model", models.describe_models())


def algorithms_command(call: Call) -> None:
    """List the algorithms that a policy can search by, those of installed packages too."""
    show_choices(call, "algorithm", algorithms.describe_algorithms())


def show_choices(call: Call, kind: str, choices: list[Any], kinds: str | None = None) -> None:
    """Print parts that policies can name. kinds: the plural of their kind, where it is not `kind` with an s."""
    if call.json:
        call.emit({kinds or f"{kind}s": [vars(one) for one in choices]})
        return
    rows: list[list[Any]] = [[one.name, ", ".join(one.parameters), one.package, one.meaning] for one in choices]
    print(table([kind, "parameters", "package", "meaning"], rows, widest=100))
