"""lattice, explore, qualities: look at what could be released, and at the quality models to choose by."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sqlanon.cli.call import HERE, Call, Follow, Panel, PolicyFile, Quiet, command
from sqlanon.cli.deferred import comparing, loading, summary
from sqlanon.cli.deferred import progress as progressing
from sqlanon.cli.layout import number, percent, table
from sqlanon.cli.levels import AnySize, TimeLimit
from sqlanon.cli.registry import show_choices
from sqlanon.cli.report import parse_ks
from sqlanon.cli.writing import quoted, require_writable, write
from sqlanon.errors import PolicyError
from sqlanon.support.quantities import quantity

if TYPE_CHECKING:
    from sqlanon.methods.generalization.explore.explore_lattice import Exploration
    from sqlanon.policy import Policy
    from sqlanon.runs.tradeoffs.tradeoff import Tradeoff, TradeoffCandidate


MOST_ROWS = 30  # of the best, for people
MOST = 10_000  # generalizations that are measured


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "lattice", Panel.CHOICE, limits=True)(lattice_command)
    command(app, "explore", Panel.CHOICE, limits=True)(explore_command)
    command(app, "qualities", Panel.CHOICE)(qualities_command)


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
        _minimal(exploration),
        _optimum(exploration),
        "\n".join(f"Warning: {warning}" for warning in exploration.warnings),
    ]
    return "\n\n".join(part for part in parts if part)


def _attributes(exploration: Exploration) -> str:
    lattice = exploration.lattice
    columns = zip(lattice.names, lattice.heights, lattice.bottom, lattice.top, strict=True)
    rows = [[name, height, f"{low} to {high}"] for name, height, low, high in columns]
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


def _minimal(exploration: Exploration) -> str:
    best, shown = exploration.optimum, exploration.frontier[:MOST_ROWS]
    if best.levels not in [one.levels for one in shown]:
        shown = [*shown, best]
    rows = [["*" if one.levels == best.levels else "", *one.levels, one.suppressed, one.score] for one in shown]
    headings = ["", *exploration.lattice.names, "suppressed", exploration.quality]
    listed = _listed(headings, rows, len(exploration.frontier))
    return f"Minimal generalizations, the best first (* is the best of all):\n{listed}"


def _listed(headings: Sequence[str], rows: Sequence[Sequence[object]], number_of_all: int) -> str:
    """The first rows of a list, and how many more there are."""
    rest = f"\n  and {number_of_all - MOST_ROWS:,} more; --json has all" if number_of_all > MOST_ROWS else ""
    return table(headings, rows) + rest


def _optimum(exploration: Exploration) -> str:
    from sqlanon.methods.generalization.lattice import refusal

    best, proof = exploration.optimum, summary.proof(exploration.proven, exploration.bound)
    assert best.score is not None
    assert best.suppressed is not None
    return (
        f"Best by {exploration.quality}: {refusal.levels_text(exploration.lattice, best.levels)}\n"
        f"  score {best.score:.6g} (lower is better), {quantity(best.suppressed, 'row')} suppressed, {proof}"
    )


def explore_command(
    call: Call,
    policy: PolicyFile = HERE,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the page into this HTML file.")] = None,
    candidates: Annotated[
        int, typer.Option("--candidates", min=1, help="Of a larger lattice, measure so many generalizations.")
    ] = MOST,
    k: Annotated[
        str | None,
        typer.Option("--k", metavar="K,K,...", help="Try the policy's algorithm with each k, in place of levels."),
    ] = None,
    others: Annotated[
        list[Path] | None,
        typer.Option(
            "--with",
            metavar="FILE",
            help="Compare the policy with this one of the same table, by other models or another algorithm; may be"
            " repeated.",
        ),
    ] = None,
    time_limit: TimeLimit = None,
    progress: Follow = "auto",
    quiet: Quiet = False,
) -> None:
    """Measure the whole trade-off: risk against utility of every release that could be. Nothing is released.

    Candidates are the generalizations of the lattice where all quasi-identifiers have hierarchies, and elsewhere, or
    with --k, what the policy's algorithm finds with several k. With --with they are what each policy finds.
    """
    from sqlanon.methods.generalization.explore import explore_tradeoff
    from sqlanon.methods.generalization.explore.page import render_explore

    ks = [] if k is None else parse_ks(k)
    require_writable(output)
    if others and (time_limit is not None or candidates != MOST):
        raise PolicyError("--time-limit and --candidates are of a lattice; --with runs each policy: leave them out.")
    files = [policy, *(others or ())]
    policies = _load_each(files) if others else {str(policy): loading.load_policy(policy)}
    with progressing.observer(call, progress, quiet) as watching:
        if others:
            tradeoff = comparing.compare_policies(policies, ks=ks, options=call.options, observer=watching)
        else:
            tradeoff = explore_tradeoff.explore_tradeoff(
                policies[str(policy)],
                candidates=candidates,
                ks=ks,
                options=call.options,
                observer=watching,
                time_limit=time_limit,
            )
    if output is not None:
        commands = {str(file): f"{summary.program()} run {quoted(file)}" for file in files}
        write(output, render_explore(tradeoff, commands[str(policy)], commands if others else {}))
    if call.json:
        call.emit(tradeoff.as_json())
        return
    print(tradeoff_text(tradeoff))
    call.note("-o FILE.html writes a page with all of them." if output is None else f"Wrote {output}.")


def _load_each(files: Sequence[Path]) -> dict[str, Policy]:
    """Load several policies, to be compared."""
    policies: dict[str, Policy] = {}
    for file in files:
        if str(file) in policies:
            raise PolicyError(f"--with: {file} is given twice.")
        with comparing.mistakes_of(str(file)):
            policies[str(file)] = loading.load_policy(file)
    return policies


def tradeoff_text(tradeoff: Tradeoff) -> str:
    """Describe a trade-off, for people: the candidates that no other beats."""
    measured = quantity(len(tradeoff.candidates), "candidate")
    if tradeoff.nodes is not None and tradeoff.nodes > len(tradeoff.candidates):
        measured += f" of {tradeoff.nodes:,}"
    unit = "" if tradeoff.unit == "rows" else f" (classes and risk are of {tradeoff.unit})"
    parts = [
        f"Trade-off of {tradeoff.source}: {quantity(tradeoff.rows, 'row')}{unit}, {measured} measured, "
        f"{tradeoff.satisfying:,} satisfy the policy; {number(round(tradeoff.seconds, 2))} s",
        _front(tradeoff),
        *(f"k = {k:,} can't be met: {refusal}" for k, refusal in tradeoff.refusals),
        "\n".join(f"Warning: {warning}" for warning in tradeoff.warnings),
    ]
    return "\n\n".join(part for part in parts if part)


def _front(tradeoff: Tradeoff) -> str:
    places = tradeoff.front
    if not places:
        return ""
    of_runs = ["policy", "k"] if tradeoff.compares else ["k"]
    names = [column.name for column in tradeoff.columns] if tradeoff.nodes is not None else of_runs
    headings = ["", *names, "greatest risk", "mean risk", "lost", "suppressed"]
    rows = [_row(tradeoff.candidates[place], place == tradeoff.best) for place in places[:MOST_ROWS]]
    best = " (* has the best score)" if tradeoff.best in places[:MOST_ROWS] else ""
    listed = _listed(headings, rows, len(places))
    return f"Beaten by no other, by greatest risk and information lost{best}:\n{listed}"


def _row(one: TradeoffCandidate, is_best: bool) -> list[object]:
    of_run: list[object] = [one.k] if one.policy is None else [one.policy, one.k]
    shown = of_run if one.levels is None else list(one.levels)
    loss = None if one.loss is None else percent(one.loss)
    return ["*" if is_best else "", *shown, percent(one.greatest), percent(one.mean), loss, one.suppressed]


def qualities_command(call: Call) -> None:
    """List the quality models by which full-domain searches choose, those of installed packages too."""
    from sqlanon.methods.generalization.lattice.quality.qualities import describe_qualities

    show_choices(call, "quality", describe_qualities(), "qualities")
