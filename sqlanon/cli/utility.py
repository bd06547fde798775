"""utility: what a release is worth to those who predict a target from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sqlanon.cli.call import HERE, Call, Panel, PolicyFile, command
from sqlanon.cli.deferred import loading, utility
from sqlanon.cli.layout import number, percent, table
from sqlanon.measures.workload import SAMPLE, Prediction
from sqlanon.support.quantities import quantity

if TYPE_CHECKING:
    from sqlanon.measures.workload.utility import Utility


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "utility", Panel.CHOICE, limits=True)(utility_command)


def utility_command(
    call: Call,
    target: Annotated[
        str, typer.Option(help="The column to be predicted: a sensitive or insensitive one.", show_default=False)
    ],
    policy: PolicyFile = HERE,
    tree: Annotated[
        bool, typer.Option("--tree", help="Train decision trees on the release and on the source (needs scikit-learn).")
    ] = False,
    predict: Annotated[
        Prediction | None, typer.Option(help="Kind of prediction by trees; if not given, the column's type decides.")
    ] = None,
    sample: Annotated[int, typer.Option(min=100, help="Rows that trees see at most, drawn at random.")] = SAMPLE,
) -> None:
    """Measure how well a published release predicts a column, against its source. Nothing is changed.

    docs/metrics.md says what the measures mean.
    """
    result = utility.release_utility(
        loading.load_policy(policy), target, tree=tree, predict=predict, sample=sample, options=call.options
    )
    if call.json:
        call.emit(result.as_json())
    else:
        print(utility_text(result))


def utility_text(utility: Utility) -> str:
    """The measures, for people."""
    omitted = f", {utility.omitted:,} of them left out of the release" if utility.omitted else ""
    rows: list[list[object]] = [
        [
            "conditional entropy, bits a row",
            *(number(m.conditional_entropy) for m in (utility.baseline, utility.release, utility.original)),
        ]
    ]
    if utility.baseline.rmse is not None:
        errors = [m.rmse or 0.0 for m in (utility.baseline, utility.release, utility.original)]
        rows.append(["error of the class's mean (RMSE)", *(number(error) for error in errors)])
    text = f"{utility.release_name}, to predict '{utility.target}' ({quantity(utility.rows, 'row')}{omitted}):\n"
    if utility.tree is not None:
        scores = utility.tree.baseline, utility.tree.release, utility.tree.source
        is_class = utility.tree.predicts == "class"
        name = "rows a tree predicts rightly" if is_class else "error of a tree (RMSE)"
        rows.append([name, *(percent(score) if is_class else number(score) for score in scores)])
    text += table(["", "nothing known", "release", "source"], rows)
    if utility.tree is not None:
        text += f"\nTrees: {quantity(utility.tree.rows, 'row')}, {utility.tree.folds} folds."
    return text
