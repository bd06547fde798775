"""federate: releases of several owners together, none of whom shows rows or counts of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sqlanon.cli.call import Call, Follow, Panel, PolicyFile, Quiet, command
from sqlanon.cli.deferred import federation_plan, loading, serving, summary
from sqlanon.cli.deferred import progress as progressing

if TYPE_CHECKING:
    from sqlanon.federation.federation_plan import FederationPlan
    from sqlanon.policy import Policy
    from sqlanon.results.run_result import RunResult

PlanFile = Annotated[Path, typer.Argument(metavar="PLAN", help="The plan of the federation, a YAML file.")]
Site = Annotated[str, typer.Option("--site", help="The name of this site in the plan.")]
Key = Annotated[Path, typer.Option("--key", help="The file of this site's private key, readable by nobody else.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(help="Releases of several owners together.", no_args_is_help=True)
    command(group, "serve", limits=True)(serve_command)
    app.add_typer(group, name="federate", rich_help_panel=Panel.RELEASE)


def serve_command(
    call: Call,
    plan: PlanFile,
    policy: PolicyFile,
    site: Site,
    key: Key,
    replace: Annotated[bool, typer.Option("--replace", help="Replace the release if it exists.")] = False,
    progress: Follow = "auto",
    quiet: Quiet = False,
) -> None:
    """Release this site's table together with those of the other sites, which run the same command at the same time.

    The classes of the release are those of all sites' rows; no site shows its rows or its own counts. All sites
    publish, or none.
    """
    read, loaded = federation_plan.load_plan(plan), loading.load_policy(policy)
    with progressing.observer(call, progress, quiet) as watching:
        result = serving.serve(
            read, loaded, site, key, replace=replace, options=call.options, observer=watching
        ).with_command(call.began)
    with call.telling(result.run):
        if call.json:
            call.emit(result.as_json())
        else:
            _tell(result, loaded, read)


def _tell(result: RunResult, policy: Policy, plan: FederationPlan) -> None:
    release = result.release
    what = "classes and models are" if plan.reveal == "counts" else "models are"
    print(summary.result_text(result, policy))
    print(f"\n{release.table}: {release.rows:,} rows of this site; {what} of all {len(plan.sites)} sites together.")
