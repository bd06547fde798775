"""grant-script: the roles of a policy, for a DBA."""

from __future__ import annotations

from typing import Annotated

import typer

from sqlanon.cli.call import HERE, Call, Panel, PolicyFile, command
from sqlanon.cli.deferred import grants, loading
from sqlanon.support.roles import Roles

_NAMES = Roles()


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "grant-script", Panel.UPKEEP, as_json=False)(grant_script_command)


def grant_script_command(
    call: Call,  # noqa: ARG001 - every command has one
    policy: PolicyFile = HERE,
    runner: Annotated[str, typer.Option(help="Role of policies, jobs and their catalog.")] = _NAMES.runner,
    reader: Annotated[str, typer.Option(help="Role that reads releases.")] = _NAMES.reader,
    pg_cron: Annotated[bool, typer.Option("--pg-cron", help="The runner may schedule jobs with pg_cron.")] = False,
) -> None:
    """Print the roles and grants that a policy needs on PostgreSQL, for a DBA to read and run; nothing is changed.

    The runner sees the columns that are released, and of identifiers the persons of differential privacy alone; readers
    see releases alone. The catalog is the runner's alone: each runner has one of its own, in the schema that the policy
    names.
    """
    print(grants.grant_script(loading.load_policy(policy), Roles(runner, reader), pg_cron=pg_cron))
