"""Find the runs that go on, their progress, and the runs that died: by locks, processes and progress records."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlanon.catalog import live, locks
from sqlanon.catalog.access import lock_of, lock_of_stopped
from sqlanon.catalog.location import identity_of
from sqlanon.catalog.records import Status, files_of_host
from sqlanon.catalog.runs import RunRecords
from sqlanon.errors import AccessError
from sqlanon.support import process


class Liveness(RunRecords):
    """The runs of a catalog that have not ended."""

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
        rows = self._rows("select_unfinished", {"database": self._database, "files": files_of_host()})
        dead = [row["id"] for row in rows if self._claim_dead(row["id"], row["process"])]
        try:
            yield dead
        finally:
            for run in dead:
                locks.give_back(self._keeper, lock_of_stopped(run))
                locks.give_back(self._keeper, lock_of(run))

    def living_runs(self) -> list[str]:
        """The runs that go on; of those in another database, what is known of their processes."""
        return [row["id"] for row in self._rows("select_running") if self._lives(row)]

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
        self._change("forget how far it was", "delete_of_run", {"run": run}, of="live")
        return Status(ended[0]["status"])

    def channel(self, run: str) -> live.Channel | None:
        """By which a run tells others how far it is; None for a catalog in memory, which no other sees.

        Raises:
            AccessError: beside a DuckDB file no file can be written.
        """
        if not self._store.traits.is_embedded:
            return live.CatalogChannel(self._connection, run)
        path = identity_of(self._store)
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
        return [self._live_run(row) for row in self._rows("list_live_runs")]

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
        if live.ask(self._connection, run):
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
