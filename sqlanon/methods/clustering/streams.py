"""Jobs that condense a stream: of all rows that came only the statistics of groups are kept, and released once.

The statistics are a table in the catalog's schema, `condensed_<job>`, which other roles have no privileges on.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sqlanon.catalog import ReleaseKind, Status
from sqlanon.catalog.accounts import LineKind
from sqlanon.catalog.sources import JOINED_TABLES
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import PolicyError
from sqlanon.methods.clustering.releases.streamed import GroupSizes, StreamedRows, measure_groups
from sqlanon.methods.clustering.search.streaming import add_rows, start_group
from sqlanon.methods.clustering.stream_plan import stream_problems, table_problems
from sqlanon.models import models_of
from sqlanon.plan.cluster_checks import LARGEST_STREAMED, measure_uncountable, value_problems
from sqlanon.plan.drawn_plan import DrawnPlan
from sqlanon.plan.plan import find_release
from sqlanon.plan.trust import hold_trusted
from sqlanon.policy import Policy, Role
from sqlanon.policy.document import path_text
from sqlanon.results.measures import Check
from sqlanon.runs.accounts.entry import enter_uncounted
from sqlanon.runs.execution import RunExecution
from sqlanon.runs.flow import carry_out, interruptible
from sqlanon.runs.recording import record_without_rules
from sqlanon.runs.sink import Publish, Sink
from sqlanon.runs.source import DescribedRelease, ReleaseSource, RunSource
from sqlanon.sql import Identifier, Relation, checked_name
from sqlanon.staging.staging import Staged
from sqlanon.support.environment import named
from sqlanon.values.expressions import double_of
from sqlanon.work.journal import Observer
from sqlanon.work.publish import guard_staging
from sqlanon.work.session import Session, open_session
from sqlanon.work.workspace import TemporaryWorkspace, Workspace, release_lock

_UNCOUNTED = (
    "Nobody knows who is in the groups of a stream: the release is a line of the account of {people}, and no release or"
    " answer is held against it. docs/several-releases.md says more."
)
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
    with interruptible(), _open_job(policy, job, options) as (session, statistics):
        return carry_out(session, policy, JoiningRows(policy, job, statistics, rows), Join(), observer)


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
    with interruptible(), _open_job(policy, job, options) as (session, statistics):
        return carry_out(session, policy, StreamRelease(policy, job, statistics), Publish(replace), observer)


@contextlib.contextmanager
def _open_job(policy: Policy, job: str, options: EngineOptions | None) -> Iterator[tuple[Session, _Statistics]]:
    """Open the databases of a job, whose statistics no other session changes meanwhile."""
    problems = list(stream_problems(policy, job))
    if problems:
        raise PolicyError(problems)
    with open_session(policy, options or EngineOptions()) as session:
        if not (session.own_catalog and session.is_one_database):
            raise PolicyError(SEVERAL_DATABASES)
        session.engine.require_writable()
        statistics = _Statistics(policy, job, session.catalog.location.relation(checked_name(f"condensed_{job}")))
        with release_lock(session.engine, statistics.table):
            yield session, statistics


@dataclass(frozen=True)
class _Statistics:
    """The statistics of a job's groups, as a table that may not be there yet."""

    policy: Policy
    job: str
    table: Relation

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

    def exist(self, engine: Engine) -> bool:
        return engine.resolve(self.table) is not None

    def read(self, engine: Engine, workspace: Workspace | TemporaryWorkspace) -> Relation:
        """Copy the statistics into a work table; refused where they are about other numbers than the policy's."""
        kept = [column.name for column in engine.columns(self.table) if column.name.startswith("mean_")]
        if kept != [f"mean_{name}" for name in self.names]:
            kept = [name.removeprefix("mean_") for name in kept]
            raise PolicyError(
                f"Job '{self.job}' has the numbers {', '.join(kept)}, in this order, and the policy others; begin"
                " another job."
            )
        groups = workspace.table("groups", 0)
        engine.run("methods/clustering/streams/read_groups", groups=groups, statistics=self.table, numbers=self.numbers)
        return groups

    def require_sizes(self, sizes: GroupSizes) -> None:
        """Refuse another k than the groups were formed with."""
        if not self.k <= sizes.smallest <= sizes.largest < 2 * self.k:
            raise PolicyError(
                f"The groups of job '{self.job}' have {sizes.smallest} to {sizes.largest} rows, and the policy asks for"
                f" {self.k} to {2 * self.k - 1}; begin another job for another k."
            )


class JoiningRows(RunSource[RunExecution[DrawnPlan], UpdatedJob]):
    """New rows of a job, which are kept as statistics of groups alone."""

    def __init__(self, policy: Policy, job: str, statistics: _Statistics, rows: str) -> None:
        self.algorithm = policy.algorithm.name
        self.job = job
        self.statistics = statistics
        self.rows = rows

    def resolve(self, run: RunExecution[DrawnPlan], *, replace: bool, is_part: bool) -> DrawnPlan:  # noqa: ARG002
        source = run.engine.resolve(Relation.parse(self.rows))
        if source is None:
            raise PolicyError(f"There is no table {self.rows}.")
        return DrawnPlan(run.policy, source, self.statistics.table)

    def make(self, run: RunExecution[DrawnPlan], *, publishes: bool) -> None:  # noqa: ARG002
        """Let rows join the groups, and replace the statistics, in a transaction that is the sink's."""
        engine, source, kept = run.engine, run.plan.source, self.statistics
        numbers, workspace = kept.numbers, TemporaryWorkspace(engine)
        with run.journal.during("encode"):
            hold_trusted(run.policy, engine, source)
            columns = _columns(engine, run.policy, source, kept.names)
            for one, column in zip(numbers, columns, strict=True):
                one["value"] = double_of(engine.render, Markup(Identifier(column.name)), column.kind)
            new = workspace.table("new_rows")
            engine.run("methods/clustering/streams/create_rows", rows=new, source=source, numbers=numbers)
            (added,) = engine.query_one("count_rows", table=new)
        with run.journal.during("search"):
            if kept.exist(engine):
                groups = kept.read(engine, workspace)
                kept.require_sizes(measure_groups(engine, groups, numbers)[0])
            else:
                groups, new = start_group(engine, workspace, new, numbers, kept.k)
            groups, rounds = add_rows(engine, workspace, groups, new, numbers, kept.k, run.journal.progress)
            sizes, _ = measure_groups(engine, groups, numbers)
            if kept.exist(engine):
                engine.run("engines/drop_table", table=kept.table)
            engine.run("methods/clustering/streams/store_groups", statistics=kept.table, groups=groups, numbers=numbers)
            guard_staging(engine, kept.table)
            workspace.drop(groups)
        run.source_rows = int(added)
        self._updated = UpdatedJob(self.statistics.job, int(added), rounds, sizes)

    def conclude(self, run: RunExecution[DrawnPlan]) -> UpdatedJob:  # noqa: ARG002
        return self._updated


class Join(Sink[RunExecution[DrawnPlan]]):
    """Rows join the statistics of a job; nothing is released."""

    ends_as = Status.JOINED
    done = "The rows HAVE joined the job; a step after that failed. Do not let them join again."

    def __init__(self) -> None:
        self._has_joined = False

    def plan(self, run: RunExecution[DrawnPlan], source: Any) -> DrawnPlan:
        plan: DrawnPlan = source.resolve(run, replace=False, is_part=False)
        return plan

    def lock(self, run: RunExecution[DrawnPlan]) -> contextlib.AbstractContextManager[None]:  # noqa: ARG002
        """Lock nothing: the lock of the statistics is held."""
        return contextlib.nullcontext()

    def take(self, run: RunExecution[DrawnPlan], source: Any) -> None:
        with run.engine.transaction():
            source.make(run, publishes=False)
            run.control.finish()
        self._has_joined = True

    def is_done(self, run: RunExecution[DrawnPlan]) -> bool:  # noqa: ARG002
        return self._has_joined


@dataclass(frozen=True)
class _StreamPlan(DrawnPlan):
    """The release of a job, which is of no single table."""

    job: str
    joined: tuple[str, ...]

    @property
    def source_name(self) -> str:
        return f"condensed stream {self.job}"


class StreamRelease(ReleaseSource[RunExecution[_StreamPlan], ReleasedJob]):
    """Synthetic rows of a job's groups; the statistics are dropped in the transaction that publishes."""

    def __init__(self, policy: Policy, job: str, statistics: _Statistics) -> None:
        self.algorithm = policy.algorithm.name
        self.job = job
        self.statistics = statistics

    def resolve(self, run: RunExecution[_StreamPlan], *, replace: bool, is_part: bool) -> _StreamPlan:  # noqa: ARG002
        engine, policy, job = run.engine, run.policy, self.statistics.job
        if not self.statistics.exist(engine):
            raise PolicyError(f"There is no job '{job}'; `sqlanon condense update` begins one.")
        source = engine.resolve(Relation.parse(named(policy.source.table or "")))
        release, errors = find_release(policy, source, engine, replace)
        if errors:
            raise PolicyError([str(error) for error in errors])
        plan = _StreamPlan(policy, self.statistics.table, release, job, ())
        joined = dict.fromkeys([*([] if source is None else [str(source)]), *self._joined_tables(run, plan)])
        return dataclasses.replace(plan, joined=tuple(joined))

    def tables(self, plan: _StreamPlan) -> Sequence[tuple[str, str]]:
        return [(one, one) for one in plan.joined]

    def make(self, run: RunExecution[_StreamPlan], *, publishes: bool) -> None:  # noqa: ARG002
        """Draw the rows."""
        with run.journal.during("recode"):
            groups = self.statistics.read(run.engine, run.workspace)
            self._drawn = StreamedRows.draw(run.engine, run.workspace, groups, self.statistics.names)
            self.statistics.require_sizes(self._drawn.sizes)
            run.source_rows = self._drawn.sizes.rows

    def stage(self, run: RunExecution[_StreamPlan], *, replace: bool) -> contextlib.AbstractContextManager[Staged]:
        return contextlib.nullcontext(self._drawn.stage(run.engine, run.workspace, run.plan.release, replace=replace))

    def verify(self, run: RunExecution[_StreamPlan], staged: Staged) -> Mapping[str, Check]:
        self._checks = self._drawn.check(run.engine, run.workspace, staged.relation)
        return self._checks

    def describe(self, run: RunExecution[_StreamPlan], staged: Staged) -> DescribedRelease:  # noqa: ARG002
        """Describe the release, which leaves no rules; the job ends with it."""
        sizes, plan = self._drawn.sizes, run.plan
        recoding = {
            "algorithm": self.algorithm,
            "groups": sizes.groups,
            "stream": plan.job,
            JOINED_TABLES: list(plan.joined),
        }
        record = record_without_rules(
            plan.release_name, ReleaseKind.REGIONS, rows=sizes.rows, classes=sizes.groups, recoding=recoding
        )
        enter = enter_uncounted(run, LineKind.STREAM, f"job {plan.job}")

        def end(session: Engine) -> None:
            session.run("engines/drop_table", table=self.statistics.table)
            enter(session)

        return DescribedRelease(record, rules_digest=record.digest, before_commit=end)

    def conclude(self, run: RunExecution[_StreamPlan]) -> ReleasedJob:
        notes = run.notes if run.linked is None else (run.linked, *run.notes)
        if run.way_out is not None and run.way_out.people is not None:
            notes += (_UNCOUNTED.format(people=run.way_out.people.name),)
        return ReleasedJob(run.plan.job, run.id, str(run.plan.release), self._drawn.sizes, dict(self._checks), notes)

    def record(self, result: ReleasedJob) -> None:
        """Keep nothing: the release's record says all."""

    def _joined_tables(self, run: RunExecution[_StreamPlan], plan: _StreamPlan) -> list[str]:
        """List the tables whose rows joined the job since its last release; rows of a killed update may have."""
        runs, last = run.catalog.runs_of_job(plan.job, None), plan.source_name
        joining = f'"{self.statistics.table.name}"'
        since = itertools.takewhile(lambda one: (one.source, one.status) != (last, Status.PUBLISHED), runs)
        return [
            one.source
            for one in since
            if one.release.endswith(joining) and (one.status is Status.JOINED or one.error_class is None)
        ]


def _columns(engine: Engine, policy: Policy, source: Relation, names: Sequence[str]) -> list[Column]:
    """Find the columns of the policy's numbers, with every problem at once."""
    columns = engine.columns(source)
    problems = list(table_problems(policy, str(source), columns))
    if not problems:
        uncountable = measure_uncountable(engine, source, policy, columns, LARGEST_STREAMED)
        for name, one in uncountable.items():
            problems += [f"{path_text(('attributes', name))}: {text}" for text in value_problems(one)]
    if problems:
        raise PolicyError(problems)
    by_name = {column.name: column for column in columns}
    return [by_name[name] for name in names]
