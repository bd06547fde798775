"""Runs as the catalog keeps them: their beginning, statements and end; those that go on, and what dead ones left.

Locks, processes and records of progress say which runs go on. The ledger holds the tables that a run has to drop.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlanon import __version__
from sqlanon.catalog import live, locks
from sqlanon.catalog.connection import Access, lock_of, lock_of_stopped
from sqlanon.catalog.records import LedgerEntry, Run, RunStart, Status, Step, files_of_host, new_run_id
from sqlanon.errors import AccessError, PolicyError, SqlanonError
from sqlanon.sql import Identifier, Relation
from sqlanon.support import process

_COLUMNS = [Identifier(field.name) for field in fields(Run) if field.name not in ("status", "recorded")]
_UNEXPECTED = "An unexpected error; its text is not kept."  # other people's messages may hold cell values
_CHOICES = ("named", "of_job", "of_release", "of_dry_runs")  # to choose runs; see the template


class RunRecords(Access):
    """The runs of a catalog, and the ledger of what those that have not ended have made."""

    def start_run(self, start: RunStart) -> str:
        """Record that a run begins, which counts as alive until this catalog is closed; its id."""
        run = self.new_id()
        if not locks.take(self._keeper, lock_of(run)):
            return self.start_run(start)  # the same second, the same eight digits: draw again
        values = vars(start) | {
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
        self._insert("record the run", "runs", values)
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
        new: dict[str, Any] = {"result": result, "source_rows": source_rows}
        if error is not None:
            message = str(error) if isinstance(error, SqlanonError) else _UNEXPECTED
            new |= {"error_class": type(error).__name__, "error_message": reword(message)}
        new = {name: value for name, value in new.items() if value is not None}  # the others stay as they were
        self._update("record the run's end", "runs", {"id": run}, status=status, finished=datetime.now(UTC), **new)

    def add_steps(self, run: str, steps: Sequence[Step]) -> None:
        """Record statements of a run, all in one transaction."""
        self._insert("record the steps", "steps", *({"run": run, **vars(step)} for step in steps))

    def runs(self, limit: int | None = 20) -> list[Run]:
        """The latest runs, the newest first."""
        return self._runs({}, limit)

    def dry_runs(self, source: str) -> list[Run]:
        """The dry runs over a source that came to a result, the newest first."""
        return self._runs({"source": source}, by="of_dry_runs")

    def runs_of_job(self, name: str, limit: int | None = 20) -> list[Run]:
        """The latest runs of a job, the newest first."""
        return self._runs({"job": name}, limit, by="of_job")

    def last_run_to(self, release: str) -> Run | None:
        """The newest run that published a release of this name; None where there is none."""
        return next(iter(self._runs({"release": release}, 1, by="of_release")), None)

    def run(self, name: str) -> Run:
        """The run of that id; its beginning, or its last four digits, will do if they are no other's.

        Raises:
            PolicyError: there is no such run, or more than one, or the name is empty, as of a variable that is not set.
        """
        if not name:
            raise PolicyError("The name of the run is empty; `sqlanon runs` lists the runs.")
        runs = self._runs({"name": name}, 2, by="named")
        if not runs:
            raise PolicyError(f"The catalog has no run '{name}'; `sqlanon runs` lists them.")
        if len(runs) > 1 and runs[0].id != name:
            raise PolicyError(
                f"'{name}' matches several runs, such as {runs[0].id} and {runs[1].id}: write more of it."
            )
        return runs[0]

    def steps(self, run: str) -> list[Step]:
        """The statements of a run, in order."""
        return self._records(Step, "steps", {"run": run}, ["number"])

    def _runs(self, bound: Mapping[str, Any], limit: int | None = None, by: str = "") -> list[Run]:
        if limit is not None:
            bound = {**bound, "limit": limit}
        values = {"columns": _COLUMNS, "limited": limit is not None, **{flag: flag == by for flag in _CHOICES}}
        rows = self._ask(lambda transaction: transaction.rows("select_runs", bound, **values))
        return [Run(**row | {"status": Status(row["status"])}) for row in rows]

    @contextlib.contextmanager
    def stopped_run(self, run: str) -> Iterator[bool]:
        """Tell whether no living process works on a run, or takes it up; if so nobody else does meanwhile.

        The run counts as dead all the while, and nobody clears it up.
        """
        claimed = self._claim_dead(run, self.run(run).process)
        if claimed:
            locks.give_back(self._keeper, lock_of(run))
        try:
            yield claimed
        finally:
            if claimed:
                locks.give_back(self._keeper, lock_of_stopped(run))

    @contextlib.contextmanager
    def dead_runs(self) -> Iterator[list[str]]:
        """The runs of the engine's database that did not end and that no living process works on, or takes up.

        So are those of other databases that have left directories of this machine.

        Their locks are held meanwhile, so that two collectors do not meet.
        """
        bound = {"database": self._database, "files": files_of_host()}
        rows = self._ask(lambda transaction: transaction.rows("select_unfinished", bound))
        dead = [row["id"] for row in rows if self._claim_dead(row["id"], row["process"])]
        try:
            yield dead
        finally:
            for run in dead:
                locks.give_back(self._keeper, lock_of_stopped(run))
                locks.give_back(self._keeper, lock_of(run))

    def living_runs(self) -> list[str]:
        """The runs that go on; of those in another database, what is known of their processes."""
        columns, order, running = ("id", "process", "database"), ("started", "id"), {"status": Status.RUNNING}
        rows = self._ask(lambda transaction: transaction.select("runs", columns, running, order))
        return [row["id"] for row in rows if self._lives(row)]

    def _lives(self, row: Mapping[str, Any]) -> bool:
        if row["database"] != self._database:
            return process.is_alive(row["process"])
        claimed = self._claim(row["id"], row["process"])
        if claimed:
            locks.give_back(self._keeper, lock_of(row["id"]))
        return not claimed

    def end_dead_run(self, run: str) -> Status | None:
        """Mark a dead run `published` if its release is recorded, else `failed`; None if it had ended before."""
        bound = {"run": run, "finished": datetime.now(UTC)}
        ended = self._connection.do("mark a dead run", lambda transaction: transaction.rows("end_dead_run", bound))
        if not ended:
            return None
        self._delete("forget how far it was", "live", {"run": run})
        return Status(ended[0]["status"])

    def channel(self, run: str) -> live.Channel | None:
        """By which a run tells others how far it is; None for a catalog in memory, which no other sees.

        Raises:
            AccessError: beside a DuckDB file no file can be written.
        """
        if not self._store.traits.is_embedded:
            return live.CatalogChannel(self._connection, run)
        path = self._store.identity()
        if path is None:
            return None
        started = self.run(run)
        facts = {"source": started.source, "release": started.release, "process": started.process}
        try:
            return live.FileChannel(Path(path).resolve(), run, facts)
        except OSError as error:
            raise AccessError(f"Beside {path} no file can be written: {error.strerror}.") from None

    def live_runs(self) -> list[live.LiveRun]:
        """The runs that have not ended, as they told last (PostgreSQL)."""
        return [self._live_run(row) for row in self._ask(lambda transaction: transaction.rows("list_live_runs"))]

    def _live_run(self, row: Mapping[str, Any]) -> live.LiveRun:
        facts = {"run": row["id"], **{name: row[name] for name in ("source", "release", "process")}}
        if row["state"] is None:  # a procedure, which tells nothing; or killed before its first word
            holder = self._store.query("catalog/find_lock_holder", key=locks.advisory_key(lock_of(row["id"])))
            return live.LiveRun(**facts, state={}, seconds=row["age"], silent=None, alive=bool(holder))
        alive = row["silent"] < live.SILENT and process.is_alive(row["process"])
        state = json.loads(row["state"])
        seconds = row["seconds"] or row["age"]  # a private run does not tell its time
        return live.LiveRun(**facts, state=state, seconds=seconds, silent=row["silent"], alive=alive)

    def ask_to_end(self, run: str) -> bool:
        """Ask a run to end (PostgreSQL): the program's own by its row, a procedure by cancelling its query.

        False where there is nobody to be asked. Raises AccessError where the role may not cancel the query.
        """
        if self._update("ask a run to end", "live", {"run": run}, cancel=True):
            return True
        return bool(self._store.query("catalog/cancel_lock_holder", key=locks.advisory_key(lock_of(run))))

    def _claim_dead(self, run: str, owner: str) -> bool:
        """Take both locks of a run that nobody works on; False where somebody does, or takes it up."""
        if not self._claim(run, owner):
            return False
        if locks.take(self._keeper, lock_of_stopped(run)):
            return True
        locks.give_back(self._keeper, lock_of(run))
        return False

    def _claim(self, run: str, owner: str) -> bool:
        if self._keeper.traits.is_embedded and owner != process.this_process() and process.is_alive(owner):
            return False
        return locks.take(self._keeper, lock_of(run))

    def ledger_add(self, entry: LedgerEntry) -> None:
        """Note, before it is made, a table that a run makes."""
        self._insert("note a work table", "work_tables", {**vars(entry), "created": datetime.now(UTC)})

    def ledger_remove(self, *entries: LedgerEntry) -> None:
        """Forget tables that are dropped."""
        keys = ({name: getattr(entry, name) for name in ("run", "relation", "database")} for entry in entries)
        self._delete("forget work tables", "work_tables", *keys)

    def ledger(self, run: str) -> list[LedgerEntry]:
        """The tables that a run may have left."""
        return self._records(LedgerEntry, "work_tables", {"run": run}, ["relation"], {"relation": Relation.parse})

    def record_checkpoint(self, run: str, content: str) -> None:
        """Record from what a run can be taken up if it is stopped."""
        self._insert("record a checkpoint", "checkpoints", {"run": run, "content": content})

    def checkpoint(self, run: str) -> str | None:
        """From what a run can be taken up; None where there is nothing."""
        rows = self._ask(lambda transaction: transaction.select("checkpoints", ["content"], {"run": run}))
        return next((row["content"] for row in rows), None)

    def forget_checkpoint(self, run: str) -> None:
        """The tables of a run are dropped: it can't be taken up any more."""
        self._delete("forget a checkpoint", "checkpoints", {"run": run})
