"""reconstruct: the distribution of originals, from a release with noise and what was added to it."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sqlanon.cli import layout
from sqlanon.cli.call import HERE, Call, Panel, PolicyFile, command
from sqlanon.cli.deferred import loading
from sqlanon.cli.writing import give, require_writable, write
from sqlanon.errors import PolicyError

if TYPE_CHECKING:
    from sqlanon.methods.randomization.reconstruction.result import (
        Classification,
        ReconstructedGroup,
        ReconstructedShare,
        Reconstruction,
    )

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
    policy: PolicyFile = HERE,
    column: Annotated[str | None, typer.Option(help="The randomized column.")] = None,
    classify: Annotated[
        str | None,
        typer.Option(
            metavar="TARGET",
            help="In place of a column: train classifiers for this one, which is released as it is, from reconstructed"
            " distributions, and show how often they are right.",
        ),
    ] = None,
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
    from sqlanon.methods.randomization.reconstruction import reconstruct

    if (column is None) == (classify is None):
        raise PolicyError("Name a randomized column by --column, or a column to predict by --classify.")
    if classify is not None:
        given = {"by": by, "method": method, "from": least, "to": most, "output": output, "table": table, "svg": svg}
        _classify(call, policy, classify, bins, [f"--{name}" for name, value in given.items() if value is not None])
        return
    assert column is not None
    for path in (output, svg):
        require_writable(path)
    if (least is None) != (most is None) or (least is not None and most is not None and not least < most):
        raise PolicyError("--from and --to go together, the lesser number first.")
    result = reconstruct.reconstruct(
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
        from sqlanon.methods.randomization.reconstruction.picture import draw_reconstruction

        write(svg, draw_reconstruction(result))
        call.note(f"Wrote {svg}.")
    if output is not None:
        give(call, output, reconstruction_csv(result))
    elif call.json:
        call.emit(result.as_json())
    elif table is None:
        print(reconstruction_text(result))


def _classify(call: Call, policy: Path, target: str, bins: int, unused: list[str]) -> None:
    """Show the accuracies of classifiers for a target."""
    from sqlanon.methods.randomization.reconstruction import compare_classifiers

    if unused:
        raise PolicyError(f"{', '.join(unused)}: not with --classify, which prints accuracies alone; leave it out.")
    result = compare_classifiers.compare_classifiers(
        loading.load_policy(policy), target, bins=bins, options=call.options
    )
    if call.json:
        call.emit(result.as_json())
    else:
        print(classification_text(result))


def classification_text(result: Classification) -> str:
    """The accuracies, for people."""
    named = [
        ("rows without noise", result.noise_free),
        ("rows with noise, as they are", result.as_is),
        ("reconstructed distributions", result.reconstructed),
    ]
    rows = [
        [name, layout.percent(one.naive_bayes), layout.percent(one.tree), one.leaves]
        for name, one in named
        if one is not None
    ]
    tested = "the source" if result.tested_on == "source" else "the release, with their noise"
    parts = [
        f"{result.target} of {result.release}, predicted from {', '.join(result.features)}: {result.trained:,} rows for"
        f" training, {result.tested:,} rows of {tested} for testing. The most frequent class alone is right in"
        f" {layout.percent(result.baseline)}.",
        layout.table(["right, trained on", "naive Bayes", "decision tree", "leaves"], rows),
    ]
    if result.omitted:
        parts.append(
            "Not predicted from, as they have too many values, or noise whose size is each row's own:"
            f" {', '.join(result.omitted)}."
        )
    if result.unread is not None:
        parts.append(
            f"Rows without noise can't be compared: {result.unread} What is tested on rows with noise says less: rows"
            " without it would be predicted better."
        )
    return "\n\n".join(parts)


def reconstruction_csv(result: Reconstruction) -> str:
    """The shares as CSV: the group, the value or the bounds of the bin, its rows as estimated and as released.

    NULL is nothing, and an empty text is in quotes.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(result.headings)
    for row in result.rows():
        if result.by is not None and row[0] == "":
            text.write('""')
            writer.writerow([None, *row[1:]])
        else:
            writer.writerow(row)
    return text.getvalue()


def reconstruction_text(result: Reconstruction) -> str:
    """The shares, for people."""
    return "\n\n".join(_group_text(result, group) for group in result.groups)


def _group_text(result: Reconstruction, group: ReconstructedGroup) -> str:
    where = "" if result.by is None else f", {result.by} {'NULL' if group.group is None else group.group}"
    how = "by the inverse matrix" if group.rounds is None else f"{group.rounds} rounds, {_ENDED[group.ended or '']}"
    rows = [[_place(share), layout.percent(share.share), layout.percent(share.released)] for share in group.shares]
    head = f"{result.column} of {result.release}{where}: {group.rows:,} rows; {result.method}, {how}."
    return f"{head}\n{layout.table(['value', 'original', 'released'], rows)}"


def _place(share: ReconstructedShare) -> str:
    return str(share.value) if share.low is None or share.high is None else f"{share.low:g} to {share.high:g}"
