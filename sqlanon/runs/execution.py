"""A run while it is carried out: what the flow, its source and its destination share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from sqlanon.catalog import Catalog, Released
from sqlanon.catalog.accounts import GrowingRelease
from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.distinct_tuples import Tuples
from sqlanon.engines import redacted
from sqlanon.engines.base import Engine
from sqlanon.models import PrivacyModel, models_of
from sqlanon.plan.plan import Plan
from sqlanon.policy import Policy
from sqlanon.releases.base import Release
from sqlanon.results.history import DepartureFigures, HistoryFigures, RepairFigures
from sqlanon.results.run_result import CatalogPlace
from sqlanon.runs.checkpoints import CheckpointBasis
from sqlanon.runs.fingerprint import FilesRead
from sqlanon.runs.gates import WayOut
from sqlanon.runs.result_builder import ResultBuilder
from sqlanon.sql import Relation
from sqlanon.support.environment import named
from sqlanon.work.control import Control
from sqlanon.work.journal import Journal, Observer
from sqlanon.work.session import Session, catalog_place
from sqlanon.work.workspace import Workspace


class PlannedRelease(Protocol):
    """A plan, as far as the flow knows it: names of the source and the release, by which records and locks go."""

    @property
    def source_place(self) -> str: ...

    @property
    def source_name(self) -> str: ...

    @property
    def release(self) -> Relation: ...

    @property
    def release_name(self) -> str: ...


PlanT = TypeVar("PlanT", bound=PlannedRelease)


class RunExecution(Generic[PlanT]):
    """The sessions, policy and journal of a run, and, as soon as it has them, its id, plan and work tables.

    version: of the source's file, which must stay as it is; None where the source is a table.
    source_rows: how many rows the source has, as far as the run knows.
    way_out: the gates before the release, where the run publishes; notes: what publishing says.
    earlier: the newest release of a source before this run.
    """

    id: str
    plan: PlanT
    workspace: Workspace
    control: Control

    def __init__(self, session: Session, policy: Policy, observer: Observer) -> None:
        self.session = session
        self.policy = policy
        self.observer = observer
        self.journal = Journal(observer)
        self.version: tuple[int, ...] | None = None
        self.source_rows: int | None = None
        self.way_out: WayOut | None = None
        self.earlier: Released | None = None
        self.notes: tuple[str, ...] = ()

    @property
    def engine(self) -> Engine:
        """The session with the source's database."""
        return self.session.engine

    @property
    def keeper_of_locks(self) -> Engine:
        """The session whose locks keep other runs away from the release."""
        target = self.session.target
        return target if target.traits.has_locks else self.catalog.store

    @property
    def published(self) -> bool:
        """Tell whether readers see the release."""
        return self.way_out is not None and self.way_out.published

    @property
    def linked(self) -> str | None:
        """The warning about earlier releases of the source by other rules."""
        return None if self.way_out is None else self.way_out.linked

    def warnings_of_earlier(self, warn: Callable[[str, str], str]) -> tuple[str, ...]:
        """Warn in the words of `warn` that the source was released before, and of catalogs that can't be read."""
        warnings = () if self.earlier is None else (warn(self.earlier.shown, self.plan.source_name),)
        return (*warnings, *self.catalog.unread(self.plan.source_place))

    @property
    def catalog(self) -> Catalog:
        return self.session.catalog

    @property
    def catalog_place(self) -> CatalogPlace:
        """The catalog that the run is recorded in, for its result."""
        return CatalogPlace(redacted(named(catalog_place(self.policy)[0])), self.catalog.location.schema)


class ClassRun(RunExecution[Plan]):
    """A run whose release shows classes of rows.

    growth: the release that the run adds rows to; None where it makes one.
    arrived: how many persons no batch of that release has.
    changed: how the release in whose place this one is put differs from the one that was entered; None where it does
        not.
    departures: the rows of persons who are gone, where these leave; departure_notes: what publishing said of that.
    history: the figures of all releases about the same people, where this one is entered; history_problem: what they
        tell together that they should not.
    repaired: the repair of the release, where there was one; unrepaired: why a repair that was wanted can't be.
    known_lines: how many lines the account had when the search read the sets of values that it knows.
    snapshot: the plan for a source that stays as it is while it is coded: a copy, where the engine has no snapshots.
    """

    snapshot: Plan
    outcome: ResultBuilder
    files: FilesRead
    encoded: Encoded
    release: Release

    def __init__(self, session: Session, policy: Policy, observer: Observer) -> None:
        super().__init__(session, policy, observer)
        self.models: tuple[PrivacyModel, ...] = models_of(policy)
        self.growth: GrowingRelease | None = None
        self.arrived: int | None = None
        self.changed: str | None = None
        self.departures: DepartureFigures | None = None
        self.departure_notes: tuple[str, ...] = ()
        self.history: HistoryFigures | None = None
        self.history_problem: str | None = None
        self.repaired: RepairFigures | None = None
        self.unrepaired: str | None = None
        self.known_lines = 0


@dataclass(frozen=True)
class Encoded:
    """The source as codes, of one snapshot.

    tuples: its distinct tuples with counts, where the search works on them.
    unmatched_rows: rows that were suppressed before anything was coded.
    basis: what a search over it goes by, where it may be taken up later.
    values: how many different values each quasi-identifier has.
    """

    coded: CodedTable
    tuples: Tuples | None = None
    unmatched_rows: int = 0
    basis: CheckpointBasis | None = None
    values: Mapping[str, int] = field(default_factory=dict)
