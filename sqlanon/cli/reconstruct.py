"""reconstruct: the distribution of originals, from a release with noise and what was added to it."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sqlanon.cli import layout
from sqlanon.cli.call import HERE, Call, Panel, PolicyFile, command
from sqlanon.cli.deferred import distribution, loading, reconstructing
from sqlanon.cli.writing import give, require_writable, write
from sqlanon.errors import PolicyError

if TYPE_CHECKING:
    from sqlanon.results.reconstruction import ReconstructedGroup, ReconstructedShare, Reconstruction

_ENDED = {
    "settled": "as shares no longer changed",
    "held-out": "as more of them would have followed the noise (rows that were held out fit less)",
    "rounds": "the most that are made; the shares still changed",
}


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "reconstruct", Panel.CHOICE, limits=True)(reconstruct_command)


def reconstruct_command(
    call: Call,
    column: Annotated[str, typer.Option(help="The randomized column.", show_default=False)],
    policy: PolicyFile = HERE,
    by: Annotated[
        str | None, typer.Option(help="A column that is released as it is: a distribution for each of its values.")
    ] = None,
    bins: Annotated[int, typer.Option(min=1, max=1000, help="Bins of numbers.")] = 50,
    method: Annotated[
        Literal["em", "bayes", "inversion"] | None,
        typer.Option(
            help="Expectation maximization, by default of numbers; the published Bayes update, of numbers; the inverse"
            " matrix, by default of categories.",
        ),
    ] = None,
    least: Annotated[
        float | None, typer.Option("--from", help="The least original number, where the policy declares no range.")
    ] = None,
    most: Annotated[float | None, typer.Option("--to", help="The greatest one.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write a CSV file; - is stdout.")] = None,
    table: Annotated[
        str | None,
        typer.Option("--table", help="Write a new table into the database of the release; for you alone."),
    ] = None,
    svg: Annotated[Path | None, typer.Option(help="Draw released and reconstructed shares.")] = None,
) -> None:
    """Estimate how a randomized column was distributed, from the release alone. Nothing is changed, but for the table
    that --table names.

    docs/randomization.md says how, and how near it comes.
    """
    for path in (output, svg):
        require_writable(path)
    if (least is None) != (most is None) or (least is not None and most is not None and not least < most):
        raise PolicyError("--from and --to go together, the lesser number first.")
    result = reconstructing.reconstruct(
        loading.load_policy(policy),
        column,
        by=by,
        bins=bins,
        method=method,
        range_=None if least is None or most is None else (least, most),
        table=table,
        options=call.options,
    )
    if table is not None:
        call.note(f"Wrote {table}.")
    if svg is not None:
        write(svg, distribution.draw_reconstruction(result))
        call.note(f"Wrote {svg}.")
    if output is not None:
        give(call, output, reconstruction_csv(result))
    elif call.json:
        call.emit(result.as_json())
    elif table is None:
        print(reconstruction_text(result))


def reconstruction_csv(result: Reconstruction) -> str:
    """The shares as CSV: the group, the value or the bounds of the bin, its rows as estimated and as released."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(result.headings)
    writer.writerows(result.rows())
    return text.getvalue()


def reconstruction_text(result: Reconstruction) -> str:
    """The shares, for people."""
    return "\n\n".join(_group_text(result, group) for group in result.groups)


def _group_text(result: Reconstruction, group: ReconstructedGroup) -> str:
    where = "" if result.by is None else f", {result.by} {group.group}"
    how = "by the inverse matrix" if group.rounds is None else f"{group.rounds} rounds, {_ENDED[group.ended or '']}"
    rows = [[_place(share), layout.percent(share.share), layout.percent(share.released)] for share in group.shares]
    head = f"{result.column} of {result.release}{where}: {group.rows:,} rows; {result.method}, {how}."
    return f"{head}\n{layout.table(['value', 'original', 'released'], rows)}"


def _place(share: ReconstructedShare) -> str:
    return str(share.value) if share.low is None or share.high is None else f"{share.low:g} to {share.high:g}"
