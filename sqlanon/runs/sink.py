"""Destinations of a release: it is published; see `tradeoffs.sweeping` for releases that are only measured."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic

from sqlanon.catalog import Status
from sqlanon.catalog.accounts import People
from sqlanon.engines.publishing import Record
from sqlanon.errors import PolicyError, VerificationError
from sqlanon.plan.people_of_source import find_people, known_people
from sqlanon.results.measures import Check
from sqlanon.runs.execution import RunExecution
from sqlanon.runs.gates import Leave, WayOut, publish_together
from sqlanon.runs.recording import PublishedRecord
from sqlanon.runs.source import ReleaseSource, RunT
from sqlanon.sql import Relation
from sqlanon.staging.staging import Staged
from sqlanon.work.workspace import release_lock

AnySource = ReleaseSource[Any, Any]


class Sink(ABC, Generic[RunT]):
    """The destination of a release.

    ends_as: what the catalog says of a run that came to its end.
    done: what an error says that comes after the act of the sink, which stands.
    """

    ends_as: Status
    done: ClassVar[str]

    @abstractmethod
    def plan(self, run: RunT, source: Any) -> Any:
        """Resolve the policy against the live table; raises all that is wrong with it."""

    def release_name(self, plan: Any) -> str:
        """Name the release in the catalog."""
        return str(plan.release_name)

    @abstractmethod
    def lock(self, run: RunT) -> contextlib.AbstractContextManager[None]:
        """Keep others from what the release would be in the way of."""

    @abstractmethod
    def take(self, run: RunT, source: Any) -> None:
        """Let the source make the release, and do with it what is to be done."""

    def is_done(self, run: RunT) -> bool:  # noqa: ARG002
        """Tell whether others see what the sink does."""
        return False


class Publish(Sink[RunExecution[Any]]):
    """The release is staged, verified, and takes its place; the catalog records it with its rules.

    is_part: whether others hold further rows of the same release.
    """

    ends_as = Status.PUBLISHED
    done = "The release WAS published; a step after publishing failed."
    is_part = False

    def __init__(self, replace: bool) -> None:
        self.replace = replace

    def plan(self, run: RunExecution[Any], source: AnySource) -> Any:
        plan = source.resolve(run, replace=self.replace, is_part=self.is_part)
        policy, tables = run.policy, source.tables(plan)
        run.way_out = WayOut(run.catalog, policy.republish, tables, *_accounts(run, tables))
        if policy.history.is_kept and not run.catalog.is_recorded_within(run.session.target, plan.release):
            raise PolicyError(
                "history: release and catalog must be in one database; leave catalog.url out, or write history:"
                " {mode: none}."
            )
        run.earlier = run.way_out.check_earlier(source.rules_run, source.rules_digest)
        return plan

    def lock(self, run: RunExecution[Any]) -> contextlib.AbstractContextManager[None]:
        """Lock a table in its own database; a file in the source's, which other runs to it are likely to share."""
        file = run.policy.release.file
        if file is None:
            return release_lock(run.session.target, run.plan.release, keeper=run.keeper_of_locks)
        keeper = run.engine if run.engine.traits.has_locks else run.catalog.store
        return release_lock(run.engine, Relation("file"), Path(file).resolve(), keeper=keeper)

    def take(self, run: RunExecution[Any], source: AnySource) -> None:
        with contextlib.ExitStack() as stack:
            with source.snapshot(run):
                source.make(run, publishes=True)
                with run.journal.during("recode"):
                    staged = stack.enter_context(source.stage(run, replace=self.replace))
                with run.journal.during("verify"):
                    require_passed(source.verify(run, staged))
            source.require_staged(run, staged)
            self.publish(run, source, staged)

    def is_done(self, run: RunExecution[Any]) -> bool:
        return run.published

    def publish(self, run: RunExecution[Any], source: AnySource, staged: Staged) -> None:
        """Let the staged release take its place, and record it in the same transaction where there is one."""
        self.publish_with(run, source, staged)

    def publish_with(
        self, run: RunExecution[Any], source: AnySource, staged: Staged, before_commit: Record | None = None
    ) -> None:
        """Let the staged release take its place through the gates; see `WayOut.publish`."""
        leave = leaving(run, source, staged, before_commit)
        with run.journal.during("publish"):
            run.notes = publish_together([leave])[0]


def leaving(run: RunExecution[Any], source: AnySource, staged: Staged, before_commit: Record | None = None) -> Leave:
    """Describe the staged release of a run that is to take its place."""
    assert run.way_out is not None
    described = source.describe(run, staged)
    record = PublishedRecord(run.catalog, run.id, run.plan.release, described.record, described.rules)
    act = before_commit or described.before_commit
    return Leave(run.way_out, staged, record, run.control, source.rules_run, described.rules_digest, act)


def require_passed(checks: Mapping[str, Check]) -> None:
    """Raise VerificationError where a check of the staged release found violations."""
    failed = [name for name, check in checks.items() if check.violations]
    if failed:
        raise VerificationError(
            f"The staged release failed its check ({', '.join(failed)}); nothing was published. Please report this."
        )


def _accounts(run: RunExecution[Any], tables: Sequence[tuple[str, str]]) -> tuple[list[str], People | None]:
    """Name the accounts that don't get to know the release, and find the people in whose account it is entered.

    tables: those whose rows the release is about, as `ReleaseSource.tables` lists them.
    """
    sources = [Relation.parse(place) for place, _ in tables if place.endswith('"')]
    if run.policy.history.is_kept:
        return [], find_people(run.policy, run.engine, run.catalog, sources[0] if sources else None)
    known = [name for source in sources for name in known_people(run.policy, run.engine, run.catalog, source)]
    return list(dict.fromkeys(known)), None
