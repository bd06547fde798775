"""condense update, condense release: a stream, of which only the statistics of groups are kept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sqlanon.cli.call import HERE, ONLY_POLICY, Call, Follow, Panel, Quiet, command
from sqlanon.cli.deferred import codec, loading
from sqlanon.cli.deferred import progress as progressing
from sqlanon.cli.layout import table
from sqlanon.support.quantities import quantity

if TYPE_CHECKING:
    from sqlanon.methods.clustering.releases.streamed import GroupSizes

_Job = Annotated[str, typer.Argument(help="The job's name; its first update begins it.")]
_Policy = Annotated[
    Path,
    typer.Option(
        "--policy",
        "-p",
        help=f"The policy of the job: its database, numbers, k and release. {ONLY_POLICY}",
        show_default=False,
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(
        help="A stream of rows, of which only the statistics of groups are kept: update, release.", no_args_is_help=True
    )
    command(group, "update", limits=True)(update_command)
    command(group, "release", limits=True)(release_command)
    app.add_typer(group, name="condense", rich_help_panel=Panel.JOBS)


def update_command(
    call: Call,
    job: _Job,
    new_rows: Annotated[str, typer.Argument(help="The table of new rows, in the database of the policy's source.")],
    policy: _Policy = HERE,
    progress: Follow = "auto",
    quiet: Quiet = False,
) -> None:
    """Let new rows join the groups of a job, and keep the groups' statistics alone; nothing is published.

    A row joins the group whose means are nearest, and a group of 2k rows splits in two. docs/condensation.md says more.
    """
    from sqlanon.methods.clustering import streams

    loaded = loading.load_policy(policy)
    with progressing.observer(call, progress, quiet) as watching:
        updated = streams.update_job(loaded, job, new_rows, call.options, watching)
    if call.json:
        call.emit(codec.to_json(updated))
        return
    print(f"Job {job}: {quantity(updated.added, 'row')} joined its groups.\n\n{_sizes(updated.sizes)}")


def release_command(
    call: Call,
    job: _Job,
    policy: _Policy = HERE,
    replace: Annotated[bool, typer.Option("--replace", help="Replace a release that is there.")] = False,
    progress: Follow = "auto",
    quiet: Quiet = False,
) -> None:
    """Publish synthetic rows of a job's groups, once: the job ends, and its statistics are dropped."""
    from sqlanon.methods.clustering import streams

    loaded = loading.load_policy(policy)
    with progressing.observer(call, progress, quiet) as watching:
        released = streams.release_job(loaded, job, replace=replace, options=call.options, observer=watching)
    with call.telling(released.run):
        if call.json:
            call.emit(codec.to_json(released))
            return
        checked = ", ".join(name.replace("_", " ") for name in released.checks)
        print(
            f"Published {released.release}\n  from job {job}, which has ended; run {released.run}\n\n"
            f"{_sizes(released.sizes)}\n\nChecked: {checked}."
        )
        for note in released.notes:
            call.note(note)


def _sizes(sizes: GroupSizes) -> str:
    rows = [[f"{sizes.groups:,}", f"{sizes.rows:,}", f"{sizes.smallest:,}", f"{sizes.largest:,}"]]
    return table(["groups", "rows", "smallest", "largest"], rows)
