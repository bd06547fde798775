"""A run while it is carried out: what its steps share, and what they hand to each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlanon.catalog import Catalog
from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.distinct_tuples import Tuples
from sqlanon.engines.base import Engine
from sqlanon.models import PrivacyModel, models_of
from sqlanon.plan.plan import Plan
from sqlanon.policy import Policy
from sqlanon.runs.checkpoints import CheckpointBasis
from sqlanon.runs.files import FilesRead
from sqlanon.runs.gates import WayOut
from sqlanon.runs.result_builder import ResultBuilder
from sqlanon.work.control import Control
from sqlanon.work.journal import Journal, Observer
from sqlanon.work.session import Session
from sqlanon.work.workspace import Workspace


class RunExecution:
    """The sessions, policy, models and journal of a run, and, as soon as it has them, its plan and work tables.

    snapshot: the plan for a source that stays as it is while it is coded: a copy, where the engine has no snapshots.
    way_out: the gates before the release, where the run publishes.
    """

    plan: Plan
    snapshot: Plan
    workspace: Workspace
    control: Control
    outcome: ResultBuilder
    files: FilesRead

    def __init__(self, session: Session, policy: Policy, observer: Observer) -> None:
        self.session = session
        self.policy = policy
        self.observer = observer
        self.models: tuple[PrivacyModel, ...] = models_of(policy)
        self.journal = Journal(observer)
        self.way_out: WayOut | None = None

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
    def linked(self) -> str | None:
        """The warning about earlier releases of the source by other rules."""
        return None if self.way_out is None else self.way_out.linked

    @property
    def catalog(self) -> Catalog:
        return self.session.catalog


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
