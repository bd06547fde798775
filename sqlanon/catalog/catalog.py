"""The catalog: what was run, with which statements, what was released, and which tables a run still owns."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, insert, select, update
from sqlalchemy.sql import Executable

from sqlanon import __version__
from sqlanon.catalog import live, locks, process, queries
from sqlanon.catalog.connection import CatalogConnection
from sqlanon.catalog.home import Home, database_of, identity_of, is_same_database
from sqlanon.catalog.migrate import HEAD, Migration
from sqlanon.catalog.records import (
    HierarchyRecord,
    Job,
    LedgerEntry,
    Released,
    ReleaseKind,
    ReleaseRecord,
    RulesKind,
    RulesRecord,
    Run,
    RunStart,
    Status,
    Step,
    new_run_id,
)
from sqlanon.catalog.sources import identify_source
from sqlanon.catalog.tables import Tables
from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.errors import AccessError, PolicyError, SqlanonError
from sqlanon.sql import Relation, Text

SCHEMA = "sqlanon"
_RELEASING = 60.0  # seconds: putting a release in place takes a few, and waits for its readers


class Catalog:
    """The catalog of one database. Its writes are committed at once, on a session of its own.

    Nothing it holds is a cell value or a secret: statements are templates as rendered, policies come without
    passwords, and of an error that is not the project's own only the class is kept.
    """

    def __init__(self, engine: Engine, store: Engine, schema: str, fallback_schema: str | None) -> None:
        """Use `open`; `store` is the engine of the database that holds the catalog."""
        self._engine = engine
        self._store = store
        self._database = database_of(engine)
        self._connection = CatalogConnection(store, schema, fallback_schema)
        self._tables = Tables.named(self._connection.home.prefix)
        self._alive: set[str] = set()

    @classmethod
    def open(
        cls,
        engine: Engine,
        schema: str = SCHEMA,
        url: str | None = None,
        *,
        fallback_schema: str | None = None,
        upgrade: bool = True,
    ) -> Catalog:
        """The catalog of `engine`'s database, upgraded to what this program knows.

        Args:
            engine: the session of the runs; its locks say which of them are alive.
            schema: the catalog's schema, made if it is not there.
            url: another database that is to hold the catalog; a DuckDB file is made if it is not there.
            fallback_schema: where the tables go, named `sqlanon_...`, if the role can't have `schema` (PostgreSQL).
            upgrade: False leaves the tables as they are.

        Raises:
            AccessError: the role can use neither schema.
            CatalogTooNewError: a newer version of the program wrote the catalog.
        """
        with contextlib.ExitStack() as undo:
            store = engine if url is None else undo.enter_context(connect(url, create=True))
            catalog = undo.enter_context(cls(engine, store, schema, fallback_schema))
            if upgrade:
                catalog.upgrade()
            undo.pop_all()
        return catalog

    @property
    def home(self) -> Home:
        """The schema of the catalog's tables, and the prefix of their names."""
        return self._connection.home

    @property
    def store(self) -> Engine:
        """The engine of the database that the catalog is in."""
        return self._store

    def current(self) -> str | None:
        """The revision of the catalog's tables; None if there are none."""
        return self._connection.do("be read", lambda c: Migration(c, self.home.prefix).current())

    def upgrade(self, revision: str = HEAD) -> None:
        """Upgrade the tables; of two first runs at once, the second waits for the first."""
        self._connection.upgrade(revision)

    def downgrade(self, revision: str) -> None:
        """Downgrade the tables: `base` removes them and all they hold, `-1` undoes the last migration."""
        self._connection.do("be downgraded", lambda c: Migration(c, self.home.prefix).downgrade(revision))

    def start_run(self, start: RunStart) -> str:
        """Record that a run begins, which counts as alive until this catalog is closed; its id."""
        run = new_run_id()
        if not locks.take(self._engine, _lock_of(run)):
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

    def record_release(self, run: str, release: ReleaseRecord) -> None:
        """Record a release that is published already: a file, or a table outside the catalog's database."""
        self._write("record the release", insert(self._tables.releases).values(run=run, **dataclasses.asdict(release)))

    def record_release_within(self, session: Engine, run: str, relation: Relation, release: ReleaseRecord) -> bool:
        """Record a release in the transaction that publishes it as `relation`, so that both happen or neither.

        False, and nothing done, where one transaction can't do both: the catalog is in another database. Call
        `record_release` after the transaction then.
        """
        attached = session.dialect == "duckdb" and relation.catalog != self.home.catalog
        if attached or not is_same_database(session, self._store):
            return False
        values = {"run": run} | dataclasses.asdict(release) | {"kind": release.kind.value}
        session.load(self.home.relation("releases"), list(values), [list(values.values())])
        return True

    def releases(self, run: str) -> list[ReleaseRecord]:
        """The releases that a run published."""
        table = self._tables.releases
        columns = [column for column in table.c if column.name != "run"]
        rows = self._read(select(*columns).where(table.c.run == run).order_by(table.c.relation))
        return [ReleaseRecord(**{**row, "kind": ReleaseKind(row["kind"])}) for row in rows]

    def recoding_digest(self, run: str) -> str | None:
        """The digest of the recoding function of what a run released; see `recoded_alike`."""
        return next((release.digest for release in self.releases(run)), None)

    def rules_run(self, run: str) -> str:
        """The run that found the rules of a release: that run, or the one whose rules it applied."""
        return next((_found_by(run, release.recoding) for release in self.releases(run)), run)

    def released(self, source: str) -> list[Released]:
        """All that was released of a source, a table of the engine's database or a file, the newest first."""
        wanted = identify_source(source, self._database)
        return [
            Released(
                row["id"],
                _found_by(row["id"], row["recoding"]),
                row["digest"],
                json.loads(row["policy"]).get("republish"),
            )
            for row in self._read(queries.select_released(self._tables, wanted))
            if identify_source(row["source"], row["database"]) == wanted
        ]

    @contextlib.contextmanager
    def releasing(self, source: str) -> Iterator[None]:
        """Let nobody else release this source meanwhile, whatever the release is called; who does is waited for.

        Raises:
            ConflictError: somebody has been at it for a minute.
        """
        conflict = f"Another run is releasing {source}: run again when it has ended."
        place = identify_source(source, self._database)
        with locks.held(self._store, f"source {place.name} of {place.database}", conflict, wait=_RELEASING):
            yield

    def record_rules_within(self, session: Engine, run: str, rules: RulesRecord, tables: Sequence[Relation]) -> None:
        """As `record_release_within`, once that has returned True: record the rules, whose tables are there to stay."""
        values = {"run": run} | dataclasses.asdict(rules) | {"kind": rules.kind.value}
        session.load(self.home.relation("rule_sets"), list(values), [list(values.values())])
        ledger = self.home.relation("work_tables")
        for table in tables:
            session.run("catalog/keep_table", ledger=ledger, run=Text(run), relation=Text(str(table)))

    def record_rules(self, run: str, rules: RulesRecord, tables: Sequence[Relation]) -> None:
        """Record the rules of a release that is published already."""
        values = {"run": run} | dataclasses.asdict(rules) | {"kind": rules.kind.value}
        self._write("record the rules", insert(self._tables.rule_sets).values(values))
        wanted = {str(table) for table in tables}
        self.ledger_remove(*(entry for entry in self.ledger(run) if str(entry.relation) in wanted))

    def rules(self, run: str) -> RulesRecord | None:
        """The recoding function of a run, if it was recorded."""
        table = self._tables.rule_sets
        columns = [column for column in table.c if column.name != "run"]
        rows = self._read(select(*columns).where(table.c.run == run))
        return next((RulesRecord(**{**row, "kind": RulesKind(row["kind"])}) for row in rows), None)

    def record_hierarchy(self, hierarchy: HierarchyRecord) -> None:
        """Record a hierarchy; one of the same name and digest is replaced."""
        table, values = self._tables.hierarchies, dataclasses.asdict(hierarchy)
        same = (table.c.name == hierarchy.name) & (table.c.digest == hierarchy.digest)

        def write(connection: Connection) -> None:
            known = connection.execute(select(table.c.name).where(same)).first()
            connection.execute(
                insert(table).values(values) if known is None else update(table).where(same).values(values)
            )

        self._connection.do("record the hierarchy", write)

    def hierarchies(self) -> list[HierarchyRecord]:
        """All recorded hierarchies."""
        table = self._tables.hierarchies
        return [HierarchyRecord(**row) for row in self._read(select(table).order_by(table.c.name, table.c.digest))]

    def record_job(self, job: Job) -> None:
        """Record a version of a job."""
        self._write("record the job", insert(self._tables.jobs).values(dataclasses.asdict(job)))

    def record_job_within(self, session: Engine, job: Job) -> None:
        """Record a version of a job in the transaction of a session with the catalog's own database."""
        values = dataclasses.asdict(job)
        session.load(self.home.relation("jobs"), list(values), [list(values.values())])

    def jobs(self, name: str | None = None) -> list[Job]:
        """All versions of all jobs, or of one, the newest version of each first."""
        table = self._tables.jobs
        query = select(table).order_by(table.c.name, table.c.version.desc())
        return [Job(**row) for row in self._read(query if name is None else query.where(table.c.name == name))]

    def job(self, name: str) -> Job:
        """The newest version of a job.

        Raises:
            PolicyError: there is no such job.
        """
        found = self.jobs(name)
        if not found:
            raise PolicyError(f"The catalog has no job '{name}'; `sqlanon jobs` lists them.")
        return found[0]

    def set_schedule(self, name: str, schedule: str | None, scheduler: str | None) -> None:
        """Note when a job runs from now on, and what starts it; None for never."""
        jobs = self._tables.jobs
        values = {"schedule": schedule, "scheduler": scheduler}
        self._write("note the schedule", update(jobs).where(jobs.c.name == name).values(values))

    def runs_of_job(self, name: str, limit: int | None = 20) -> list[Run]:
        """The latest runs of a job, the newest first."""
        query = queries.select_runs(self._tables).where(self._tables.runs.c.job == name).limit(limit)
        return [_run(row) for row in self._read(query)]

    def ledger_add(self, entry: LedgerEntry) -> None:
        """Note, before it is made, a table that a run makes."""
        values = dataclasses.asdict(entry) | {"relation": str(entry.relation), "created": datetime.now(UTC)}
        self._write("note a work table", insert(self._tables.work_tables).values(values))

    def ledger_remove(self, *entries: LedgerEntry) -> None:
        """Forget tables that are dropped."""

        def forget(connection: Connection) -> None:
            for entry in entries:
                connection.execute(queries.remove_from_ledger(self._tables, entry))

        self._connection.do("forget work tables", forget)

    def ledger(self, run: str) -> list[LedgerEntry]:
        """The tables that a run may have left."""
        table = self._tables.work_tables
        rows = self._read(select(table).where(table.c.run == run).order_by(table.c.relation))
        return [
            LedgerEntry(row["run"], Relation.parse(row["relation"]), row["database"], row["is_prefix"]) for row in rows
        ]

    def record_checkpoint(self, run: str, content: str) -> None:
        """Record from what a run can be taken up if it is stopped."""
        self._write("record a checkpoint", insert(self._tables.checkpoints).values(run=run, content=content))

    def checkpoint(self, run: str) -> str | None:
        """From what a run can be taken up; None where there is nothing."""
        table = self._tables.checkpoints
        return next((row["content"] for row in self._read(select(table).where(table.c.run == run))), None)

    def forget_checkpoint(self, run: str) -> None:
        """The tables of a run are dropped: it can't be taken up any more."""
        table = self._tables.checkpoints
        self._write("forget a checkpoint", delete(table).where(table.c.run == run))

    @contextlib.contextmanager
    def stopped_run(self, run: str) -> Iterator[bool]:
        """Whether no living process works on a run; if so nobody clears it up meanwhile."""
        claimed = self._claim(run, self.run(run).process)
        try:
            yield claimed
        finally:
            if claimed:
                locks.give_back(self._engine, _lock_of(run))

    @contextlib.contextmanager
    def dead_runs(self) -> Iterator[list[str]]:
        """The runs of the engine's database that did not end and that no living process works on.

        Their locks are held meanwhile, so that two collectors do not meet.
        """
        rows = self._read(queries.select_unfinished(self._tables, self._database))
        dead = [row["id"] for row in rows if self._claim(row["id"], row["process"])]
        try:
            yield dead
        finally:
            for run in dead:
                locks.give_back(self._engine, _lock_of(run))

    def end_dead_run(self, run: str) -> Status | None:
        """Mark a dead run `published` if its release is recorded, else `failed`; None if it had ended before."""
        runs = self._tables.runs
        (row,) = self._read(select(runs.c.status).where(runs.c.id == run))
        if row["status"] != Status.RUNNING:
            return None
        self._write("mark a dead run", queries.end_dead_run(self._tables, run))
        self._write("forget how far it was", delete(self._tables.live).where(self._tables.live.c.run == run))
        return self.run(run).status

    def channel(self, run: str) -> live.Channel | None:
        """By which a run tells others how far it is; None for a catalog in memory, which no other sees.

        Raises:
            AccessError: beside a DuckDB file no file can be written.
        """
        if self._store.dialect != "duckdb":
            return live.CatalogChannel(self._connection, self._tables, run)
        path = identity_of(self._store)
        if path is None:
            return None
        found = self.run(run)
        facts = {"source": found.source, "release": found.release, "process": found.process}
        try:
            return live.FileChannel(Path(path).resolve(), run, facts)
        except OSError as error:
            raise AccessError(f"Beside {path} no file can be written: {error.strerror}.") from None

    def live_runs(self) -> list[live.LiveRun]:
        """The runs that have not ended, as they told last (PostgreSQL)."""
        return [self._live_run(row) for row in live.list_rows(self._connection, self._tables)]

    def _live_run(self, row: Mapping[str, Any]) -> live.LiveRun:
        facts = {"run": row["id"], **{name: row[name] for name in ("source", "release", "process")}}
        if row["state"] is None:  # a procedure, which tells nothing; or killed before its first word
            holder = self._store.query("catalog/find_lock_holder", key=locks.advisory_key(_lock_of(row["id"])))
            return live.LiveRun(**facts, state={}, seconds=row["age"], silent=None, alive=bool(holder))
        alive = row["silent"] < live.SILENT and process.is_alive(row["process"])
        state = json.loads(row["state"])
        return live.LiveRun(**facts, state=state, seconds=row["seconds"], silent=row["silent"], alive=alive)

    def ask_to_end(self, run: str) -> bool:
        """Ask a run to end (PostgreSQL): the program's own by its row, a procedure by cancelling its query.

        False where there is nobody to be asked. Raises AccessError where the role may not cancel the query.
        """
        if live.ask(self._connection, self._tables, run):
            return True
        return bool(self._store.query("catalog/cancel_lock_holder", key=locks.advisory_key(_lock_of(run))))

    def close(self) -> None:
        """Close the catalog's session, and count the runs it started as ended; the engine stays open."""
        for run in self._alive:
            locks.give_back(self._engine, _lock_of(run))
        self._connection.close()
        if self._store is not self._engine:
            self._store.close()

    def __enter__(self) -> Catalog:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _claim(self, run: str, owner: str) -> bool:
        if self._engine.dialect == "duckdb" and owner != process.this_process() and process.is_alive(owner):
            return False
        return locks.take(self._engine, _lock_of(run))

    def _read(self, query: Executable) -> list[RowMapping]:
        return self._connection.do("be read", lambda c: list(c.execute(query).mappings().all()))

    def _write(self, what: str, statement: Executable, rows: list[dict[str, Any]] | None = None) -> None:
        self._connection.do(what, lambda c: c.execute(statement, rows))


def _found_by(run: str, recoding: str) -> str:
    """The run that found a recoding which this run recorded."""
    return str(json.loads(recoding).get("applied", run))


def _lock_of(run: str) -> str:
    return f"run {run}"


def _run(row: RowMapping) -> Run:
    result = row["result"]
    return Run(**{**row, "status": Status(row["status"]), "result": None if result is None else json.loads(result)})


def _message(error: BaseException) -> str:
    """What may be kept of an error: the project's own messages hold no cell value, other people's may."""
    return str(error) if isinstance(error, SqlanonError) else "An unexpected error; its text is not kept."
