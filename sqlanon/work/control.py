"""While a run works it tells others how far it is, and ends when they ask it to."""

from __future__ import annotations

import dataclasses
import threading
import time
from types import TracebackType
from typing import Any

from sqlanon.catalog.live import Channel
from sqlanon.engines.base import Engine
from sqlanon.errors import Cancelled, SqlanonError
from sqlanon.work.journal import Journal, Progress

INTERVAL = 0.5  # seconds between two signs of life


_PRESSING = 0.1  # seconds between two attempts to stop a statement


MESSAGE = "Cancelled from another terminal (`sqlanon cancel`)."


_NAMES = {"active_rows": "active", "active_nodes": "nodes", "leaves": "final"}


class Control:
    """The part of a run that may be watched and cancelled, as a `with` statement.

    A thread tells the channel how far the journal is. When it learns that the run is to end, it stops the statements of
    the run's sessions, again and again: one that comes between two of them would be lost. The journal lets none begin
    after that. At its end the thread has ended too, so that clearing up is not disturbed.
    """

    def __init__(self, channel: Channel | None, journal: Journal, *engines: Engine, phase: str | None = None) -> None:
        """Watch a journal and the sessions of these engines.

        phase: what to tell in place of phases, figures and times, which would tell of the data.
        """
        self._phase = phase
        self._channel = channel
        self._journal = journal
        self._engines = engines
        self._began = time.monotonic()
        self._ended = threading.Event()
        self._deciding = threading.Lock()
        self._is_final = False
        self._thread = threading.Thread(target=self._follow, name="sqlanon-control", daemon=True)
        self.problem: str | None = None

    def __enter__(self) -> Control:
        if self._channel is not None:
            try:
                self._tell()
            except OSError as failure:  # a full disk, which the run's own statements report better
                self.problem = str(failure)
            self._thread.start()
        return self

    def finish(self) -> None:
        """Make the run final, as the acts that follow can't be undone: a request that comes later is too late.

        Raises:
            Cancelled: one came before.
        """
        with self._deciding:
            self._journal.require_wanted()
            self._is_final = True

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._channel is None:
            return
        self._ended.set()
        self._thread.join()
        cancelled = self._journal.cancelled
        self._journal.cancelled = None
        try:
            self._channel.close()
        except (SqlanonError, OSError) as failure:
            self.problem = str(failure)
        if cancelled is not None and isinstance(error, SqlanonError):
            raise Cancelled(cancelled) from error

    def _follow(self) -> None:
        while not self._ended.wait(INTERVAL):
            try:
                asked = self._tell()
            except (SqlanonError, OSError) as error:  # the run goes on; nobody sees it any more
                self.problem = str(error)
                return
            if asked and self._decide():
                self._press()

    def _tell(self) -> bool:
        assert self._channel is not None
        return self._channel.tell(self._state(), 0.0 if self._phase else time.monotonic() - self._began)

    def _state(self) -> dict[str, Any]:
        if self._phase is not None:
            return {"phase": self._phase}
        latest, phase = self._journal.latest, self._journal.phase
        return {"phase": phase, **(figures(latest) if latest is not None and phase == "search" else {})}

    def _decide(self) -> bool:
        """Cancel the run where that is still possible, and tell whether it was."""
        with self._deciding:
            if not self._is_final:
                self._journal.cancelled = MESSAGE
            return not self._is_final

    def _press(self) -> None:
        """Stop whatever runs, until nothing does."""
        while not self._ended.wait(_PRESSING):
            for engine in self._engines:
                for session in engine.at_work():
                    try:
                        session.cancel()
                    except SqlanonError as error:  # it broke, or is being closed; the next attempt will tell
                        self.problem = str(error)


def figures(progress: Progress) -> dict[str, int | float]:
    """The numbers of a progress, in order; those that it doesn't know yet are left out.

    Of a tree `round`, `active` (rows), `nodes`, `final` (classes), beside them the `episode` of a sample; of a lattice
    `checked`, `open`, `best`, `bound`; of a specialization `done`, `tried`, `open`; of refinement
    `refined`, `of`, `clusters`; of a stream `round`, `left`, `groups`.
    """
    assert dataclasses.is_dataclass(progress)
    numbers: dict[str, Any] = {}
    for field in dataclasses.fields(progress):
        value = getattr(progress, field.name)
        if dataclasses.is_dataclass(value):
            numbers |= figures(value)
        elif value is not None:
            numbers[_NAMES.get(field.name, field.name)] = value
    return numbers
