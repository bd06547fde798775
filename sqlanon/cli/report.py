"""report, diff, sweep: what people read of runs, and what they try before one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sqlanon.cli.call import HERE, Call, Follow, Panel, PolicyFile, Quiet, command
from sqlanon.cli.catalog import PolicyOption, UrlOption, place_of
from sqlanon.cli.deferred import difference, loading, material, sweeping, tradeoff
from sqlanon.cli.deferred import page as pages
from sqlanon.cli.deferred import progress as progressing
from sqlanon.cli.deferred import session as sessions
from sqlanon.cli.layout import number, percent, table
from sqlanon.cli.rules import RunName
from sqlanon.cli.writing import give, link_to, require_writable, write
from sqlanon.errors import PolicyError, ProtectionError

if TYPE_CHECKING:
    from sqlanon.report.difference import Change, Difference
    from sqlanon.runs.tradeoffs.sweeping import Sweep, SweepRun

_SHARES = ("gcp", "prosecutor_max", "prosecutor_mean", "marketer")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "report", Panel.HISTORY, as_json=False)(report_command)
    command(app, "diff", Panel.HISTORY)(diff_command)
    command(app, "sweep", Panel.CHOICE, limits=True)(sweep_command)


def report_command(
    call: Call,
    run: RunName,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the page here; by default, and with -, to stdout.")
    ] = None,
    population: Annotated[
        int | None,
        typer.Option(
            "--population", min=1, help="Population that the rows are a random sample of: for the journalist's risk."
        ),
    ] = None,
    explore: Annotated[
        Path | None,
        typer.Option("--explore", metavar="FILE", help="The page of `sqlanon explore` that this one is to link to."),
    ] = None,
    url: UrlOption = None,
    policy: PolicyOption = None,
) -> None:
    """Make a page of a run that people can read and sign: asked, found, checked, risk, utility. One HTML file.

    It is made from the catalog alone, loads nothing, prints well, and holds no value of the data.
    """
    require_writable(output)
    link = None if explore is None else link_to(explore, output)
    with sessions.open_recorded(place_of(url, policy), call.options) as catalog:
        page = pages.render(material.collect(catalog, run), population, link)
    give(call, output, page)


def diff_command(
    call: Call,
    run_a: Annotated[str, typer.Argument(help="A run: its id, its beginning, or its last four digits.")],
    run_b: Annotated[str, typer.Argument(help="Another one, that published a release too.")],
    url: UrlOption = None,
    policy: PolicyOption = None,
) -> None:
    """Compare the releases of two runs: policy, recoding, classes, suppressed rows, risk, utility.

    It warns where two releases of one source can be held against each other.
    """
    with sessions.open_recorded(place_of(url, policy), call.options) as catalog:
        differences = difference.compare_runs(catalog, run_a, run_b)
    if call.json:
        call.emit(differences.as_json())
    else:
        print(diff_text(differences))


def diff_text(compared: Difference) -> str:
    """The comparison, for people: what differs."""
    recodings = {
        difference.RecodingDifference.SAME: "the same in both",
        difference.RecodingDifference.DIFFERENT: "different",
        difference.RecodingDifference.UNKNOWN: "not known: the catalog does not hold the rules of both",
    }
    changed = [change for change in (*compared.figures, *compared.columns) if change.changed]
    parts = [
        f"Recoding: {recodings[compared.recoding]}",
        f"Labels: {_labels(compared.labels)}",
        "Policy:\n"
        + table(["", compared.a, compared.b], [[c.name, c.before, c.after] for c in compared.policy], widest=60)
        if compared.policy
        else "Policy: the same in both",
        "Figures:\n" + table(["", compared.a, compared.b], [_figure(change) for change in changed], widest=60)
        if changed
        else "Figures: the same in both",
        *(f"Warning: {warning}" for warning in compared.warnings),
    ]
    return "\n\n".join(parts)


def _labels(change: Change) -> str:
    """Say how the labels of both releases were formed."""
    forms = {
        "observed": "ranges over the values of each class (`ranges: observed`)",
        "cuts": "ranges from cut to cut (`ranges: cuts`)",
        "levels": "by levels of hierarchies",
        "centres": "centres of clusters, in place of labels",
        "synthetic": "synthetic values, in place of labels",
    }
    if not change.changed:
        return f"{forms[change.before]} in both"
    return f"{forms[change.before]} in the first, {forms[change.after]} in the second"


def _figure(change: Change) -> list[object]:
    is_share = change.name in _SHARES or change.name.endswith(": loss")
    values = (change.before, change.after)
    return [change.name, *(percent(v) if is_share and v is not None else _plain(v) for v in values)]


def _plain(value: object) -> str:
    if value is None:
        return "-"
    return number(value) if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def sweep_command(
    call: Call,
    k: Annotated[str, typer.Option("--k", metavar="K,K,...", help="The k to try, separated by commas.")],
    policy: PolicyFile = HERE,
    svg: Annotated[Path | None, typer.Option("--svg", help="Draw privacy against utility into this file.")] = None,
    progress: Follow = "auto",
    quiet: Quiet = False,
) -> int:
    """Try several k in place of the policy's: what each would cost. Nothing is published; reports draw it.

    Exit code 3 if none of them can be met.
    """
    loaded, ks = loading.load_policy(policy), parse_ks(k)
    require_writable(svg)
    with progressing.observer(call, progress, quiet) as watching:
        result = sweeping.sweep(loaded, ks, options=call.options, observer=watching)
    if svg is not None and result.points:
        write(svg, tradeoff.draw_tradeoff(result.points))
    if call.json:
        call.emit(result.as_json())
    else:
        print(sweep_text(result))
    if any(run.result for run in result.runs):
        return 0
    if not call.json:
        call.note("Error: None of these k can be met.")
    return ProtectionError.exit_code


def parse_ks(text: str) -> list[int]:
    """Read the k of `--k`; raises PolicyError for what is no list of whole numbers."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise PolicyError(f"--k: '{text}' is not whole numbers with commas between, such as 2,5,10,50.") from None


def sweep_text(sweep: Sweep) -> str:
    """The runs of a sweep, for people."""
    measures = {loss[0] for run in sweep.runs if run.result and (loss := sweeping.loss_of(run.result))}
    loss_heading = f"lost ({measures.pop() if measures else sweeping.GCP})"
    headings = ["k", "", "classes", "smallest", "suppressed", loss_heading, "C_AVG", "greatest risk", "mean risk"]
    rows = [_row(run, run.k in sweep.beaten) for run in sweep.runs]
    refused = [f"k = {run.k:,} can't be met: {run.refusal}" for run in sweep.runs if run.result is None]
    text = f"{sweep.source}, tried; nothing was published:\n{table(headings, rows)}"
    note = "\n  - beaten by another, which has classes as large and loses less" if sweep.beaten else ""
    return "\n\n".join([text + note, *refused])


def _row(run: SweepRun, beaten: bool) -> list[object]:
    if run.result is None:
        return [run.k, "can't be met", *[None] * 7]
    release, metrics, risk = run.result.release, run.result.metrics, run.result.risk
    loss = sweeping.loss_of(run.result)
    return [
        run.k,
        "-" if beaten else "",
        release.classes,
        release.min_class_size,
        release.suppressed,
        None if loss is None else percent(loss[1]),
        round(metrics.c_avg, 2),
        None if risk is None else percent(risk.prosecutor_max),
        None if risk is None else percent(risk.prosecutor_mean),
    ]
