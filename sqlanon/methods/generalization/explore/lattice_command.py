"""lattice: look at the generalization lattice without releasing anything."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sqlanon.cli.call import HERE, Call, Follow, Panel, PolicyFile, Quiet, command
from sqlanon.cli.deferred import loading, summary
from sqlanon.cli.deferred import progress as progressing
from sqlanon.cli.layout import number, percent, table
from sqlanon.cli.levels import AnySize, TimeLimit
from sqlanon.cli.writing import quoted, require_writable, write
from sqlanon.support.quantities import quantity

if TYPE_CHECKING:
    from sqlanon.methods.generalization.explore.exploration import Exploration, ExploredNode

MOST_ROWS = 30  # of the frontier, for people


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "lattice", Panel.CHOICE, limits=True)(lattice_command)


def lattice_command(
    call: Call,
    policy: PolicyFile = HERE,
    everything: Annotated[
        bool, typer.Option("--all", help="Find all generalizations that satisfy the models, whatever the algorithm.")
    ] = False,
    svg: Annotated[Path | None, typer.Option("--svg", help="Draw the lattice into this file.")] = None,
    time_limit: TimeLimit = None,
    any_size: AnySize = False,
    progress: Follow = "auto",
    quiet: Quiet = False,
) -> None:
    """Explore the generalization lattice: which levels satisfy the models, and which are best. Nothing is released."""
    from sqlanon.methods.generalization.explore import explore_lattice, picture
    from sqlanon.methods.generalization.lattice import refusal

    loaded = loading.load_policy(policy)
    require_writable(svg)
    with progressing.observer(call, progress, quiet) as watching:
        exploration = explore_lattice.explore(
            loaded,
            everything=everything,
            options=call.options,
            observer=watching,
            time_limit=time_limit,
            any_size=any_size,
        )
    if svg is not None:
        write(svg, picture.draw(exploration))
    if call.json:
        call.emit(exploration.as_json())
        return
    print(exploration_text(exploration))
    if svg is not None:
        call.note(f"Drew {svg}.")
    levels = shlex.quote(refusal.levels_text(exploration.lattice, exploration.optimum.levels))
    print(
        "\n"
        + summary.commands_text([[f"{summary.program()} run {quoted(policy)} --levels {levels}", "release the best"]])
    )


def exploration_text(exploration: Exploration) -> str:
    """Describe the exploration of a lattice, for people."""
    parts = [
        f"Lattice of {exploration.source}: {quantity(exploration.rows, 'row')},"
        f" {quantity(exploration.lattice.size, 'generalization')} of"
        f" {quantity(len(exploration.lattice.names), 'quasi-identifier')}",
        _attributes(exploration),
        _counts(exploration),
        _frontier(exploration),
        _optimum(exploration),
        "\n".join(f"Warning: {warning}" for warning in exploration.warnings),
    ]
    return "\n\n".join(part for part in parts if part)


def _attributes(exploration: Exploration) -> str:
    lattice = exploration.lattice
    rows = [
        [name, height, f"{low} to {high}"]
        for name, height, low, high in zip(lattice.names, lattice.heights, lattice.bottom, lattice.top, strict=True)
    ]
    return table(["quasi-identifier", "height", "levels searched"], rows)


def _counts(exploration: Exploration) -> str:
    by = "all of them by --all" if exploration.everything else f"by {exploration.algorithm}"
    concluded = "" if exploration.concluded is None else f", {exploration.concluded:,} concluded from these"
    unknown = 0 if exploration.chart is None else exploration.chart.open
    rest = f", {unknown:,} left open" if unknown else ""
    extent = "satisfy the models" if exploration.complete else "are known to satisfy the models"
    return (
        f"Searched {by}: {exploration.checked:,} checked{concluded}{rest}; {exploration.statements:,} statements, "
        f"{number(round(exploration.seconds, 2))} s\n"
        f"{len(exploration.anonymous):,} {extent}, {len(exploration.minimal):,} of them minimal; "
        f"suppression budget {quantity(exploration.budget, 'row')} ({percent(exploration.budget / exploration.rows)})"
    )


def _frontier(exploration: Exploration) -> str:
    shown = exploration.frontier[:MOST_ROWS]
    rows = [_row(exploration, one) for one in shown]
    if exploration.optimum.levels not in [one.levels for one in shown]:
        rows.append(_row(exploration, exploration.optimum))
    headings = ["", *exploration.lattice.names, "suppressed", exploration.quality]
    more = len(exploration.frontier) - len(shown)
    rest = f"\n  and {more:,} more; --json has all" if more else ""
    return f"Minimal generalizations, the best first (* is the best of all):\n{table(headings, rows)}{rest}"


def _row(exploration: Exploration, one: ExploredNode) -> list[object]:
    return ["*" if one.levels == exploration.optimum.levels else "", *one.levels, one.suppressed, one.score]


def _optimum(exploration: Exploration) -> str:
    from sqlanon.methods.generalization.lattice import refusal

    best, proof = exploration.optimum, summary.proof(exploration.proven, exploration.bound)
    assert best.score is not None
    assert best.suppressed is not None
    return (
        f"Best by {exploration.quality}: {refusal.levels_text(exploration.lattice, best.levels)}\n"
        f"  score {best.score:.6g} (lower is better), {quantity(best.suppressed, 'row')} suppressed, {proof}"
    )
