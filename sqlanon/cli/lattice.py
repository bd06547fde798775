"""lattice: look at the generalization lattice without releasing anything."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sqlanon.cli.call import HERE, Call, Follow, Panel, PolicyFile, Quiet, command
from sqlanon.cli.deferred import explorer, loading, picture, refusal, summary
from sqlanon.cli.deferred import progress as progressing
from sqlanon.cli.layout import number, percent, table
from sqlanon.cli.writing import quoted, require_writable, write

if TYPE_CHECKING:
    from sqlanon.exploring.exploration import Candidate, Exploration

MOST_ROWS = 30  # of the frontier, for people

TimeLimit = Annotated[
    float | None,
    typer.Option("--time-limit", min=0.001, help="Seconds after which the search stops with the best it has found."),
]
AnySize = Annotated[bool, typer.Option("--any-size", help="Search however many generalizations the lattice has.")]


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
    loaded = loading.load_policy(policy)
    require_writable(svg)
    with progressing.observer(call, progress, quiet) as watching:
        found = explorer.explore(
            loaded,
            everything=everything,
            options=call.options,
            observer=watching,
            time_limit=time_limit,
            any_size=any_size,
        )
    if svg is not None:
        write(svg, picture.draw(found))
    if call.json:
        call.emit(found.as_json())
        return
    print(exploration_text(found))
    if svg is not None:
        call.note(f"Drew {svg}.")
    levels = shlex.quote(refusal.levels_text(found.lattice, found.optimum.levels))
    print(
        "\n"
        + summary.commands_text([[f"{summary.program()} run {quoted(policy)} --levels {levels}", "release the best"]])
    )


def exploration_text(found: Exploration) -> str:
    """Describe the exploration of a lattice, for people."""
    parts = [
        f"Lattice of {found.source}: {found.rows:,} rows, {found.lattice.size:,} generalizations of "
        f"{len(found.lattice.names)} quasi-identifiers",
        _attributes(found),
        _counts(found),
        _frontier(found),
        _optimum(found),
        "\n".join(f"Warning: {warning}" for warning in found.warnings),
    ]
    return "\n\n".join(part for part in parts if part)


def _attributes(found: Exploration) -> str:
    lattice = found.lattice
    rows = [
        [name, height, f"{low} to {high}"]
        for name, height, low, high in zip(lattice.names, lattice.heights, lattice.bottom, lattice.top, strict=True)
    ]
    return table(["quasi-identifier", "height", "levels searched"], rows)


def _counts(found: Exploration) -> str:
    by = "all of them by --all" if found.everything else f"by {found.algorithm}"
    concluded = "" if found.concluded is None else f", {found.concluded:,} concluded from these"
    unknown = 0 if found.chart is None else found.chart.open
    rest = f", {unknown:,} left open" if unknown else ""
    extent = "satisfy the models" if found.complete else "are known to satisfy the models"
    return (
        f"Searched {by}: {found.checked:,} checked{concluded}{rest}; {found.statements:,} statements, "
        f"{number(round(found.seconds, 2))} s\n"
        f"{len(found.anonymous):,} {extent}, {len(found.minimal):,} of them minimal; "
        f"suppression budget {found.budget:,} rows ({percent(found.budget / found.rows)})"
    )


def _frontier(found: Exploration) -> str:
    shown = found.frontier[:MOST_ROWS]
    rows = [_row(found, one) for one in shown]
    if found.optimum.levels not in [one.levels for one in shown]:
        rows.append(_row(found, found.optimum))
    headings = ["", *found.lattice.names, "suppressed", found.quality]
    more = len(found.frontier) - len(shown)
    rest = f"\n  and {more:,} more; --json has all" if more else ""
    return f"Minimal generalizations, the best first (* is the best of all):\n{table(headings, rows)}{rest}"


def _row(found: Exploration, one: Candidate) -> list[object]:
    return ["*" if one.levels == found.optimum.levels else "", *one.levels, one.suppressed, one.score]


def _optimum(found: Exploration) -> str:
    best, proof = found.optimum, summary.proof(found.proven, found.bound)
    assert best.score is not None
    assert best.suppressed is not None
    return (
        f"Best by {found.quality}: {refusal.levels_text(found.lattice, best.levels)}\n"
        f"  score {best.score:.6g} (lower is better), {best.suppressed:,} rows suppressed, {proof}"
    )
