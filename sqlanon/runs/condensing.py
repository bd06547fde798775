"""Jobs that condense a stream: of all rows that came only the statistics of groups are kept, and released once.

The statistics are a table in the catalog's schema, `condensed_<job>`, which other roles have no privileges on.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sqlanon.algorithms.clusters.streaming import add_rows, start_group
from sqlanon.catalog import ReleaseKind, ReleaseRecord, Status
from sqlanon.catalog.sources import JOINED_TABLES
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import PolicyError
from sqlanon.models import models_of
from sqlanon.plan.clustered import LARGEST_STREAMED, measure_uncountable, value_problems
from sqlanon.plan.drawn_plan import DrawnPlan
from sqlanon.plan.plan import find_release
from sqlanon.plan.streams import stream_problems, table_problems
from sqlanon.plan.trust import hold_trusted
from sqlanon.policy import Policy, Role
from sqlanon.policy.document import path_text
from sqlanon.releases.streamed import GroupSizes, StreamedRows, measure_groups
from sqlanon.results.measures import Check
from sqlanon.runs.drawn_run import DrawnRun, require_passed
from sqlanon.runs.flow import interruptible
from sqlanon.runs.recording import record_without_rules
from sqlanon.sql import Identifier, Relation, checked_name
from sqlanon.support.environment import named
from sqlanon.values.expressions import double_of
from sqlanon.work.journal import Observer
from sqlanon.work.notebook import follower
from sqlanon.work.publish import guard_staging
from sqlanon.work.session import open_session
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
    Raises PolicyError (with every problem of policy and table), ProtectionError (too few first rows), Cancelled.
    """
    with interruptible(), _open_job(policy, job, options, observer) as opened:
        return opened.update(rows)


def release_job(
    policy: Policy,
    job: str,
    *,
    replace: bool = False,
    options: EngineOptions | None = None,
    observer: Observer | None = None,
) -> ReleasedJob:
    """Publish synthetic rows of a job's groups, and end the job: its statistics are dropped with the same commit.

    observer: follows its phases, `recode`, `verify` and `publish`.
    Raises PolicyError, ProtectionError, VerificationError, AccessError, ConflictError, Cancelled.
    """
    with interruptible(), _open_job(policy, job, options, observer, replace) as opened:
        return opened.release()


@dataclass(frozen=True)
class _StreamPlan(DrawnPlan):
    """The release of a job, which is of no single table."""

    job: str

    @property
    def source_name(self) -> str:
        return f"condensed stream {self.job}"


@contextlib.contextmanager
def _open_job(
    policy: Policy, job: str, options: EngineOptions | None, observer: Observer | None, replace: bool = False
) -> Iterator[_StreamRun]:
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
            yield _StreamRun(session, policy, follower(observer), replace, job, statistics)


@dataclass
class _StreamRun(DrawnRun):
    """An update or the release of a job, whose statistics are held."""

    job: str
    statistics: Relation

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

    def update(self, rows: str) -> UpdatedJob:
        """Read the rows in one transaction, which also replaces the statistics."""
        source = self.engine.resolve(Relation.parse(rows))
        if source is None:
            raise PolicyError(f"There is no table {rows}.")
        plan = DrawnPlan(self.policy, source, self.statistics)
        with (
            self.recorded(plan, job=self.job) as run,
            self.followed(run) as control,
            self.engine.transaction(),
        ):
            added, rounds, sizes = self._join(source)
            control.finish()
        self.finish(run, None, added, Status.JOINED)
        return UpdatedJob(self.job, added, rounds, sizes)

    def _join(self, source: Relation) -> tuple[int, int, GroupSizes]:
        """Let rows join the groups; returns the number of rows, the rounds, and the groups that came of it."""
        engine, numbers, workspace = self.engine, self.numbers, TemporaryWorkspace(self.engine)
        with self.journal.during("encode"):
            hold_trusted(self.policy, engine, source)
            columns = self._columns(source)
            for one, column in zip(numbers, columns, strict=True):
                one["value"] = double_of(engine.render, Markup(Identifier(column.name)), column.kind)
            new = workspace.table("new_rows")
            engine.run("stream/create_rows", rows=new, source=source, numbers=numbers)
            (added,) = engine.query_one("count_rows", table=new)
        with self.journal.during("search"):
            if self._exists():
                groups = self._read(workspace)
                self._require_sizes(measure_groups(engine, groups, numbers)[0])
            else:
                groups, new = start_group(engine, workspace, new, numbers, self.k)
            groups, rounds = add_rows(engine, workspace, groups, new, numbers, self.k, self.journal.progress)
            sizes, _ = measure_groups(engine, groups, numbers)
            if self._exists():
                engine.run("engine/drop_table", table=self.statistics)
            engine.run("stream/store_groups", statistics=self.statistics, groups=groups, numbers=numbers)
            guard_staging(engine, self.statistics)
            workspace.drop(groups)
        return int(added), rounds, sizes

    def release(self) -> ReleasedJob:
        """Draw, stage, check and publish, and drop the statistics in the transaction that publishes."""
        engine = self.engine
        if not self._exists():
            raise PolicyError(f"There is no job '{self.job}'; `sqlanon condense update` begins one.")
        source = engine.resolve(Relation.parse(named(self.policy.source.table or "")))
        release, errors = find_release(self.policy, source, engine, self.replace)
        if errors:
            raise PolicyError([str(error) for error in errors])
        plan = _StreamPlan(self.policy, self.statistics, release, self.job)
        joined = dict.fromkeys([*([] if source is None else [str(source)]), *self._joined_tables(plan.source_name)])
        self.way_out_of(*((one, one) for one in joined)).check_earlier()
        with self.recorded(plan, job=self.job) as run:
            sizes, checks, notes = self._publish(run, plan, list(joined))
        self.finish(run, None, sizes.rows)
        return ReleasedJob(self.job, run, str(release), sizes, checks, notes)

    def _publish(
        self, run: str, plan: _StreamPlan, joined: Sequence[str]
    ) -> tuple[GroupSizes, dict[str, Check], tuple[str, ...]]:
        """Draw, stage, check and publish; returns the groups, the checks, and notes for people."""
        engine = self.engine
        with self.at_work(run, plan, self.journal.note) as (workspace, control):
            with self.journal.during("recode"):
                drawn = StreamedRows.draw(engine, workspace, self._read(workspace), self.names)
                self._require_sizes(drawn.sizes)
                staged = drawn.stage(engine, workspace, plan.release, replace=self.replace)
            with self.journal.during("verify"):
                checks = drawn.check(engine, workspace, staged.relation)
                require_passed(checks)
            with self.journal.during("publish"):
                released = self._record(plan, drawn.sizes, joined)
                notes = self.publish(run, plan, released, staged, control, self._drop_statistics)
        linked = None if self.way_out is None else self.way_out.linked
        return drawn.sizes, checks, notes if linked is None else (linked, *notes)

    def _joined_tables(self, last: str) -> list[str]:
        """List the tables whose rows joined the job since a release of `last`; rows of a killed update may have."""
        runs = self.session.catalog.runs_of_job(self.job, None)
        joining = f'"{self.statistics.name}"'
        since = itertools.takewhile(lambda one: (one.source, one.status) != (last, Status.PUBLISHED), runs)
        return [one.source for one in since if one.release.endswith(joining) and one.error_class is None]

    def _record(self, plan: DrawnPlan, sizes: GroupSizes, joined: Sequence[str]) -> ReleaseRecord:
        """The catalog's record of the release, which leaves no rules."""
        recoding = {
            "algorithm": self.policy.algorithm.name,
            "groups": sizes.groups,
            "stream": self.job,
            JOINED_TABLES: list(joined),
        }
        return record_without_rules(
            plan.release_name, ReleaseKind.REGIONS, rows=sizes.rows, classes=sizes.groups, recoding=recoding
        )

    def _drop_statistics(self, session: Engine) -> None:
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
