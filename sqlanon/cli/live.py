"""The progress of a run on a terminal."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from rich.console import Console
from rich.status import Status

from sqlanon.work.journal import Observer, Progress, Silent
from sqlanon.work.phases import phase_words


@contextlib.contextmanager
def live_observer(*, is_timed: bool = True) -> Iterator[Observer]:
    """Follow a run by one line that changes; `is_timed`: with seconds of each."""
    console = Console(stderr=True, highlight=False)
    with console.status("starting") as status:
        live = _Live(status, is_timed)
        yield live
        live.finish()


class _Live(Silent):
    """One line that changes."""

    def __init__(self, status: Status, is_timed: bool) -> None:
        self._is_timed = is_timed
        self._status = status
        self._phase = ""
        self._started = time.perf_counter()

    def phase(self, name: str) -> None:
        """Show the phase that begins, and keep a line of the one before."""
        if name == self._phase:
            return
        self.finish()
        self._phase, self._started = name, time.perf_counter()
        self._status.update(phase_words(name))

    def finish(self) -> None:
        """Keep a line of the phase that ends."""
        if self._phase:
            seconds = f" {time.perf_counter() - self._started:.1f} s" if self._is_timed else ""
            self._status.console.print(f"[green]done[/green] {phase_words(self._phase)}{seconds}")

    def progress(self, progress: Progress) -> None:
        """Show how far the search is."""
        self._status.update(f"searching, {progress.text}")
