"""Records of releases, of the rules that rows were recoded by, of hierarchies, and of jobs, which use these again."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence

from sqlanon.catalog import locks
from sqlanon.catalog.connection import Transaction
from sqlanon.catalog.elsewhere import Elsewhere
from sqlanon.catalog.location import is_same_database
from sqlanon.catalog.records import (
    HierarchyRecord,
    Job,
    Released,
    ReleaseKind,
    ReleaseRecord,
    RulesKind,
    RulesRecord,
)
from sqlanon.catalog.runs import RunRecords
from sqlanon.catalog.sources import identify_source
from sqlanon.engines.base import Engine
from sqlanon.engines.driver import Row
from sqlanon.errors import PolicyError
from sqlanon.sql import Relation, Text

_RELEASING = 60.0  # seconds: putting a release in place takes a few, and waits for its readers


class Releases(RunRecords, Elsewhere):
    """The releases and jobs of a catalog; the tables of rules leave the ledger when they are recorded."""

    def record_release(self, run: str, release: ReleaseRecord) -> None:
        """Record a release that is published already: a file, or a table outside the catalog's database."""
        self._insert("record the release", "releases", {"run": run, **vars(release)})

    def record_release_within(self, session: Engine, run: str, relation: Relation, release: ReleaseRecord) -> bool:
        """Record a release in the transaction that publishes it as `relation`, so that both happen or neither.

        False, and nothing done, where one transaction can't do both: the catalog is in another database. Call
        `record_release` after the transaction then.
        """
        if not self.is_recorded_within(session, relation):
            return False
        self._insert_within(session, "releases", {"run": run, **vars(release)})
        return True

    def is_recorded_within(self, session: Engine, relation: Relation) -> bool:
        """Tell whether one transaction of a session can publish `relation` and write to the catalog."""
        attached = session.traits.is_embedded and relation.catalog != self.location.catalog
        return not attached and is_same_database(session, self._store)

    def releases(self, run: str) -> list[ReleaseRecord]:
        """The releases that a run published."""
        return self._records(ReleaseRecord, "releases", {"run": run}, ["relation"], {"kind": ReleaseKind})

    def recoding_digest(self, run: str) -> str | None:
        """The digest of the recoding function of what a run released; see `same_recoding`."""
        return next((release.digest for release in self.releases(run)), None)

    def rules_run(self, run: str) -> str:
        """The run that found the rules of a release: that run, or the one whose rules it applied."""
        return next((_searched_in(run, release.recoding) for release in self.releases(run)), run)

    def released(self, source: str) -> list[Released]:
        """List all that was released of a source, a table of the engine's database or a file, the newest first.

        Other catalogs that the role may read are looked into too; see `unread` for those that it may not.
        """
        wanted = identify_source(source, self._database)
        own = self._ask(lambda transaction: self._of_source(transaction, wanted))
        others = self._read_elsewhere("releases", lambda transaction: self._of_source(transaction, wanted))
        rows = [(None, row) for row in own] + [(location.shown, row) for location, row in others]
        rows.sort(key=lambda one: (one[1]["started"], one[1]["id"]), reverse=True)
        return [_released(row, schema) for schema, row in rows]

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
        self._insert_within(session, "rule_sets", {"run": run, **vars(rules)})
        ledger = self.location.relation("work_tables")
        for table in tables:
            session.run("catalog/keep_table", ledger=ledger, run=Text(run), relation=Text(str(table)))

    def record_rules(self, run: str, rules: RulesRecord, tables: Sequence[Relation]) -> None:
        """Record the rules of a release that is published already."""
        self._insert("record the rules", "rule_sets", {"run": run, **vars(rules)})
        wanted = {str(table) for table in tables}
        self.ledger_remove(*(entry for entry in self.ledger(run) if str(entry.relation) in wanted))

    def rules(self, run: str) -> RulesRecord | None:
        """The recoding function of a run, if it was recorded."""
        return next(iter(self._records(RulesRecord, "rule_sets", {"run": run}, (), {"kind": RulesKind})), None)

    def record_hierarchy(self, hierarchy: HierarchyRecord) -> None:
        """Record a hierarchy; one of the same name and digest is replaced."""

        def write(transaction: Transaction) -> None:
            transaction.delete("hierarchies", {"name": hierarchy.name, "digest": hierarchy.digest})
            transaction.insert("hierarchies", [vars(hierarchy)])

        self._connection.do("record the hierarchy", write)

    def hierarchies(self) -> list[HierarchyRecord]:
        """All recorded hierarchies."""
        return self._records(HierarchyRecord, "hierarchies", None, ["name", "digest"])

    def record_job(self, job: Job) -> None:
        """Record a version of a job."""
        self._insert("record the job", "jobs", vars(job))

    def record_job_within(self, session: Engine, job: Job) -> None:
        """Record a version of a job in the transaction of a session with the catalog's own database."""
        self._insert_within(session, "jobs", vars(job))

    def jobs(self, name: str | None = None) -> list[Job]:
        """All versions of all jobs, or of one, the newest version of each first."""
        where = {} if name is None else {"name": name}
        return self._records(Job, "jobs", where, ["name", "-version"])

    def job(self, name: str) -> Job:
        """The newest version of a job.

        Raises:
            PolicyError: there is no such job.
        """
        jobs = self.jobs(name)
        if not jobs:
            raise PolicyError(f"The catalog has no job '{name}'; `sqlanon jobs` lists them.")
        return jobs[0]

    def set_schedule(self, name: str, schedule: str | None, scheduler: str | None) -> None:
        """Note when a job runs from now on, and what starts it; None for never."""
        self._update("note the schedule", "jobs", {"name": name}, schedule=schedule, scheduler=scheduler)


def _released(row: Row, schema: str | None) -> Released:
    return Released(
        row["id"],
        _searched_in(row["id"], row["recoding"]),
        row["digest"],
        json.loads(row["policy"]).get("republish"),
        row["kind"] == ReleaseKind.COUNTS,
        schema,
    )


def _searched_in(run: str, recoding: str) -> str:
    """The run that left the rules of a recoding that this run recorded: that which it applied, or itself."""
    recorded = json.loads(recoding)
    return run if recorded.get("coarsened") else str(recorded.get("applied", run))
