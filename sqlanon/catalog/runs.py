"""Runs as the catalog keeps them: how they began and ended, and with which statements."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlanon import __version__
from sqlanon.catalog import locks
from sqlanon.catalog.access import Access, lock_of
from sqlanon.catalog.records import Run, RunStart, Status, Step, new_run_id
from sqlanon.engines.driver import Row
from sqlanon.errors import PolicyError, SqlanonError
from sqlanon.support import process

_CHOICES = ("named", "of_job", "of_dry_runs")  # to choose runs; see the template


class RunRecords(Access):
    """The runs of a catalog."""

    def start_run(self, start: RunStart) -> str:
        """Record that a run begins, which counts as alive until this catalog is closed; its id."""
        run = self.new_id()
        if not locks.take(self._keeper, lock_of(run)):
            return self.start_run(start)  # the same second, the same eight digits: draw again
        values = dataclasses.asdict(start) | {
            "id": run,
            "status": Status.RUNNING,
            "engine": self._engine.name,
            "database": self._database,
            "process": process.this_process(),
            "started": datetime.now(UTC),
            "policy_digest": hashlib.sha256(start.policy.encode()).hexdigest(),
            "sqlanon_version": __version__,
        }
        self._alive.add(run)
        self._insert("record the run", self._tables.runs, values)
        return run

    def new_id(self) -> str:
        """Draw the id of a run."""
        return new_run_id()

    def finish_run(
        self,
        run: str,
        status: Status,
        *,
        result: str | None = None,
        error: BaseException | None = None,
        source_rows: int | None = None,
        reword: Callable[[str], str] = str,
    ) -> None:
        """Record how a run ended; `result` is the text that `results.records.write_record` makes.

        reword: what makes the text of an error one that may be kept.
        """
        values = {
            "run": run,
            "status": status,
            "finished": datetime.now(UTC),
            "result": result,
            "source_rows": source_rows,
            "error_class": None if error is None else type(error).__name__,
            "error_message": None if error is None else reword(_message(error)),
        }
        self._change("record the run's end", "finish_run", values)

    def add_steps(self, run: str, steps: Sequence[Step]) -> None:
        """Record statements of a run, all in one transaction."""
        rows = [{"run": run, **vars(step)} for step in steps]
        self._insert("record the steps", self._tables.steps, *rows)

    def runs(self, limit: int | None = 20) -> list[Run]:
        """The latest runs, the newest first."""
        return [_run(row) for row in self._runs({}, limit)]

    def dry_runs(self, source: str) -> list[Run]:
        """The dry runs over a source that came to a result, the newest first."""
        return [_run(row) for row in self._runs({"source": source}, by="of_dry_runs")]

    def runs_of_job(self, name: str, limit: int | None = 20) -> list[Run]:
        """The latest runs of a job, the newest first."""
        return [_run(row) for row in self._runs({"job": name}, limit, by="of_job")]

    def run(self, name: str) -> Run:
        """The run of that id; its beginning, or its last four digits, will do if they are no other's.

        Raises:
            PolicyError: there is no such run, or more than one, or the name is empty, as of a variable that is not set.
        """
        if not name:
            raise PolicyError("The name of the run is empty; `sqlanon runs` lists the runs.")
        runs = [_run(row) for row in self._runs({"name": name}, 2, by="named")]
        if not runs:
            raise PolicyError(f"The catalog has no run '{name}'; `sqlanon runs` lists them.")
        if len(runs) > 1 and runs[0].id != name:
            raise PolicyError(
                f"'{name}' matches several runs, such as {runs[0].id} and {runs[1].id}: write more of it."
            )
        return runs[0]

    def steps(self, run: str) -> list[Step]:
        """The statements of a run, in order."""
        return [Step(**row) for row in self._rows("select_steps", {"run": run})]

    def _runs(self, bound: Mapping[str, Any], limit: int | None = None, by: str = "") -> list[Row]:
        if limit is not None:
            bound = {**bound, "limit": limit}
        return self._rows("select_runs", bound, limited=limit is not None, **{flag: flag == by for flag in _CHOICES})


def _run(row: Row) -> Run:
    values = {name: value for name, value in row.items() if name != "result"}
    return Run(**values | {"status": Status(row["status"]), "recorded": row["result"]})


def _message(error: BaseException) -> str:
    """Choose the text of an error to keep: the project's own messages hold no cell value, other people's may."""
    return str(error) if isinstance(error, SqlanonError) else "An unexpected error; its text is not kept."
