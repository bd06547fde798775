"""The progress of a run on stderr: live on a terminal, a line a phase elsewhere, nothing if not wanted."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator

from rich.console import Console
from rich.status import Status

from sqlanon.journal import Observer, Progress, Silent

_WORDS = {
    "plan": "planning",
    "encode": "encoding",
    "search": "searching",
    "recode": "recoding",
    "verify": "verifying",
    "publish": "publishing",
}


@contextlib.contextmanager
def observer(quiet: bool) -> Iterator[Observer]:
    """An observer that fits where stderr goes."""
    if quiet:
        yield Silent()
    elif sys.stderr.isatty():
        console = Console(stderr=True, highlight=False)
        with console.status("starting") as status:
            live = _Live(status)
            yield live
            live.finish()
    else:
        yield _Lines()


class _Live:
    """One line that changes."""

    def __init__(self, status: Status) -> None:
        self._status = status
        self._phase = ""
        self._started = time.perf_counter()

    def phase(self, name: str) -> None:
        """Show the phase that begins, and keep a line of the one before."""
        if name == self._phase:
            return
        self.finish()
        self._phase, self._started = name, time.perf_counter()
        self._status.update(_WORDS.get(name, name))

    def finish(self) -> None:
        """Keep a line of the phase that ends."""
        if self._phase:
            seconds = time.perf_counter() - self._started
            self._status.console.print(f"[green]done[/green] {_WORDS.get(self._phase, self._phase)} {seconds:.1f} s")

    def progress(self, progress: Progress) -> None:
        """Show how far the search is."""
        self._status.update(f"searching, {progress.text}")


class _Lines:
    """Plain lines: one a phase."""

    def __init__(self) -> None:
        self._phase = ""

    def phase(self, name: str) -> None:
        """Print the phase that begins."""
        if name == self._phase:
            return
        self._phase = name
        print(f"{_WORDS.get(name, name)} ...", file=sys.stderr, flush=True)

    def progress(self, progress: Progress) -> None:
        """Rounds are for terminals."""
