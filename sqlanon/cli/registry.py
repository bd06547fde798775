"""models, algorithms, qualities: the parts that policies can name, own ones and those of installed packages."""

from __future__ import annotations

from typing import Any

import typer

from sqlanon.cli.call import Call, Panel, command
from sqlanon.cli.deferred import algorithms, models, qualities
from sqlanon.cli.layout import table


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "models", Panel.CHOICE)(models_command)
    command(app, "algorithms", Panel.CHOICE)(algorithms_command)
    command(app, "qualities", Panel.CHOICE)(qualities_command)


def models_command(call: Call) -> None:
    """List the privacy models that a policy can ask for, those of installed packages too."""
    _show(call, "model", models.describe_models())


def algorithms_command(call: Call) -> None:
    """List the algorithms that a policy can search by, those of installed packages too."""
    _show(call, "algorithm", algorithms.describe_algorithms())


def qualities_command(call: Call) -> None:
    """List the quality models by which full-domain searches choose, those of installed packages too."""
    _show(call, "quality", qualities.describe_qualities(), "qualities")


def _show(call: Call, kind: str, choices: list[Any], kinds: str | None = None) -> None:
    if call.json:
        call.emit({kinds or f"{kind}s": [vars(one) for one in choices]})
        return
    rows: list[list[Any]] = [[one.name, ", ".join(one.parameters), one.package, one.meaning] for one in choices]
    print(table([kind, "parameters", "package", "meaning"], rows, widest=100))
