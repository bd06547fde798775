"""qualities: the quality models that full-domain searches can choose by."""

from __future__ import annotations

import typer

from sqlanon.cli.call import Call, Panel, command
from sqlanon.cli.registry import show_choices


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "qualities", Panel.CHOICE)(qualities_command)


def qualities_command(call: Call) -> None:
    """List the quality models by which full-domain searches choose, those of installed packages too."""
    from sqlanon.methods.generalization.lattice.quality.qualities import describe_qualities

    show_choices(call, "quality", describe_qualities(), "qualities")
