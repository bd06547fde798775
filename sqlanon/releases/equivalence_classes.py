"""Releases of equivalence classes, written and checked by a recoding, whatever it shows of each class."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

from sqlanon.engines.base import Engine
from sqlanon.measures.before import count_labels
from sqlanon.plan.plan import Plan
from sqlanon.releases.base import Judged, Release
from sqlanon.results.measures import Check
from sqlanon.results.search_facts import Facts
from sqlanon.sql import Relation
from sqlanon.staging.labels import EVERYTHING
from sqlanon.staging.partition import Partition
from sqlanon.staging.recode import Recoding, create_witness, witness_of
from sqlanon.staging.staging import Staged, stage_release
from sqlanon.verification.checking import check_release
from sqlanon.verification.hidden_persons import create_persons
from sqlanon.verification.verdict import Verification
from sqlanon.verification.verify import verify_table
from sqlanon.work.session import Session
from sqlanon.work.workspace import Workspace


@dataclass(frozen=True)
class EquivalenceClasses(Release):
    """Equivalence classes of rows, as a recoding shows them."""

    recoding: Recoding

    @property
    def partition(self) -> Partition:
        return self.recoding.partition

    @property
    def rounds(self) -> int:
        return self.partition.rounds

    @property
    def suppressed(self) -> int:
        return self.partition.suppressed

    @property
    def omitted(self) -> int:
        return self.partition.omitted

    @property
    def facts(self) -> Facts:
        return self.partition.facts

    @property
    def shown_columns(self) -> list[str]:
        return [cell.column.name for cell in self.recoding.cells]

    def stage(
        self, session: Session, plan: Plan, workspace: Workspace, *, replace: bool
    ) -> AbstractContextManager[Staged]:
        return stage_release(session, plan, workspace, self.recoding, replace)

    def check_claims(self, engine: Engine, workspace: Workspace, plan: Plan, staged: Staged) -> dict[str, Check]:
        return check_release(engine, workspace, plan, self.recoding, staged)

    @contextlib.contextmanager
    def judged(
        self, engine: Engine, workspace: Workspace, plan: Plan, staged: Staged, *, whole: bool = False
    ) -> Iterator[Judged]:
        """Give the staged rows; where they hide whose they are, the source's persons with what their classes show.

        These come from the rows that `check_claims` left.
        """
        if self.recoding.coded.person is None:
            with super().judged(engine, workspace, plan, staged, whole=whole) as judged:
                yield judged
            return
        numbered = plan.policy.history.is_kept
        witness = witness_of(workspace)
        hidden = create_persons(engine, workspace, self.recoding, witness, whole=whole, numbered=numbered)
        yield Judged(engine, hidden.table, self.shown_columns, hidden.person, hidden.rows, hidden.number)
        workspace.drop(hidden.table)

    def measure_persons(self, engine: Engine, workspace: Workspace) -> Verification:
        witness = create_witness(engine, workspace, self.recoding)
        hidden = create_persons(engine, workspace, self.recoding, witness)
        label = EVERYTHING if self.starred_rows else None
        judged = Judged(engine, hidden.table, self.shown_columns, hidden.person, hidden.rows)
        measured = verify_table(
            engine, hidden.table, self.shown_columns, (), suppressed_label=label, person=hidden.person
        )
        workspace.drop(hidden.table, witness)
        return judged.of_rows(measured)

    def count_labels(self, engine: Engine) -> dict[str, int]:
        return count_labels(engine, self.recoding)

    @property
    def classes(self) -> Relation:
        return self.recoding.regions
