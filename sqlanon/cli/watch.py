"""runs --watch, cancel: runs that go on, seen from another terminal."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from sqlanon.catalog.live import LiveRun
from sqlanon.catalog.location import CatalogAddress
from sqlanon.cli.call import Call
from sqlanon.cli.layout import place_text, table
from sqlanon.cli.progress import EVENTS_VERSION
from sqlanon.runs.watching import Watch, watching

REFRESH = 1.0  # seconds


def watch_runs(call: Call, place: CatalogAddress) -> None:
    """Show the runs that go on until none does, or Ctrl-C: live on a terminal, elsewhere when a phase begins."""
    with watching(place, call.options) as watch:
        try:
            if call.json:
                _show_as_json(watch)
            elif sys.stdout.isatty():
                _show_live(watch)
            else:
                _show_phases(watch)
        except KeyboardInterrupt:
            return
    if not call.json:
        call.note("No run goes on.")


def _show_as_json(watch: Watch) -> None:
    for runs in poll_runs(watch):
        print(json.dumps({"version": EVENTS_VERSION, "runs": [_object(run) for run in runs]}), flush=True)


def _show_live(watch: Watch) -> None:
    with Live(console=Console(highlight=False), auto_refresh=False) as live:
        for runs in poll_runs(watch):
            live.update(Text(runs_text(runs)), refresh=True)


def _show_phases(watch: Watch) -> None:
    shown: list[tuple[str, str, bool]] = []
    for runs in poll_runs(watch):
        there = [(run.run, run.phase, run.alive) for run in runs]
        if there != shown:
            print(runs_text(runs), flush=True)
        shown = there


def poll_runs(watch: Watch) -> Iterator[list[LiveRun]]:
    """Yield the live runs every second, as long as any is alive; the last list is empty, or of dead runs."""
    while True:
        runs = watch.runs()
        yield runs
        if not any(run.alive for run in runs):
            return
        time.sleep(REFRESH)


def runs_text(runs: list[LiveRun]) -> str:
    """The runs under headings; nothing if there are none."""
    headings = ["run", "phase", "", "elapsed", "source", "release"]
    return table(headings, [_row(run) for run in runs], indent="") if runs else ""


def _row(run: LiveRun) -> list[object]:
    figures = ", ".join(f"{name} {value:,}" for name, value in run.state.items() if name != "phase")
    if not run.alive:
        figures = "dead: sqlanon gc"
    elapsed = f"{run.seconds:,.0f} s"
    return [run.run, run.phase, figures, elapsed, place_text(run.source), place_text(run.release)]


def _object(run: LiveRun) -> dict[str, Any]:
    values = {name: getattr(run, name) for name in ("run", "source", "release", "process", "phase", "seconds")}
    return {**values, **run.state, "silent": run.silent, "alive": run.alive}


def cancel_run(call: Call, place: CatalogAddress, name: str, wait: float) -> None:
    """Ask a run to end, wait until it has, and say so."""
    with watching(place, call.options) as watch:
        run = watch.cancel(name, wait)
    if call.json:
        call.emit({"run": run, "status": "cancelled"})
    else:
        print(f"Run {run} is cancelled; the release is as it was before.")
