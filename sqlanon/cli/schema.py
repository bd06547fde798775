"""schema: the grammar of policies, for editors and for programs that write policies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from sqlanon.cli.call import Call, Panel, command
from sqlanon.cli.deferred import schema
from sqlanon.cli.writing import give, require_writable


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "schema", Panel.RELEASE, as_json=False)(schema_command)


def schema_command(
    call: Call,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the schema here; by default, and with -, to stdout.")
    ] = None,
) -> None:
    """Print the grammar of policies as JSON Schema.

    Drafts begin with a line that names it, policy.schema.json beside the policy, for editors that know such schemas:
    they complete keys, explain them, and mark what is wrong.
    """
    require_writable(output)
    give(call, output, json.dumps(schema.policy_schema(), ensure_ascii=False, indent=2) + "\n")
