"""federate: releases of several owners together, none of whom shows rows or counts of its own."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sqlanon.cli.call import Call, Follow, Panel, PolicyFile, Quiet, command
from sqlanon.cli.deferred import loading, summary
from sqlanon.cli.deferred import progress as progressing
from sqlanon.support.quantities import quantity

if TYPE_CHECKING:
    from sqlanon.methods.generalization.federation.federation_plan import FederationPlan
    from sqlanon.policy import Policy
    from sqlanon.results.run_result import RunResult

PlanFile = Annotated[Path, typer.Argument(metavar="PLAN", help="The plan of the federation, a YAML file.")]
Site = Annotated[str, typer.Option("--site", help="The name of this site in the plan.")]
Key = Annotated[Path, typer.Option("--key", help="The file of this site's private key, readable by nobody else.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(help="Releases of several owners together.", no_args_is_help=True)
    command(group, "serve", limits=True)(serve_command)
    command(group, "union", limits=True)(union_command)
    command(group, "support", limits=True)(support_command)
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
    from sqlanon.methods.generalization.federation import federation_plan, serving

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
    rows = quantity(release.rows, "row")
    print(f"\n{release.table}: {rows} of this site; {what} of all {len(plan.sites)} sites together.")


def union_command(
    call: Call,
    plan: PlanFile,
    policy: PolicyFile,
    site: Site,
    key: Key,
    column: Annotated[str, typer.Option("--column", help="The column, which has a hierarchy in the policy.")],
) -> None:
    """List the values of a column, at all sites together, that its hierarchy lacks, one a line, as CSV.

    All sites run the command at the same time. Nobody learns which site has a value, or how many have it.
    """
    from sqlanon.methods.generalization.federation import federation_plan
    from sqlanon.methods.generalization.federation import unite_values as lacking

    read, loaded = federation_plan.load_plan(plan), loading.load_policy(policy)
    values = lacking.unite_lacking(read, loaded, site, key, column, call.options)
    if call.json:
        call.emit({"column": column, "values": values})
    else:
        csv.writer(sys.stdout, lineterminator="\n").writerows([value] for value in values)


def support_command(
    call: Call,
    plan: PlanFile,
    site: Site,
    key: Key,
    policy: Annotated[Path | None, typer.Option("--policy", help="The policy of this site's table, if any.")] = None,
    person: Annotated[str | None, typer.Option("--id", help="The column that identifies persons.")] = None,
    where: Annotated[str, typer.Option("--where", help="Conditions, such as \"age < 30 and job = 'nurse'\".")] = "",
) -> None:
    """Count the persons of whom the conditions of all sites hold, where the sites have columns of the same persons.

    All sites run the command at the same time, each with conditions on its own columns; at least two have a table.
    """
    from sqlanon.methods.generalization.federation import federation_plan, support

    read = federation_plan.load_plan(plan)
    loaded = None if policy is None else loading.load_policy(policy)
    counted = support.count_support(read, loaded, site, key, person=person, where=where, options=call.options)
    if call.json:
        call.emit({"support": counted})
    else:
        print(f"{counted:,}")
