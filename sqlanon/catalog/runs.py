"""Runs as the catalog keeps them: how they began and ended, and with which statements."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import RowMapping, insert, select, update

from sqlanon import __version__
from sqlanon.catalog import locks, process, queries
from sqlanon.catalog.access import Access, lock_of
from sqlanon.catalog.records import Run, RunStart, Status, Step, new_run_id
from sqlanon.errors import PolicyError, SqlanonError


class Runs(Access):
    """The runs of a catalog."""

    def start_run(self, start: RunStart) -> str:
        """Record that a run begins, which counts as alive until this catalog is closed; its id."""
        run = new_run_id()
        if not locks.take(self._engine, lock_of(run)):
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
        self._write("record the run", insert(self._tables.runs).values(values))
        return run

    def finish_run(
        self,
        run: str,
        status: Status,
        *,
        result: Mapping[str, Any] | None = None,
        error: BaseException | None = None,
        source_rows: int | None = None,
    ) -> None:
        """Record how a run ended; `result` is the object that `run --json` prints."""
        values: dict[str, Any] = {"status": status, "finished": datetime.now(UTC)}
        if result is not None:
            values["result"] = json.dumps(result, ensure_ascii=False)
        if source_rows is not None:
            values["source_rows"] = source_rows
        if error is not None:
            values |= {"error_class": type(error).__name__, "error_message": _message(error)}
        runs = self._tables.runs
        self._write("record the run's end", update(runs).where(runs.c.id == run).values(values))

    def add_steps(self, run: str, steps: Sequence[Step]) -> None:
        """Record statements of a run, all in one transaction."""
        if steps:
            rows = [{"run": run} | dataclasses.asdict(step) for step in steps]
            self._write("record the steps", insert(self._tables.steps), rows)

    def runs(self, limit: int | None = 20) -> list[Run]:
        """The latest runs, the newest first."""
        return [_run(row) for row in self._read(queries.select_runs(self._tables).limit(limit))]

    def trials(self, source: str) -> list[Run]:
        """The dry runs over a source that came to a result, the newest first."""
        return [_run(row) for row in self._read(queries.select_trials(self._tables, source))]

    def runs_of_job(self, name: str, limit: int | None = 20) -> list[Run]:
        """The latest runs of a job, the newest first."""
        query = queries.select_runs(self._tables).where(self._tables.runs.c.job == name).limit(limit)
        return [_run(row) for row in self._read(query)]

    def run(self, name: str) -> Run:
        """The run of that id; its beginning, or its last four digits, will do if they are no other's.

        Raises:
            PolicyError: there is no such run, or more than one.
        """
        found = [_run(row) for row in self._read(queries.select_run(self._tables, name).limit(2))]
        if not found:
            raise PolicyError(f"The catalog has no run '{name}'; `sqlanon runs` lists them.")
        if len(found) > 1 and found[0].id != name:
            raise PolicyError(f"'{name}' stands for more than one run, such as {found[0].id} and {found[1].id}.")
        return found[0]

    def steps(self, run: str) -> list[Step]:
        """The statements of a run, in order."""
        table = self._tables.steps
        columns = [column for column in table.c if column.name != "run"]
        return [Step(**row) for row in self._read(select(*columns).where(table.c.run == run).order_by(table.c.number))]


def _run(row: RowMapping) -> Run:
    result = row["result"]
    return Run(**{**row, "status": Status(row["status"]), "result": None if result is None else json.loads(result)})


def _message(error: BaseException) -> str:
    """What may be kept of an error: the project's own messages hold no cell value, other people's may."""
    return str(error) if isinstance(error, SqlanonError) else "An unexpected error; its text is not kept."
