"""explore: one page with the whole trade-off of a policy, to look at and to choose from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sqlanon.cli.call import HERE, Call, Follow, Panel, PolicyFile, Quiet, command
from sqlanon.cli.deferred import comparing, loading, summary
from sqlanon.cli.deferred import progress as progressing
from sqlanon.cli.layout import number, percent, table
from sqlanon.cli.levels import TimeLimit
from sqlanon.cli.report import parse_ks
from sqlanon.cli.writing import quoted, require_writable, write
from sqlanon.errors import PolicyError
from sqlanon.support.quantities import quantity

if TYPE_CHECKING:
    from sqlanon.policy import Policy
    from sqlanon.runs.tradeoffs.tradeoff import Tradeoff, TradeoffCandidate
    from sqlanon.work.journal import Observer

MOST_ROWS = 30  # of the front, for people
MOST = 10_000  # generalizations that are measured


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "explore", Panel.CHOICE, limits=True)(explore_command)


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
    if others:
        if time_limit is not None or candidates != MOST:
            raise PolicyError(
                "--time-limit and --candidates are of a lattice; --with runs each policy: leave them out."
            )
        with progressing.observer(call, progress, quiet) as watching:
            _compare(call, [policy, *others], ks, output, watching)
        return
    loaded = loading.load_policy(policy)
    with progressing.observer(call, progress, quiet) as watching:
        tradeoff = explore_tradeoff.explore_tradeoff(
            loaded,
            candidates=candidates,
            ks=ks,
            options=call.options,
            observer=watching,
            time_limit=time_limit,
        )
    if output is not None:
        write(output, render_explore(tradeoff, _command(policy)))
    _show(call, tradeoff, output)


def _compare(call: Call, files: list[Path], ks: list[int], output: Path | None, observer: Observer | None) -> None:
    """Measure what each of several policies finds."""
    from sqlanon.methods.generalization.explore.page import render_explore

    policies: dict[str, Policy] = {}
    for file in files:
        if str(file) in policies:
            raise PolicyError(f"--with: {file} is given twice.")
        with comparing.mistakes_of(str(file)):
            policies[str(file)] = loading.load_policy(file)
    tradeoff = comparing.compare_policies(policies, ks=ks, options=call.options, observer=observer)
    if output is not None:
        commands = {str(file): _command(file) for file in files}
        write(output, render_explore(tradeoff, next(iter(commands.values())), commands))
    _show(call, tradeoff, output)


def _command(policy: Path) -> str:
    return f"{summary.program()} run {quoted(policy)}"


def _show(call: Call, tradeoff: Tradeoff, output: Path | None) -> None:
    """Print a trade-off, and where its page is."""
    if call.json:
        call.emit(tradeoff.as_json())
        return
    print(tradeoff_text(tradeoff))
    if output is not None:
        call.note(f"Wrote {output}.")
    else:
        call.note("-o FILE.html writes a page with all of them.")


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
    rest = f"\n  and {len(places) - MOST_ROWS:,} more; --json has all" if len(places) > MOST_ROWS else ""
    best = " (* has the best score)" if tradeoff.best in places[:MOST_ROWS] else ""
    return f"Beaten by no other, by greatest risk and information lost{best}:\n{table(headings, rows)}{rest}"


def _row(one: TradeoffCandidate, is_best: bool) -> list[object]:
    of_run: list[object] = [one.k] if one.policy is None else [one.policy, one.k]
    shown = of_run if one.levels is None else list(one.levels)
    loss = None if one.loss is None else percent(one.loss)
    return ["*" if is_best else "", *shown, percent(one.greatest), percent(one.mean), loss, one.suppressed]
