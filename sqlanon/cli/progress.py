"""The progress of a run on stderr: live on a terminal, a line a phase elsewhere, JSON for programs, or nothing."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Iterator

from sqlanon.cli.call import Call
from sqlanon.errors import PolicyError
from sqlanon.work.control import figures
from sqlanon.work.journal import Observer, Progress, Silent
from sqlanon.work.phases import phase_words

EVENTS_VERSION = 1


@contextlib.contextmanager
def observer(call: Call, progress: str, quiet: bool = False, *, is_timed: bool = True) -> Iterator[Observer]:
    """An observer as it is wanted, which in doubt is one that fits where stderr goes.

    is_timed: whether it tells seconds, which of a differentially private run would tell of the data.
    """
    if quiet and progress == "json":
        raise PolicyError("--quiet and --progress json contradict each other.")
    if progress == "json":
        with _Events(is_timed).telling_the_end() as events:
            yield events
    elif quiet or progress == "none" or call.json:
        yield Silent()
    elif sys.stderr.isatty():
        from sqlanon.cli.live import live_observer  # here, as rich is for terminals alone

        with live_observer(is_timed=is_timed) as live:
            yield live
    else:
        yield _Lines()


class _Events:
    """One JSON object a line for programs; docs/progress.md says what is in it."""

    def __init__(self, is_timed: bool) -> None:
        self._is_timed = is_timed
        self._run: str | None = None
        self._phase: str | None = None
        self._began = time.monotonic()

    @contextlib.contextmanager
    def telling_the_end(self) -> Iterator[Observer]:
        """The last event says whether what was followed came to its end."""
        try:
            yield self
        except BaseException as error:
            self._tell("end", error="Cancelled" if isinstance(error, KeyboardInterrupt) else type(error).__name__)
            raise
        self._tell("end", error=None)

    def started(self, run: str) -> None:
        """A run has its id."""
        self._run = run
        self._tell("start")

    def phase(self, name: str) -> None:
        """A phase begins, once for all its parts."""
        if name != self._phase:
            self._phase = name
            self._tell("phase")

    def progress(self, progress: Progress) -> None:
        """The search has come further."""
        self._tell("progress", **figures(progress))

    def _tell(self, event: str, **more: object) -> None:
        seconds = round(time.monotonic() - self._began, 3) if self._is_timed else None
        phase, _, table = (self._phase or "").partition(" ")
        known = {"version": EVENTS_VERSION, "event": event, "run": self._run, "phase": phase or None}
        known |= {"table": table} if table else {}
        print(json.dumps(known | {"seconds": seconds} | more), file=sys.stderr, flush=True)


class _Lines(Silent):
    """Plain lines: one a phase; rounds are for terminals."""

    def __init__(self) -> None:
        self._phase = ""

    def phase(self, name: str) -> None:
        """Print the phase that begins."""
        if name == self._phase:
            return
        self._phase = name
        print(f"{phase_words(name)} ...", file=sys.stderr, flush=True)
