"""Jobs that condense a stream: of all rows that came only the statistics of groups are kept, and released once.

The statistics are a table in the catalog's schema, `condensed_<job>`, which other roles have no privileges on.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sqlanon.algorithms.clusters.streaming import add_rows, start_group
from sqlanon.catalog import ReleaseKind, RunStart, Status
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import PolicyError, VerificationError
from sqlanon.models import models_of
from sqlanon.plan.clustered import LARGEST_STREAMED, measure_uncountable, value_problems
from sqlanon.plan.plan import find_release
from sqlanon.plan.streams import stream_problems, table_problems
from sqlanon.plan.trust import hold_trusted
from sqlanon.policy import Policy, Role
from sqlanon.policy.document import path_text
from sqlanon.policy.writer import policy_text, put_back
from sqlanon.releases.streamed import GroupSizes, StreamedRows, measure_groups
from sqlanon.results.measures import Check
from sqlanon.runs.flow import interruptible
from sqlanon.runs.recording import record_without_rules
from sqlanon.sql import Identifier, Relation, checked_name
from sqlanon.support.environment import named
from sqlanon.values.expressions import double_of
from sqlanon.work.journal import Observer, status_after
from sqlanon.work.notebook import follower
from sqlanon.work.publish import guard_staging
from sqlanon.work.session import Session, open_session
from sqlanon.work.workspace import TemporaryWorkspace, Workspace, release_lock

SEVERAL_DATABASES = "A stream is condensed in one database: that of its rows, the catalog and the release."


@dataclass(frozen=True)
class UpdatedJob:
    """The groups of a job after an update; added: the rows that came, which joined them in so many rounds."""

    job: str
    added: int
    rounds: int
    sizes: GroupSizes


@dataclass(frozen=True)
class ReleasedJob:
    """The release of a job, which has ended with it."""

    job: str
    run: str
    release: str
    sizes: GroupSizes
    checks: dict[str, Check]
    notes: tuple[str, ...]


def update_job(
    policy: Policy, job: str, rows: str, options: EngineOptions | None = None, observer: Observer | None = None
) -> UpdatedJob:
    """Let the rows of a table join the groups of a job, which begins with its first rows.

    rows: the table, as SQL writes it, in the database of the policy's source.
    observer: follows its phases, `encode` and `search`.
    Raises PolicyError (with every problem of policy and table), ProtectionError (too few first rows).
    """
    with interruptible(), _open_job(policy, job, options) as opened:
        return opened.update(rows, follower(observer))


def release_job(
    policy: Policy, job: str, *, replace: bool = False, options: EngineOptions | None = None
) -> ReleasedJob:
    """Publish synthetic rows of a job's groups, and end the job: its statistics are dropped with the same commit.

    Raises PolicyError, ProtectionError, VerificationError, AccessError, ConflictError.
    """
    with interruptible(), _open_job(policy, job, options) as opened:
        return opened.release(replace)


@contextlib.contextmanager
def _open_job(policy: Policy, job: str, options: EngineOptions | None) -> Iterator[_Job]:
    """Open the databases of a job, whose statistics no other session changes meanwhile."""
    problems = list(stream_problems(policy, job))
    if problems:
        raise PolicyError(problems)
    with open_session(policy, options or EngineOptions()) as session:
        if not (session.own_catalog and session.is_one_database):
            raise PolicyError(SEVERAL_DATABASES)
        session.engine.require_writable()
        statistics = session.catalog.location.relation(checked_name(f"condensed_{job}"))
        with release_lock(session.engine, statistics):
            yield _Job(session, policy, job, statistics)


@dataclass(frozen=True)
class _Job:
    """A job whose statistics are held."""

    session: Session
    policy: Policy
    job: str
    statistics: Relation

    @property
    def engine(self) -> Engine:
        return self.session.engine

    @property
    def names(self) -> list[str]:
        """The numbers, in the order of the policy."""
        return [name for name, one in self.policy.attributes.items() if one.role is Role.QUASI_IDENTIFIER]

    @property
    def k(self) -> int:
        return self.policy.algorithm.rows_of(max(model.least_rows for model in models_of(self.policy)))

    @property
    def numbers(self) -> list[dict[str, Any]]:
        return [
            {"number": place, "mean_name": Identifier(checked_name(f"mean_{name}"))}
            for place, name in enumerate(self.names)
        ]

    def update(self, rows: str, observer: Observer) -> UpdatedJob:
        """Read the rows in one transaction, which also replaces the statistics."""
        engine, numbers = self.engine, self.numbers
        source = engine.resolve(Relation.parse(rows))
        if source is None:
            raise PolicyError(f"There is no table {rows}.")
        observer.phase("encode")
        with engine.transaction():
            workspace = TemporaryWorkspace(engine)
            hold_trusted(self.policy, engine, source)
            columns = self._columns(source)
            for one, column in zip(numbers, columns, strict=True):
                one["value"] = double_of(engine.render, Markup(Identifier(column.name)), column.kind)
            new = workspace.table("new_rows")
            engine.run("stream/create_rows", rows=new, source=source, numbers=numbers)
            (added,) = engine.query_one("count_rows", table=new)
            observer.phase("search")
            if self._exists():
                groups = self._read(workspace)
                self._require_sizes(measure_groups(engine, groups, numbers)[0])
            else:
                groups, new = start_group(engine, workspace, new, numbers, self.k)
            groups, rounds = add_rows(engine, workspace, groups, new, numbers, self.k, observer.progress)
            sizes, _ = measure_groups(engine, groups, numbers)
            if self._exists():
                engine.run("engine/drop_table", table=self.statistics)
            engine.run("stream/store_groups", statistics=self.statistics, groups=groups, numbers=numbers)
            guard_staging(engine, self.statistics)
            workspace.drop(groups)
        return UpdatedJob(self.job, int(added), rounds, sizes)

    def release(self, replace: bool) -> ReleasedJob:
        """Draw, stage, check and publish, and drop the statistics in the transaction that publishes."""
        engine, catalog = self.engine, self.session.catalog
        if not self._exists():
            raise PolicyError(f"There is no job '{self.job}'; `sqlanon condense update` begins one.")
        source = engine.resolve(Relation.parse(named(self.policy.source.table or "")))
        release, errors = find_release(self.policy, source, engine, replace)
        if errors:
            raise PolicyError([str(error) for error in errors])
        run = catalog.start_run(
            RunStart(
                source=f"condensed stream {self.job}",
                release=str(release),
                policy=policy_text(self.policy),
                algorithm=self.policy.algorithm.name,
                engine_version=engine.version,
                job=self.job,
            )
        )
        published = False
        try:
            with release_lock(engine, release), Workspace(engine, catalog, run) as workspace:
                groups = self._read(workspace)
                drawn = StreamedRows.draw(engine, workspace, groups, self.names)
                self._require_sizes(drawn.sizes)
                with drawn.stage(engine, workspace, release, replace=replace) as staged:
                    checks = drawn.check(engine, workspace, staged.relation)
                    if any(check.violations for check in checks.values()):
                        raise VerificationError("The staged release failed its check; nothing was published.")
                    notes = staged.publish(lambda session: self._end(session, run, release, drawn.sizes))
                    published = True
        except BaseException as error:
            if published:
                error.add_note("The release WAS published; a step after publishing failed.")
            status = Status.PUBLISHED if published else status_after(error)
            catalog.finish_run(run, status, error=error, reword=lambda text: put_back(text, self.policy))
            raise
        catalog.finish_run(run, Status.PUBLISHED, source_rows=drawn.sizes.rows)
        return ReleasedJob(self.job, run, str(release), drawn.sizes, checks, notes)

    def _end(self, session: Engine, run: str, release: Relation, sizes: GroupSizes) -> None:
        """Record the release and drop the statistics, in the transaction that publishes."""
        recoding = {"algorithm": self.policy.algorithm.name, "groups": sizes.groups, "stream": self.job}
        record = record_without_rules(
            str(release), ReleaseKind.REGIONS, rows=sizes.rows, classes=sizes.groups, recoding=recoding
        )
        if not self.session.catalog.record_release_within(session, run, release, record):
            raise PolicyError(SEVERAL_DATABASES)
        session.run("engine/drop_table", table=self.statistics)

    def _exists(self) -> bool:
        return self.engine.resolve(self.statistics) is not None

    def _read(self, workspace: Workspace) -> Relation:
        """Copy the statistics into a work table; refused where they are about other numbers than the policy's."""
        kept = [column.name for column in self.engine.columns(self.statistics) if column.name.startswith("mean_")]
        if kept != [f"mean_{name}" for name in self.names]:
            kept = [name.removeprefix("mean_") for name in kept]
            raise PolicyError(
                f"Job '{self.job}' has the numbers {', '.join(kept)}, in this order, and the policy others; begin"
                " another job."
            )
        groups = workspace.table("groups", 0)
        self.engine.run("stream/read_groups", groups=groups, statistics=self.statistics, numbers=self.numbers)
        return groups

    def _require_sizes(self, sizes: GroupSizes) -> None:
        """Refuse another k than the groups were formed with."""
        if not self.k <= sizes.smallest <= sizes.largest < 2 * self.k:
            raise PolicyError(
                f"The groups of job '{self.job}' have {sizes.smallest} to {sizes.largest} rows, and the policy asks for"
                f" {self.k} to {2 * self.k - 1}; begin another job for another k."
            )

    def _columns(self, source: Relation) -> list[Column]:
        """Find the columns of the policy's numbers, with every problem at once."""
        columns = self.engine.columns(source)
        problems = list(table_problems(self.policy, str(source), columns))
        if not problems:
            uncountable = measure_uncountable(self.engine, source, self.policy, columns, LARGEST_STREAMED)
            for name, one in uncountable.items():
                problems += [f"{path_text(('attributes', name))}: {text}" for text in value_problems(one)]
        if problems:
            raise PolicyError(problems)
        by_name = {column.name: column for column in columns}
        return [by_name[name] for name in self.names]
