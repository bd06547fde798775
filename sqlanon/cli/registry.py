"""models: the parts that policies can name, the program's own and those of installed packages."""

from __future__ import annotations

from typing import Any

import typer

from sqlanon.cli.call import Call, Panel, command
from sqlanon.cli.deferred import models
from sqlanon.cli.layout import table


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "models", Panel.CHOICE)(models_command)


def models_command(call: Call) -> None:
    """List the privacy models that a policy can ask for, those of installed packages too."""
    found = models.describe_models()
    if call.json:
        call.emit({"models": [vars(one) for one in found]})
        return
    rows: list[list[Any]] = [[one.name, ", ".join(one.parameters), one.package, one.meaning] for one in found]
    print(table(["model", "parameters", "package", "meaning"], rows, widest=100))
