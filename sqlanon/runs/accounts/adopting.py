"""Entering a release in the account of its people after it was published.

The run's stored rules make the release again, in a table that nobody sees; its persons are entered, and it is dropped.
The source must be as the run read it, and the release that is made again must be the one that was published.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlanon.catalog import NO_RELEASE, Catalog, Run, Status
from sqlanon.catalog.location import CatalogAddress
from sqlanon.encoding.distinct_tuples import Tuples
from sqlanon.engines.base import Engine
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import PolicyError
from sqlanon.plan.history import k_of_history
from sqlanon.plan.people_of_source import accounts_of_source
from sqlanon.policy import CatalogSection, Policy
from sqlanon.policy.history import HistorySection
from sqlanon.releases.base import Release
from sqlanon.results.history import HistoryFigures
from sqlanon.results.measures import Check
from sqlanon.results.run_result import RunResult
from sqlanon.runs.accounts.entry import AccountEntry
from sqlanon.runs.class_source import ClassSource
from sqlanon.runs.execution import ClassRun, Encoded, RunExecution
from sqlanon.runs.flow import carry_out, interruptible
from sqlanon.runs.linking import ALLOW
from sqlanon.runs.recoded_again import (
    digest_of_release,
    recoded_again,
    require_rules,
    require_same_release,
    require_same_source,
    stored_policy,
)
from sqlanon.runs.sink import Publish
from sqlanon.runs.source import DescribedRelease
from sqlanon.sql import Relation
from sqlanon.staging.staging import Staged
from sqlanon.work.journal import Observer
from sqlanon.work.session import open_session


@dataclass(frozen=True)
class Adoption:
    """A release that was entered after it was published: the run that published it, and what all tell together.

    problem: what all releases tell that they should not; None for nothing.
    """

    run: str
    history: HistoryFigures
    problem: str | None

    def as_json(self) -> dict[str, Any]:
        """One object of plain values, as `sqlanon account adopt --json` prints it."""
        warnings = [] if self.problem is None else [self.problem]
        return {"adopted": self.run, "history": vars(self.history), "warnings": warnings, "note": SUBJECT_NOTE}


SUBJECT_NOTE = (
    "The digest of a source is of the columns that its release shows. Whether the values of `subject` are as they were"
    " can't be known."
)


def adopt_run(
    recorded: Run,
    place: CatalogAddress,
    database: str,
    known: Policy | None = None,
    *,
    options: EngineOptions | None = None,
    observer: Observer | None = None,
) -> Adoption:
    """Enter the release of a run that published it without an account; nothing is published.

    place, database: the catalog that the run is in, and its database. known: a policy whose `subject`, `people` and
    `history.k` hold in place of those of the run's policy.

    Raises what `run` raises; PolicyError where the release is entered, can't be, or its source has changed.
    """
    policy = _policy(recorded, place, database, known)
    with interruptible(), open_session(policy, options or EngineOptions(), replace_release=True) as session:
        source = Adopted(session.catalog, recorded, known.history if known is not None else HistorySection())
        carry_out(session, policy, source, EnterOnly(), observer)
    assert source.entered is not None
    assert source.entered.history is not None
    return Adoption(recorded.id, source.entered.history, source.entered.history_problem)


def _policy(recorded: Run, place: CatalogAddress, database: str, known: Policy | None) -> Policy:
    """The policy of the run, with an account, and with the database that the catalog is in."""
    stored = stored_policy(recorded, place.url, database, known)
    asking = stored if known is None else known
    k = asking.history.k or k_of_history(asking)
    changes: dict[str, Any] = {
        "catalog": CatalogSection(url=place.url, schema=place.schema),
        "republish": ALLOW,  # the release is out already
        "history": HistorySection(mode="watch", k=k if k > 1 else None),
        "people": asking.people or stored.people,
    }
    return stored.model_copy(update=changes)


class Adopted(ClassSource):
    """The release of a run, made again by its rules.

    history: of a policy that is named: whether it is the first batch of a release that others are added to.
    entered: the run as the account knows it, when it is entered.
    """

    algorithm = "adopt"

    def __init__(self, catalog: Catalog, recorded: Run, history: HistorySection) -> None:
        self.recorded, self.history = recorded, history
        self.rules_run = catalog.rules_run(recorded.id)
        self.rules_digest = catalog.recoding_digest(recorded.id)
        self.again = recoded_again(catalog, recorded, require_rules(catalog, recorded))
        self.entered: ClassRun | None = None
        self._released: str | None = None

    @property
    def entry(self) -> AccountEntry:
        """The release as it is about to be entered, under the id of the run that published it."""
        assert self._entry is not None
        self.entered = copy.copy(self._entry.run)
        self.entered.id = self.recorded.id
        return replace(self._entry, run=self.entered, adds=self.history.adds)

    def enters_rows(self, run: ClassRun) -> bool:  # noqa: ARG002
        return self.history.lets_go

    def require_source(self, run: ClassRun) -> None:
        self.again.require_source(run)

    def require_plan(self, run: ClassRun) -> None:
        assert run.way_out is not None
        assert run.way_out.people is not None
        account = run.catalog.account(run.way_out.people.name)
        if self.history.adds and account is not None and run.catalog.batches(account):
            raise PolicyError(f"history: {account.name} has batches, and the release of this run is none of them.")

    def resolve(self, run: ClassRun, *, replace: bool, is_part: bool) -> Any:
        try:
            return super().resolve(run, replace=replace, is_part=is_part)
        except PolicyError as error:
            error.add_note(f"Run {self.recorded.id} was published, and can't be entered so; nothing was changed.")
            raise

    def encode(self, run: ClassRun) -> Encoded:
        return self.again.encode(run)

    def distinct_tuples(self, run: ClassRun, coded: Any) -> Tuples | None:
        return self.again.distinct_tuples(run, coded)

    def decide(self, run: ClassRun, encoded: Encoded) -> Release:
        self._released = digest_of_release(run.catalog, self.recorded, run.plan)
        source = run.outcome.source_rows, run.outcome.fingerprint
        require_same_source(self.recorded, *source, run.engine.version, self._released)
        return self.again.decide(run, encoded)

    def keep_rules(self, run: ClassRun, release: Release) -> None:
        """Keep none: they are stored."""

    def verify(self, run: ClassRun, staged: Staged) -> Mapping[str, Check]:
        checks = super().verify(run, staged)
        require_same_release(self.recorded, run.outcome.build(), run.outcome.digest, self._released)
        return checks

    def describe(self, run: ClassRun, staged: Staged) -> DescribedRelease:
        raise NotImplementedError("A release that is adopted is not published.")

    def record(self, result: RunResult) -> None:
        """Record no result: that of the run that published the release stands."""


class EnterOnly(Publish):
    """The release is staged and verified, and its persons are entered; nothing is published."""

    ends_as = Status.DRY
    done = "The release WAS entered in the account; a step after that failed."

    def __init__(self) -> None:
        super().__init__(replace=True)
        self.entered = False

    def plan(self, run: RunExecution[Any], source: Any) -> Any:
        plan = super().plan(run, source)
        _refuse_entered(run.catalog, source.recorded.id)
        return plan

    def release_name(self, plan: Any) -> str:  # noqa: ARG002
        return NO_RELEASE

    def is_done(self, run: RunExecution[Any]) -> bool:  # noqa: ARG002
        return self.entered

    def publish(self, run: RunExecution[Any], source: Any, staged: Staged) -> None:  # noqa: ARG002
        """Enter the persons of the staged release, which goes when the run ends."""
        assert run.way_out is not None
        session = run.session.target
        assert run.way_out.people is not None
        with run.journal.during("publish"), run.catalog.entering(run.way_out.people.name):
            _refuse_entered(run.catalog, source.recorded.id)
            with session.transaction():
                run.control.finish()
                source.entry.enter(session)
            self.entered = True


def unentered_runs(engine: Engine, catalog: Catalog, people: str) -> list[Run]:
    """List the runs of a catalog that published a release about people, and are in no account; the newest first.

    engine: of the database of the runs' sources.
    """
    published = [run for run in catalog.runs(None) if run.status is Status.PUBLISHED]
    named = [(run, json.loads(run.policy).get("people")) for run in published]
    known = {source: _people_of(engine, catalog, source) for source in {run.source for run, name in named if not name}}
    about = [run for run, name in named if people in ([name] if name else known[run.source])]
    return [run for run in about if catalog.account_release(run.id) is None]


def _people_of(engine: Engine, catalog: Catalog, source: str) -> list[str]:
    """Name the accounts that know the people of a source as runs record it, and the one that would be opened."""
    is_table = source.endswith('"') and catalog.current() is not None
    return [source, *(accounts_of_source(engine, catalog, Relation.parse(source)) if is_table else [])]


def _refuse_entered(catalog: Catalog, run: str) -> None:
    entered = catalog.account_release(run)
    if entered is not None:
        name = next(one.name for one in catalog.accounts() if one.id == entered.account)
        raise PolicyError(f"Run {run} is entered already: it is release {entered.number:,} of {name}.")
