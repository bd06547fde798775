"""Watching the runs of a catalog from outside, and ending one."""

from __future__ import annotations

import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

from sqlanon.catalog import Catalog, Status
from sqlanon.catalog.live import LiveRun, ask_by_file, list_files
from sqlanon.catalog.location import CatalogAddress
from sqlanon.engines.dialects import is_embedded
from sqlanon.engines.embedded import existing_file
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import ConflictError, PolicyError
from sqlanon.work.session import open_recorded

_POLL = 0.1  # seconds


class Watch(ABC):
    """The runs of one catalog that go on."""

    @abstractmethod
    def runs(self) -> list[LiveRun]:
        """The runs that have not ended, the oldest first; some may be dead."""

    @abstractmethod
    def ask(self, run: str) -> None:
        """Ask a run to end."""

    @abstractmethod
    def status(self, run: str) -> Status | None:
        """Return the end of a run; None as long as that is not to be known."""

    def cancel(self, name: str, wait: float) -> str:
        """Ask a run to end, and wait until it has; its id. `name` is the id, its beginning, or its last digits.

        Raises:
            PolicyError: no run of that name goes on, or more than one.
            ConflictError: its process is gone, it ended otherwise, or it has not ended within `wait` seconds.
        """
        run = self._named(name)
        if not run.alive:
            raise ConflictError(f"The process of run {run.run} is gone; `sqlanon gc` clears what it left.")
        self.ask(run.run)
        deadline = time.monotonic() + wait
        while (ended := self.status(run.run)) is None:
            if time.monotonic() > deadline:
                raise ConflictError(
                    f"Run {run.run} was asked to end, and has not ended within {wait:g} s. Its process is "
                    f"{run.process} (host, boot, id, start): wait, or end that process, and run `sqlanon gc`."
                )
            time.sleep(_POLL)
        if ended is not Status.CANCELLED:
            raise ConflictError(f"Run {run.run} was not cancelled: it had already ended, as {ended}.")
        return run.run

    def _named(self, name: str) -> LiveRun:
        named = [run for run in self.runs() if run.run.startswith(name) or run.run.endswith(name)]
        if not named:
            raise PolicyError(f"No run '{name}' goes on here; `sqlanon runs` lists those that have ended.")
        if len(named) > 1:
            raise PolicyError(
                f"'{name}' matches several runs, such as {named[0].run} and {named[1].run}: write more of it."
            )
        return named[0]


class _CatalogWatch(Watch):
    """Through the catalog."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def runs(self) -> list[LiveRun]:
        return self._catalog.live_runs()

    def ask(self, run: str) -> None:
        self._catalog.ask_to_end(run)

    def status(self, run: str) -> Status | None:
        status = self._catalog.run(run).status
        return None if status is Status.RUNNING else status


class _FileWatch(Watch):
    """Through the files beside a DuckDB file, which the process of a run holds."""

    def __init__(self, file: Path, place: CatalogAddress) -> None:
        self._file = file
        self._place = place

    def runs(self) -> list[LiveRun]:
        return [run for _, run in list_files(self._file)]

    def ask(self, run: str) -> None:
        ask_by_file(self._file, run)

    def status(self, run: str) -> Status | None:
        if any(one.run == run and one.alive for one in self.runs()):
            return None
        try:
            with open_recorded(self._place) as catalog:
                status = catalog.run(run).status
        except (
            ConflictError
        ):  # the process closes the file a moment after it has ended the run, or has it open for more
            return None
        return status


@contextlib.contextmanager
def watching(place: CatalogAddress, options: EngineOptions) -> Iterator[Watch]:
    """A watch over the catalog at a place; of a DuckDB file nothing is opened while runs go on.

    Raises AccessError where the database, or the catalog that a policy names, is not there; PolicyError where no run
    was ever recorded.
    """
    place = CatalogAddress(*place)
    if is_embedded(place.url):
        file = existing_file(place.url)
        if place.is_named and not any(True for _ in list_files(file)):
            with contextlib.suppress(ConflictError, PolicyError), open_recorded(place, options):
                pass
        yield _FileWatch(file, place)
        return
    with open_recorded(place, options) as catalog:
        yield _CatalogWatch(catalog)
