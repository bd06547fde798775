"""Observers of a run, and the journal of its statements."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from sqlanon.catalog import Status, Step
from sqlanon.errors import Cancelled, ProtectionError, VerificationError
from sqlanon.sql import Statement


class Progress(Protocol):
    """The progress of a search."""

    @property
    def text(self) -> str:
        """In a few words."""


class Observer(Protocol):
    """A follower of a run; every method may do nothing."""

    def started(self, run: str) -> None:
        """The run is recorded in the catalog under this id; its plan was made before that."""

    def phase(self, name: str) -> None:
        """A phase begins: plan, encode, search, recode, verify, publish."""

    def progress(self, progress: Progress) -> None:
        """The search has come further."""


class Silent:
    """An observer that does nothing."""

    def started(self, run: str) -> None: ...

    def phase(self, name: str) -> None: ...

    def progress(self, progress: Progress) -> None: ...


@dataclass
class Journal:
    """The statements of a run, by phase, how long each phase took, and how far the search is.

    cancelled: why the run is to end before its next statement; None while it may go on.
    """

    observer: Observer
    phase: str = "plan"
    steps: list[Step] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    latest: Progress | None = None
    cancelled: str | None = None
    began: float = field(default_factory=time.perf_counter)
    lock: threading.Lock = field(default_factory=threading.Lock)  # sub-trees report from threads of their own
    announced: str | None = None  # the phase that the observer knows of
    rests: bool = False

    def note(self, statement: Statement, seconds: float, rows: int) -> None:
        """Write a statement down; a listener of engines (see `StatementListener`)."""
        count = rows if rows >= 0 else None
        if self.rests:
            self.require_wanted()
            return
        with self.lock:
            self.steps.append(Step(len(self.steps), self.phase, statement.name, statement.record, seconds, count))
        self.require_wanted()

    @contextlib.contextmanager
    def resting(self) -> Iterator[None]:
        """Inside, statements are those of another run, which writes them down itself; the run may be cancelled yet."""
        self.rests = True
        try:
            yield
        finally:
            self.rests = False

    def require_wanted(self) -> None:
        """Raise Cancelled if the run is to end."""
        if self.cancelled is not None:
            raise Cancelled(self.cancelled)

    def progress(self, progress: Progress) -> None:
        """The search has come further; sub-trees tell from threads of their own."""
        self.latest = progress
        self.observer.progress(progress)

    @contextlib.contextmanager
    def during(self, phase: str) -> Iterator[None]:
        """Tell the observer that a phase begins, once for all its parts, and count its time."""
        self.phase = phase
        if self.announced != phase:
            self.announced = phase
            self.observer.phase(phase)
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[phase] = self.seconds.get(phase, 0.0) + time.perf_counter() - started

    def count(self, phase: str) -> int:
        """The number of statements of a phase."""
        return sum(step.phase == phase for step in self.steps)


def status_after(error: BaseException) -> Status:
    """Return the catalog's status of a run that this error ended."""
    if isinstance(error, (ProtectionError, VerificationError)):
        return Status.REFUSED
    return Status.CANCELLED if isinstance(error, (Cancelled, KeyboardInterrupt)) else Status.FAILED
